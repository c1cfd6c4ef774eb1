/* SPDX-License-Identifier: Apache-2.0
 *
 * test_graph.c - from a model to a graph: what is fused, what is computed twice, in which order
 * gradients and updates stand, and that none of it changes a bit: every graph is run with the
 * operators' plain C and compared with the graph of which no pass was made.
 */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "graph/model.h"

enum { BATCH = 2, CLASSES = 3 };

/* ---- models ---------------------------------------------------------------------------------- */

static snug_model *begin(snug_tensor *x)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, "net", &err), &err);
    *x = snug_input(m, 8, 8, 2);
    return m;
}

static snug_model *end(snug_model *m, snug_tensor x)
{
    snug_error err = SNUG_ERROR_INIT;
    x = snug_dense(m, snug_flatten(m, x, NULL),
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "out", .units = CLASSES,
                                         .activation = SNUG_SOFTMAX});
    if (snug_model_finish(m, x, &err))
        fail_msg("%s: %s", err.where, err.what);
    return m;
}

static snug_tensor conv(snug_model *m, snug_tensor x, const char *name, int64_t filters,
                        int64_t kernel, snug_activation_kind activation)
{
    return snug_conv2d(m, x,
                       &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = name, .filters = filters,
                                            .kernel = {kernel, kernel}, .activation = activation});
}

static snug_tensor norm(snug_model *m, snug_tensor x, const char *name)
{
    return snug_batch_norm(m, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .name = name});
}

static snug_tensor activation(snug_model *m, snug_tensor x, snug_activation_kind kind)
{
    return snug_activation(m, x,
                           &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS, .kind = kind});
}

/* Padding, ReLU and pooling after a convolution; BatchNorm and ReLU. */
static snug_model *straight(void)
{
    snug_tensor x;
    snug_model *m = begin(&x);
    x = snug_zero_padding2d(m, x, (int64_t[]){1, 1, 1, 1}, NULL);
    x = conv(m, x, "conv", 4, 3, SNUG_RELU);
    x = snug_max_pool2d(m, x, &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = "pool"});
    x = conv(m, x, "conv2", 4, 3, SNUG_LINEAR);
    x = snug_relu(m, norm(m, x, "bn"), 0, NULL);
    return end(m, conv(m, x, "conv3", 4, 1, SNUG_LINEAR));
}

static snug_model *residual(void)
{
    snug_tensor x, y;
    snug_model *m = begin(&x);
    x = y = snug_relu(m, norm(m, conv(m, x, "a", 4, 1, SNUG_LINEAR), "bn_a"), 6, NULL);
    y = snug_relu(m, norm(m, conv(m, y, "b", 4, 1, SNUG_LINEAR), "bn_b"), 0, NULL);
    y = norm(m, conv(m, y, "c", 4, 1, SNUG_LINEAR), "bn_c");
    x = snug_relu(m, snug_add(m, x, y, NULL), 0, NULL);
    snug_tensor both[] = {x, activation(m, conv(m, x, "d", 3, 1, SNUG_LINEAR), SNUG_SILU)};
    x = snug_concatenate(m, both, 2, -1, NULL);
    x = snug_dropout(m, x, .3f, NULL, NULL);
    return end(m, snug_average_pool2d(m, x, NULL));
}

/* ResNet's stem, with BatchNorm and without. */
static snug_model *stem(bool with_bn, bool read_twice)
{
    snug_tensor x, y;
    snug_model *m = begin(&x);
    x = conv(m, x, "conv", 4, 3, SNUG_LINEAR);
    x = snug_relu(m, with_bn ? norm(m, x, "bn") : x, 0, NULL);
    y = snug_zero_padding2d(m, x, (int64_t[]){1, 1, 1, 1}, "pad");
    y = snug_max_pool2d(m, y,
                        &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = "pool", .window = {3, 3},
                                             .strides = {2, 2}});
    if (!read_twice)
        return end(m, y);
    x = snug_average_pool2d(m, x, NULL);
    return end(m, snug_add(m, x, conv(m, y, "wide", 4, 1, SNUG_LINEAR), NULL));
}

