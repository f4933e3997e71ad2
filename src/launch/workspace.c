/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace.c - opens and closes a workspace: the cluster and its cost chain, the program's file, the libraries of
 * the zero-GPU device, folder and price server. See workspace.h.
 */
#include "launch/workspace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "base/units.h"
#include "cluster/cluster_load.h"
#include "launch/codes.h"
#include "launch/elf.h"
#include "launch/launcher.h"
#include "launch/private_folder.h"
#include "maquette/module.h"
#include "shim/link.h"

#define WORLD_MAX (1u << 20)
#define MEMORY_LEAST 1e6
#define MEMORY_MOST 1e15
#define PROFILE_MOST ((size_t)16 << 20)

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double maq_workspace_age(const struct maq_workspace *workspace)
{
    return now_s() - workspace->began_s;
}

/* ---- the machine ---- */

static enum maq_status load_cluster(struct maq_workspace *workspace, const char *text, struct maq_diag *diag)
{
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .origin = MAQ_ORIGIN_FLAG, .text = maq_str_of(text), .used = true};
    uint32_t file = maq_diag_add_source(diag, workspace->opts->cluster ? "--cluster" : "--device", text, strlen(text));
    node.at = (struct maq_span){file, 0, (uint32_t)strlen(text)};
    return maq_cluster_load(&workspace->cluster, &node, &workspace->arena, diag);
}

static enum maq_status open_machine(struct maq_workspace *workspace, struct maq_diag *diag)
{
    const struct maq_launch_opts *o = workspace->opts;
    const char *device = o->device ? o->device : "h100-sxm", *text = o->cluster ? o->cluster : device;
    const char *why;
    MAQ_TRY(load_cluster(workspace, text, diag));
    workspace->per_node = o->per_node > 0 ? o->per_node : (uint32_t)workspace->cluster.groups[0].devices_per_node;
    workspace->world = o->world > 0 ? o->world : workspace->cluster.devices;
    if (workspace->world > WORLD_MAX)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0}, NULL,
                             "a world of %u ranks: %u are the most", workspace->world, WORLD_MAX);
    if (o->rank >= workspace->world)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0}, "ranks are counted from 0",
                             "there is no rank %u in a world of %u", o->rank, workspace->world);
    if (o->cluster && workspace->cluster.devices < workspace->world)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0},
                             "give a larger cluster, or fewer ranks", "the cluster has %u devices for %u ranks",
                             workspace->cluster.devices, workspace->world);
    if (!o->cluster) { /* as many nodes as the ranks need */
        const char *whole = maq_arena_printf(&workspace->arena, "%s:%u x %u", device, workspace->per_node,
                                             (workspace->world + workspace->per_node - 1) / workspace->per_node);
        MAQ_TRY(whole ? load_cluster(workspace, whole, diag) : MAQ_NO_MEMORY);
    }
    if (o->memory && (!maq_quantity_parse(&workspace->memory_bytes, maq_str_of(o->memory), MAQ_DIM_BYTES, &why) ||
                      !(workspace->memory_bytes >= MEMORY_LEAST && workspace->memory_bytes <= MEMORY_MOST)))
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0},
                             "write it with its unit: 80GB, 40GiB", "'%.60s' is no size of a device's memory",
                             o->memory);
    if (o->measured)
        MAQ_TRY(maq_measured_open(&workspace->measured, o->measured, diag));
    if (o->kernels)
        MAQ_TRY(maq_replay_kernels_read(&workspace->kernels, o->kernels, diag));
    workspace->costs.measured = workspace->measured;
    workspace->pricer = (struct maq_pricer){&workspace->cluster, &workspace->costs, workspace->kernels};
    maq_price_server_init(&workspace->asks, &workspace->pricer, workspace->world);
    return MAQ_OK;
}

/* ---- program and libraries ---- */

enum maq_status maq_workspace_absolute(const char **out, const char *path, struct maq_arena *arena)
{
    char here[PATH_MAX];
    *out = path;
    if (!path || path[0] == '/')
        return MAQ_OK;
    *out = getcwd(here, sizeof here) ? maq_arena_printf(arena, "%s/%s", here, path) : NULL;
    return *out ? MAQ_OK : MAQ_NO_MEMORY;
}

/* A profile of NCCL's memory: every line has to be one. */
static enum maq_status check_profile(const char *path, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    char *text;
    size_t n;
    MAQ_TRY(maq_folder_read(&text, &n, path, PROFILE_MOST, diag));
    if (!text)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0},
                             "--nccl-memory takes rule, none or a file", "there is no file '%.200s'", path);
    struct maq_str rest = {text, n}, line;
    uint32_t file = maq_diag_add_source(diag, path, text, n);
    while (rest.ptr && status == MAQ_OK) {
        struct maq_comm_memory_row row;
        char copy[256] = "-";
        rest = maq_str_split(rest, '\n', &line);
        if (line.len < sizeof copy) {
            memcpy(copy, line.ptr, line.len);
            copy[line.len] = '\0';
        }
        if (maq_comm_memory_read(&row, copy) < 0)
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_OPTION,
                                   (struct maq_span){file, (uint32_t)(line.ptr - text), (uint32_t)line.len},
                                   "init|collective|send|recv, ranks or any, node|across, bytes: init 8 node 203423744",
                                   "no line of a profile of NCCL's memory");
    }
    free(text);
    return status;
}

