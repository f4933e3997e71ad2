/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_walk.c - follows one thread through a kernel.
 *
 * A register is known, with its bits, or unknown. What an instruction makes of something unknown is unknown, but for what does not depend on it:
 * a truth value that decides an "and" or an "or", a product with zero. The smaller of something unknown and a number is guessed to be half of that: so
 * lengths that lie in memory are bounded by those of tensors. Where a guard is unknown its instruction is done; a branch is not taken the
 * first time, so that what it would pass over counts, and taken the second, so that loops end. If that leads to a trap, which is what an
 * assertion does, the last such branch is taken after all.
 */
#include "shim/ptx/instruction.h"

#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"
#include "shim/record.h"

enum { ACCESSES_FIRST = 1024, ACCESSES_MOST = 1 << 20 };

struct thread {
    struct vg_ptx_walk *w;
    const struct vg_ptx *code;
    const struct vg_ptx_launch *launch;
    uint32_t at;        /* the instruction that comes next */
    uint32_t not_taken; /* where the last branch would have gone that was unknown; UINT32_MAX: none, or taken */
    bool good;
};

/* --- values ----------------------------------------------------------------------------------------------------------------- */

static uint64_t special(const struct thread *t, uint32_t which)
{
    const struct vg_ptx_walk *w = t->w;
    const struct vg_ptx_launch *l = t->launch;
    const uint64_t number =
        w->thread[0] + (uint64_t)l->block[0] * (w->thread[1] + (uint64_t)l->block[1] * w->thread[2]);
    if (which < VG_PTX_NTID)
        return w->thread[which];
    if (which < VG_PTX_CTAID)
        return l->block[which - VG_PTX_NTID];
    if (which < VG_PTX_NCTAID)
        return w->block[which - VG_PTX_CTAID];
    if (which < VG_PTX_LANEID)
        return l->grid[which - VG_PTX_NCTAID];
    return which == VG_PTX_LANEID ? number % VG_PTX_LANES : number / VG_PTX_LANES;
}

