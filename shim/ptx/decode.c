/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - the instruction of a statement: `@%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd5 + 16]`.
 *
 * The name's words, between dots, say what is done, in which way, and last of what type. Operands stand between commas; those in braces are several
 * registers. An instruction that is not in the table makes what it writes, its first operand, unknown.
 *
 * A product of m x n x k numbers takes 2 m n k flop: `mma` is done by a warp, `wgmma` by four together, of which each has a quarter here.
 */
#include "shim/ptx/instruction.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"
#include "shim/record.h"

enum { WORDS_MOST = 16, OPERANDS_MOST = 12, OUTS_FIRST = 1024, CODE_FIRST = 512, WARPS_OF_WGMMA = 4 };

/* A statement, cut up. */
struct statement {
    char *guard; /* NULL: none */
    bool unless;
    char *word[WORDS_MOST]; /* of the name */
    unsigned n_words;
    char *operand[OPERANDS_MOST];
    unsigned n;
};

/* --- words and operands ----------------------------------------------------------------------------------------------------- */

static char *trimmed(char *at)
{
    at += strspn(at, " \t\n\r");
    size_t n = strlen(at);
    while (n > 0 && isspace((unsigned char)at[n - 1]))
        at[--n] = '\0';
    return at;
}

static void cut_operands(struct statement *s, char *at)
{
    int depth = 0;
    char *from = at;
    for (bool more = true; more && s->n < OPERANDS_MOST; at++) {
        more = *at != '\0';
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        else if (!more || (*at == ',' && depth == 0)) {
            *at = '\0';
            from = trimmed(from);
            if (*from != '\0')
                s->operand[s->n++] = from;
            from = at + 1;
        }
    }
}

static void cut(struct statement *s, char *at)
{
    if (*at == '@') {
        at += 1 + strspn(at + 1, " \t");
        s->unless = *at == '!';
        at += s->unless ? 1 + strspn(at + 1, " \t") : 0;
        s->guard = at;
        at += strcspn(at, " \t\n");
        if (*at != '\0')
            *at++ = '\0';
        at += strspn(at, " \t\n");
    }
    char *rest = at + strcspn(at, " \t\n");
    if (*rest != '\0')
        *rest++ = '\0';
    for (char *word = at; word != NULL && s->n_words < WORDS_MOST;) {
        s->word[s->n_words++] = word;
        char *dot = strchr(word, '.');
        if (dot != NULL)
            *dot++ = '\0';
        word = dot;
    }
    cut_operands(s, rest);
}

static bool has(const struct statement *s, const char *word)
{
    for (unsigned i = 1; i < s->n_words; i++)
        if (strcmp(s->word[i], word) == 0)
            return true;
    return false;
}

static const char *word(const struct statement *s, unsigned i)
{
    return i < s->n_words ? s->word[i] : "";
}

struct type {
    uint8_t bits;
    bool is_signed, is_whole;
};

/* "u32", "pred"; what is none has no bits. */
static struct type type_of(const char *text)
{
    if (strcmp(text, "pred") == 0)
        return (struct type){1, false, true};
    char *end;
    const unsigned long bits = strtoul(*text ? text + 1 : text, &end, 10);
    const bool whole = *text == 'b' || *text == 'u' || *text == 's';
    if ((whole || *text == 'f') && *end == '\0' && bits >= 8 && bits <= 128)
        return (struct type){(uint8_t)bits, *text == 's', whole};
    if (strcmp(text, "bf16") == 0)
        return (struct type){16, false, false};
    return (struct type){strcmp(text, "bf16x2") == 0 || strcmp(text, "f16x2") == 0 ? 32 : 0, false, false};
}

static bool number_of(int64_t *out, const char *text)
{
    char *end;
    if (text[0] == '0' && (text[1] == 'f' || text[1] == 'F' || text[1] == 'd' || text[1] == 'D'))
        *out = (int64_t)strtoull(text + 2, &end, 16); /* the bits of a floating-point number */
    else if (text[0] == '-')
        *out = (int64_t)strtoll(text, &end, 0);
    else
        *out = (int64_t)strtoull(text, &end, 0);
    return end != text && (*end == '\0' || strcmp(end, "U") == 0);
}

