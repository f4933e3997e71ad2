/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instruction.h - a kernel's code as instructions, for the files of this folder: parse.c cuts the text into statements, decode.c makes an
 * instruction of one, by name_table.c; integer_arithmetic.c knows what whole numbers become, thread_walk.c follows one thread, block_sharing.c looks
 * at what blocks have in common, by address_counts.c, and launch_work.c adds up threads and blocks.
 */
#ifndef MAQ_SHIM_PTX_INSTRUCTION_H
#define MAQ_SHIM_PTX_INSTRUCTION_H

#include "shim/ptx/ptx.h"

enum vg_ptx_op {
    VG_PTX_NOTHING, /* as far as the walk is concerned */
    VG_PTX_UNKNOWN, /* whatever it says, nobody here knows */
    /* whole numbers: integer_arithmetic.c */
    VG_PTX_MOV,
    VG_PTX_ADD,
    VG_PTX_SUB,
    VG_PTX_MUL,
    VG_PTX_MAD,
    VG_PTX_DIV,
    VG_PTX_REM,
    VG_PTX_MIN,
    VG_PTX_MAX,
    VG_PTX_AND,
    VG_PTX_OR,
    VG_PTX_XOR,
    VG_PTX_NOT,
    VG_PTX_NEG,
    VG_PTX_ABS,
    VG_PTX_SHL,
    VG_PTX_SHR,
    VG_PTX_BFE,
    VG_PTX_POPC,
    VG_PTX_CLZ,
    VG_PTX_CVT,
    VG_PTX_SETP,
    VG_PTX_SELP,
    VG_PTX_COMPUTED_END,
    /* thread_walk.c */
    VG_PTX_PACK,   /* one register of several */
    VG_PTX_UNPACK, /* several of one */
    VG_PTX_LANE,   /* shfl.idx: what a lane of the warp says */
    VG_PTX_ELECT,  /* one lane of the warp */
    VG_PTX_PARAM,  /* a parameter of the kernel */
    VG_PTX_LOAD,
    VG_PTX_STORE,
    VG_PTX_ATOMIC,
    VG_PTX_COPY,   /* cp.async: from global to shared memory */
    VG_PTX_EXPECT, /* bytes that a bulk copy will bring: mbarrier's expect_tx */
    VG_PTX_EXP2,
    VG_PTX_PRODUCT,        /* mma, wgmma: by all lanes of a warp, or of four */
    VG_PTX_TENSOR_PRODUCT, /* tcgen05.mma: one thread starts it, and its sizes are in a register */
    VG_PTX_BRANCH,
    VG_PTX_TRAP,
    VG_PTX_END
};

enum vg_ptx_how {
    VG_PTX_LOW, /* of a product: its lower half, its upper one, all of it */
    VG_PTX_HIGH,
    VG_PTX_WIDE
};
enum vg_ptx_compare { VG_PTX_EQ, VG_PTX_NE, VG_PTX_LT, VG_PTX_LE, VG_PTX_GT, VG_PTX_GE };
enum vg_ptx_combine { VG_PTX_ALONE, VG_PTX_WITH_AND, VG_PTX_WITH_OR, VG_PTX_WITH_XOR };

enum vg_ptx_special {
    VG_PTX_TID, /* x y z, as are the next three */
    VG_PTX_NTID = VG_PTX_TID + 3,
    VG_PTX_CTAID = VG_PTX_NTID + 3,
    VG_PTX_NCTAID = VG_PTX_CTAID + 3,
    VG_PTX_LANEID = VG_PTX_NCTAID + 3,
    VG_PTX_WARPID,
    VG_PTX_SPECIALS
};

enum { VG_PTX_INPUTS = 4, VG_PTX_LANES = 32 };

struct vg_ptx_operand {
    enum { VG_PTX_NO_VALUE, VG_PTX_REGISTER, VG_PTX_NUMBER, VG_PTX_SPECIAL } kind;
    uint32_t at;   /* register, or special register */
    int64_t value; /* of a number; what is added to a register */
};

struct vg_ptx_instruction {
    uint8_t op;      /* enum vg_ptx_op */
    uint8_t bits;    /* of its type; 1: a predicate */
    uint8_t to_bits; /* of what a conversion makes */
    bool is_signed;
    uint8_t how;          /* enum vg_ptx_how, vg_ptx_compare */
    uint8_t combine;      /* enum vg_ptx_combine */
    uint8_t type;         /* enum maq_rec_type, of a product */
    bool placed;          /* a branch: it knows the place of its label */
    bool guarded, unless; /* it is done if its guard is true, or false */
    uint8_t n_out, n_in;
    uint32_t guard, out; /* registers: the guard; the first of n_out in code->out */
    struct vg_ptx_operand in[VG_PTX_INPUTS];
    uint32_t numbers; /* of a memory access */
    int64_t
        amount; /* bytes of each of them; flop of a warp's share of a product; where a branch goes; offset in a parameter */
};

