/* SPDX-License-Identifier: Apache-2.0
 *
 * Image files by index.
 */
#include "data/images.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

snug_status sn_images_new(sn_images **out, const snug_data_options *options, snug_error *err)
{
    sn_images *im = sn_alloc(SN_TAG_DATA, sizeof *im);

    *out = NULL;
    if (!im)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    sn_notes_init(&im->notes);
    pthread_mutex_init(&im->facts_lock, NULL);
    im->options = (sn_image_options){
        .height = options->height ? options->height : 224,
        .width = options->width ? options->width : 224,
        .channels = options->channels ? (int)options->channels : 3,
        .resize = options->resize,
        .fit = options->fit,
        .exif = options->exif != 0,
        .find_orientation = options->exif || options->lenient,
        .fast_decode = options->fast_decode != 0,
    };
    snug_status status = sn_names_init(&im->names, err);
    if (status)
        sn_images_free(im);
    else
        *out = im;
    return status;
}

snug_status sn_images_add_root(sn_images *im, const char *path, uint32_t *root, snug_error *err)
{
    char shown[96];

    if (im->n_roots == SN_IMAGES_ROOTS)
        return sn_fail(err, SNUG_E_INTERNAL, "more than %d folders", SN_IMAGES_ROOTS);
    int fd = AT_FDCWD;
    char *copy = sn_strdup(SN_TAG_DATA, path ? path : "");
    if (!copy)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    if (path && (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        int why = errno;
        sn_free(copy);
        return sn_fail_errno(err, why == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, why,
                             "folder '%s' cannot be opened",
                             sn_str_printable(shown, sizeof shown, path));
    }
    *root = im->n_roots++;
    im->roots[*root].fd = fd;
    im->roots[*root].path = copy;
    return SNUG_OK;
}

void sn_images_begin(sn_images *im, snug_subset subset)
{
    im->part = (int)subset;
    im->begin[subset] = im->names.n;
    im->n[subset] = 0;
}

snug_status sn_images_add(sn_images *im, uint32_t root, const char *name, int32_t class_index,
                          float y, snug_error *err)
{
    sn_name_record record = {.class_index = class_index, .y = y, .root = root};
    snug_status status = sn_names_add(&im->names, name, &record, err);

    if (status)
        return status;
    im->n[im->part]++;
    if (im->part == SNUG_SUBSET_TRAIN && class_index >= 0)
        im->class_counts.at[class_index]++;
    return SNUG_OK;
}

int32_t sn_images_class(sn_images *im, const char *name)
{
    for (size_t i = 0; i < im->classes.n; i++)
        if (sn_str_eq(im->classes.at[i], name))
            return (int32_t)i;
    char *copy = sn_strdup(SN_TAG_DATA, name);
    if (copy && SN_VEC_RESERVE(SN_TAG_DATA, &im->class_counts) &&
        SN_VEC_PUSH(SN_TAG_DATA, &im->classes, copy)) {
        (void)SN_VEC_PUSH(SN_TAG_DATA, &im->class_counts, 0);
        return (int32_t)im->classes.n - 1;
    }
    sn_free(copy);
    return -1;
}

bool sn_images_is_image(int root_fd, const char *path)
{
    uint8_t head[SN_IMAGE_SNIFF_BYTES];

    if (sn_image_kind_decodable(sn_image_kind_of_name(path)))
        return true;
    int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = pread(fd, head, sizeof head, 0);
    close(fd);
    return got > 0 && sn_image_kind_decodable(sn_image_sniff(head, (size_t)got));
}

/* --- the set -----------------------------------------------------------------------------------*/

static snug_status open_image(const sn_images *im, const sn_name_record *record, const char *name,
                              int *fd, snug_error *err)
{
    /* Not waiting: a pipe in the folder must not hang the run. */
    *fd = openat(im->roots[record->root].fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd >= 0)
        return SNUG_OK;
    int why = errno;
    if (why == EMFILE || why == ENFILE || why == ENOMEM)
        return sn_fail_errno(err, SNUG_E_DEVICE, why, "no file can be opened");
    return sn_fail_errno(err, why == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, why,
                         "cannot be opened");
}

static void count_facts(sn_images *im, const sn_image_facts *one)
{
    snug_data_facts *f = &im->facts;
    bool first;

    pthread_mutex_lock(&im->facts_lock);
    first = f->n_decoded++ == 0;
    f->n_jpeg += one->kind == SN_IMAGE_JPEG;
    f->n_png += one->kind == SN_IMAGE_PNG;
    f->n_bmp += one->kind == SN_IMAGE_BMP;
    f->min_height = first ? one->height : SN_MIN(f->min_height, one->height);
    f->max_height = SN_MAX(f->max_height, one->height);
    f->min_width = first ? one->width : SN_MIN(f->min_width, one->width);
    f->max_width = SN_MAX(f->max_width, one->width);
    f->n_smaller += one->height < im->options.height || one->width < im->options.width;
    f->n_landscape += one->width > one->height;
    f->n_portrait += one->width < one->height;
    f->n_gray += one->channels < 3;
    f->n_turned += one->orientation > 1;
    f->n_damaged += one->n_warnings > 0;
    pthread_mutex_unlock(&im->facts_lock);
}

static void images_facts(void *self, snug_data_facts *out)
{
    sn_images *im = self;

    pthread_mutex_lock(&im->facts_lock);
    *out = im->facts;
    pthread_mutex_unlock(&im->facts_lock);
}

static snug_status images_load(void *self, sn_scratch *scratch, uint64_t i, snug_scale scale,
                               float *x, const bool *stop, snug_error *err)
{
    sn_images *im = self;
    sn_name_record record;
    char name[SN_NAME_MAX];
    sn_reader reader;
    int fd;
    snug_status status = sn_names_at(&im->names, i, &record, name, sizeof name, err);

    if (status) /* the list itself cannot be read: not this image's fault */
        return SNUG_E_DEVICE;
    if ((status = open_image(im, &record, name, &fd, err)))
        return status;
    sn_image_options o = im->options;
    o.scale = scale;
    o.stop = stop;
    status = sn_reader_fd(&reader, fd, err);
    sn_image_facts facts;
    if (!status)
        status = sn_image_load(x, &reader, &o, scratch, &facts, err);
    close(fd);
    if (!status)
        count_facts(im, &facts);
    return status;
}

static snug_status images_label(void *self, uint64_t i, int32_t *class_index, float *y,
                                snug_error *err)
{
    sn_images *im = self;
    sn_name_record record;
    snug_status status = sn_names_at(&im->names, i, &record, NULL, 0, err);

    if (status)
        return SNUG_E_DEVICE;
    *class_index = record.class_index;
    if (y)
        *y = record.y;
    return SNUG_OK;
}

static snug_status images_name(void *self, uint64_t i, char *out, size_t n, snug_error *err)
{
    sn_images *im = self;
    sn_name_record record;
    char name[SN_NAME_MAX];
    snug_status status = sn_names_at(&im->names, i, &record, name, sizeof name, err);

    if (n)
        out[0] = '\0';
    if (status)
        return status;
    /* Names of a second folder are told with it. */
    if (record.root > 0)
        snprintf(out, n, "%s/%s", im->roots[record.root].path, name);
    else
        snprintf(out, n, "%s", name);
    return SNUG_OK;
}

static void images_free(void *self)
{
    sn_images_free(self);
}

static const sn_set_ops images_ops = {images_load, images_label, images_name, images_facts,
                                      images_free};

snug_status sn_images_seal(sn_images *im, sn_set *set, snug_error *err)
{
    snug_status status = sn_names_seal(&im->names, err);

    if (status)
        return status;
    if (!sn_notes_sum_up(&im->notes))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    memset(set, 0, sizeof *set);
    set->ops = &images_ops;
    set->self = im;
    set->rank = 3;
    set->shape[0] = im->options.height;
    set->shape[1] = im->options.width;
    set->shape[2] = im->options.channels;
    memcpy(set->begin, im->begin, sizeof set->begin);
    memcpy(set->n, im->n, sizeof set->n);
    set->can_fail = set->needs_pool = true;
    set->top = 255.0f;
    set->scratch_bytes = sn_image_scratch_bytes(&im->options);
    set->classes = im->classes.at;
    set->n_classes = im->classes.n;
    set->class_counts = im->class_counts.at;
    set->n_targets = im->regression ? 1 : 0;
    set->notes = im->notes.lines.at;
    set->n_notes = im->notes.lines.n;
    set->held_bytes = sizeof *im;
    for (size_t i = 0; i < im->classes.n; i++)
        set->held_bytes += strlen(im->classes.at[i]) + 1 + sizeof(char *) + sizeof(uint64_t);
    return SNUG_OK;
}

void sn_images_free(sn_images *im)
{
    if (!im)
        return;
    sn_names_deinit(&im->names);
    pthread_mutex_destroy(&im->facts_lock);
    sn_notes_deinit(&im->notes);
    for (uint32_t i = 0; i < im->n_roots; i++) {
        if (im->roots[i].fd >= 0)
            close(im->roots[i].fd);
        sn_free(im->roots[i].path);
    }
    for (size_t i = 0; i < im->classes.n; i++)
        sn_free(im->classes.at[i]);
    SN_VEC_FREE(&im->classes);
    SN_VEC_FREE(&im->class_counts);
    sn_free(im);
}
