/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.c - folders of runs, what a run says of itself, and the measured time of a step.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "score.h"
#include "setup.h"

void sn_cli_new_run(char *out, size_t n, const char *name)
{
    snprintf(out, n, "runs/%.*s", (int)strcspn(name, ":/"), name);
    size_t length = strlen(out);
    for (int i = 2; !access(out, F_OK) && i < 1000000; i++)
        snprintf(out + length, n - length, "-%d", i);
}

bool sn_cli_newest_run(char *out, size_t n)
{
    DIR *folder = opendir("runs");
    struct dirent *entry;
    struct timespec newest = {0, 0};
    bool found = false;
    while (folder && (entry = readdir(folder))) {
        char path[400];
        struct stat st;
        snprintf(path, sizeof path, "runs/%.255s/last.ckpt", entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &st))
            continue;
        if (!found || st.st_mtim.tv_sec > newest.tv_sec ||
            (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec > newest.tv_nsec)) {
            newest = st.st_mtim;
            snprintf(out, n, "runs/%.255s", entry->d_name);
            found = true;
        }
    }
    if (folder)
        closedir(folder);
    return found;
}

bool sn_cli_weights_file(char *out, size_t n, const char *run_or_file)
{
    static const char *const names[] = {"best.safetensors", "last.safetensors", "last.ckpt"};
    struct stat st;
    if (stat(run_or_file, &st))
        return false;
    if (S_ISREG(st.st_mode)) {
        snprintf(out, n, "%s", run_or_file);
        return true;
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(out, n, "%s/%s", run_or_file, names[i]);
        if (!access(out, R_OK))
            return true;
    }
    return false;
}

json_t *sn_cli_read_description(const char *file, int *rc)
{
    snug_error err = SNUG_ERROR_INIT;
    char *text;
    *rc = 0;
    if (snug_weights_description(&text, file, &err)) {
        *rc = sn_cli_fail(&err);
        return NULL;
    }
    json_t *json = json_loads(text, 0, NULL);
    snug_text_free(text);
    if (!json || !json_is_string(json_object_get(json, "model"))) {
        fprintf(stderr, "error: '%s' does not say which model its weights belong to\n", file);
        json_decref(json);
        *rc = SN_EXIT_INPUT;
        return NULL;
    }
    return json;
}

char *sn_cli_describe(const sn_cli_setup *s, int argc, char **argv)
{
    json_t *names = json_array(), *arguments = json_array();
    for (size_t i = 0; s->data && i < snug_data_n_classes(s->data); i++)
        json_array_append_new(names, sn_cli_class_json(s->data, i));
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-r") || !strcmp(argv[i], "--resume")) {
            i += i + 1 < argc && argv[i + 1][0] != '-'; /* its value goes with it */
            continue;
        }
        json_t *argument = json_string(argv[i]);
        json_array_append_new(arguments, argument ? argument : json_string(""));
    }
    json_t *json = json_pack(
        "{s:s, s:s, s:[I,I,I], s:I, s:o, s:s, s:I, s:I, s:s, s:o}", "snug", snug_version(), "model",
        s->model_spec, "input", (json_int_t)s->height, (json_int_t)s->width,
        (json_int_t)s->channels, "classes", (json_int_t)s->n_classes, "class_names", names, "scale",
        s->data ? snug_scale_name(snug_data_scale(s->data)) : "auto", "batch",
        (json_int_t)snug_plan_numbers(s->plan)->batch, "seed", (json_int_t)s->seed, "loss",
        s->loss.kind == SNUG_LOSS_MSE || s->loss.kind == SNUG_LOSS_MAE ||
                s->loss.kind == SNUG_LOSS_HUBER
            ? "regression"
            : "classes",
        "arguments", arguments);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* ---- the time of a step, kept from one command to the next ---- */

static bool cache_file(char *out, size_t n)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        snprintf(out, n, "%s/snug", cache);
    else if (home && home[0] == '/')
        snprintf(out, n, "%s/.cache/snug", home);
    else
        return false;
    for (char *slash = strchr(out + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(out, 0777);
        *slash = '/';
    }
    mkdir(out, 0777);
    size_t used = strlen(out);
    snprintf(out + used, n - used, "/steps.json");
    return true;
}

static void step_key(char *out, size_t n, const sn_cli_setup *s)
{
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    snprintf(out, n, "%s|%s|%lldx%lldx%lld|%lld|%lld|%s|%llu", snug_version(), s->model_spec,
             (long long)s->height, (long long)s->width, (long long)s->channels,
             (long long)s->n_classes, (long long)info->batch, snug_plan_device(s->plan)->name,
             (unsigned long long)info->arena_peak_bytes);
}

static int measure_now(sn_cli_setup *s)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_session *session;
    snug_session_numbers numbers;
    if (!s->args->quiet)
        fputs("measuring a step on this machine (kept for the next time) ...\n", stderr);
    if (snug_session_open(&session, s->plan, NULL, &err)) {
        if (err.code != SNUG_E_DOES_NOT_FIT)
            return sn_cli_fail(&err);
        s->does_not_fit = true;
        s->fit_error = err;
        return 0;
    }
    snug_session_measure(session, &numbers);
    s->step_seconds = numbers.rehearsal_seconds;
    snug_session_free(session);
    return 0;
}

int sn_cli_setup_measure(sn_cli_setup *s)
{
    char path[4096], key[512];
    if (s->does_not_fit || !snug_plan_device(s->plan)->computes)
        return 0;
    bool have_cache = cache_file(path, sizeof path);
    json_t *all = have_cache ? json_load_file(path, 0, NULL) : NULL;
    step_key(key, sizeof key, s);
    double known = json_number_value(json_object_get(all, key));
    int rc = 0;
    if (known > 0) {
        s->step_seconds = known;
    } else {
        rc = measure_now(s);
        if (!json_is_object(all)) {
            json_decref(all);
            all = json_object();
        }
        json_object_set_new(all, key, json_real(s->step_seconds));
        if (have_cache && !rc)
            json_dump_file(all, path, JSON_INDENT(1));
    }
    json_decref(all);
    return rc;
}
