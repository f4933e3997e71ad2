/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_card.c - writes the run card (figures of the device, paths), the folder of links to the libraries by CUDA
 * generation, and the environment of a rank. See run_card.h.
 */
#include "launch/run_card.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "launch/codes.h"
#include "launch/private_folder.h"
#include "shim/link.h"
#include "shim/record.h"

extern char **environ;

/* ---- the card ---- */

/*
 * Host time of a runtime call that launches nothing, over that of a launch (data/devices, `launch`): an estimate, a quarter, since
 * a launch is such a call and the writing of a command besides.
 */
#define CALL_OF_LAUNCH 0.25
/*
 * Width of the memory bus where it is unknown: five stacks of HBM, or GDDR. A program multiplies it by the clock, and gets
 * the bandwidth.
 */
#define HBM_BITS 5120
#define GDDR_BITS 384
#define HBM_BPS 1.2e12 /* faster than any GDDR */

/* NVIDIA's compute capability: "CUDA C++ Programming Guide", table of compute capabilities. */
static int capability_of(const struct maq_device *d)
{
    switch ((enum maq_device_arch)d->arch) {
    case MAQ_ARCH_VOLTA:
        return 70;
    case MAQ_ARCH_TURING:
        return 75;
    case MAQ_ARCH_AMPERE:
        return d->mem_bps > HBM_BPS ? 80 : 86;
    case MAQ_ARCH_ADA: /* or a Blackwell board that runs Ada's kernels */
        return d->peak_flops[MAQ_FP4] > 0 ? 120 : 89;
    case MAQ_ARCH_BLACKWELL:
        return 100;
    case MAQ_ARCH_HOPPER:
    case MAQ_ARCH_CDNA2:
    case MAQ_ARCH_CDNA3:
    case MAQ_ARCH_CDNA4:
    case MAQ_ARCH_OTHER:
    case MAQ_ARCH_COUNT:
        break;
    }
    return 90;
}

static void put_path(struct maq_buf *b, const char *key, const char *value)
{
    if (value)
        maq_buf_addf(b, "%s %s\n", key, value);
}

/* Of a command line, as the device makes it of its process's (maq_rec_program()). */
static uint64_t program_of(const char *const *line)
{
    struct maq_buf b;
    maq_buf_init(&b, 1 << 16);
    for (const char *const *word = line; *word; word++)
        maq_buf_add(&b, *word, strlen(*word) + 1);
    uint64_t h = maq_rec_program(b.ptr, b.len);
    maq_buf_fini(&b);
    return h;
}

enum maq_status maq_run_card_write(const struct maq_run_card *card, const char *path, struct maq_diag *diag)
{
    const struct maq_device *d = card->device;
    double memory = card->memory_bytes > 0 ? card->memory_bytes : d->mem_bytes;
    int bits = d->mem_bps > HBM_BPS ? HBM_BITS : GDDR_BITS;
    struct maq_buf b;
    maq_buf_init(&b, 1 << 16);
    maq_buf_addf(&b, "world %u\nrank %u\nper_node %u\nlocal %u\n", card->world, card->rank, card->per_node,
                 card->rank % card->per_node);
    maq_buf_addf(&b, "device %.60s\nmemory %.0f\nsms %d\ncapability %d\n", d->title ? d->title : d->name, memory,
                 d->sms, capability_of(d));
    maq_buf_addf(&b, "clock_khz %.0f\nmemory_khz %.0f\nbus_bits %d\nl2 %.0f\npower_w %.0f\n", d->clock_hz / 1e3,
                 d->mem_bps * 8 / (2.0 * bits) / 1e3, bits, d->l2_bytes, d->tdp_w);
    maq_buf_addf(&b, "call_ns %.0f\nlaunch_ns %.0f\ncopy_bps %.0f\nhbm_bps %.0f\n",
                 round(d->launch_s * CALL_OF_LAUNCH * 1e9), round(d->launch_s * 1e9), d->host_bps, d->mem_bps);
    maq_buf_addf(&b, "mode %s\nclock %s\n", card->meet ? "meet" : "alone", card->real_clock ? "real" : "virtual");
    put_path(&b, "trace", card->trace);
    put_path(&b, "ask", card->ask);
    put_path(&b, "peers", card->peers);
    put_path(&b, "meet", card->meet);
    put_path(&b, "waits", card->waits);
    put_path(&b, "inputs", card->inputs);
    put_path(&b, "stops", !card->stops ? NULL : card->samples ? "2" : "1");
    put_path(&b, "forks", card->forks ? "1" : NULL);
    if (card->line)
        maq_buf_addf(&b, "program %llu\n", (unsigned long long)program_of(card->line));
    put_path(&b, "nccl_memory", card->nccl_memory);
    put_path(&b, "tcp", card->tcp);
    put_path(&b, "values", card->values ? card->values : "zero");
    enum maq_status status = b.failed ? MAQ_NO_MEMORY : maq_folder_write(path, b.ptr, b.len, diag);
    maq_buf_fini(&b);
    return status;
}

