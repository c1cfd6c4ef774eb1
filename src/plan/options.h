/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - from the public optimizer and loss to what operators take, checked.
 *
 *     s = sn_loss_resolve(&loss, model, err);
 *     sn_graph_options o = {.loss = sn_plan_loss_attrs(&loss), ...};
 *
 * Ownership: values.  Threads: pure functions.
 */
#ifndef SN_PLAN_OPTIONS_H
#define SN_PLAN_OPTIONS_H

#include "plan/plan.h"

/* SNUG_E_USAGE for numbers that make no sense, or two ways of clipping. */
snug_status sn_optimizer_check(const snug_optimizer *optimizer, snug_error *err);
/* AUTO decided from the model's last layer, zeros replaced by the defaults. */
snug_status sn_loss_resolve(snug_loss *loss, const snug_model *model, snug_error *err);
sn_loss_attrs sn_plan_loss_attrs(const snug_loss *loss);

#endif
