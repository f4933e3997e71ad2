/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_card.h - the inputs of a program: its run card (shim/link.h), its environment, and the libraries that replace CUDA's.
 *
 * The environment is this process's, with
 *
 *   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT     torchrun; TORCHELASTIC_USE_AGENT_STORE=True,
 *                                                                                      so
 *                                                     that rank 0 asks maquette's store as well, instead of serving one
 *   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE _NODE_RANK, PMI_RANK PMI_SIZE   mpirun
 *   SLURM_PROCID SLURM_NTASKS SLURM_LOCALID SLURM_NODEID SLURM_NNODES SLURM_NTASKS_PER_NODE SLURM_JOB_NUM_NODES   srun
 *   LD_LIBRARY_PATH, LD_PRELOAD                       a folder of links to the zero-GPU device comes first, and its libraries are
 *                                                     named, so that a path inside a program (DT_RPATH) does not win
 *   MAQUETTE_RUN                                      the run card
 *
 * and without CUDA_VISIBLE_DEVICES, which would name devices that do not exist.
 */
#ifndef MAQ_LAUNCH_RUN_CARD_H
#define MAQ_LAUNCH_RUN_CARD_H

#include "base/arena.h"
#include "maquette/launch.h"

/* The rank that runs, and paths of its files and sockets; NULL = none. */
struct maq_run_card {
    uint32_t world, rank, per_node;
    const struct maq_device *device;
    double memory_bytes; /* 0 = the device's */
    const char *trace, *ask, *peers, *meet, *values, *waits, *inputs, *tcp, *nccl_memory;
    bool real_clock, stops;
    bool samples;            /* of a gather of objects several members are to run first, and not the first alone */
    bool forks;              /* it is a fork server's */
    const char *const *line; /* the program's command line, where the process has another one; NULL-terminated */
};

/* Writes the card. */
enum maq_status maq_run_card_write(const struct maq_run_card *card, const char *path, struct maq_diag *diag);

/* The folder of links, made in `folder`: its path and what to preload. `shim` is the device's shared object, `clock` that of the
 * host clocks (NULL = none). */
struct maq_libraries {
    const char *path, *preload;
    const char *nvtx;   /* library that NVTX calls (NVTX_INJECTION64_PATH); NULL = none */
    const char *inject; /* library that traces on a real GPU (CUDA_INJECTION64_PATH); NULL = zero-GPU device */
};
/* The same with NCCL alone, for a program that runs on a GPU. */
enum maq_status maq_libraries_link_nccl(struct maq_libraries *out, const char *folder, const char *nccl,
                                        struct maq_arena *arena, struct maq_diag *diag);
enum maq_status maq_libraries_link(struct maq_libraries *out, const char *folder, const char *shim, const char *clock,
                                   uint32_t generation, struct maq_arena *arena, struct maq_diag *diag);

/* The variables in which ranks differ, with commas between. */
const char *maq_environment_own(struct maq_arena *arena);

/* NULL-terminated, in `arena`; NULL when out of memory. libraries may be NULL: the program gets its own. */
char **maq_environment(const struct maq_run_card *card, const char *card_path, uint16_t port,
                       const struct maq_libraries *libraries, struct maq_arena *arena);

#endif