static struct vg_ptx_operand special_of(const char *text)
{
    static const struct {
        const char *name;
        uint32_t at;
    } known[] = {{"%tid", VG_PTX_TID},       {"%ntid", VG_PTX_NTID},     {"%ctaid", VG_PTX_CTAID},
                 {"%nctaid", VG_PTX_NCTAID}, {"%laneid", VG_PTX_LANEID}, {"%warpid", VG_PTX_WARPID}};
    const size_t n = strcspn(text, ".");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == n && strncmp(text, known[i].name, n) == 0) {
            const uint32_t axis =
                text[n] == '.' && text[n + 1] >= 'x' && text[n + 1] <= 'z' ? (uint32_t)(text[n + 1] - 'x') : 0;
            return (struct vg_ptx_operand){.kind = VG_PTX_SPECIAL,
                                           .at = known[i].at + (known[i].at < VG_PTX_LANEID ? axis : 0)};
        }
    return (struct vg_ptx_operand){.kind = VG_PTX_NO_VALUE};
}

/* Registers are %name and names that inline assembly declares; a special register has a dot or is known by its name. */
static struct vg_ptx_operand operand_of(struct vg_ptx_text *t, const char *text)
{
    struct vg_ptx_operand o = {.kind = VG_PTX_NO_VALUE};
    if (number_of(&o.value, text)) {
        o.kind = VG_PTX_NUMBER;
    } else if (*text == '%') {
        o = special_of(text);
        if (o.kind == VG_PTX_NO_VALUE && strchr(text, '.') == NULL) {
            o.at = vg_ptx_number(&t->registers, text, strlen(text));
            o.kind = o.at != UINT32_MAX ? VG_PTX_REGISTER : VG_PTX_NO_VALUE;
        }
    } else if (isalpha((unsigned char)*text)) {
        o.at = vg_ptx_number(&t->registers, text, strlen(text));
        o.kind = o.at != UINT32_MAX ? VG_PTX_REGISTER : VG_PTX_NO_VALUE;
    }
    return o;
}

static void add_input(struct vg_ptx_text *t, struct vg_ptx_instruction *i, const char *text)
{
    if (i->n_in < VG_PTX_INPUTS)
        i->in[i->n_in++] = operand_of(t, text);
}

/* Each register of "{%r1, _, %r2}" or of "%r1". */
static bool each(struct vg_ptx_text *t, struct vg_ptx_instruction *i, char *text,
                 bool (*put)(struct vg_ptx_text *t, struct vg_ptx_instruction *i, const char *name))
{
    char *rest = NULL;
    for (char *name = strtok_r(text, "{}, \t\n|", &rest); name != NULL; name = strtok_r(NULL, "{}, \t\n|", &rest))
        if (!put(t, i, name))
            return false;
    return true;
}

static bool put_out(struct vg_ptx_text *t, struct vg_ptx_instruction *i, const char *name)
{
    struct vg_ptx *code = t->code;
    uint32_t *bigger = vg_grown(code->out, code->n_out, &code->out_room, OUTS_FIRST, sizeof *bigger);
    if (bigger == NULL)
        return false;
    code->out = bigger;
    if (i->n_out == UINT8_MAX)
        return false;
    const bool sink = strcmp(name, "_") == 0 || (*name != '%' && !isalpha((unsigned char)*name));
    code->out[code->n_out++] = sink ? UINT32_MAX : vg_ptx_number(&t->registers, name, strlen(name));
    i->n_out++;
    return true;
}

static bool put_in(struct vg_ptx_text *t, struct vg_ptx_instruction *i, const char *name)
{
    add_input(t, i, name);
    return true;
}

/* What an instruction writes: its first operand, but for an address. */
static bool write_outs(struct vg_ptx_text *t, struct vg_ptx_instruction *i, const struct statement *s)
{
    i->out = t->code->n_out;
    return s->n == 0 || *s->operand[0] == '[' || each(t, i, s->operand[0], put_out);
}

/* "[%rd5 + 16]", as the input of an instruction: a register, and what is added to it. */
static void address_in(struct vg_ptx_text *t, struct vg_ptx_instruction *i, char *text)
{
    char *plus, *at = text + strspn(text, "[ \t");
    at[strcspn(at, "]")] = '\0';
    int64_t offset = 0;
    if ((plus = strchr(at, '+')) != NULL) {
        *plus = '\0';
        number_of(&offset, trimmed(plus + 1));
    }
    struct vg_ptx_operand o = operand_of(t, trimmed(at));
    o.value += offset;
    i->in[i->n_in++] = o;
}

/* --- kinds of instructions -------------------------------------------------------------------------------------------------- */

static void take_type(struct vg_ptx_instruction *i, const struct type type)
{
    i->bits = type.bits;
    i->is_signed = type.is_signed;
}

/* Bytes of each number, and how many. */
static void take_vector(struct vg_ptx_instruction *i, const struct statement *s)
{
    i->amount = type_of(word(s, s->n_words - 1)).bits / 8;
    i->bits = (uint8_t)(8 * i->amount);
    i->numbers = has(s, "v2") ? 2 : has(s, "v4") ? 4 : has(s, "v8") ? 8 : 1;
}

