/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.h - a module as one rank sees it: its rows and widths under the plan's cut, its parameters, and the operators and
 * collectives that are made of them.
 */
#ifndef MAQ_LOWER_LOCAL_H
#define MAQ_LOWER_LOCAL_H

#include "lower/lower.h"
#include "plan/lora_targets.h"

/* Rows and local widths of a module on this rank. */
struct maq_local {
    int64_t rows, in, out;
};
struct maq_local maq_lower_local(const struct maq_lower *lower, const struct maq_layer *layer,
                                 const struct maq_module *m);

/* Bytes of the tensor between two layers of `hidden` features, what a rank has of it. */
double maq_lower_border_bytes(const struct maq_lower *lower, int64_t hidden);
/* Whether fused layers are Transformer Engine's. */
bool maq_job_has_transformer_engine(const struct maq_job *job);
/*
 * Whether a norm and the product that alone reads it are one module (Transformer Engine's LayerNormLinear), in which recomputing norms does
 * nothing: in front of a router or of the down projections of latent attention it is a module of its own.
 */
bool maq_lower_norm_joined(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *norm);
/* Parameters of a module that one rank holds (before any data-parallel sharding). */
double maq_lower_local_params(const struct maq_lower *lower, const struct maq_module *m);

/* Whether the recipe quantizes a module's product; bytes of a quantized number, with its share of the scales. */
bool maq_lower_quantized(const struct maq_lower *lower, const struct maq_module *m);
double maq_lower_narrow_bytes(const struct maq_plan *plan);
/* The same of a frozen linear under LoRA; `wide`: bytes of one that is not quantized. */
bool maq_lower_base_quantized(const struct maq_lower *lower, const struct maq_module *m);
double maq_lower_base_bytes(const struct maq_plan *plan, double wide);

/* Whether a linear has LoRA adapters; whether a module's own weights are trained. */
bool maq_lower_adapted(const struct maq_lower *lower, const struct maq_module *m);
bool maq_lower_trained(const struct maq_lower *lower);

/* The products that a linear is in a program without fused weights: q, k and v, gate and up; else one. Local widths, how many. */
uint32_t maq_lower_products(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                            const struct maq_module *m);

/* By operator: whether the output of the next product of a linear is kept; *products counts them through a layer. */
bool maq_lower_product_is_kept(uint32_t *products);

/* How many adapters a linear has on this rank, and how wide each is on the side where it leaves. */
uint32_t maq_lower_adapters(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                            const struct maq_module *m);

/* The same of what GaLore projects: matrices as wide as the module reads. */
uint32_t maq_lower_projected(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                             const struct maq_module *m);

struct maq_op maq_op_make(enum maq_op_kind kind, int dtype, unsigned flags, int64_t d0, int64_t d1, int64_t d2,
                          int64_t d3, int64_t d4, int64_t d5);
struct maq_coll maq_coll_make(const struct maq_lower *lower, enum maq_coll_kind kind, enum maq_group_kind group,
                              double bytes);

/* Whether the module is a token table that is looked up by a product with one-hot vectors, one value per token and (local) row. */
bool maq_lower_one_hot(const struct maq_lower *lower, const struct maq_module *m);

/* Mean keys per query for the workload's documents (packing and length distribution applied). */
double maq_lower_keys(const struct maq_lower *lower, const struct maq_attention_geometry *g);

#endif
