/* SPDX-License-Identifier: Apache-2.0
 *
 * score.c - scores in words and in JSON.
 */
#include <string.h>

#include "cli.h"
#include "score.h"

static const char *class_name(const snug_data *data, int64_t i, char *out, size_t n)
{
    const char *name = data ? snug_data_class_name(data, (size_t)i) : NULL;
    if (name)
        snprintf(out, n, "%s", name);
    else
        snprintf(out, n, "class %lld", (long long)i);
    return out;
}

json_t *sn_cli_class_json(const snug_data *data, size_t i)
{
    const char *name = data ? snug_data_class_name(data, i) : NULL;
    json_t *text = name ? json_string(name) : NULL;
    return text ? text : json_sprintf("class %d", (int)i);
}

/* The pairs that are mixed up most. */
static void print_confused(FILE *out, const snug_score *score, const snug_data *data)
{
    uint64_t seen = UINT64_MAX;
    int64_t k = score->n_classes;
    for (int shown = 0; shown < 3; shown++) {
        uint64_t most = 0;
        int64_t at = -1;
        for (int64_t i = 0; i < k * k; i++)
            if (i / k != i % k && score->confusion[i] > most && score->confusion[i] < seen) {
                most = score->confusion[i];
                at = i;
            }
        if (at < 0) {
            if (shown)
                fputc('\n', out);
            return;
        }
        char a[80], b[80];
        fputs(shown ? ", " : "mixed up  ", out);
        sn_cli_print_safe(out, class_name(data, at / k, a, sizeof a));
        fputs(" taken for ", out);
        sn_cli_print_safe(out, class_name(data, at % k, b, sizeof b));
        fprintf(out, " (%llu)", (unsigned long long)most);
        seen = most;
    }
    fputc('\n', out);
}

void sn_cli_print_score(FILE *out, const snug_score *score, const snug_data *data, bool every_class)
{
    if (score->n_classes == 0) {
        fprintf(out,
                "loss %.5f  mean absolute error %.5f  root mean square error %.5f  (%llu "
                "samples)\n",
                score->loss, score->mae, score->rmse, (unsigned long long)score->n);
        return;
    }
    fprintf(out, "accuracy %.4f  loss %.4f", score->accuracy, score->loss);
    if (score->n_classes > 5)
        fprintf(out, "  top-5 %.4f", score->top_k);
    fprintf(out, "  (%llu samples)\n", (unsigned long long)score->n);
    if (!every_class || !score->classes)
        return;
    fprintf(out, "%-24s %9s %9s %9s %9s\n", "class", "samples", "precision", "recall", "F1");
    for (int64_t i = 0; i < score->n_classes; i++) {
        char name[80];
        const snug_class_score *c = &score->classes[i];
        sn_cli_print_safe(out, class_name(data, i, name, sizeof name));
        fprintf(out, "%*s %9llu %9.3f %9.3f %9.3f\n",
                (int)(strlen(name) < 24 ? 24 - strlen(name) : 0), "", (unsigned long long)c->n,
                c->precision, c->recall, c->f1);
    }
    if (score->confusion && score->n_classes <= 12) {
        fputs("confusion (row: truth, column: prediction)\n", out);
        for (int64_t i = 0; i < score->n_classes * score->n_classes; i++)
            fprintf(out, "%6llu%s", (unsigned long long)score->confusion[i],
                    (i + 1) % score->n_classes ? "" : "\n");
    }
    if (score->confusion)
        print_confused(out, score, data);
}

json_t *sn_cli_score_json(const snug_score *score, const snug_data *data)
{
    json_t *json = json_pack("{s:I, s:f}", "samples", (json_int_t)score->n, "loss", score->loss);
    if (score->n_classes == 0) {
        json_object_set_new(json, "mae", json_real(score->mae));
        json_object_set_new(json, "rmse", json_real(score->rmse));
        return json;
    }
    json_object_set_new(json, "accuracy", json_real(score->accuracy));
    json_object_set_new(json, "top5", json_real(score->top_k));
    json_t *classes = json_array(), *confusion = json_array();
    for (int64_t i = 0; score->classes && i < score->n_classes; i++) {
        const snug_class_score *c = &score->classes[i];
        json_array_append_new(classes, json_pack("{s:o, s:I, s:f, s:f, s:f}", "class",
                                                 sn_cli_class_json(data, (size_t)i), "samples",
                                                 (json_int_t)c->n, "precision", c->precision,
                                                 "recall", c->recall, "f1", c->f1));
        json_t *row = json_array();
        for (int64_t j = 0; score->confusion && j < score->n_classes; j++)
            json_array_append_new(
                row, json_integer((json_int_t)score->confusion[i * score->n_classes + j]));
        json_array_append_new(confusion, row);
    }
    json_object_set_new(json, "classes", classes);
    json_object_set_new(json, "confusion", confusion);
    return json;
}