static bool of_global(const struct statement *s)
{
    return has(s, "global") || !(has(s, "shared") || has(s, "shared::cta") || has(s, "shared::cluster") ||
                                 has(s, "local") || has(s, "const") || has(s, "param"));
}

static bool decode_param(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    char *at = s->operand[1] + strspn(s->operand[1], "[ \t");
    const size_t length = strcspn(at, "+] \t");
    char *plus = strchr(at, '+');
    at[strcspn(at, "]")] = '\0';
    int64_t offset = 0;
    if (plus != NULL)
        number_of(&offset, trimmed(plus + 1));
    const uint32_t had = t->params.n;
    i->in[0].at = vg_ptx_number(&t->params, at, length);
    i->op = i->in[0].at < had && t->params.n == had ? VG_PTX_PARAM : VG_PTX_UNKNOWN;
    i->amount = offset;
    i->bits = type_of(word(s, s->n_words - 1)).bits;
    i->numbers = 1;
    return write_outs(t, i, s);
}

static bool decode_load(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    if (s->n < 2)
        return true;
    if (has(s, "param"))
        return decode_param(t, i, s);
    i->op = of_global(s) ? VG_PTX_LOAD : VG_PTX_UNKNOWN;
    take_vector(i, s);
    address_in(t, i, s->operand[1]);
    return write_outs(t, i, s);
}

static bool decode_store(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    if (s->n < 2 || !of_global(s))
        return true;
    i->op = VG_PTX_STORE;
    take_vector(i, s);
    address_in(t, i, s->operand[0]);
    return true;
}

static bool decode_atomic(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    const unsigned at = strcmp(s->word[0], "atom") == 0 ? 1 : 0;
    if (s->n <= at)
        return true;
    i->op = of_global(s) ? VG_PTX_ATOMIC : VG_PTX_UNKNOWN;
    take_vector(i, s);
    address_in(t, i, s->operand[at]);
    return at == 0 || write_outs(t, i, s);
}

/* cp.async.cg.shared.global [to], [from], bytes, bytes that are read */
static bool decode_copy(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    if (has(s, "bulk") && has(s, "global") && strcmp(word(s, s->n_words - 1), "bulk_group") == 0) {
        i->op = VG_PTX_STORE; /* of so many bytes, to where the descriptor says */
        i->numbers = 1;
        i->in[i->n_in++] = (struct vg_ptx_operand){.kind = VG_PTX_NO_VALUE};
        return true;
    }
    if (!has(s, "async") || has(s, "bulk") || s->n < 3)
        return true;
    i->op = VG_PTX_COPY;
    address_in(t, i, s->operand[1]);
    i->numbers = 1;
    number_of(&i->amount, s->operand[2]);
    if (s->n > 3)
        add_input(t, i, s->operand[3]);
    return true;
}

static bool decode_barrier(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    const bool expects = has(s, "expect_tx") && s->n > 0;
    if (expects) {
        i->op = VG_PTX_EXPECT;
        add_input(t, i, s->operand[s->n - 1]);
    } else {
        i->op = VG_PTX_UNKNOWN;
    }
    return write_outs(t, i, s);
}

static uint8_t product_type(const char *text)
{
    static const struct {
        const char *word;
        uint8_t type;
    } types[] = {{"bf16", MAQ_REC_BF16},
                 {"f16", MAQ_REC_F16},
                 {"tf32", MAQ_REC_TF32},
                 {"e4m3", MAQ_REC_F8E4M3},
                 {"e5m2", MAQ_REC_F8E5M2},
                 {"e2m1", MAQ_REC_F4},
                 {"s8", MAQ_REC_I8},
                 {"u8", MAQ_REC_U8},
                 {"f64", MAQ_REC_F64},
                 {"kind::f16", MAQ_REC_BF16},
                 {"kind::tf32", MAQ_REC_TF32},
                 {"kind::f8f6f4", MAQ_REC_F8E4M3},
                 {"kind::mxf8f6f4", MAQ_REC_F8E4M3},
                 {"kind::i8", MAQ_REC_I8},
                 {"kind::mxf4", MAQ_REC_F4},
                 {"kind::mxf4nvf4", MAQ_REC_F4}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].word, text) == 0)
            return types[i].type;
    return MAQ_REC_TYPE_OTHER;
}

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 D, A, B, C; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 D, ... */
static bool decode_product(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    unsigned at = 1;
    long m = 0, n = 0, k = 0;
    for (; at < s->n_words && k == 0; at++) {
        char *end = s->word[at];
        if (*end == 'm' && (m = strtol(end + 1, &end, 10)) > 0 && *end == 'n' && (n = strtol(end + 1, &end, 10)) > 0 &&
            *end == 'k')
            k = strtol(end + 1, &end, 10);
    }
    if (k <= 0)
        return true;
    while (at < s->n_words && (strcmp(s->word[at], "row") == 0 || strcmp(s->word[at], "col") == 0))
        at++;
    i->op = VG_PTX_PRODUCT;
    i->type = product_type(word(s, at + 1));
    i->amount = 2 * m * n * k / (strcmp(s->word[0], "wgmma") == 0 ? WARPS_OF_WGMMA : 1);
    return write_outs(t, i, s);
}