struct vg_ptx {
    struct vg_ptx_instruction *at;
    uint32_t n, room;
    uint32_t *out; /* registers that instructions write */
    uint32_t n_out, out_room;
    uint32_t n_registers, n_params;
};

/* Names of a text that stand for numbers, in the order in which they first come. They are parts of the text, which has to live as long. */
struct vg_ptx_name {
    const char *at;
    uint32_t length, number; /* length 0: a free place */
};
struct vg_ptx_names {
    struct vg_ptx_name *at; /* a table of `room`, a power of two; owned */
    uint32_t n, room;
};
/* The number of a name, a new one where it has none; UINT32_MAX: no memory. */
uint32_t vg_ptx_number(struct vg_ptx_names *names, const char *name, size_t length);

/* A text while it is read. */
struct vg_ptx_text {
    struct vg_ptx *code;
    struct vg_ptx_names registers, labels, params;
    uint32_t *place; /* of each label: the instruction behind it */
    uint32_t place_room;
};
/* Adds the instruction of a statement, which has no label in front and no semicolon behind; the text of it is cut up. false: no memory. */
bool vg_ptx_decode(struct vg_ptx_text *text, char *statement);

/* What an instruction between VG_PTX_UNKNOWN and VG_PTX_COMPUTED_END makes of its inputs; *out has its bits and no others. false: nothing that is
 * defined (a division by zero). */
bool vg_ptx_compute(uint64_t *out, const struct vg_ptx_instruction *i, const uint64_t in[VG_PTX_INPUTS]);

/* --- the walk of one thread -------------------------------------------------------------------------------------------------- */

struct vg_ptx_access {
    uint64_t address; /* 0: unknown */
    uint32_t at;      /* which instruction */
    uint32_t bytes;
    bool writes, copies; /* copies: by the whole block, at once */
};
/* What is known of a register. What is made of memory is known for this launch; what is guessed counts how often loops run, and is no address. */
enum vg_ptx_known { VG_PTX_NOT_KNOWN, VG_PTX_KNOWN, VG_PTX_FROM_MEMORY, VG_PTX_GUESSED };
/* What one thread did. Arrays are kept from walk to walk. */
struct vg_ptx_walk {
    struct vg_ptx_access *access;
    uint32_t n, room;
    double flop, flop_after, exponentials;
    uint8_t type;
    bool steered;    /* by something in memory: in any walk so far */
    uint64_t steps;  /* of all walks so far */
    uint32_t enough; /* accesses at which a walk ends; UINT32_MAX: at the thread's end */
    /* of the walk itself */
    uint64_t *value;
    uint8_t *known; /* enum vg_ptx_known */
    bool *turn;     /* of each instruction: an unknown branch that is taken when it comes again */
    uint32_t thread[3], block[3];
};
bool vg_ptx_walk_begin(struct vg_ptx_walk *w, const struct vg_ptx *code);
void vg_ptx_walk_end(struct vg_ptx_walk *w);
/* Whole numbers that came, and how often. */
struct vg_ptx_seen {
    struct vg_ptx_seen_number {
        uint64_t key; /* 0: a free place */
        uint32_t times, who;
    } * at; /* a table of `room`, a power of two; owned */
    uint32_t n, room;
};
/* Counts a number that is not 0 for an instruction; *first: it had not come for that one. false: no memory, or too many. */
bool vg_ptx_seen(struct vg_ptx_seen *seen, uint64_t number, uint32_t who, bool *first);
void vg_ptx_seen_clear(struct vg_ptx_seen *seen);
void vg_ptx_seen_free(struct vg_ptx_seen *seen);
/* part[code->n]: what part of a launch's blocks asks for something of its own, by instruction. false: no memory. block_sharing.c */
bool vg_ptx_sharing(double *part, struct vg_ptx_walk *w, const struct vg_ptx *code, const struct vg_ptx_launch *launch);

/* Walks the thread w->thread of the block w->block. false: too long, or no memory. */
bool vg_ptx_walk(struct vg_ptx_walk *w, const struct vg_ptx *code, const struct vg_ptx_launch *launch);

#endif