static uint8_t most(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* How it is known (enum vg_ptx_known). An address is a register and what is added to it. */
static uint8_t value_of(const struct thread *t, const struct vg_ptx_operand *o, uint64_t *out)
{
    switch (o->kind) {
    case VG_PTX_REGISTER:
        *out = t->w->known[o->at] ? t->w->value[o->at] + (uint64_t)o->value : 0;
        return t->w->known[o->at];
    case VG_PTX_NUMBER:
        *out = (uint64_t)o->value;
        return VG_PTX_KNOWN;
    case VG_PTX_SPECIAL:
        *out = special(t, o->at);
        return VG_PTX_KNOWN;
    case VG_PTX_NO_VALUE:
        break;
    }
    *out = 0;
    return VG_PTX_NOT_KNOWN;
}

static void set(struct thread *t, const struct vg_ptx_instruction *i, unsigned k, uint64_t value, uint8_t known)
{
    const uint32_t reg = k < i->n_out ? t->code->out[i->out + k] : UINT32_MAX;
    if (reg == UINT32_MAX)
        return;
    t->w->value[reg] = known ? value : 0;
    t->w->known[reg] = known;
}

static void forget(struct thread *t, const struct vg_ptx_instruction *i)
{
    for (unsigned k = 0; k < i->n_out; k++)
        set(t, i, k, 0, VG_PTX_NOT_KNOWN);
}

/* Whether what is known of the inputs decides alone. */
static bool decided(const struct vg_ptx_instruction *i, const uint64_t in[VG_PTX_INPUTS],
                    const uint8_t known[VG_PTX_INPUTS])
{
    const uint64_t ones = i->bits >= 64 ? UINT64_MAX : ((uint64_t)1 << i->bits) - 1;
    for (unsigned k = 0; k < 2; k++) {
        const uint64_t x = in[k] & ones;
        if (known[k] &&
            ((i->op == VG_PTX_AND && x == 0) || (i->op == VG_PTX_MUL && x == 0) || (i->op == VG_PTX_OR && x == ones)))
            return true;
    }
    return i->op == VG_PTX_SELP && known[2] && known[in[2] ? 0 : 1];
}

/* The smaller of a number and something unknown: anything from nothing to the number. */
static bool guess(struct thread *t, const struct vg_ptx_instruction *i, const uint64_t in[VG_PTX_INPUTS],
                  const uint8_t known[VG_PTX_INPUTS])
{
    const uint64_t most_of = known[0] ? in[0] : in[1], top = (uint64_t)1 << (i->bits - 1u);
    if (i->op != VG_PTX_MIN || (!known[0] && !known[1]) || most_of >= top)
        return false;
    set(t, i, 0, (most_of + 1) / 2, VG_PTX_GUESSED);
    return true;
}

static void compute(struct thread *t, const struct vg_ptx_instruction *i)
{
    uint64_t in[VG_PTX_INPUTS] = {0}, out = 0;
    uint8_t known[VG_PTX_INPUTS] = {0}, how = VG_PTX_KNOWN;
    bool all = true;
    for (unsigned k = 0; k < i->n_in; k++) {
        known[k] = value_of(t, &i->in[k], &in[k]);
        how = most(how, known[k]);
        all = all && known[k];
    }
    if (!all && i->n_in > 1) /* an unknown input is 0 here, and the known one decides */
        all = decided(i, in, known);
    if (!all && guess(t, i, in, known))
        return;
    if (!all || !vg_ptx_compute(&out, i, in))
        how = VG_PTX_NOT_KNOWN;
    set(t, i, 0, out, how);
    set(t, i, 1, (out & 1) ^ 1, how); /* of a comparison: the opposite */
}

/* Bits one after the other, from the lowest. */
static void pack(struct thread *t, const struct vg_ptx_instruction *i)
{
    const unsigned bits = i->n_in > 0 ? i->bits / i->n_in : 0;
    uint64_t all = 0;
    uint8_t known = bits > 0 && bits < 64 ? VG_PTX_KNOWN : VG_PTX_NOT_KNOWN;
    for (unsigned k = 0; known && k < i->n_in; k++) {
        uint64_t x;
        const uint8_t how = value_of(t, &i->in[k], &x);
        known = how ? most(known, how) : VG_PTX_NOT_KNOWN;
        all |= (x & (((uint64_t)1 << bits) - 1)) << k * bits;
    }
    set(t, i, 0, all, known);
}

static void unpack(struct thread *t, const struct vg_ptx_instruction *i)
{
    const unsigned bits = i->n_out > 0 ? i->bits / i->n_out : 0;
    uint64_t x;
    const uint8_t known = value_of(t, &i->in[0], &x);
    for (unsigned k = 0; k < i->n_out; k++)
        set(t, i, k, bits < 64 ? x >> k * bits & (((uint64_t)1 << bits) - 1) : x, known);
}

/* --- memory ----------------------------------------------------------------------------------------------------------------- */

static struct vg_ptx_access *access_new(struct thread *t)
{
    struct vg_ptx_walk *w = t->w;
    struct vg_ptx_access *bigger =
        w->n < ACCESSES_MOST ? vg_grown(w->access, w->n, &w->room, ACCESSES_FIRST, sizeof *bigger) : NULL;
    t->good = t->good && bigger != NULL;
    if (bigger == NULL)
        return NULL;
    w->access = bigger;
    bigger[w->n] = (struct vg_ptx_access){.at = t->at - 1};
    return &bigger[w->n++];
}

static void touch(struct thread *t, const struct vg_ptx_instruction *i, bool writes)
{
    uint64_t address;
    const uint8_t known = value_of(t, &i->in[0], &address);
    struct vg_ptx_access *a = access_new(t);
    if (a == NULL)
        return;
    a->address = known != VG_PTX_GUESSED ? address : 0; /* and where it is unknown */
    t->w->steered = t->w->steered || known == VG_PTX_FROM_MEMORY;
    a->bytes = (uint32_t)i->amount * i->numbers;
    a->writes = writes;
}

static void load(struct thread *t, const struct vg_ptx_instruction *i)
{
    uint64_t address, x = 0;
    const bool looks = value_of(t, &i->in[0], &address) && i->n_out == 1 && (i->amount == 4 || i->amount == 8) &&
                       t->launch->word != NULL;
    touch(t, i, false);
    forget(t, i);
    if (looks && t->launch->word(t->launch->user, address, (uint32_t)i->amount, &x))
        set(t, i, 0, x, VG_PTX_FROM_MEMORY);
}

static void copy(struct thread *t, const struct vg_ptx_instruction *i)
{
    uint64_t read;
    if (i->n_in > 1 && value_of(t, &i->in[1], &read) && read == 0)
        return; /* zeros instead of memory */
    touch(t, i, false);
}

static void expect(struct thread *t, const struct vg_ptx_instruction *i)
{
    uint64_t bytes;
    struct vg_ptx_access *a = value_of(t, &i->in[0], &bytes) ? access_new(t) : NULL;
    forget(t, i);
    if (a == NULL)
        return;
    a->bytes = (uint32_t)bytes;
    a->copies = true;
}

static void param(struct thread *t, const struct vg_ptx_instruction *i)
{
    const struct vg_ptx_launch *l = t->launch;
    const uint32_t at = i->in[0].at, bytes = i->bits / 8u;
    uint64_t x = 0;
    const bool known = i->n_out == 1 && bytes > 0 && bytes <= 8 && l->param[at] != NULL && i->amount >= 0 &&
                       (uint64_t)i->amount + bytes <= l->param_bytes[at];
    if (known)
        memcpy(&x, (const char *)l->param[at] + i->amount, bytes);
    forget(t, i);
    set(t, i, 0, x, known ? VG_PTX_KNOWN : VG_PTX_NOT_KNOWN);
}

/* --- products --------------------------------------------------------------------------------------------------------------- */

static void count_product(struct thread *t, const struct vg_ptx_instruction *i, double flop)
{
    t->w->flop += flop;
    if (t->w->exponentials > 0)
        t->w->flop_after += flop;
    t->w->type = i->type;
    forget(t, i);
}

/*
 * The descriptor of tcgen05.mma has rows and columns of the product (PTX ISA, "Instruction descriptor"): columns / 8 in bits 17 to 22, and rows / 16
 * in bits 24 to 28. A warp's share: the thread that starts it is the one that is walked.
 */
static void tensor_product(struct thread *t, const struct vg_ptx_instruction *i)
{
    uint64_t d;
    if (value_of(t, &i->in[0], &d))
        count_product(t, i, 2.0 * (double)(8 * (d >> 17 & 63)) * (double)(16 * (d >> 24 & 31)) * (double)i->amount);
}

/* --- the walk --------------------------------------------------------------------------------------------------------------- */

static void branch(struct thread *t, const struct vg_ptx_instruction *i, bool sure)
{
    bool *const turn = &t->w->turn[i - t->code->at];
    if (sure || *turn)
        t->at = (uint32_t)i->amount;
    else
        t->not_taken = (uint32_t)i->amount;
    *turn = !sure && !*turn;
}

static void trap(struct thread *t)
{
    t->at = t->not_taken != UINT32_MAX ? t->not_taken : t->code->n;
    t->not_taken = UINT32_MAX;
}

/* What a lane says, where it is this one; of others it is unknown. */
static void lane(struct thread *t, const struct vg_ptx_instruction *i)
{
    uint64_t x, of;
    const bool own = value_of(t, &i->in[1], &of) && of % VG_PTX_LANES == special(t, VG_PTX_LANEID);
    const uint8_t known = value_of(t, &i->in[0], &x);
    forget(t, i);
    set(t, i, 0, x, own ? known : VG_PTX_NOT_KNOWN);
}

static void elect(struct thread *t, const struct vg_ptx_instruction *i)
{
    forget(t, i);
    set(t, i, 0, 0, VG_PTX_KNOWN);
    set(t, i, 1, special(t, VG_PTX_LANEID) == 0, VG_PTX_KNOWN);
}

static void step(struct thread *t, const struct vg_ptx_instruction *i, bool sure)
{
    switch ((enum vg_ptx_op)i->op) {
    case VG_PTX_PACK:
        pack(t, i);
        break;
    case VG_PTX_UNPACK:
        unpack(t, i);
        break;
    case VG_PTX_LANE:
        lane(t, i);
        break;
    case VG_PTX_ELECT:
        elect(t, i);
        break;
    case VG_PTX_PARAM:
        param(t, i);
        break;
    case VG_PTX_LOAD:
        load(t, i);
        break;
    case VG_PTX_ATOMIC:
        touch(t, i, false);
        touch(t, i, true);
        forget(t, i);
        break;
    case VG_PTX_STORE:
        touch(t, i, true);
        break;
    case VG_PTX_COPY:
        copy(t, i);
        break;
    case VG_PTX_EXPECT:
        expect(t, i);
        break;
    case VG_PTX_EXP2:
        t->w->exponentials++;
        forget(t, i);
        break;
    case VG_PTX_PRODUCT:
        count_product(t, i, (double)i->amount);
        break;
    case VG_PTX_TENSOR_PRODUCT:
        tensor_product(t, i);
        break;
    case VG_PTX_BRANCH:
        branch(t, i, sure);
        break;
    case VG_PTX_TRAP:
        trap(t);
        break;
    case VG_PTX_END:
        t->at = sure ? t->code->n : t->at;
        break;
    case VG_PTX_NOTHING:
        break;
    default:
        if (i->op > VG_PTX_UNKNOWN && i->op < VG_PTX_COMPUTED_END)
            compute(t, i);
        else
            forget(t, i);
        break;
    }
    if (!sure) /* whether it was done is unknown, and so is what it left */
        forget(t, i);
}

bool vg_ptx_walk(struct vg_ptx_walk *w, const struct vg_ptx *code, const struct vg_ptx_launch *launch)
{
    struct thread t = {.w = w, .code = code, .launch = launch, .not_taken = UINT32_MAX, .good = true};
    memset(w->known, 0, code->n_registers * sizeof *w->known);
    memset(w->turn, 0, code->n * sizeof *w->turn);
    w->n = 0;
    w->flop = w->flop_after = w->exponentials = 0;
    w->type = MAQ_REC_TYPE_OTHER;
    for (uint64_t steps = 0; t.at < code->n && t.good && w->n < w->enough; steps++, w->steps++) {
        if (steps >= VG_PTX_STEPS_MOST || w->steps >= VG_PTX_STEPS_ALL)
            return false;
        const struct vg_ptx_instruction *i = &code->at[t.at++];
        w->steered = w->steered || (i->guarded && w->known[i->guard] == VG_PTX_FROM_MEMORY);
        if (i->guarded && w->known[i->guard] && (w->value[i->guard] != 0) == i->unless)
            continue;
        step(&t, i, !i->guarded || w->known[i->guard]);
    }
    return t.good;
}

bool vg_ptx_walk_begin(struct vg_ptx_walk *w, const struct vg_ptx *code)
{
    *w = (struct vg_ptx_walk){.enough = UINT32_MAX};
    w->value = calloc(code->n_registers + 1u, sizeof *w->value);
    w->known = calloc(code->n_registers + 1u, sizeof *w->known);
    w->turn = calloc(code->n + 1u, sizeof *w->turn);
    if (w->value != NULL && w->known != NULL && w->turn != NULL)
        return true;
    vg_ptx_walk_end(w);
    return false;
}

void vg_ptx_walk_end(struct vg_ptx_walk *w)
{
    free(w->access);
    free(w->value);
    free(w->known);
    free(w->turn);
    *w = (struct vg_ptx_walk){.n = 0};
}