static enum maq_status open_nccl_memory(struct maq_workspace *workspace, struct maq_diag *diag)
{
    const char *from = workspace->opts->nccl_memory ? workspace->opts->nccl_memory : "rule";
    workspace->nccl_memory = "rule";
    if (strcmp(from, "rule") == 0)
        return MAQ_OK;
    workspace->nccl_memory = NULL;
    if (strcmp(from, "none") == 0)
        return MAQ_OK;
    MAQ_TRY(maq_workspace_absolute(&workspace->nccl_memory, from, &workspace->arena));
    return check_profile(workspace->nccl_memory, diag);
}

static enum maq_status open_libraries(struct maq_workspace *workspace, struct maq_diag *diag)
{
    char file[64], shim[MAQ_MODULE_PATH], clock[MAQ_MODULE_PATH];
    uint32_t generation = workspace->opts->libraries;
    if (generation == MAQ_LAUNCH_NO_LIBRARIES)
        return MAQ_OK;
    if (generation == MAQ_LAUNCH_GPU) {
        if (!maq_module_find(shim, "libmaquette-nccl.so", "shim/gpu"))
            return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_LIBRARY, (struct maq_span){0},
                                 "it is built where nvcc and CUPTI are",
                                 "the libnccl with virtual peers, libmaquette-nccl.so, is not there");
        workspace->device = true;
        return maq_libraries_link_nccl(&workspace->libraries, workspace->folder, shim, &workspace->arena, diag);
    }
    if (maq_elf_has_runtime(workspace->program))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0},
                             "build it with NVCC_APPEND_FLAGS='-cudart shared'; if it uses no device: --libraries none",
                             "%s has CUDA's runtime inside, where nothing can stand in for it", workspace->program);
    if (generation == 0)
        generation = maq_elf_generation(workspace->program);
    (void)snprintf(file, sizeof file, "libmaquette-vgpu-%u.so", generation);
    if (!maq_module_find(shim, file, "shim"))
        return maq_diag_fail(
            MAQ_IO, diag, MAQ_CODE_LAUNCH_LIBRARY, (struct maq_span){0},
            "build it (meson compile), or install it beside maquette; --libraries none runs a program that "
            "uses no device",
            "the zero-GPU device, %s, is not there", file);
    bool has_clock = maq_module_find(clock, "libmaquette-clock.so", "shim");
    workspace->device = true;
    return maq_libraries_link(&workspace->libraries, workspace->folder, shim, has_clock ? clock : NULL, generation,
                              &workspace->arena, diag);
}

static uint64_t identity_of(const struct maq_workspace *workspace)
{
    const struct maq_launch_opts *o = workspace->opts;
    uint64_t h = maq_rec_mix(workspace->world, workspace->per_node);
    for (const char *const *a = o->arguments; *a; a++)
        h = maq_rec_hash(*a, strlen(*a) + 1, h);
    const char *device = workspace->cluster.groups[0].device.name,
               *memory = workspace->nccl_memory ? workspace->nccl_memory : "";
    h = maq_rec_hash(memory, strlen(memory), h);
    return maq_rec_hash(device, strlen(device), maq_rec_mix(h, (uint64_t)workspace->memory_bytes));
}

enum maq_status maq_workspace_open(struct maq_workspace *workspace, const struct maq_launch_opts *opts,
                                   struct maq_diag *diag)
{
    *workspace = (struct maq_workspace){.opts = opts, .began_s = now_s()};
    maq_arena_init(&workspace->arena, 0);
    if (!opts->arguments || !opts->arguments[0])
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0},
                             "give the program and its arguments after `--`", "there is no program to run");
    const char *launcher = maq_launcher_of(opts->arguments);
    if (launcher)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0},
                             "give what it would start as one rank: -- python train.py --its --own options",
                             "'%s' starts ranks, and so does maquette", launcher);
    MAQ_TRY(open_machine(workspace, diag));
    MAQ_TRY(maq_child_find(&workspace->program, opts->arguments[0], &workspace->arena, diag));
    MAQ_TRY(maq_workspace_absolute(&workspace->trace, opts->trace, &workspace->arena));
    MAQ_TRY(maq_workspace_absolute(&workspace->values, opts->values, &workspace->arena));
    MAQ_TRY(open_nccl_memory(workspace, diag));
    MAQ_TRY(maq_folder_make(&workspace->folder, &workspace->arena, diag));
    maq_folder_guard_begin(&workspace->guard, workspace->folder);
    workspace->identity = identity_of(workspace);
    return open_libraries(workspace, diag);
}

void maq_workspace_close(struct maq_workspace *workspace)
{
    if (workspace->folder)
        maq_folder_remove(workspace->folder);
    maq_folder_guard_end(&workspace->guard);
    maq_price_server_fini(&workspace->asks);
    maq_loop_fini(&workspace->loop);
    maq_measured_close(workspace->measured);
    maq_replay_kernels_free(workspace->kernels);
    maq_arena_fini(&workspace->arena);
}