/* ---- libraries ---- */

/* What programs ask for, by generation: %u is 12 or 13. */
static const struct {
    const char *name;
    bool preload;
} links[] = {
    {"libcudart.so.%u", true}, {"libcublas.so.%u", true}, {"libcublasLt.so.%u", true}, {"libcudnn.so.9", true},
    {"libnccl.so.2", true},    {"libcuda.so.1", true},    {"libnvidia-ml.so.1", true}, {"libnvrtc.so.%u", true},
    {"libcupti.so.%u", true},  {"libmpi.so.40", false},
};

static enum maq_status link_one(const char *to, const char *folder, const char *name, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    const char *at = maq_arena_printf(arena, "%s/%s", folder, name);
    if (!at)
        return MAQ_NO_MEMORY;
    if (symlink(to, at) == 0)
        return MAQ_OK;
    int error = errno;
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL, "cannot make '%.200s': %s",
                         at, strerror(error));
}

enum maq_status maq_libraries_link(struct maq_libraries *out, const char *folder, const char *shim, const char *clock,
                                   uint32_t generation, struct maq_arena *arena, struct maq_diag *diag)
{
    char name[64], target[4096];
    struct maq_buf preload;
    const char *path = maq_arena_printf(arena, "%s/lib", folder), *file = realpath(shim, target);
    if (!path || !file || mkdir(path, 0700) != 0)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL,
                             "cannot make a folder of libraries in '%.200s'", folder);
    maq_buf_init(&preload, 4096);
    enum maq_status status = MAQ_OK;
    for (size_t i = 0; i < MAQ_COUNT(links) && status == MAQ_OK; i++) {
        const char *percent = strstr(links[i].name, "%u");
        if (percent)
            maq__snprintf(name, sizeof name, "%.*s%u", (int)(percent - links[i].name), links[i].name, generation);
        else
            maq__snprintf(name, sizeof name, "%s", links[i].name);
        status = link_one(file, path, name, arena, diag);
        if (links[i].preload)
            maq_buf_addf(&preload, "%s%s", preload.len > 0 ? ":" : "", name);
    }
    if (status == MAQ_OK && clock && realpath(clock, target)) {
        status = link_one(target, path, "libmaquette-clock.so", arena, diag);
        maq_buf_adds(&preload, ":libmaquette-clock.so");
    }
    out->path = path;
    out->nvtx = maq_arena_printf(arena, "%s/libcupti.so.%u", path, generation);
    out->preload = preload.ptr ? maq_arena_strdup(arena, maq_str_of(preload.ptr)) : NULL;
    maq_buf_fini(&preload);
    return status == MAQ_OK && (!out->preload || !out->nvtx) ? MAQ_NO_MEMORY : status;
}

enum maq_status maq_libraries_link_nccl(struct maq_libraries *out, const char *folder, const char *nccl,
                                        struct maq_arena *arena, struct maq_diag *diag)
{
    char target[4096];
    const char *path = maq_arena_printf(arena, "%s/lib", folder), *file = realpath(nccl, target);
    if (!path || !file || mkdir(path, 0700) != 0)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL,
                             "cannot make a folder of libraries in '%.200s'", folder);
    *out = (struct maq_libraries){
        .path = path, .preload = "libnccl.so.2", .inject = maq_arena_strdup(arena, maq_str_of(file))};
    return out->inject ? link_one(file, path, "libnccl.so.2", arena, diag) : MAQ_NO_MEMORY;
}

/* ---- environment ---- */

struct environment {
    struct maq_arena *arena;
    char **list;
    size_t n, size;
    bool failed;
};

static void set(struct environment *e, const char *name, const char *fmt, ...) MAQ_PRINTF(3, 4);
static void set(struct environment *e, const char *name, const char *fmt, ...)
{
    char value[8192];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    char *text = n >= 0 && (size_t)n < sizeof value ? maq_arena_printf(e->arena, "%s=%s", name, value) : NULL;
    e->failed = e->failed || !text;
    size_t len = strlen(name);
    for (size_t i = 0; i < e->n; i++)
        if (strncmp(e->list[i], name, len) == 0 && e->list[i][len] == '=') {
            e->list[i] = text;
            return;
        }
    if (e->n < e->size)
        e->list[e->n++] = text;
    else
        e->failed = true;
}

static void unset(struct environment *e, const char *name)
{
    size_t len = strlen(name), kept = 0;
    for (size_t i = 0; i < e->n; i++)
        if (strncmp(e->list[i], name, len) != 0 || e->list[i][len] != '=')
            e->list[kept++] = e->list[i];
    e->n = kept;
}

/* Before what the user has there. */
static void prepend(struct environment *e, const char *name, const char *value)
{
    const char *has = getenv(name);
    set(e, name, "%s%s%s", value, has && has[0] ? ":" : "", has ? has : "");
}

