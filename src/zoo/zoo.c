/* SPDX-License-Identifier: Apache-2.0
 *
 * zoo.c - the table of models, and reading "vgg16:width=0.5,dense=1024".
 */
#include "zoo/zoo.h"

#include <stdio.h>
#include <string.h>

typedef struct zoo_row {
    const char *name;
    sn_zoo_builder build;
    int64_t side, channels, classes; /* by itself */
    int64_t depth, dense;            /* defaults; 0: the model has no such parameter */
    bool free_depth;                 /* depth is the user's to set */
    int64_t smallest;                /* side of the smallest image that it takes */
} zoo_row;

static const zoo_row rows[] = {
    {"mlp", sn_zoo_mlp, 28, 1, 10, 2, 128, true, 1},
    {"cnn", sn_zoo_cnn, 28, 1, 10, 2, 128, true, 4},
    {"mobilenet", sn_zoo_mobilenet, 224, 3, 1000, 0, 0, false, 32},
    {"mobilenetv2", sn_zoo_mobilenetv2, 224, 3, 1000, 0, 0, false, 32},
    {"squeezenet", sn_zoo_squeezenet, 224, 3, 1000, 0, 0, false, 21},
    {"vgg16", sn_zoo_vgg, 224, 3, 1000, 16, 4096, false, 32},
    {"vgg19", sn_zoo_vgg, 224, 3, 1000, 19, 4096, false, 32},
    {"resnet18", sn_zoo_resnet, 224, 3, 1000, 18, 0, false, 32},
    {"resnet34", sn_zoo_resnet, 224, 3, 1000, 34, 0, false, 32},
    {"resnet50", sn_zoo_resnet, 224, 3, 1000, 50, 0, false, 32},
    {"resnet101", sn_zoo_resnet, 224, 3, 1000, 101, 0, false, 32},
    {"resnet152", sn_zoo_resnet, 224, 3, 1000, 152, 0, false, 32},
};

static const char *const names[SN_LEN(rows)] = {
    "mlp",   "cnn",      "mobilenet", "mobilenetv2", "squeezenet", "vgg16",
    "vgg19", "resnet18", "resnet34",  "resnet50",    "resnet101",  "resnet152"};

const char *const *snug_zoo_names(size_t *n)
{
    *n = SN_LEN(names);
    return names;
}

int64_t sn_zoo_channels(const sn_zoo_params *params, int64_t n)
{
    if (params->width == 1) {
        return n;
    }
    double wanted = (double)n * params->width;
    int64_t rounded = SN_MAX((int64_t)(wanted + 4) / 8 * 8, 8);
    return (double)rounded < .9 * wanted ? rounded + 8 : rounded;
}

/* One "key=value". */
static snug_status read_parameter(const zoo_row *row, const char *key, const char *value,
                                  sn_zoo_params *p, snug_error *err)
{
    if (sn_str_eq(key, "width")) {
        return sn_parse_f64(value, .25, 2, &p->width)
                   ? SNUG_OK
                   : sn_fail(err, SNUG_E_USAGE, "%s: width=%.20s is not a number in 0.25..2",
                             row->name, value);
    }
    if (sn_str_eq(key, "classes")) {
        return sn_parse_i64(value, 1, 1000000, &p->classes)
                   ? SNUG_OK
                   : sn_fail(err, SNUG_E_USAGE, "%s: classes=%.20s is not a number in 1..1000000",
                             row->name, value);
    }
    if (sn_str_eq(key, "head")) {
        p->linear_head = sn_str_eq(value, "linear");
        return p->linear_head || sn_str_eq(value, "softmax")
                   ? SNUG_OK
                   : sn_fail(err, SNUG_E_USAGE, "%s: head=%.20s is neither softmax nor linear",
                             row->name, value);
    }
    if (sn_str_eq(key, "dense") && row->dense) {
        return sn_parse_i64(value, 1, 65536, &p->dense)
                   ? SNUG_OK
                   : sn_fail(err, SNUG_E_USAGE, "%s: dense=%.20s is not a number in 1..65536",
                             row->name, value);
    }
    if (sn_str_eq(key, "depth") && row->free_depth) {
        return sn_parse_i64(value, 1, 8, &p->depth)
                   ? SNUG_OK
                   : sn_fail(err, SNUG_E_USAGE, "%s: depth=%.20s is not a number in 1..8",
                             row->name, value);
    }
    return sn_fail(err, SNUG_E_USAGE,
                   "%s has no parameter '%.20s': it takes width, classes, head%s%s", row->name, key,
                   row->dense ? ", dense" : "", row->free_depth ? ", depth" : "");
}

