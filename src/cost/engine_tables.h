/* SPDX-License-Identifier: Apache-2.0 */
/* engine_tables.h - whose measured table has a kernel that an engine runs: not always the one by its name. */
#ifndef MAQ_COST_ENGINE_TABLES_H
#define MAQ_COST_ENGINE_TABLES_H

#include "maquette/cost.h"

/* `engine`: whose program it is; that of training stays what it is. */
enum maq_library maq_engine_table(enum maq_library engine, const struct maq_op *op, const struct maq_device *device);

#endif