/*
 * tcgen05.mma.cta_group::1.kind::f16 [D], A, B, descriptor, ...: the descriptor of the instruction, the first register behind the matrices
 * that is no address, has the sizes; of a step in depth there are 32 bytes of each row.
 */
static bool decode_tensor_product(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    enum { DESCRIPTOR = 3, ROW_BITS = 256 };
    if (strcmp(word(s, 1), "mma") != 0 || s->n <= DESCRIPTOR) {
        i->op = VG_PTX_UNKNOWN;
        return write_outs(t, i, s);
    }
    i->op = VG_PTX_TENSOR_PRODUCT;
    for (unsigned at = 2; at < s->n_words; at++)
        if (strncmp(s->word[at], "kind::", strlen("kind::")) == 0)
            i->type = product_type(s->word[at]);
    i->amount = ROW_BITS / (i->type == MAQ_REC_BF16   ? 16
                            : i->type == MAQ_REC_TF32 ? 32
                            : i->type == MAQ_REC_F4   ? 4
                                                      : 8);
    add_input(t, i, s->operand[DESCRIPTOR]);
    return true;
}

static bool decode_branch(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    if (s->n == 0)
        return true;
    i->op = VG_PTX_BRANCH;
    i->amount = vg_ptx_number(&t->labels, s->operand[0], strlen(s->operand[0]));
    return i->amount != UINT32_MAX;
}

static bool decode_move(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    const bool packs = s->n == 2 && *s->operand[1] == '{', unpacks = s->n == 2 && *s->operand[0] == '{';
    take_type(i, type_of(word(s, s->n_words - 1)));
    i->op = packs ? VG_PTX_PACK : unpacks ? VG_PTX_UNPACK : i->bits > 0 ? VG_PTX_MOV : VG_PTX_UNKNOWN;
    if (!write_outs(t, i, s))
        return false;
    return s->n < 2 || each(t, i, s->operand[1], put_in);
}

/* Whole numbers in, whole numbers out; of anything else nothing is known. */
static bool decode_computed(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s, enum vg_ptx_op op)
{
    const struct type type = type_of(word(s, s->n_words - 1)), before = type_of(word(s, s->n_words - 2));
    const bool selects = op == VG_PTX_SELP || op == VG_PTX_MOV;
    const bool whole =
        type.bits > 0 && type.bits <= 64 && (type.is_whole || selects) && (op != VG_PTX_CVT || before.is_whole);
    i->op = (uint8_t)(whole ? op : VG_PTX_UNKNOWN);
    take_type(i, type);
    i->to_bits = before.bits; /* of a conversion: cvt.to.from */
    i->how = has(s, "wide") ? VG_PTX_WIDE : has(s, "hi") ? VG_PTX_HIGH : VG_PTX_LOW;
    if (!write_outs(t, i, s))
        return false;
    for (unsigned k = 1; k < s->n; k++)
        add_input(t, i, s->operand[k]);
    return true;
}

static bool decode_compare(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"}, *const also[] = {"", "and", "or", "xor"};
    static const char *const unsigned_names[] = {"", "", "lo", "ls", "hi", "hs"};
    if (!decode_computed(t, i, s, VG_PTX_SETP))
        return false;
    bool found = false;
    for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(word(s, 1), names[k]) == 0 || strcmp(word(s, 1), unsigned_names[k]) == 0) {
            i->how = (uint8_t)k;
            found = true;
        }
    for (unsigned k = 1; k < sizeof also / sizeof *also; k++)
        if (strcmp(word(s, 2), also[k]) == 0)
            i->combine = (uint8_t)k;
    if (!found)
        i->op = VG_PTX_UNKNOWN;
    return true;
}