/* What ranks are told in numbers, one after another as in rank_variables. */
struct rank_numbers {
    uint32_t rank, world, local, here, node, nodes, per_node, port, zero;
};
#define OF(member) offsetof(struct rank_numbers, member)
static const struct {
    const char *name;
    size_t of;
    bool own; /* ranks differ in it */
} rank_variables[] = {
    {"RANK", OF(rank), true},
    {"WORLD_SIZE", OF(world), false},
    {"LOCAL_RANK", OF(local), true},
    {"LOCAL_WORLD_SIZE", OF(here), true},
    {"GROUP_RANK", OF(node), true},
    {"GROUP_WORLD_SIZE", OF(nodes), false},
    {"MASTER_PORT", OF(port), true},
    {"TORCHELASTIC_RESTART_COUNT", OF(zero), false},
    {"TORCHELASTIC_MAX_RESTARTS", OF(zero), false},
    {"OMPI_COMM_WORLD_RANK", OF(rank), true},
    {"OMPI_COMM_WORLD_SIZE", OF(world), false},
    {"OMPI_COMM_WORLD_LOCAL_RANK", OF(local), true},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", OF(here), true},
    {"OMPI_COMM_WORLD_NODE_RANK", OF(local), true},
    {"OMPI_UNIVERSE_SIZE", OF(world), false},
    {"PMI_RANK", OF(rank), true},
    {"PMI_SIZE", OF(world), false},
    {"SLURM_PROCID", OF(rank), true},
    {"SLURM_NTASKS", OF(world), false},
    {"SLURM_NPROCS", OF(world), false},
    {"SLURM_LOCALID", OF(local), true},
    {"SLURM_NODEID", OF(node), true},
    {"SLURM_NNODES", OF(nodes), false},
    {"SLURM_JOB_NUM_NODES", OF(nodes), false},
    {"SLURM_NTASKS_PER_NODE", OF(per_node), false},
};

static void set_ranks(struct environment *e, const struct maq_run_card *c, uint16_t port)
{
    uint32_t node = c->rank / c->per_node, nodes = (c->world + c->per_node - 1) / c->per_node;
    struct rank_numbers numbers = {.rank = c->rank,
                                   .world = c->world,
                                   .local = c->rank % c->per_node,
                                   .here = node == nodes - 1 ? c->world - node * c->per_node : c->per_node,
                                   .node = node,
                                   .nodes = nodes,
                                   .per_node = c->per_node,
                                   .port = port};
    for (size_t i = 0; i < MAQ_COUNT(rank_variables); i++) {
        uint32_t value;
        memcpy(&value, (const char *)&numbers + rank_variables[i].of, sizeof value);
        set(e, rank_variables[i].name, "%u", value);
    }
    set(e, "MASTER_ADDR", "127.0.0.1");
    set(e, "TORCHELASTIC_USE_AGENT_STORE", "True");
    set(e, "TORCHELASTIC_RUN_ID", "maquette");
}

const char *maq_environment_own(struct maq_arena *arena)
{
    struct maq_buf b;
    maq_buf_init(&b, 4096);
    maq_buf_adds(&b, MAQ_RUN_CARD);
    for (size_t i = 0; i < MAQ_COUNT(rank_variables); i++)
        if (rank_variables[i].own)
            maq_buf_addf(&b, ",%s", rank_variables[i].name);
    const char *names = b.failed ? NULL : maq_arena_strdup(arena, maq_str_of(b.ptr));
    maq_buf_fini(&b);
    return names;
}

char **maq_environment(const struct maq_run_card *card, const char *card_path, uint16_t port,
                       const struct maq_libraries *libraries, struct maq_arena *arena)
{
    struct environment e = {.arena = arena};
    size_t has = 0;
    while (environ && environ[has])
        has++;
    e.size = has + 64;
    e.list = MAQ_ARENA_NEW(arena, char *, e.size + 1);
    if (!e.list)
        return NULL;
    for (size_t i = 0; i < has; i++) {
        e.list[e.n] = maq_arena_strdup(arena, maq_str_of(environ[i]));
        e.failed = e.failed || !e.list[e.n++];
    }
    if (e.failed)
        return NULL;
    if (!libraries || !libraries->inject)
        unset(&e, "CUDA_VISIBLE_DEVICES");
    set_ranks(&e, card, port);
    set(&e, MAQ_RUN_CARD, "%s", card_path);
    if (libraries) {
        prepend(&e, "LD_LIBRARY_PATH", libraries->path);
        prepend(&e, "LD_PRELOAD", libraries->preload);
        if (libraries->inject)
            set(&e, "CUDA_INJECTION64_PATH", "%s", libraries->inject);
        if (libraries->nvtx && !getenv("NVTX_INJECTION64_PATH"))
            set(&e, "NVTX_INJECTION64_PATH", "%s", libraries->nvtx);
    }
    return e.failed ? NULL : e.list;
}