static snug_model *stem_bn(void)
{
    return stem(true, false);
}

static snug_model *stem_plain(void)
{
    return stem(false, false);
}

static snug_model *stem_read_twice(void)
{
    return stem(false, true);
}

static snug_model *many_kinds(void)
{
    snug_tensor x;
    snug_model *m = begin(&x);
    x = snug_rescaling(m, x, 2, -.5f, NULL);
    x = snug_separable_conv2d(m, x,
                              &(snug_conv_options){SNUG_CONV_DEFAULTS, .filters = 4,
                                                   .kernel = {3, 3}, .padding = SNUG_SAME});
    x = snug_layer_norm(m, x, NULL);
    x = snug_prelu(m, x, true, NULL);
    x = snug_conv2d_transpose(m, x,
                              &(snug_conv_options){SNUG_CONV_DEFAULTS, .filters = 4,
                                                   .kernel = {2, 2}, .strides = {2, 2}});
    x = snug_group_norm(m, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .groups = 2});
    x = activation(m, x, SNUG_GELU);
    x = snug_cropping2d(m, x, (int64_t[]){1, 1, 1, 1}, NULL);
    x = snug_zero_padding2d(m, x, (int64_t[]){0, 1, 0, 1}, NULL);
    x = snug_average_pool2d(m, x, NULL);
    x = snug_scalar(m, x, SNUG_SCALAR_RSUBTRACT, 1, NULL);
    x = snug_upsampling2d(m, x, 2, 1, true, NULL);
    return end(m, snug_permute(m, x, (int[]){3, 1, 2}, NULL));
}

/* ---- looking ----------------------------------------------------------------------------------
 */

static const sn_graph_options training = {
    .batch = BATCH, .mode = SN_GRAPH_TRAIN, .update = {.kind = SN_UPDATE_SGD, .momentum = .9f}};

static sn_graph *graph_of(const snug_model *m, const sn_graph_options *o)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_graph *g;
    if (sn_graph_from_model(&g, m, o, &err))
        fail_msg("%s: %s", err.where, err.what);
    assert_ok(sn_graph_check(g, &err), &err);
    return g;
}

/* "conv2d conv\n..." of the nodes; operators with a fused activation have a "+" behind them. */
static char *outline(sn_graph *g, sn_buf *b)
{
    sn_buf_init(b, SN_TAG_TEST);
    for (size_t i = 0; i < g->nodes.n; i++) {
        sn_node *n = &g->nodes.at[i];
        const sn_act_attrs *act = sn_graph_fused_act(n);
        sn_buf_printf(b, "%s%s %s%s\n", sn_op_of(n->op)->name,
                      act && act->kind != SN_ACT_NONE ? "+" : "", n->layer,
                      n->is_replay ? " again" : "");
    }
    return b->data;
}

static void outline_is(const snug_model *m, const sn_graph_options *o, const char *expected)
{
    sn_buf b;
    sn_graph *g = graph_of(m, o);
    assert_string_equal(outline(g, &b), expected);
    sn_buf_deinit(&b);
    sn_graph_free(g);
}

static size_t find(const sn_graph *g, sn_op_id op, const char *layer)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].op == op && sn_str_eq(g->nodes.at[i].layer, layer))
            return i;
    return SIZE_MAX;
}

static size_t count(const sn_graph *g, sn_op_id op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->nodes.n; i++)
        n += g->nodes.at[i].op == op;
    return n;
}

/* The whole walk over a small net: padding and ReLU fused, the mask of "conv" applied at the pool,
 * BatchNorm + ReLU computed again, weights' gradients first, updates as soon as they may be. */
