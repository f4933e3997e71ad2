/* SPDX-License-Identifier: Apache-2.0 */
/*
 * other_device.h - from the device of a table to another: which is near enough, and what a time there is here.
 */
#ifndef MAQ_COST_FITTED_OTHER_DEVICE_H
#define MAQ_COST_FITTED_OTHER_DEVICE_H

#include "cost/fitted/table.h"

/* From here on, a device is of another generation. */
#define MAQ_CARRY_FAR 100.0

/* How far apart two devices are; infinite when they are the same one or have no kernels in common. */
double maq__other_device_distance(const struct maq_device *a, const struct maq_device *b);

/* An operator on a device. */
struct maq_other_device {
    const struct maq_device *device;
    const struct maq_fit_point *point;
};

/* What takes `t` there takes here, in the loops of that library's tables; seconds. */
double maq__other_device_s(double t, const struct maq_op *op, enum maq_library library,
                           const struct maq_other_device *there, const struct maq_other_device *here);

#endif
