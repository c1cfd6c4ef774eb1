/* SPDX-License-Identifier: Apache-2.0
 *
 * advise.h - what would make it fit: other batches, image sizes, optimizers, widths and models,
 * each really planned, ranked, as text to append to the command.
 *
 *     if (snug_plan_new(&plan, model, &o, &err) == SNUG_E_DOES_NOT_FIT) {
 *         snug_advise_options a = {SNUG_ADVISE_DEFAULTS, .model = "vgg16", .height = 224,
 *                                  .width = 224, .channels = 3, .classes = 37, .plan = &o};
 *         snug_advise(plan, &a, &err);
 *     }
 *     for (size_t i = 0; i < snug_plan_n_fixes(plan); i++) ...
 *
 * Ownership: fixes belong to the plan.  Threads: one at a time.
 */
#ifndef SNUG_ADVISE_H
#define SNUG_ADVISE_H

#include "snug/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_advise_options {
    size_t struct_size;
    const char *model; /* zoo spec of the plan's model */
    int64_t height, width, channels, classes;
    const snug_plan_options *plan; /* what the plan was made with */
    bool batch_given;              /* the user chose the batch */
} snug_advise_options;
#define SNUG_ADVISE_DEFAULTS .struct_size = sizeof(snug_advise_options)

/* Looks for fixes and popular advice that would not help, and adds them to the plan (once; again
 * does nothing). At least one fix is found whenever any model of the zoo fits the budget.
 * SNUG_E_USAGE for a model that is none of the zoo, SNUG_E_MEMORY. */
SNUG_API snug_status snug_advise(snug_plan *plan, const snug_advise_options *options,
                                 snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
