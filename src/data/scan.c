/* SPDX-License-Identifier: Apache-2.0
 *
 * From a folder to a list: class folders in natural order, the files below each in natural order,
 * whatever their number; split folders recognised.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "data/images.h"
#include "data/sort.h"
#include "data/walk.h"

typedef SN_VEC(char *) name_list;

typedef struct entries {
    name_list folders;
    uint64_t n_files, n_images;
    int fd;
    const char *folder;
    sn_images *images;
} entries;

static void free_names(name_list *names)
{
    for (size_t i = 0; i < names->n; i++)
        sn_free(names->at[i]);
    SN_VEC_FREE(names);
}

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory to list a folder");
}

static snug_status top_entry(void *me, const char *name, bool is_folder, snug_error *err)
{
    entries *e = me;

    if (!is_folder) {
        e->n_files++;
        if (sn_image_kind_decodable(sn_image_kind_of_name(name))) {
            e->n_images++;
            return SNUG_OK;
        }
        return sn_notes_ignore(&e->images->notes, name) ? SNUG_OK : no_memory(err);
    }
    char *copy = sn_strdup(SN_TAG_DATA, name);
    if (copy && SN_VEC_PUSH(SN_TAG_DATA, &e->folders, copy))
        return SNUG_OK;
    sn_free(copy);
    return no_memory(err);
}

static int natural(const void *a, const void *b)
{
    return sn_str_natural_cmp(*(char *const *)a, *(char *const *)b);
}

/* The class folders (or split folders) right below `folder`, in natural order. */
static snug_status read_top(entries *e, sn_images *im, int fd, const char *folder, snug_error *err)
{
    *e = (entries){.fd = fd, .folder = folder, .images = im};
    snug_status status = sn_walk_entries(fd, folder, top_entry, e, err);

    if (!status && e->folders.n)
        qsort(e->folders.at, e->folders.n, sizeof(char *), natural);
    return status;
}

/* --- the files of one class --------------------------------------------------------------------*/

typedef struct collector {
    sn_images *images;
    sn_sorter *sorter;
    int fd;
} collector;

static snug_status collect(void *me, const char *path, snug_error *err)
{
    collector *c = me;

    if (sn_images_is_image(c->fd, path))
        return sn_sorter_add(c->sorter, path, err);
    return sn_notes_ignore(&c->images->notes, path) ? SNUG_OK : no_memory(err);
}

/* Everything below `folder` of roots[root] as class_index. */
static snug_status add_folder(sn_images *im, sn_sorter *sorter, uint32_t root, const char *folder,
                              int32_t class_index, snug_error *err)
{
    collector c = {im, sorter, im->roots[root].fd};
    const char *name;

    sn_sorter_clear(sorter);
    snug_status status = sn_walk(c.fd, folder, collect, &c, err);
    if (!status)
        status = sn_sorter_finish(sorter, err);
    while (!status && !(status = sn_sorter_next(sorter, &name, err)) && name)
        status = sn_images_add(im, root, name, class_index, 0, err);
    return status;
}

/* --- classes -----------------------------------------------------------------------------------*/

/* Class folders below `folder` into the part that has begun. known: the classes exist already, and
 * a folder of another name is an error. */
static snug_status add_classes(sn_images *im, uint32_t root, const char *folder, const entries *top,
                               bool known, snug_error *err)
{
    sn_sorter sorter;
    snug_status status = SNUG_OK;
    char path[SN_NAME_MAX], shown[80];

    sn_sorter_init(&sorter);
    for (size_t i = 0; i < top->folders.n && !status; i++) {
        const char *name = top->folders.at[i];
        size_t before = im->classes.n;
        uint64_t n_before = im->names.n;
        int32_t class_index = sn_images_class(im, name);
        if (class_index < 0)
            status = no_memory(err);
        else if (known && im->classes.n > before)
            status =
                sn_fail(err, SNUG_E_INPUT, "class '%s' of '%s' is not among the training classes",
                        sn_str_printable(shown, sizeof shown, name), folder);
        else if (snprintf(path, sizeof path, "%s%s%s", folder, folder[0] ? "/" : "", name) >=
                 (int)sizeof path)
            status = sn_fail(err, SNUG_E_INPUT, "a path is longer than %d bytes", SN_NAME_MAX - 1);
        else
            status = add_folder(im, &sorter, root, path, class_index, err);
        if (!status && im->names.n == n_before &&
            !sn_notes_add(&im->notes,
                          "class folder '%s' is empty: the class is kept, without images",
                          sn_str_printable(shown, sizeof shown, path)))
            status = no_memory(err);
    }
    sn_sorter_deinit(&sorter);
    return status;
}

/* --- splits ------------------------------------------------------------------------------------*/

static int split_of(const char *name)
{
    static const struct {
        const char *name;
        snug_subset subset;
    } names[] = {
        {"train", SNUG_SUBSET_TRAIN},           {"training", SNUG_SUBSET_TRAIN},
        {"val", SNUG_SUBSET_VALIDATION},        {"valid", SNUG_SUBSET_VALIDATION},
        {"validation", SNUG_SUBSET_VALIDATION}, {"test", SNUG_SUBSET_TEST},
        {"testing", SNUG_SUBSET_TEST},
    };
    char lower[16];
    size_t n = strlen(name);

    if (n >= sizeof lower)
        return -1;
    for (size_t i = 0; i <= n; i++)
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
    for (size_t i = 0; i < SN_LEN(names); i++)
        if (sn_str_eq(lower, names[i].name))
            return (int)names[i].subset;
    return -1;
}

