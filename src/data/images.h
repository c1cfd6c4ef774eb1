/* SPDX-License-Identifier: Apache-2.0
 *
 * images.h - a set of image files: a list of names with their classes or targets, and the folders
 * that they are relative to. sn_images_scan fills it from a folder of class folders; a reader of
 * manifests fills it name by name.
 *
 *     sn_images *im;  sn_images_new(&im, &options, err);
 *     sn_images_scan(im, "photos", err);  or  sn_images_add_root + sn_images_add ...
 *     sn_images_seal(im, &set, err);
 *
 * Ownership: once sealed, set.ops->free ends it; before, sn_images_free.  Threads: building by one.
 */
#ifndef SN_DATA_IMAGES_H
#define SN_DATA_IMAGES_H

#include "data/image.h"
#include "data/names.h"
#include "data/notes.h"
#include "data/set.h"

enum { SN_IMAGES_ROOTS = 4 };

typedef struct sn_images {
    sn_names names;
    sn_notes notes;
    sn_image_options options;
    struct {
        int fd;
        char *path;
    } roots[SN_IMAGES_ROOTS];
    uint32_t n_roots;
    SN_VEC(char *) classes;
    SN_VEC(uint64_t) class_counts; /* of the train part */
    uint64_t begin[3], n[3];       /* train, validation, test in the list */
    pthread_mutex_t facts_lock;
    snug_data_facts facts;
    int part; /* that names are added to */
    bool regression;
} sn_images;

/* Options' height, width and channels resolved; labels and paths in them are not used. */
snug_status sn_images_new(sn_images **out, const snug_data_options *options, snug_error *err);
/* A folder that names are relative to; path NULL: the current one. */
snug_status sn_images_add_root(sn_images *images, const char *path, uint32_t *root,
                               snug_error *err);
/* The subset that names are added to from now on; in the order train, validation, test. */
void sn_images_begin(sn_images *images, snug_subset subset);
/* class_index -1: none. */
snug_status sn_images_add(sn_images *images, uint32_t root, const char *name, int32_t class_index,
                          float y, snug_error *err);
/* A class of that name, made if new; -1: no memory. Linear: for a few, or use a map. */
int32_t sn_images_class(sn_images *images, const char *name);
/* Whether a file counts as an image: by its ending, or by its first bytes where the ending says
 * nothing or something that is not read. */
bool sn_images_is_image(int root_fd, const char *path);

/* A folder of class folders, or of train / val / test folders of class folders. validation: adds
 * all of it to the validation part, to the classes that are there already. */
snug_status sn_images_scan(sn_images *images, const char *path, bool validation, bool lenient,
                           snug_error *err);
/* All images below a folder, or the one file, without classes, in natural order. */
snug_status sn_images_add_path(sn_images *images, const char *path, snug_error *err);

/* Ends the building; *set takes the images over. */
snug_status sn_images_seal(sn_images *images, sn_set *set, snug_error *err);
void sn_images_free(sn_images *images); /* NULL-safe */

#endif
