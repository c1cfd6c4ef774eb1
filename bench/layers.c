/* SPDX-License-Identifier: Apache-2.0
 *
 * Times single kernels of the CPU backend at the shapes of real networks, best of several runs:
 * what a convolution reaches in GF/s, what everything else reaches in GB/s.
 *
 *     bench_layers [net or "conv"] [batch] [repeats] [norm|dense]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "support/one.h"

typedef struct conv_row {
    const char *net;
    int64_t size, in, out, kernel, stride, groups;
    int count;
} conv_row;

static const conv_row convs[] = {
    {"resnet", 224, 3, 64, 7, 2, 1, 1},
    {"resnet", 56, 64, 64, 1, 1, 1, 1},
    {"resnet", 56, 64, 64, 3, 1, 1, 3},
    {"resnet", 56, 64, 256, 1, 1, 1, 4},
    {"resnet", 56, 256, 64, 1, 1, 1, 2},
    {"resnet", 56, 256, 128, 1, 2, 1, 1},
    {"resnet", 56, 256, 512, 1, 2, 1, 1},
    {"resnet", 28, 128, 128, 3, 1, 1, 4},
    {"resnet", 28, 128, 512, 1, 1, 1, 4},
    {"resnet", 28, 512, 128, 1, 1, 1, 3},
    {"resnet", 28, 512, 256, 1, 2, 1, 1},
    {"resnet", 28, 512, 1024, 1, 2, 1, 1},
    {"resnet", 14, 256, 256, 3, 1, 1, 6},
    {"resnet", 14, 256, 1024, 1, 1, 1, 6},
    {"resnet", 14, 1024, 256, 1, 1, 1, 5},
    {"resnet", 14, 1024, 512, 1, 2, 1, 1},
    {"resnet", 14, 1024, 2048, 1, 2, 1, 1},
    {"resnet", 7, 512, 512, 3, 1, 1, 3},
    {"resnet", 7, 512, 2048, 1, 1, 1, 3},
    {"resnet", 7, 2048, 512, 1, 1, 1, 2},
    {"mobilenet", 224, 3, 32, 3, 2, 1, 1},
    {"mobilenet", 112, 32, 32, 3, 1, 32, 1},
    {"mobilenet", 112, 32, 64, 1, 1, 1, 1},
    {"mobilenet", 112, 64, 64, 3, 2, 64, 1},
    {"mobilenet", 56, 64, 128, 1, 1, 1, 1},
    {"mobilenet", 56, 128, 128, 3, 1, 128, 1},
    {"mobilenet", 56, 128, 128, 1, 1, 1, 1},
    {"mobilenet", 56, 128, 128, 3, 2, 128, 1},
    {"mobilenet", 28, 128, 256, 1, 1, 1, 1},
    {"mobilenet", 28, 256, 256, 3, 1, 256, 1},
    {"mobilenet", 28, 256, 256, 1, 1, 1, 1},
    {"mobilenet", 28, 256, 256, 3, 2, 256, 1},
    {"mobilenet", 14, 256, 512, 1, 1, 1, 1},
    {"mobilenet", 14, 512, 512, 3, 1, 512, 5},
    {"mobilenet", 14, 512, 512, 1, 1, 1, 5},
    {"mobilenet", 14, 512, 512, 3, 2, 512, 1},
    {"mobilenet", 7, 512, 1024, 1, 1, 1, 1},
    {"mobilenet", 7, 1024, 1024, 3, 1, 1024, 1},
    {"mobilenet", 7, 1024, 1024, 1, 1, 1, 1},
    {"mobilenetv2", 112, 32, 16, 1, 1, 1, 1},
    {"mobilenetv2", 112, 16, 96, 1, 1, 1, 1},
    {"mobilenetv2", 112, 96, 96, 3, 2, 96, 1},
    {"mobilenetv2", 56, 96, 24, 1, 1, 1, 1},
    {"mobilenetv2", 56, 24, 144, 1, 1, 1, 2},
    {"mobilenetv2", 56, 144, 144, 3, 1, 144, 1},
    {"mobilenetv2", 56, 144, 24, 1, 1, 1, 1},
    {"mobilenetv2", 56, 144, 144, 3, 2, 144, 1},
    {"mobilenetv2", 28, 144, 32, 1, 1, 1, 1},
    {"mobilenetv2", 28, 32, 192, 1, 1, 1, 3},
    {"mobilenetv2", 28, 192, 192, 3, 1, 192, 2},
    {"mobilenetv2", 28, 192, 32, 1, 1, 1, 2},
    {"mobilenetv2", 14, 64, 384, 1, 1, 1, 4},
    {"mobilenetv2", 14, 384, 384, 3, 1, 384, 4},
    {"mobilenetv2", 7, 160, 960, 1, 1, 1, 3},
    {"mobilenetv2", 7, 320, 1280, 1, 1, 1, 1},
    {"vgg", 224, 3, 64, 3, 1, 1, 1},
    {"vgg", 224, 64, 64, 3, 1, 1, 1},
    {"vgg", 112, 64, 128, 3, 1, 1, 1},
    {"vgg", 112, 128, 128, 3, 1, 1, 1},
    {"vgg", 56, 128, 256, 3, 1, 1, 1},
    {"vgg", 56, 256, 256, 3, 1, 1, 2},
    {"vgg", 28, 256, 512, 3, 1, 1, 1},
    {"vgg", 28, 512, 512, 3, 1, 1, 2},
    {"vgg", 14, 512, 512, 3, 1, 1, 3},
    {"squeezenet", 224, 3, 64, 3, 2, 1, 1},
    {"squeezenet", 56, 64, 16, 1, 1, 1, 1},
    {"squeezenet", 56, 16, 64, 1, 1, 1, 2},
    {"squeezenet", 56, 16, 64, 3, 1, 1, 2},
    {"squeezenet", 28, 32, 128, 3, 1, 1, 2},
    {"squeezenet", 14, 48, 192, 3, 1, 1, 2},
    {"squeezenet", 14, 64, 256, 3, 1, 1, 2},
    {"squeezenet", 14, 512, 1000, 1, 1, 1, 1},
};

static int repeats = 5;

/* Best seconds of one instruction; negative: it could not be made. */
static double best(one_op *one, char *kernel, size_t n)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_step step = {.number = 1, .seed = 1, .n_batch = 16, .lr = 0.01f};
    double least = -1;
    if (one_make(one, &err)) {
        fprintf(stderr, "%s: %s\n", err.where, err.what);
        one_free(one);
        return -1;
    }
    snprintf(kernel, n, "%s",
             one->device->backend->kernel_name(one->device, one->op, one->proposal.kernel));
    /* Pages that were never written are all the same page: every operand gets its own. */
    for (int i = 0; i < one->n_in; i++) {
        float *at = one->device->backend->host_address(one->memory, &one->in_view[i]);
        for (uint64_t k = 0; at && k < one->in_view[i].bytes / 4; k++)
            at[k] = (float)(k * 2654435761u % 1024) * (1.0f / 1024) + (i == 4 ? 0.5f : -0.4f);
    }
    for (int i = 0; i < repeats; i++) {
        double start = sn_now();
        if (one_run(one, &step, &err)) {
            fprintf(stderr, "%s\n", err.what);
            break;
        }
        double took = sn_now() - start;
        if (least < 0 || took < least)
            least = took;
    }
    one_free(one);
    return least;
}

