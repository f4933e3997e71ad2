/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugging_face.h - what the files of Hugging Face's libraries and of those built on them have in common: TrainingArguments, LLaMA-Factory,
 * axolotl and Accelerate say the same things under names of their own. Keys are those of the file at hand; NULL: it has none for it.
 */
#ifndef MAQ_PLAN_FRAMEWORK_FILES_HUGGING_FACE_H
#define MAQ_PLAN_FRAMEWORK_FILES_HUGGING_FACE_H

#include "plan/framework_files/reader.h"

/*
 * FSDP by the keys of a map of a file ("fsdp_config"), each with or without "fsdp_" before it: strategy, resharding, checkpoints,
 * parameters on the host. `at` is where FSDP is asked for; `strategy` is what an older way of asking says ("full_shard auto_wrap"), or NULL.
 */
void maq_file_fsdp(struct maq_file_reader *r, const struct maq_node *at, const char *map, struct maq_str strategy);

/* bf16 and fp16 as switches; neither: FP32. "auto" is BF16 where the device has it. */
void maq_file_switches(struct maq_file_reader *r, const char *bf16, const char *fp16);

/* The optimizer by the names of transformers' OptimizerNames, "adamw_bnb_8bit". */
void maq_file_optim(struct maq_file_reader *r, const struct maq_node *at);

/* The optimizer by a class, "torch.optim.AdamW" or {class_path: ..., init_args: {fused: true}}; NULL: none is said. */
void maq_file_torch_optimizer(struct maq_file_reader *r, const struct maq_node *at);

/* GaLore's rank, update_proj_gap and modules (a list or a text; "all" and none: every linear of the layers). */
void maq_file_galore(struct maq_file_reader *r, const struct maq_node *at, int64_t rank, int64_t gap,
                     const struct maq_node *targets);

/* Microbatches and how many of them a step has; without the key so many. */
void maq_file_batch(struct maq_file_reader *r, const char *micro, int64_t otherwise, const char *accumulation);

/* A model by name or folder, unless a flag or another file has one. */
void maq_file_model(struct maq_file_reader *r, const char *key);

/* LoRA: its rank, and the modules that it adapts ("all", a list, a text with commas), where the method asks for it. */
void maq_file_lora(struct maq_file_reader *r, const struct maq_node *at, int64_t rank, const struct maq_node *targets,
                   const char *otherwise);

/* ---- the same, written ---- */

/* The map of FSDP2: resharding, and parameters on the host. */
void maq_file_put_fsdp(struct maq_file_writer *w, const struct maq_plan *p);
/* Trainer's `deepspeed`, where that framework's buckets are held, or `fsdp` with its map; neither for DDP. */
void maq_file_put_trainer_sharding(struct maq_file_writer *w, const struct maq_job *job);
/* The optimizer's name, of those of GaLore or of the others; NULL: none is this plan's. */
const char *maq_file_optim_name(const struct maq_plan *p, bool low_rank);
/* The optimizer under a key, and GaLore's arguments beside it; `all`: what every linear of the layers is called. */
void maq_file_put_optim(struct maq_file_writer *w, const char *key, const char *all, const struct maq_plan *p);
/* The modules that LoRA adapts, as a list; `all`: what every linear of the layers is called. */
void maq_file_put_targets(struct maq_file_writer *w, const char *key, const char *all, const struct maq_plan *p);
/* The model as its library loads it: the name on Hugging Face's hub that the catalogue was read off, or the folder of its config.json. */
void maq_file_put_model(struct maq_file_writer *w, const char *key, const struct maq_model *model);
/* DeepSpeed's configuration, into the section that is open (deepspeed.c). */
void maq_file_put_deepspeed(struct maq_file_writer *w, const struct maq_job *job);

/* Arguments of the Trainer that change no step: rows behind a form's own. */
extern const struct maq_file_key maq_file_trainer_keys[];

extern const struct maq_file_form maq_file_training_arguments, maq_file_accelerate, maq_file_llama_factory,
    maq_file_llama_factory_v1, maq_file_axolotl;

/* ---- several models (trl.c) ---- */

/* A trainer of pairs by the name of its loss: the job's section `rl`. */
void maq_file_preferences(struct maq_file_reader *r, const struct maq_node *at, struct maq_str loss);
/* GRPO, with TRL's keys of a map ("trl.", or "" for the file itself). */
void maq_file_kto(struct maq_file_reader *r, const struct maq_node *at);
void maq_file_grpo(struct maq_file_reader *r, const struct maq_node *at, const char *map);
/* What TRL's configuration says of either. */
void maq_file_trl(struct maq_file_reader *r);

#endif
