/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx.c - ranges and marks of NVTX (torch.cuda.nvtx, Megatron's timers) go into the trace, where they name parts of a step.
 *
 * maquette sets NVTX_INJECTION64_PATH to this library as libcupti; what a program pushes and pops between records is there in its
 * order: MARK with push, pop or point. Only on threads that drive the device and on the program's first one, since what others push has no
 * place among the records. A pop says which range it ends. Ranges that are started and ended are pushes and pops that need
 * not nest. Domains are one: a library's ranges are as good as the program's. Wide characters are left out.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/abi/nvtx.h"
#include "shim/core/core.h"
#include "shim/math/operator.h"

enum { DEEPEST = 128, STARTED_MOST = 1024 };
static _Thread_local uint32_t pushed[DEEPEST]; /* texts */
static _Thread_local int depth;
static uint32_t started[STARTED_MOST]; /* texts by number of the range; under the device's lock */
static uint64_t n_started;

static bool recorded_here(void)
{
    return vg_recording() && (vg_drives() || syscall(SYS_gettid) == getpid());
}

static void mark(enum maq_rec_mark kind, uint32_t text)
{
    vg_record((struct maq_rec){.kind = MAQ_REC_MARK, .stream = MAQ_REC_HOST_STREAM, .id = text, .arg = kind}, NULL);
}

static const char *message_of(const struct abi_nvtx_attributes *a)
{
    bool text = a && (a->message_type == ABI_NVTX_MESSAGE_ASCII || a->message_type == ABI_NVTX_MESSAGE_REGISTERED);
    return text && a->message ? a->message : "";
}

/* --- what the program calls ----------------------------------------------------------------------------------------------- */

static int push(const char *message)
{
    uint32_t text = MAQ_REC_NONE;
    if (recorded_here() && depth < DEEPEST) {
        vg_lock();
        text = vg_text(message ? message : "", message ? strlen(message) : 0);
        mark(MAQ_REC_PUSH, text);
        vg_unlock();
    }
    if (depth < DEEPEST)
        pushed[depth] = text;
    return depth++;
}

static int push_with(const struct abi_nvtx_attributes *a)
{
    return push(message_of(a));
}

static int pop(void)
{
    if (depth == 0)
        return -1;
    depth--;
    if (depth < DEEPEST && pushed[depth] != MAQ_REC_NONE)
        mark(MAQ_REC_POP, pushed[depth]);
    return depth;
}

static uint64_t start(const char *message)
{
    if (!recorded_here())
        return 0;
    vg_lock();
    uint64_t range = n_started++;
    started[range % STARTED_MOST] = vg_text(message ? message : "", message ? strlen(message) : 0);
    mark(MAQ_REC_PUSH, started[range % STARTED_MOST]);
    vg_unlock();
    return range + 1;
}

static uint64_t start_with(const struct abi_nvtx_attributes *a)
{
    return start(message_of(a));
}

static void end(uint64_t range)
{
    vg_lock();
    if (range > 0 && range <= n_started && n_started - range < STARTED_MOST)
        mark(MAQ_REC_POP, started[(range - 1) % STARTED_MOST]);
    vg_unlock();
}

static void point(const char *message)
{
    if (!recorded_here())
        return;
    vg_lock();
    mark(MAQ_REC_POINT, vg_text(message ? message : "", message ? strlen(message) : 0));
    vg_unlock();
}

static void point_with(const struct abi_nvtx_attributes *a)
{
    point(message_of(a));
}

static int domain_push(const void *domain, const struct abi_nvtx_attributes *a)
{
    (void)domain;
    return push_with(a);
}

static int domain_pop(const void *domain)
{
    (void)domain;
    return pop();
}

/* A registered string is its text; it lives on. */
static const void *domain_string(const void *domain, const char *text)
{
    (void)domain;
    return strdup(text ? text : "");
}

/* --- how it comes to call it ------------------------------------------------------------------------------------------------ */

#define SETS(id, function)                                                                                             \
    {                                                                                                                  \
        id, (abi_nvtx_function)(function)                                                                              \
    }
static const struct setting {
    unsigned id;
    abi_nvtx_function function;
} core[] =
    {SETS(ABI_NVTX_MARK_EX, point_with),  SETS(ABI_NVTX_MARK_A, point),  SETS(ABI_NVTX_RANGE_START_EX, start_with),
     SETS(ABI_NVTX_RANGE_START_A, start), SETS(ABI_NVTX_RANGE_END, end), SETS(ABI_NVTX_RANGE_PUSH_EX, push_with),
     SETS(ABI_NVTX_RANGE_PUSH_A, push),   SETS(ABI_NVTX_RANGE_POP, pop)},
  core2[] = {SETS(ABI_NVTX_DOMAIN_PUSH_EX, domain_push), SETS(ABI_NVTX_DOMAIN_POP, domain_pop),
             SETS(ABI_NVTX_DOMAIN_STRING_A, domain_string)};

static void set_all(const struct abi_nvtx_callbacks *callbacks, int module, const struct setting *setting, size_t n)
{
    abi_nvtx_function **table = NULL;
    unsigned size = 0;
    if (!callbacks->table_of(module, &table, &size) || !table)
        return;
    for (size_t i = 0; i < n; i++)
        if (setting[i].id < size && table[setting[i].id])
            *table[setting[i].id] = setting[i].function;
}

MATH_API(int, InitializeInjectionNvtx2, const void *(*table_of)(uint32_t id))
{
    const struct abi_nvtx_callbacks *callbacks = table_of ? table_of(ABI_NVTX_TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->bytes < sizeof *callbacks)
        return 0;
    set_all(callbacks, ABI_NVTX_MODULE_CORE, core, sizeof core / sizeof *core);
    set_all(callbacks, ABI_NVTX_MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    return 1;
}