static void a_training_graph(void **state)
{
    snug_model *m = straight();
    outline_is(m, &training,
               "conv2d+ conv\npool2d pool\nconv2d conv2\nbatch_norm+ bn\nconv2d conv3\n"
               "reshape flatten\ndense out\nloss loss\n"
               "loss_dx loss\n"
               "dense_dw out\ndense_dx out\nupdate out\nupdate out\n"
               "reshape flatten\n"
               "batch_norm_apply+ bn again\n"
               "conv2d_dw conv3\nconv2d_dx conv3\nupdate conv3\nupdate conv3\n"
               "batch_norm_dx bn\nmoving_average bn\nmoving_average bn\nupdate bn\nupdate bn\n"
               "conv2d_dw conv2\nconv2d_dx conv2\nupdate conv2\nupdate conv2\n"
               "activation_dx pool\npool2d_dx pool\n"
               "conv2d_dw conv\nupdate conv\nupdate conv\n");
    snug_model_free(m);
}

static void graphs_for_less(void **state)
{
    snug_model *m = straight();
    sn_graph_options o = {.batch = BATCH, .mode = SN_GRAPH_EVALUATE};
    static const char forward[] = "conv2d+ conv\npool2d pool\nconv2d conv2\n"
                                  "batch_norm_apply+ bn\nconv2d conv3\nreshape flatten\n"
                                  "dense out\n";
    char expected[400];
    snprintf(expected, sizeof expected, "%sloss loss\n", forward);
    outline_is(m, &o, expected);
    o.mode = SN_GRAPH_PREDICT;
    snprintf(expected, sizeof expected, "%ssoftmax out\n", forward);
    outline_is(m, &o, expected);
    /* a loss that takes probabilities reads the softmax */
    o = (sn_graph_options){.batch = BATCH, .mode = SN_GRAPH_EVALUATE, .loss = {SN_LOSS_MSE, 0, 0}};
    snprintf(expected, sizeof expected, "%ssoftmax out\nloss loss\n", forward);
    outline_is(m, &o, expected);
    snug_model_free(m);
}

static void without_passes(void **state)
{
    snug_model *m = straight();
    sn_graph_options o = training;
    o.no_passes = true;
    sn_graph *g = graph_of(m, &o);
    assert_int_equal(count(g, SN_OP_PAD2D), 1);
    assert_int_equal(count(g, SN_OP_ACTIVATION), 2);
    assert_int_equal(count(g, SN_OP_ACTIVATION_DX), 2);
    for (size_t i = 0; i < g->nodes.n; i++)
        assert_false(g->nodes.at[i].is_replay);
    sn_graph_free(g);
    o.no_passes = false;
    o.no_replay = true;
    g = graph_of(m, &o);
    assert_int_equal(count(g, SN_OP_BATCH_NORM_APPLY), 0);
    sn_graph_free(g);
    snug_model_free(m);
}

/* ---- fusing ---------------------------------------------------------------------------------- */

static void what_is_not_fused(void **state)
{
    snug_tensor x, y;
    snug_model *m = begin(&x); /* slopes and thresholds; other activations */
    x = conv(m, x, "a", 4, 1, SNUG_LEAKY_RELU);
    x = conv(m, x, "b", 4, 1, SNUG_TANH);
    x = snug_activation(
        m, conv(m, x, "c", 4, 1, SNUG_LINEAR),
        &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS, .kind = SNUG_RELU, .threshold = .5f});
    end(m, x);
    sn_graph *g = graph_of(m, &training);
    assert_int_equal(count(g, SN_OP_ACTIVATION), 3);
    sn_graph_free(g);
    snug_model_free(m);

    m = begin(&x); /* a convolution that is read twice; zeros before an average */
    x = conv(m, x, "a", 4, 1, SNUG_LINEAR);
    y = snug_relu(m, x, 0, NULL);
    x = snug_add(m, x, y, NULL);
    x = snug_zero_padding2d(m, x, (int64_t[]){1, 1, 1, 1}, NULL);
    end(m, snug_average_pool2d(m, x, NULL));
    g = graph_of(m, &training);
    assert_int_equal(count(g, SN_OP_ACTIVATION), 1);
    assert_int_equal(count(g, SN_OP_PAD2D), 1);
    sn_graph_free(g);
    snug_model_free(m);

    m = begin(&x); /* zeros before a maximum of numbers that may be negative; windows of zeros */
    x = conv(m, x, "a", 4, 1, SNUG_LINEAR);
    x = snug_zero_padding2d(m, x, (int64_t[]){1, 1, 1, 1}, NULL);
    x = snug_max_pool2d(m, x, NULL);
    x = snug_relu(m, conv(m, x, "b", 4, 1, SNUG_LINEAR), 0, NULL);
    x = snug_zero_padding2d(m, x, (int64_t[]){2, 0, 0, 0}, NULL);
    end(m, snug_max_pool2d(m, x, NULL));
    g = graph_of(m, &training);
    assert_int_equal(count(g, SN_OP_PAD2D), 2);
    sn_graph_free(g);
    snug_model_free(m);
}