static sn_desc f32(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    sn_desc out = {SN_F32, {rank, {a, b, c, d}}};
    return out;
}

/* "same" pads as TensorFlow has them. */
static void set_pads(sn_conv_attrs *a, int64_t size, int64_t kernel, int64_t stride)
{
    int64_t out = (size + stride - 1) / stride, total = (out - 1) * stride + kernel - size;
    total = SN_MAX(total, 0);
    a->pad[0] = a->pad[2] = total / 2;
    a->pad[1] = a->pad[3] = total - total / 2;
}

static double conv_pass(sn_device *d, const conv_row *r, int64_t n, sn_op_id op, sn_layout *w,
                        char *kernel, size_t kernel_bytes)
{
    one_op one;
    memset(&one, 0, sizeof one);
    int64_t o = (r->size + r->stride - 1) / r->stride;
    sn_conv_attrs *a = &one.attrs.conv;
    a->stride[0] = a->stride[1] = r->stride;
    a->dilation[0] = a->dilation[1] = 1;
    a->groups = r->groups;
    a->in_hw[0] = a->in_hw[1] = r->size;
    a->kernel[0] = a->kernel[1] = r->kernel;
    set_pads(a, r->size, r->kernel, r->stride);
    sn_desc x = f32(4, n, r->size, r->size, r->in), y = f32(4, n, o, o, r->out);
    sn_desc wd = f32(4, r->kernel, r->kernel, r->in / r->groups, r->out);
    one.device = d;
    one.op = op;
    one.batch = n;
    if (op == SN_OP_CONV2D) {
        one.n_in = 3, one.n_out = 1;
        one.in[0] = x, one.in[1] = wd, one.in[2] = sn_desc_absent(), one.out[0] = y;
    } else if (op == SN_OP_CONV2D_DX) {
        one.n_in = 2, one.n_out = 1;
        one.in[0] = y, one.in[1] = wd, one.out[0] = x;
        one.in_layout[1] = *w;
    } else {
        one.n_in = 2, one.n_out = 2;
        one.in[0] = x, one.in[1] = y, one.out[0] = wd, one.out[1] = f32(1, r->out, 0, 0, 0);
        one.wish[0] = *w;
    }
    double t = best(&one, kernel, kernel_bytes);
    if (op == SN_OP_CONV2D)
        *w = one.proposal.in[1];
    return t;
}