static snug_status read_parameters(const zoo_row *row, const char *text, sn_zoo_params *p,
                                   snug_error *err)
{
    while (*text) {
        char key[32], value[32];
        size_t k = strcspn(text, "=,");
        size_t v = text[k] == '=' ? strcspn(text + k + 1, ",") : 0;
        if (text[k] != '=' || k == 0 || k >= sizeof key || v == 0 || v >= sizeof value) {
            return sn_fail(err, SNUG_E_USAGE, "%s: '%.40s' is not of the form name=value",
                           row->name, text);
        }
        snprintf(key, sizeof key, "%.*s", (int)k, text);
        snprintf(value, sizeof value, "%.*s", (int)v, text + k + 1);
        snug_status s = read_parameter(row, key, value, p, err);
        if (s) {
            return s;
        }
        text += k + 1 + v;
        text += *text == ',';
    }
    return SNUG_OK;
}

static snug_status find_row(const char *spec, const zoo_row **out, snug_error *err)
{
    size_t n = strcspn(spec, ":");
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, spec, n) == 0) {
            *out = &rows[i];
            return SNUG_OK;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, spec);
    const char *near = sn_str_nearest(name, names, SN_LEN(names));
    return near ? sn_fail(err, SNUG_E_NOT_FOUND, "there is no model '%s'; did you mean '%s'?", name,
                          near)
                : sn_fail(err, SNUG_E_NOT_FOUND,
                          "there is no model '%s'; there are mlp, cnn, mobilenet, mobilenetv2, "
                          "squeezenet, vgg16, vgg19, resnet18, resnet34, resnet50, resnet101, "
                          "resnet152",
                          name);
}

snug_status snug_model_zoo(snug_model **out, const char *spec, int64_t height, int64_t width,
                           int64_t channels, int64_t classes, snug_error *err)
{
    *out = NULL;
    const zoo_row *row = NULL;
    snug_status s = find_row(spec, &row, err);
    if (s) {
        return s;
    }
    sn_zoo_params p = {
        .width = 1, .classes = row->classes, .dense = row->dense, .depth = row->depth};
    const char *colon = strchr(spec, ':');
    s = colon ? read_parameters(row, colon + 1, &p, err) : SNUG_OK;
    if (s) {
        return s;
    }
    p.classes = classes ? classes : p.classes;
    p.height = height ? height : row->side;
    p.width_pixels = width ? width : row->side;
    if (p.height < row->smallest || p.width_pixels < row->smallest) {
        return sn_fail(err, SNUG_E_USAGE,
                       "%s takes images of at least %" PRId64 " x %" PRId64 ", not %" PRId64
                       " x %" PRId64,
                       row->name, row->smallest, row->smallest, p.height, p.width_pixels);
    }
    snug_model *model;
    s = snug_model_new(&model, row->name, err);
    if (s) {
        return s;
    }
    snug_tensor x =
        snug_input(model, p.height, p.width_pixels, channels ? channels : row->channels);
    s = snug_model_finish(model, row->build(model, x, &p), err);
    if (s) {
        sn_where(err, "%s", spec);
        snug_model_free(model);
        return s;
    }
    *out = model;
    return SNUG_OK;
}