/* The mask of a convolution that only a maximum reads goes behind the maximum. */
static void masks_at_pools(void **state)
{
    static const struct {
        bool with_bn, read_twice, masked;
    } rows[] = {{false, false, true}, {true, false, false}, {false, true, false}};
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        snug_model *m = stem(rows[i].with_bn, rows[i].read_twice);
        sn_graph *g = graph_of(m, &training);
        size_t mask = find(g, SN_OP_ACTIVATION_DX, "pool");
        assert_int_equal(mask != SIZE_MAX, rows[i].masked);
        if (rows[i].masked) /* the pooled output is what it reads */
            assert_int_equal(g->nodes.at[mask].in[0],
                             g->nodes.at[find(g, SN_OP_POOL2D, "pool")].out[0]);
        assert_int_equal(count(g, SN_OP_PAD2D), 0);
        sn_graph_free(g);
        snug_model_free(m);
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

static void weights_before_data_and_updates_after_readers(void **state)
{
    snug_model *(*const models[])(void) = {straight, residual, stem_bn, many_kinds};
    for (size_t k = 0; k < SN_LEN(models); k++) {
        snug_model *m = models[k]();
        sn_graph *g = graph_of(m, &training);
        size_t n_updates = 0;
        for (size_t i = 0; i < g->nodes.n; i++) {
            const sn_node *n = &g->nodes.at[i];
            bool forward = n->phase == SN_PHASE_FORWARD; /* a transposed convolution */
            if (!forward && (n->op == SN_OP_CONV2D_DX || n->op == SN_OP_DENSE_DX)) {
                size_t dw =
                    find(g, n->op == SN_OP_CONV2D_DX ? SN_OP_CONV2D_DW : SN_OP_DENSE_DW, n->layer);
                if (!sn_str_eq(n->layer, "separable_conv2d")) /* two convolutions */
                    assert_true(dw < i);
            }
            if (n->op != SN_OP_UPDATE)
                continue;
            n_updates++;
            for (size_t j = i + 1; j < g->nodes.n; j++)
                for (int in = 0; in < g->nodes.at[j].n_in; in++)
                    assert_true(g->nodes.at[j].in[in] != n->in[0]);
        }
        size_t n_trained = 0;
        for (size_t w = 0; w < snug_model_n_weights(m); w++)
            n_trained += sn_model_weight_trains(m, w);
        assert_int_equal(n_updates, n_trained);
        sn_graph_free(g);
        snug_model_free(m);
    }
}

/* Nodes put into a wrong order are found. */
static void the_check_finds_disorder(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = straight();
    sn_graph *g = graph_of(m, &training);
    size_t dx = find(g, SN_OP_DENSE_DX, "out"), update = find(g, SN_OP_UPDATE, "out");
    sn_node reader = g->nodes.at[dx];
    g->nodes.at[dx] = g->nodes.at[update]; /* the old weight is read after it was overwritten */
    g->nodes.at[update] = reader;
    assert_fails(sn_graph_check(g, &err), SNUG_E_INTERNAL, &err);
    sn_graph_free(g);
    g = graph_of(m, &training);
    sn_node first = g->nodes.at[0];
    g->nodes.at[0] = g->nodes.at[1];
    g->nodes.at[1] = first;
    assert_fails(sn_graph_check(g, &err), SNUG_E_INTERNAL, &err);
    sn_graph_free(g);
    snug_model_free(m);
}

static void gradients_that_are_kept(void **state)
{
    snug_model *m = residual();
    sn_graph_options o = training;
    o.keep_gradients = true;
    sn_graph *g = graph_of(m, &o);
    size_t n = 0;
    assert_int_equal(count(g, SN_OP_UPDATE), 0);
    for (size_t i = 0; i < g->values.n; i++)
        n += g->values.at[i].is_gradient && g->values.at[i].keep;
    size_t n_trained = 0;
    for (size_t w = 0; w < snug_model_n_weights(m); w++)
        n_trained += sn_model_weight_trains(m, w);
    assert_int_equal(n, n_trained);
    sn_graph_free(g);
    snug_model_free(m);
}

/* With clipping by the global norm all squares are summed before the first update, and the
 * penalty's gradient is there to be summed. */
static void clipping_by_the_global_norm(void **state)
{
    snug_tensor x;
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = begin(&x);
    x = snug_dense(m, snug_flatten(m, x, NULL),
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "d", .units = 3, .l2 = .1f});
    assert_ok(snug_model_finish(m, x, &err), &err);
    sn_graph_options o = training;
    o.update.clip_global = 1;
    outline_is(m, &o,
               "reshape flatten\ndense d\nloss loss\nsum_squares loss\nloss_dx loss\n"
               "dense_dw d\nscalar d\nbinary d\nsum_squares \nsum_squares \nupdate d\nupdate d\n");
    sn_graph *g = graph_of(m, &o);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].op == SN_OP_UPDATE) {
            assert_true(g->nodes.at[i].attrs.update.l2 == 0);
            assert_true(g->nodes.at[i].in[2] != SN_NO_REF);
        }
    sn_graph_free(g);
    o.update.clip_global = 0;
    outline_is(m, &o,
               "reshape flatten\ndense d\nloss loss\nsum_squares loss\nloss_dx loss\n"
               "dense_dw d\nupdate d\nupdate d\n");
    snug_model_free(m);
}

