/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_profile.h - a foreign profile: measured times of layers, their memory, and fits of the links between devices.
 *
 * A folder in the layout that Sailor (SOSP'25, github eth-easl/sailor) publishes its measurements in. Layers count the
 * embedding as the first and the head as the last one.
 *
 *   layer_profiles.json             model -> device -> micro batch -> TP -> layer -> [forward s, backward s, update s]
 *   model_memory.json               model -> TP -> layer -> {params_floats, act_mem_floats, act_output_floats, act_input_floats}
 *   basic_cluster_config.json       device -> {gpus_per_node, mem_per_gpu in bytes}; zone: the default zone
 *   intra_node_bandwidths.json      device -> number of devices -> link
 *   multizone_bandwidths_het.json   zone -> device -> number -> zone -> device -> number -> link
 *   training_config_*.json          optional: what was trained
 *
 * Forward and backward times are those of a micro batch; the update (the optimizer) is that of *all* layers of the rank that was
 * measured, the same number at every layer. Memory is that of one sequence on one TP rank, in numbers of elements.
 *
 * A link is [[a, b, c], saturated bytes/s]: it moves a message of x = log2(bytes / 10^6) at a x^2 + b x + c GB/s (10^9 bytes/s), as
 * fitted to messages of 64 KiB to 1 GiB. The ring all-reduce of n ranks takes 2 (n - 1) sends of bytes / n one after the other.
 *
 * The tables are immutable once loaded: any thread may look into them. Ids of models, devices and zones count from 0 and hold for
 * one profile only.
 */
#ifndef MAQ_TRAIN_PROFILED_LAYER_PROFILE_H
#define MAQ_TRAIN_PROFILED_LAYER_PROFILE_H

#include "maquette/mixed_step.h"

#define MAQ_PROFILE_DIR_NONE UINT32_MAX
#define MAQ_PROFILE_DIR_MAX_LAYERS 4096u

/* maq_profile_dir_load() and _free() are in maquette/mixed_plan.h. */

/* ---- names ---- */

struct maq_profile_dir_device {
    const char *name;
    uint32_t per_node;     /* 0: basic_cluster_config.json does not have it */
    double capacity_bytes; /* of one device */
};

struct maq_profile_dir_model {
    const char *name;
    uint32_t layers; /* with the embedding and the head */
};

/* The training configuration of a model (training_config_*.json); zeros where there is none. */
struct maq_profile_dir_training {
    uint32_t global_batch, sequence, hidden, heads, vocabulary;
};

uint32_t maq_profile_dir_n_models(const struct maq_profile_dir *p);
uint32_t maq_profile_dir_n_devices(const struct maq_profile_dir *p);
uint32_t maq_profile_dir_n_zones(const struct maq_profile_dir *p);
const struct maq_profile_dir_model *maq_profile_dir_model(const struct maq_profile_dir *p, uint32_t model);
const struct maq_profile_dir_training *maq_profile_dir_training(const struct maq_profile_dir *p, uint32_t model);
const struct maq_profile_dir_device *maq_profile_dir_device(const struct maq_profile_dir *p, uint32_t device);
const char *maq_profile_dir_zone(const struct maq_profile_dir *p, uint32_t zone);
uint32_t
maq_profile_dir_default_zone(const struct maq_profile_dir *p); /* MAQ_PROFILE_DIR_NONE when the folder names none */

/* MAQ_PROFILE_DIR_NONE when the name is unknown. */
uint32_t maq_profile_dir_find_model(const struct maq_profile_dir *p, struct maq_str name);
uint32_t maq_profile_dir_find_device(const struct maq_profile_dir *p, struct maq_str name);
uint32_t maq_profile_dir_find_zone(const struct maq_profile_dir *p, struct maq_str name);

/* The same with a diagnostic for an unknown name, at its place in the document, which lists the known ones. */
enum maq_status maq_profile_dir_want_model(uint32_t *out, const struct maq_profile_dir *p, struct maq_str name,
                                           struct maq_span at, struct maq_diag *diag);
enum maq_status maq_profile_dir_want_device(uint32_t *out, const struct maq_profile_dir *p, struct maq_str name,
                                            struct maq_span at, struct maq_diag *diag);
enum maq_status maq_profile_dir_want_zone(uint32_t *out, const struct maq_profile_dir *p, struct maq_str name,
                                          struct maq_span at, struct maq_diag *diag);

/* ---- layers ---- */

struct maq_layer_time {
    double forward_s, backward_s; /* of a micro batch */
    double update_s;              /* of the optimizer, over all layers that were measured together */
};

struct maq_layer_size { /* elements on one TP rank; all but the parameters per sequence */
    double parameters;
    double activations; /* kept from the forward to the backward pass */
    double output, input;
};

/* [layers of the model]; NULL when that was not measured. */
const struct maq_layer_time *maq_profile_dir_times(const struct maq_profile_dir *p, uint32_t model, uint32_t device,
                                                   uint32_t micro_batch, uint32_t tp);
const struct maq_layer_size *maq_profile_dir_sizes(const struct maq_profile_dir *p, uint32_t model, uint32_t tp);

/* What was measured, by model, device, micro batch and TP: i from 0 until false. */
struct maq_profile_dir_cell {
    uint32_t model, device, micro_batch, tp;
    const struct maq_layer_time *times;
};
bool maq_profile_dir_measured(struct maq_profile_dir_cell *out, const struct maq_profile_dir *p, uint32_t i);

/* ---- links ---- */

struct maq_link_fit {
    double a, b, c;       /* GB/s over log2(bytes / 10^6) */
    double saturated_bps; /* the fastest measured rate, bytes/s; not used by the fit */
};

/* A side of a link: `n` devices of a node, all sending or receiving at once. */
struct maq_link_end {
    uint32_t zone, device, n;
};

/* NULL when that was not measured. */
const struct maq_link_fit *maq_profile_dir_link(const struct maq_profile_dir *p, struct maq_link_end from,
                                                struct maq_link_end to);
const struct maq_link_fit *maq_profile_dir_node_link(const struct maq_profile_dir *p, uint32_t device, uint32_t n);

/* As published: the polynomial alone, also outside of the sizes that it was fitted to. 0 bytes take no time. */
double maq_link_bytes_per_s(const struct maq_link_fit *link, double bytes);
double maq_link_send_s(const struct maq_link_fit *link, double bytes);
double maq_link_ring_s(const struct maq_link_fit *link, double bytes, uint32_t ranks); /* all-reduce; 0 for one rank */

#endif