static void bench_convs(sn_device *d, const char *net, int64_t n)
{
    double total[3] = {0, 0, 0}, work = 0;
    for (size_t i = 0; i < SN_LEN(convs); i++) {
        const conv_row *r = &convs[i];
        if (net && !sn_str_eq(net, r->net))
            continue;
        int64_t o = (r->size + r->stride - 1) / r->stride;
        double flops = 2.0 * (double)(n * o * o * r->out) * (double)(r->kernel * r->kernel) *
                       (double)(r->in / r->groups);
        sn_layout w = {SN_LAYOUT_UNSET, 0, 0};
        sn_op_id ops[3] = {SN_OP_CONV2D, SN_OP_CONV2D_DX, SN_OP_CONV2D_DW};
        printf("%-11s %3d^2 %4d -> %4d k%d s%d g%-4d x%d ", r->net, (int)r->size, (int)r->in,
               (int)r->out, (int)r->kernel, (int)r->stride, (int)r->groups, r->count);
        for (int p = 0; p < 3; p++) {
            char kernel[64] = "-";
            double t = p == 1 && r->in == 3 ? 0 : conv_pass(d, r, n, ops[p], &w, kernel, 64);
            total[p] += t * r->count;
            printf(" | %8.3f ms %6.1f GF/s %s", t * 1e3, t > 0 ? flops / t * 1e-9 : 0, kernel);
        }
        work += flops * r->count;
        printf("\n");
    }
    printf("total: forward %.3f s, data %.3f s, weights %.3f s; %.1f GF/s\n", total[0], total[1],
           total[2], 3 * work / (total[0] + total[1] + total[2]) * 1e-9);
}

typedef struct norm_row {
    const char *net;
    int64_t size, c;
    bool relu;
    int count;
} norm_row;

static const norm_row norms[] = {
    {"resnet", 112, 64, true, 1},      {"resnet", 56, 64, true, 6},
    {"resnet", 56, 256, false, 4},     {"resnet", 28, 128, true, 8},
    {"resnet", 28, 512, false, 5},     {"resnet", 14, 256, true, 12},
    {"resnet", 14, 1024, false, 7},    {"resnet", 7, 512, true, 6},
    {"resnet", 7, 2048, false, 4},     {"mobilenet", 112, 32, true, 2},
    {"mobilenet", 112, 64, true, 1},   {"mobilenet", 56, 64, true, 1},
    {"mobilenet", 56, 128, true, 3},   {"mobilenet", 28, 128, true, 1},
    {"mobilenet", 28, 256, true, 3},   {"mobilenet", 14, 256, true, 1},
    {"mobilenet", 14, 512, true, 11},  {"mobilenet", 7, 512, true, 1},
    {"mobilenet", 7, 1024, true, 3},   {"mobilenetv2", 56, 24, false, 2},
    {"mobilenetv2", 56, 144, true, 3},
};