/* Whether the folders are a split: each is one of its parts, none twice, training among them. */
static bool is_split(const entries *top, const char *parts[3])
{
    parts[0] = parts[1] = parts[2] = NULL;
    for (size_t i = 0; i < top->folders.n; i++) {
        int part = split_of(top->folders.at[i]);
        if (part < 0 || parts[part])
            return false;
        parts[part] = top->folders.at[i];
    }
    return parts[SNUG_SUBSET_TRAIN] && top->folders.n > 1;
}

static snug_status add_split(sn_images *im, uint32_t root, const char *const parts[3],
                             snug_error *err)
{
    snug_status status = SNUG_OK;
    char shown[3][48];
    static const char *const roles[3] = {"training", "validation", "test"};
    int n = 0;

    for (int part = 0; part < 3 && !status; part++) {
        entries top = {0};
        if (!parts[part])
            continue;
        snprintf(shown[n++], sizeof shown[0], "%s (%s)", parts[part], roles[part]);
        sn_images_begin(im, (snug_subset)part);
        status = read_top(&top, im, im->roots[root].fd, parts[part], err);
        if (!status)
            status = add_classes(im, root, parts[part], &top, part != SNUG_SUBSET_TRAIN, err);
        free_names(&top.folders);
    }
    if (!status && !sn_notes_add(&im->notes, "the folders are a split, not classes: %s%s%s%s%s",
                                 shown[0], n > 1 ? ", " : "", n > 1 ? shown[1] : "",
                                 n > 2 ? ", " : "", n > 2 ? shown[2] : ""))
        status = no_memory(err);
    return status;
}

/* --- the whole ---------------------------------------------------------------------------------*/

static snug_status judge(const sn_images *im, const entries *top, const char *path, snug_error *err)
{
    char shown[96];

    sn_str_printable(shown, sizeof shown, path);
    if (im->classes.n == 0 && top->n_images)
        return sn_fail(err, SNUG_E_INPUT,
                       "'%s' has %" PRIu64 " images but no class folders: make one folder a class, "
                       "or give --labels FILE.csv",
                       shown, top->n_images);
    if (im->classes.n == 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "'%s' has no class folders and no images (%" PRIu64 " other files)", shown,
                       top->n_files);
    if (im->names.n == 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "'%s' has %zu class folder%s but no image (JPEG, PNG, BMP) in them", shown,
                       im->classes.n, im->classes.n == 1 ? "" : "s");
    if (im->classes.n == 1)
        return sn_fail(err, SNUG_E_INPUT,
                       "'%s' has one class only ('%.60s'): there is nothing to tell apart", shown,
                       im->classes.at[0]);
    if (im->n[SNUG_SUBSET_TRAIN] == 0)
        return sn_fail(err, SNUG_E_INPUT, "'%s' has no training images", shown);
    return SNUG_OK;
}

snug_status sn_images_scan(sn_images *im, const char *path, bool validation, bool lenient,
                           snug_error *err)
{
    entries top = {0};
    const char *parts[3];
    uint32_t root;
    uint64_t before = im->names.n;
    snug_status status = sn_images_add_root(im, path, &root, err);

    if (status)
        return status;
    sn_images_begin(im, validation ? SNUG_SUBSET_VALIDATION : SNUG_SUBSET_TRAIN);
    status = read_top(&top, im, im->roots[root].fd, "", err);
    if (!status && !validation && is_split(&top, parts))
        status = add_split(im, root, parts, err);
    else if (!status)
        status = add_classes(im, root, "", &top, validation, err);
    if (!status && validation && im->names.n == before)
        status = sn_fail(err, SNUG_E_INPUT, "the validation folder '%.100s' has no images", path);
    if (!status && !validation && !lenient)
        status = judge(im, &top, path, err);
    if (!status && lenient && im->classes.n == 0 && top.n_images)
        status = sn_images_add_path(im, path, err);
    if (!status && im->classes.n && top.n_images &&
        !sn_notes_add(&im->notes,
                      "%" PRIu64 " images lie beside the class folders: they have no "
                      "class and are not used",
                      top.n_images))
        status = no_memory(err);
    free_names(&top.folders);
    return status;
}

snug_status sn_images_add_path(sn_images *im, const char *path, snug_error *err)
{
    struct stat st;
    uint32_t root = 0;
    char shown[96];
    snug_status status = SNUG_OK;

    /* Names stand as they were given, relative to where the caller is. */
    for (root = 0; root < im->n_roots && im->roots[root].fd != AT_FDCWD; root++)
        continue;
    if (root == im->n_roots && (status = sn_images_add_root(im, NULL, &root, err)))
        return status;
    if (stat(path, &st))
        return sn_fail_errno(err, SNUG_E_NOT_FOUND, errno, "'%s' cannot be read",
                             sn_str_printable(shown, sizeof shown, path));
    if (!S_ISDIR(st.st_mode))
        return sn_images_add(im, root, path, -1, 0, err);
    sn_sorter sorter;
    sn_sorter_init(&sorter);
    status = add_folder(im, &sorter, root, path, -1, err);
    sn_sorter_deinit(&sorter);
    return status;
}