/* From 1 MiB on a dense kernel's gradient is never whole, unless a norm needs it. */
static void large_dense_layers(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, "wide", &err), &err);
    snug_tensor x = snug_input_features(m, 600);
    x = snug_dense(m, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "wide", .units = 512,
                                         .activation = SNUG_RELU});
    x = snug_dense(
        m, x,
        &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "bare", .units = 512, .no_bias = true});
    x = snug_dense(m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "out", .units = 3});
    assert_ok(snug_model_finish(m, x, &err), &err);
    outline_is(m, &training,
               "dense+ wide\ndense bare\ndense out\nloss loss\nloss_dx loss\n"
               "dense_dw out\ndense_dx out\nupdate out\nupdate out\n"
               "dense_dx bare\ndense_update bare\n"
               "activation_dx wide\nbias_grad wide\ndense_update wide\nupdate wide\n");
    sn_graph_options o = training;
    o.update.clip_norm = 1;
    sn_graph *g = graph_of(m, &o);
    assert_int_equal(count(g, SN_OP_DENSE_UPDATE), 0);
    assert_int_equal(count(g, SN_OP_DENSE_DW), 3);
    sn_graph_free(g);
    snug_model_free(m);
}

static void frozen_stages(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = straight();
    static const char *const frozen[] = {"conv", "conv2", "bn"};
    for (size_t i = 0; i < SN_LEN(frozen); i++)
        assert_ok(snug_model_set_trainable(m, frozen[i], false, &err), &err);
    outline_is(m, &training,
               "conv2d+ conv\npool2d pool\nconv2d conv2\nbatch_norm_apply+ bn\nconv2d conv3\n"
               "reshape flatten\ndense out\nloss loss\nloss_dx loss\n"
               "dense_dw out\ndense_dx out\nupdate out\nupdate out\nreshape flatten\n"
               "conv2d_dw conv3\nupdate conv3\nupdate conv3\n");
    snug_model_free(m);
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct runner {
    sn_graph *graph;
    float **at; /* of each root */
} runner;

static void fill(runner *r, size_t v, const snug_model *m)
{
    const sn_value *value = &r->graph->values.at[v];
    uint64_t n;
    assert_int_equal(sn_shape_count(&value->desc.shape, &n), SNUG_OK);
    if (value->kind == SN_VALUE_WEIGHT) {
        assert_int_equal(sn_model_init_weight(m, (size_t)value->weight, 3, r->at[v], NULL),
                         SNUG_OK);
    } else if (value->kind == SN_VALUE_CONSTANT) {
        memcpy(r->at[v], m->constants.at[value->weight].values, n * sizeof(float));
    } else if (value->kind == SN_VALUE_TARGET) {
        for (uint64_t i = 0; i < n; i++)
            ((int32_t *)r->at[v])[i] = (int32_t)(i % CLASSES);
    } else if (value->kind == SN_VALUE_X) {
        for (uint64_t i = 0; i < n; i++) {
            uint32_t word[4];
            sn_philox(word, 1, i, 2);
            r->at[v][i] = sn_uniform_f32(word[0]) - .5f;
        }
    }
}

static void run_node(runner *r, const sn_node *node)
{
    const sn_step step = {.number = 2, .seed = 9, .n_batch = BATCH, .lr = .1f};
    const sn_op *op = sn_op_of(node->op);
    sn_operand in[SN_MAX_IN], out[SN_MAX_OUT];
    sn_desc descs[SN_MAX_IN];
    for (int k = 0; k < node->n_in + node->n_out; k++) {
        sn_ref ref = k < node->n_in ? node->in[k] : node->out[k - node->n_in];
        sn_operand o = {NULL, sn_desc_absent()};
        if (ref != SN_NO_REF)
            o = (sn_operand){r->at[r->graph->values.at[ref].storage],
                             r->graph->values.at[ref].desc};
        *(k < node->n_in ? &in[k] : &out[k - node->n_in]) = o;
        if (k < node->n_in)
            descs[k] = o.desc;
    }
    uint64_t bytes =
        op->reference_workspace ? op->reference_workspace(&node->attrs, descs, node->n_in) : 0;
    void *workspace = sn_alloc(SN_TAG_TEST, bytes + 64);
    assert_non_null(workspace);
    sn_call call = {&node->attrs, in, out, node->n_in, node->n_out, workspace, &step};
    op->reference(&call);
    sn_free(workspace);
}

static void run(runner *r, const snug_model *m, const sn_graph_options *o)
{
    r->graph = graph_of(m, o);
    r->at = sn_alloc_array(SN_TAG_TEST, r->graph->values.n, sizeof *r->at);
    assert_non_null(r->at);
    for (size_t v = 0; v < r->graph->values.n; v++) {
        const sn_value *value = &r->graph->values.at[v];
        uint64_t bytes = 0;
        if (value->storage != v || sn_desc_bytes(&value->desc, &bytes))
            continue;
        r->at[v] = sn_alloc(SN_TAG_TEST, bytes + 64);
        assert_non_null(r->at[v]);
        memset(r->at[v], value->kind == SN_VALUE_TEMP ? 0xff : 0, bytes); /* NaN until written */
        fill(r, v, m);
    }
    for (size_t i = 0; i < r->graph->nodes.n; i++)
        run_node(r, &r->graph->nodes.at[i]);
}

static void end_run(runner *r)
{
    for (size_t v = 0; v < r->graph->values.n; v++)
        sn_free(r->at[v]);
    sn_free(r->at);
    sn_graph_free(r->graph);
}

/* The bytes of a weight, of its gradient, or of the loss (weight -1). */
static const float *result(const runner *r, int32_t weight, bool gradient, size_t *n)
{
    for (size_t v = 0; v < r->graph->values.n; v++) {
        const sn_value *value = &r->graph->values.at[v];
        bool wanted = weight < 0 ? v == r->graph->loss
                      : gradient ? value->is_gradient && value->weight == weight
                                 : value->kind == SN_VALUE_WEIGHT && value->weight == weight &&
                                       value->storage == v;
        if (wanted && value->desc.shape.rank > 0) {
            *n = (size_t)sn_shape_n(&value->desc.shape);
            return r->at[value->storage];
        }
    }
    fail_msg("no %s of weight %d", gradient ? "gradient" : "value", (int)weight);
    return NULL;
}

static void compare(const runner *a, const runner *b, int32_t weight, bool gradient,
                    const char *name)
{
    size_t n = 0, m = 0;
    const float *x = result(a, weight, gradient, &n), *y = result(b, weight, gradient, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&x[i], &y[i], sizeof *x) != 0)
            fail_msg("%s of %s, number %zu: %.9g without passes, %.9g with them",
                     gradient ? "gradient" : "value", name, i, (double)x[i], (double)y[i]);
        assert_true(x[i] - x[i] == 0);
    }
}

