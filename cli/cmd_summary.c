/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_summary.c - `snug summary`: Keras' columns, and what each layer costs; `snug devices`.
 */
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "cli.h"

static void shape_text(char *out, size_t n, const snug_layer_info *info)
{
    size_t used = (size_t)snprintf(out, n, "(None");
    for (int i = 0; i < info->rank; i++)
        used += (size_t)snprintf(out + used, n - used, ", %lld", (long long)info->shape[i]);
    snprintf(out + used, n - used, ")");
}

static uint64_t activation_bytes(const snug_layer_info *info)
{
    uint64_t bytes = 4;
    for (int i = 0; i < info->rank; i++)
        bytes *= (uint64_t)info->shape[i];
    return bytes;
}

static void print_table(const snug_model *model)
{
    char shape[80], n[32], bytes[32];
    size_t layers = snug_model_n_layers(model);
    printf("%-44s %-22s %14s %12s  %s\n", "Layer (type)", "Output Shape", "Param #", "an image",
           "Connected to");
    for (size_t i = 0; i < layers; i++) {
        snug_layer_info info;
        char head[160];
        snug_model_layer(model, i, &info);
        shape_text(shape, sizeof shape, &info);
        snprintf(head, sizeof head, "%s (%s)", info.name, info.type);
        printf("%-44s %-22s %14s %12s ", head, shape, sn_cli_count(n, sizeof n, info.parameters),
               sn_cli_bytes(bytes, sizeof bytes, activation_bytes(&info)));
        for (size_t k = 0; k < info.n_inputs; k++) {
            snug_layer_info from;
            snug_model_layer(model, info.inputs[k], &from);
            printf("%s %s", k ? "," : "", from.name);
        }
        putchar('\n');
    }
    uint64_t all = snug_model_parameters(model), trained = snug_model_trainable_parameters(model);
    printf("Total params: %s (%s)\n", sn_cli_count(n, sizeof n, all),
           sn_cli_bytes(bytes, sizeof bytes, 4 * all));
    printf("Trainable params: %s\n", sn_cli_count(n, sizeof n, trained));
    printf("Non-trainable params: %s\n", sn_cli_count(n, sizeof n, all - trained));
}

static void print_json(const snug_model *model)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < snug_model_n_layers(model); i++) {
        snug_layer_info info;
        snug_model_layer(model, i, &info);
        json_t *shape = json_array(), *inputs = json_array();
        for (int k = 0; k < info.rank; k++)
            json_array_append_new(shape, json_integer(info.shape[k]));
        for (size_t k = 0; k < info.n_inputs; k++) {
            snug_layer_info from;
            snug_model_layer(model, info.inputs[k], &from);
            json_array_append_new(inputs, json_string(from.name));
        }
        json_array_append_new(
            layers, json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:o}", "name", info.name, "type",
                              info.type, "shape", shape, "parameters", (json_int_t)info.parameters,
                              "trainable", (json_int_t)info.trainable, "activation_bytes",
                              (json_int_t)activation_bytes(&info), "inputs", inputs));
    }
    json_t *json = json_pack("{s:s, s:I, s:I, s:o}", "name", snug_model_name(model), "parameters",
                             (json_int_t)snug_model_parameters(model), "trainable",
                             (json_int_t)snug_model_trainable_parameters(model), "layers", layers);
    json_dumpf(json, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(json);
}

/* A run stands for its model. */
static int model_of_run(sn_cli_setup *s, const char *name)
{
    char file[600];
    int rc;
    if (!sn_cli_weights_file(file, sizeof file, name))
        return -1;
    json_t *json = sn_cli_read_description(file, &rc);
    if (!json)
        return rc;
    json_t *input = json_object_get(json, "input");
    snprintf(s->model_spec, sizeof s->model_spec, "%s",
             json_string_value(json_object_get(json, "model")));
    s->height = json_integer_value(json_array_get(input, 0));
    s->width = json_integer_value(json_array_get(input, 1));
    s->channels = json_integer_value(json_array_get(input, 2));
    s->n_classes = json_integer_value(json_object_get(json, "classes"));
    json_decref(json);
    return 0;
}

int snug_cmd_summary(int argc, char **argv)
{
    sn_cli_args args;
    sn_cli_setup s;
    snug_error err = SNUG_ERROR_INIT;
    int rc = sn_cli_parse_args(&args, SN_VERB_SUMMARY, argc, argv);
    if (rc >= 0)
        return rc;
    if (args.n_positional != 1)
        return sn_cli_usage("summary", "it takes one MODEL or RUN (%d given)", args.n_positional);
    rc = sn_cli_setup_begin(&s, &args);
    if (rc)
        return rc;
    snprintf(s.model_spec, sizeof s.model_spec, "%s", args.positional[0]);
    rc = model_of_run(&s, args.positional[0]);
    if (rc > 0)
        return rc;
    bool features = s.height && !s.width;
    if (snug_model_zoo(&s.model, s.model_spec, features ? 1 : s.height,
                       features ? s.height : s.width, features ? 1 : s.channels, s.n_classes, &err))
        return sn_cli_fail(&err);
    if (args.json)
        print_json(s.model);
    else
        print_table(s.model);
    sn_cli_setup_end(&s);
    return 0;
}

int snug_cmd_devices(int argc, char **argv)
{
    snug_device_info info;
    snug_error err = SNUG_ERROR_INIT;
    char a[32], b[32], c[32];
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    if (argc > 1 && !strcmp(argv[1], "--help")) {
        puts("snug devices [--json]: the devices that can be trained on, and what each has");
        return 0;
    }
    if (argc > 1 && !json)
        return sn_cli_usage("devices", "it takes --json and nothing else, not '%s'", argv[1]);
    if (snug_device_query(&info, "cpu", 0, &err))
        return sn_cli_fail(&err);
    if (json) {
        json_t *out =
            json_pack("{s:[{s:s, s:s, s:I, s:I, s:I, s:i, s:[s]}]}", "devices", "device", info.spec,
                      "name", info.name, "total_bytes", (json_int_t)info.total_bytes, "free_bytes",
                      (json_int_t)info.free_bytes, "largest_bytes", (json_int_t)info.largest_bytes,
                      "threads", info.n_threads, "precisions", "float32");
        json_dumpf(out, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(out);
        return 0;
    }
    printf("%-8s %s\n         %s of %s free, largest allocation %s, float32\n", info.spec,
           info.name, sn_cli_bytes(a, sizeof a, info.free_bytes),
           sn_cli_bytes(b, sizeof b, info.total_bytes),
           sn_cli_bytes(c, sizeof c, info.largest_bytes));
    puts("null     cards that are not here, to plan for: snug plan MODEL --card \"GTX 950\"");
    return 0;
}