static void bench_norms(sn_device *d, const char *net, int64_t n)
{
    double total[3] = {0, 0, 0};
    for (size_t i = 0; i < SN_LEN(norms); i++) {
        const norm_row *r = &norms[i];
        if (net && !sn_str_eq(net, r->net))
            continue;
        sn_op_id ops[3] = {SN_OP_BATCH_NORM, SN_OP_BATCH_NORM_APPLY, SN_OP_BATCH_NORM_DX};
        int passes[3] = {3, 2, 5}; /* over the tensor */
        printf("%-11s norm %3d^2 %4d x%-2d", r->net, (int)r->size, (int)r->c, r->count);
        for (int p = 0; p < 3; p++) {
            one_op one;
            char kernel[64];
            memset(&one, 0, sizeof one);
            sn_desc x = f32(4, n, r->size, r->size, r->c), v = f32(1, r->c, 0, 0, 0);
            one.device = d;
            one.op = ops[p];
            one.batch = n;
            one.attrs.norm.epsilon = 1e-3f;
            one.attrs.norm.act.kind = r->relu ? SN_ACT_RELU : SN_ACT_NONE;
            one.attrs.norm.act.max = r->net[0] == 'm' ? 6 : 0;
            int k = 0;
            one.in[k++] = x;
            if (p == 2)
                one.in[k++] = x;
            one.in[k++] = v, one.in[k++] = v;
            if (p)
                one.in[k++] = v, one.in[k++] = v;
            one.n_in = k;
            one.n_out = p == 1 ? 1 : 3;
            one.out[0] = x, one.out[1] = v, one.out[2] = v;
            if (p == 2)
                one.share[0] = 2;
            double t = best(&one, kernel, sizeof kernel);
            double bytes = (double)(n * r->size * r->size * r->c) * 4 * passes[p];
            total[p] += t * r->count;
            printf(" | %7.3f ms %5.1f GB/s %s", t * 1e3, bytes / t * 1e-9, kernel);
        }
        printf("\n");
    }
    printf("total: forward %.1f ms, apply %.1f ms, backward %.1f ms\n", total[0] * 1e3,
           total[1] * 1e3, total[2] * 1e3);
}

typedef struct dense_row {
    int64_t in, out;
} dense_row;

/* Bytes: the weights, as often as the pass must touch them. */
static void bench_dense(sn_device *d, int64_t n)
{
    static const dense_row rows[] = {{25088, 4096}, {4096, 4096}, {4096, 1000}, {2048, 1000}};
    static const sn_op_id ops[4] = {SN_OP_DENSE, SN_OP_DENSE_DX, SN_OP_DENSE_DW,
                                    SN_OP_DENSE_UPDATE};
    static const int passes[4] = {1, 1, 1, 4};
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        sn_desc x = f32(2, n, rows[i].in, 0, 0), y = f32(2, n, rows[i].out, 0, 0);
        sn_desc w = f32(2, rows[i].in, rows[i].out, 0, 0);
        printf("dense %5d -> %4d", (int)rows[i].in, (int)rows[i].out);
        for (int p = 0; p < 4; p++) {
            one_op one;
            char kernel[64];
            memset(&one, 0, sizeof one);
            one.device = d;
            one.op = ops[p];
            one.batch = n;
            one.in[0] = p == 1 ? y : x;
            one.in[1] = p >= 2 ? y : w;
            one.in[2] = one.in[3] = w;
            one.in[4] = sn_desc_absent();
            one.n_in = p == 3 ? 5 : 2;
            if (p == 0)
                one.in[2] = sn_desc_absent(), one.n_in = 3;
            one.out[0] = p == 0 ? y : p == 1 ? x : w;
            one.out[1] = p == 3 ? w : sn_desc_absent();
            one.out[2] = sn_desc_absent();
            one.n_out = p == 3 ? 3 : p == 2 ? 2 : 1;
            if (p == 3) {
                one.attrs.update.momentum = 0.9f;
                one.share[0] = 3, one.share[1] = 4;
            }
            double t = best(&one, kernel, sizeof kernel);
            double bytes = (double)(rows[i].in * rows[i].out) * 4 * passes[p];
            printf(" | %7.3f ms %5.1f GB/s %s", t * 1e3, bytes / t * 1e-9, kernel);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "resnet";
    int64_t n = argc > 2 ? atoi(argv[2]) : 16;
    repeats = argc > 3 ? atoi(argv[3]) : 5;
    sn_device_options options = {.n_threads = 2};
    snug_error err = SNUG_ERROR_INIT;
    sn_device *d;
    if (sn_backend_cpu.open(&d, "", &options, &err)) {
        fprintf(stderr, "%s\n", err.what);
        return 1;
    }
    sn_device_info info;
    sn_backend_cpu.info(d, &info);
    printf("%s, batch %d\n", info.name, (int)n);
    if (argc > 4 && sn_str_eq(argv[4], "norm"))
        bench_norms(d, what, n);
    else if (argc > 4 && sn_str_eq(argv[4], "dense"))
        bench_dense(d, n);
    else
        bench_convs(d, sn_str_eq(what, "conv") ? NULL : what, n);
    sn_backend_cpu.close(d);
    return 0;
}