/* Fused, masked at pools, computed again, applied at once: the same bits. */
static void passes_change_no_bit(void **state)
{
    snug_model *(*const models[])(void) = {straight,   residual,        stem_bn,
                                           stem_plain, stem_read_twice, many_kinds};
    for (size_t k = 0; k < SN_LEN(models); k++)
        for (int form = 0; form < 4; form++) { /* gradients kept or applied, replay or not */
            snug_model *m = models[k]();
            sn_graph_options o = training;
            runner plain, passed;
            o.keep_gradients = form & 1;
            o.no_replay = form & 2;
            run(&passed, m, &o);
            o.no_passes = true;
            run(&plain, m, &o);
            compare(&plain, &passed, -1, false, "the loss");
            for (size_t w = 0; w < snug_model_n_weights(m); w++) {
                bool trains = sn_model_weight_trains(m, w);
                if (trains || !o.keep_gradients)
                    compare(&plain, &passed, (int32_t)w, trains && o.keep_gradients,
                            m->weights.at[w].name);
            }
            end_run(&plain);
            end_run(&passed);
            snug_model_free(m);
        }
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void bad_batches(void **state)
{
    static const int64_t batches[] = {0, -1, INT64_MAX, (int64_t)INT32_MAX + 1};
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = straight(), *unfinished;
    sn_graph *g;
    for (size_t i = 0; i < SN_LEN(batches); i++) {
        sn_graph_options o = training;
        o.batch = batches[i];
        assert_fails(sn_graph_from_model(&g, m, &o, &err), SNUG_E_USAGE, &err);
        assert_null(g);
    }
    snug_tensor x;
    unfinished = begin(&x);
    assert_fails(sn_graph_from_model(&g, unfinished, &training, &err), SNUG_E_USAGE, &err);
    snug_model_free(unfinished);
    snug_model_free(m);
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_graph),
        cmocka_unit_test(graphs_for_less),
        cmocka_unit_test(without_passes),
        cmocka_unit_test(what_is_not_fused),
        cmocka_unit_test(masks_at_pools),
        cmocka_unit_test(weights_before_data_and_updates_after_readers),
        cmocka_unit_test(the_check_finds_disorder),
        cmocka_unit_test(gradients_that_are_kept),
        cmocka_unit_test(clipping_by_the_global_norm),
        cmocka_unit_test(large_dense_layers),
        cmocka_unit_test(frozen_stages),
        cmocka_unit_test(passes_change_no_bit),
        cmocka_unit_test(bad_batches),
        cmocka_unit_test(leaks_nothing)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
