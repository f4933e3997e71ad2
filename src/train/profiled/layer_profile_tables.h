/* SPDX-License-Identifier: Apache-2.0 */
/* layer_profile_tables.h - the tables behind layer_profile.h, filled by layer_profile_read.c. */
#ifndef MAQ_TRAIN_PROFILED_LAYER_PROFILE_TABLES_H
#define MAQ_TRAIN_PROFILED_LAYER_PROFILE_TABLES_H

#include "base/arena.h"
#include "train/profiled/layer_profile.h"

#define MAQ_PROFILE_DIR_MAX_NAMES 255u /* models, devices, zones: each fits a byte of a key */

struct maq_profile_dir_names {
    const char *at[MAQ_PROFILE_DIR_MAX_NAMES];
    uint32_t n;
};

/* Sorted by key once loaded. */
struct maq_profile_dir_entry {
    uint64_t key;
    const void *value;
    struct maq_span span; /* where it stands */
};

struct maq_profile_dir_table {
    struct maq_profile_dir_entry *at;
    uint32_t n, size;
};

struct maq_profile_dir {
    struct maq_arena arena;
    struct maq_profile_dir_names model_names, device_names, zone_names;
    struct maq_profile_dir_model models[MAQ_PROFILE_DIR_MAX_NAMES];
    struct maq_profile_dir_training trainings[MAQ_PROFILE_DIR_MAX_NAMES];
    struct maq_profile_dir_device devices[MAQ_PROFILE_DIR_MAX_NAMES];
    uint32_t default_zone;
    struct maq_profile_dir_table times; /* struct maq_layer_time [layers] */
    struct maq_profile_dir_table sizes; /* struct maq_layer_size [layers] */
    struct maq_profile_dir_table links, node_links;
};

/* Four parts of 16 bits, the first one the most significant. */
static inline uint64_t maq__profile_dir_key(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return a << 48 | b << 32 | c << 16 | d;
}
#define MAQ_PROFILE_DIR_KEY_MAX 65535

#endif
