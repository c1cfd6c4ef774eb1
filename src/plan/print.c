/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - a program as a listing for people, with the live bytes beside each line, and its
 * buffers as CSV.
 */
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

uint64_t sn_program_live_bytes(const sn_program *program, uint32_t instr)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < program->n_buffers; i++)
        if (program->buffers[i].first <= instr && instr <= program->buffers[i].last)
            sum += program->buffers[i].bytes;
    return sum;
}

static void print_view(const sn_program *p, sn_device *device, const sn_view *view, bool full,
                       sn_buf *out)
{
    char shape[96], layout[48];
    if (view->buffer == UINT32_MAX) {
        sn_buf_puts(out, " -");
        return;
    }
    sn_buf_printf(out, " %s@", p->buffers[view->buffer].name);
    if (p->n_slabs > 1)
        sn_buf_printf(out, "%u:", view->slab);
    sn_buf_printf(out, "%" PRIu64, view->offset);
    if (!full)
        return;
    device->backend->layout_name(device, view->layout, layout, sizeof layout);
    sn_buf_printf(out, "%s%s%s", sn_shape_format(shape, sizeof shape, &view->desc.shape),
                  view->desc.dtype == SN_F32 ? "" : sn_dtype_name(view->desc.dtype),
                  view->layout.kind == SN_LAYOUT_PLAIN ? "" : layout);
}

static void print_instr(const sn_program *p, sn_device *device, uint32_t i, sn_buf *out)
{
    static const char *const phases[] = {"f", "b", "u"};
    const sn_instr *in = &p->instrs[i];
    char live[32], what[64];
    snprintf(what, sizeof what, "%s/%s", sn_op_of(in->op)->name,
             device->backend->kernel_name(device, in->op, in->kernel));
    sn_buf_printf(out, "%5u %s%s %9s  %-28s %-24s", i, phases[in->phase], in->queue ? " copy" : "",
                  sn_format_bytes(live, sizeof live, sn_program_live_bytes(p, i)), what, in->layer);
    for (int k = 0; k < in->n_out; k++)
        print_view(p, device, &in->out[k], true, out);
    sn_buf_puts(out, " <-");
    for (int k = 0; k < in->n_in; k++)
        print_view(p, device, &in->in[k], false, out);
    if (in->workspace.buffer != UINT32_MAX)
        sn_buf_printf(out, "  scratch %" PRIu64 " @%" PRIu64, in->workspace.bytes,
                      in->workspace.offset);
    for (uint32_t k = 0; k < in->n_waits; k++)
        sn_buf_printf(out, "  waits for %u", in->waits[k]);
    sn_buf_putc(out, '\n');
}

void sn_program_print(const sn_program *program, sn_device *device, sn_buf *out)
{
    char text[32];
    uint64_t sum = 0;
    for (size_t s = 0; s < program->n_slabs; s++)
        sum += program->slab_bytes[s];
    sn_buf_printf(out,
                  "# batch %" PRId64 ", %zu instructions, %zu buffers, arena %s in %zu slab%s\n"
                  "# line, phase, live bytes, operator/kernel, layer, results@offset <- inputs\n",
                  program->batch, program->n_instrs, program->n_buffers,
                  sn_format_bytes(text, sizeof text, sum), program->n_slabs,
                  program->n_slabs == 1 ? "" : "s");
    for (uint32_t i = 0; i < program->n_instrs; i++)
        print_instr(program, device, i, out);
}

/* Half-open lifetimes, as the placing of files has them. With several slabs, the offset counts on
 * from the slabs before. */
void sn_program_csv(const sn_program *program, sn_buf *out)
{
    sn_buf_puts(out, "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < program->n_buffers; i++) {
        const sn_program_buffer *b = &program->buffers[i];
        uint64_t base = 0;
        for (uint32_t s = 0; s < b->slab; s++)
            base += program->slab_bytes[s];
        for (const char *c = b->name; *c; c++)
            sn_buf_putc(out, *c == ',' || *c == '\n' || *c == '\r' ? '_' : *c);
        sn_buf_printf(out, ",%u,%u,%" PRIu64 ",%" PRIu64 "\n", b->first, b->last + 1, b->bytes,
                      base + b->offset);
    }
}
