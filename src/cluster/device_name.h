/* SPDX-License-Identifier: Apache-2.0 */
/* device_name.h - the catalogue's GPU in a name as drivers, profilers and people write it. */
#ifndef MAQ_CLUSTER_DEVICE_NAME_H
#define MAQ_CLUSTER_DEVICE_NAME_H

#include "spec/catalogue.h"

/* "AMD Instinct MI300X", "NVIDIA H100 80GB HBM3", "DGX H100", "GH200 120GB (Alps)": the longest run of words that the catalogue
 * knows; NULL = none. */
const struct maq_catalogue_entry *maq_device_named(struct maq_str gpu);

#endif