static bool decode_shuffle(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    i->op = has(s, "idx") && s->n >= 3 ? VG_PTX_LANE : VG_PTX_UNKNOWN;
    i->bits = 32;
    if (!write_outs(t, i, s))
        return false;
    for (unsigned k = 1; k < s->n && k < 3; k++)
        add_input(t, i, s->operand[k]);
    return true;
}

static bool decode_plain(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s, enum vg_ptx_op op)
{
    i->op = (uint8_t)op;
    return op == VG_PTX_NOTHING || op >= VG_PTX_TRAP || write_outs(t, i, s);
}

/* --- the table -------------------------------------------------------------------------------------------------------------- */

struct form {
    const char *word;
    bool (*decode)(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s);
    enum vg_ptx_op op; /* of those without a function */
};

static const struct form forms[] = {
    {"ld", decode_load, 0},
    {"ldu", decode_load, 0},
    {"st", decode_store, 0},
    {"atom", decode_atomic, 0},
    {"red", decode_atomic, 0},
    {"cp", decode_copy, 0},
    {"mbarrier", decode_barrier, 0},
    {"mma", decode_product, 0},
    {"wgmma", decode_product, 0},
    {"tcgen05", decode_tensor_product, 0},
    {"bra", decode_branch, 0},
    {"mov", decode_move, 0},
    {"setp", decode_compare, 0},
    {"shfl", decode_shuffle, 0},
    {"elect", NULL, VG_PTX_ELECT},
    {"ex2", NULL, VG_PTX_EXP2},
    {"trap", NULL, VG_PTX_TRAP},
    {"ret", NULL, VG_PTX_END},
    {"exit", NULL, VG_PTX_END},
    {"bar", NULL, VG_PTX_NOTHING},
    {"barrier", NULL, VG_PTX_NOTHING},
    {"call", NULL, VG_PTX_NOTHING},
    {"fence", NULL, VG_PTX_NOTHING},
    {"setmaxnreg", NULL, VG_PTX_NOTHING},
    {"cvta", NULL, VG_PTX_MOV},
    {"add", NULL, VG_PTX_ADD},
    {"sub", NULL, VG_PTX_SUB},
    {"mul", NULL, VG_PTX_MUL},
    {"mad", NULL, VG_PTX_MAD},
    {"div", NULL, VG_PTX_DIV},
    {"rem", NULL, VG_PTX_REM},
    {"min", NULL, VG_PTX_MIN},
    {"max", NULL, VG_PTX_MAX},
    {"and", NULL, VG_PTX_AND},
    {"or", NULL, VG_PTX_OR},
    {"xor", NULL, VG_PTX_XOR},
    {"not", NULL, VG_PTX_NOT},
    {"neg", NULL, VG_PTX_NEG},
    {"abs", NULL, VG_PTX_ABS},
    {"shl", NULL, VG_PTX_SHL},
    {"shr", NULL, VG_PTX_SHR},
    {"bfe", NULL, VG_PTX_BFE},
    {"popc", NULL, VG_PTX_POPC},
    {"clz", NULL, VG_PTX_CLZ},
    {"cvt", NULL, VG_PTX_CVT},
    {"selp", NULL, VG_PTX_SELP},
};

static bool decode(struct vg_ptx_text *t, struct vg_ptx_instruction *i, struct statement *s)
{
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        const struct form *f = &forms[k];
        if (strcmp(f->word, s->word[0]) != 0)
            continue;
        if (f->decode != NULL)
            return f->decode(t, i, s);
        const bool computed = f->op > VG_PTX_UNKNOWN && f->op < VG_PTX_COMPUTED_END;
        return computed ? decode_computed(t, i, s, f->op) : decode_plain(t, i, s, f->op);
    }
    return decode_plain(t, i, s, VG_PTX_UNKNOWN);
}

bool vg_ptx_decode(struct vg_ptx_text *t, char *statement)
{
    struct statement s = {.guard = NULL};
    struct vg_ptx_instruction i = {.op = VG_PTX_NOTHING, .type = MAQ_REC_TYPE_OTHER, .unless = false};
    cut(&s, statement);
    if (s.guard != NULL) {
        i.guarded = true;
        i.unless = s.unless;
        i.guard = vg_ptx_number(&t->registers, s.guard, strlen(s.guard));
        if (i.guard == UINT32_MAX)
            return false;
    }
    struct vg_ptx *code = t->code;
    struct vg_ptx_instruction *bigger = vg_grown(code->at, code->n, &code->room, CODE_FIRST, sizeof *bigger);
    if (bigger == NULL)
        return false;
    code->at = bigger;
    if (!decode(t, &i, &s))
        return false;
    if (i.op != VG_PTX_NOTHING)
        code->at[code->n++] = i;
    return true;
}
