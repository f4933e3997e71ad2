/* SPDX-License-Identifier: Apache-2.0 */
/* cost_keys.c - the keys of the `cost` section, and the words for providers. See cost_keys.h. */
#include "plan/cost_keys.h"

/* In the order of enum maq_provider behind NONE; src/cost is on a higher floor, so a test keeps the two lists equal. */
static const char *const provider_names[] = {"analytical", "fitted", "measured", NULL};

const struct maq_field maq_cost_fields[] = {
    MAQ_FIELD_STR(struct maq_cost_doc, measured, "measured", .def = "",
                  .doc = "file of measured kernels, written by maquette profile"),
    MAQ_FIELD_ENUM(struct maq_cost_doc, provider, "provider", provider_names, .def = "measured",
                   .doc = "the best provider that may answer for a cost"),
    MAQ_FIELD_QTY(struct maq_cost_doc, usd_per_hour, "price", MAQ_DIM_MONEY, .def = "0 USD/h", .min = 0, .max = 1e6,
                  .doc = "rent of each device, whatever the devices say"),
    MAQ_FIELD_END};
