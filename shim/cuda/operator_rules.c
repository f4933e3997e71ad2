/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator_rules.c - reads rules about what kernels are, and turns the records of launches into those of operators.
 *
 * Attention over sequences of unlike lengths becomes two sums: of the sequences that decode, with one query each, and of all others. A query
 * of a sequence with q queries and k keys sees, under a causal mask, the k - q keys before them and those up to itself, and under a window
 * of w no more than w:
 *
 *     keys of a sequence = sum over j = 1..q of min(w, k - q + j)
 *
 * How many queries a sequence has is, in the mean over queries, sum q^2 / sum q: what decides how full a kernel's tiles are.
 */
#include "shim/cuda/operator_rules.h"
#include "shim/cuda/kernel_pattern.h"
#include "shim/cuda/launch_expression.h"
#include "shim/cuda/oracle.h"

#include <string.h>

enum { FIELDS_MOST = 12, SEQUENCES_MOST = 1 << 16, BY_NAME = UINT8_MAX };
/* Places of the fields of attention. */
enum { BATCH, HEADS, KV_HEADS, DIM, QUERIES, KEYS, V_DIM, WINDOW, CAUSAL, FLASH2, FLASH1 };

struct kind {
    const char *word;
    enum maq_rec_op_kind kind;
    unsigned needed; /* so many of the fields have to be there; those behind have defaults */
    const char *field[FIELDS_MOST];
    uint8_t type; /* enum maq_rec_type, or BY_NAME: that of the kernel's name */
    uint32_t flags;
};
#define ATTENTION_FIELDS                                                                                               \
    {                                                                                                                  \
        "batch", "heads", "kv_heads", "dim", "queries", "keys", "v_dim", "window", "causal", "flash2", "flash1"        \
    }
static const struct kind kinds[] = {
    {"attention", MAQ_REC_SEQUENCES, 6, ATTENTION_FIELDS, BY_NAME, 0},
    {"attention_bwd", MAQ_REC_SEQUENCES_BWD, 6, ATTENTION_FIELDS, BY_NAME, 0},
    {"gemm", MAQ_REC_GEMM, 3, {"columns", "rows", "depth", "batch"}, BY_NAME, 0}, /* the order of d in the record */
    {"gemm_fp8_blocks", MAQ_REC_GEMM, 3, {"columns", "rows", "depth", "batch"}, MAQ_REC_F8E4M3, MAQ_REC_BLOCKS},
    {"grouped_gemm", MAQ_REC_GROUPED_GEMM, 4, {"rows", "columns", "depth", "groups"}, BY_NAME, 0},
    {"grouped_gemm_bf16", MAQ_REC_GROUPED_GEMM, 4, {"rows", "columns", "depth", "groups"}, MAQ_REC_BF16, 0},
    {"grouped_gemm_fp8", MAQ_REC_GROUPED_GEMM, 4, {"rows", "columns", "depth", "groups"}, MAQ_REC_F8E4M3, 0},
    {"quantize_fp8", MAQ_REC_QUANTIZE, 2, {"rows", "columns"}, MAQ_REC_F8E4M3, 0},
    {"norm", MAQ_REC_NORM, 2, {"rows", "columns"}, BY_NAME, 0},
    {"softmax", MAQ_REC_SOFTMAX, 2, {"rows", "columns"}, BY_NAME, 0},
    {"rope", MAQ_REC_ROPE, 2, {"rows", "columns"}, BY_NAME, 0},
    {"gated_activation", MAQ_REC_GATED_ACTIVATION, 2, {"rows", "columns"}, BY_NAME, 0},
    {"embedding", MAQ_REC_EMBEDDING, 3, {"rows", "columns", "table"}, BY_NAME, 0},
    {"elementwise", MAQ_REC_ELEMENTWISE, 3, {"elements", "read", "written"}, BY_NAME, 0},
    {"part", MAQ_REC_PART, 0, {NULL}, BY_NAME, 0},
};

struct rule {
    struct vg_kernel_pattern about;
    const struct kind *kind;
    const char *condition;          /* NULL: always */
    const char *field[FIELDS_MOST]; /* NULL: not given */
};

/* --- the table ------------------------------------------------------------------------------------------------------------ */

static const struct kind *kind_named(const char *word)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, word) == 0)
            return &kinds[i];
    return NULL;
}

/* The place that a rule has for a field's text; NULL: its kind has no such field. */
static const char **place_of(struct rule *r, const char *field)
{
    if (strcmp(field, "if") == 0)
        return &r->condition;
    for (unsigned i = 0; i < FIELDS_MOST && r->kind->field[i] != NULL; i++)
        if (strcmp(r->kind->field[i], field) == 0)
            return &r->field[i];
    return NULL;
}

/* The fields of a rule; what is wrong with one, or NULL. */
static const char *cut_fields(struct rule *r, char *rest)
{
    for (char *word = strtok_r(NULL, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            return "behind the kind stands FIELD=VALUE, without blanks";
        *equals = '\0';
        const char **place = place_of(r, word);
        if (place == NULL)
            return "an operator of this kind has no such field";
        if (!vg_is_expression(equals + 1, ""))
            return "the value of a field is no expression";
        *place = equals + 1;
    }
    for (unsigned i = 0; i < r->kind->needed; i++)
        if (r->field[i] == NULL)
            return "a field is missing that every operator of this kind has";
    return NULL;
}

/* The parts of a rule, from its own copy of the line; what is wrong, or NULL. */
static const char *cut(void *rule, char *line)
{
    struct rule *r = rule;
    char *rest = line, *name, *kind;
    if (strtok_r(line, " \t", &rest) == NULL || (name = strtok_r(NULL, " \t", &rest)) == NULL ||
        (kind = strtok_r(NULL, " \t", &rest)) == NULL)
        return "the form is: operator NAME KIND FIELD=VALUE...";
    const char *why = vg_kernel_pattern_read(&r->about, name);
    if (why != NULL)
        return why;
    r->kind = kind_named(kind);
    return r->kind != NULL ? cut_fields(r, rest) : "there is no operator of this kind";
}

static struct vg_rules rules = {.bytes = sizeof(struct rule), .cut = cut};

bool vg_operator_rule_take(const char *line, const char **why)
{
    return vg_rules_take(&rules, line, why);
}

/* --- at a launch ------------------------------------------------------------------------------------------------------------ */

/* A field's value in row i, at least `least`; *ok false: it has none. What was not given is `otherwise`. */
static int64_t field(const struct rule *r, unsigned at, const struct vg_launch *l, int64_t i, int64_t otherwise,
                     int64_t least, bool *ok)
{
    bool has = true;
    int64_t x = r->field[at] != NULL ? vg_expression(r->field[at], "", l, i, &has) : otherwise;
    *ok = *ok && has && x >= least;
    return x;
}

struct sums {
    double queries, squares, keys; /* of sequences with several queries */
    double decodes, decode_keys;
    bool cut; /* some query does not see all keys before it */
};

/* What q queries at the end of k keys see together. */
static double keys_seen(double q, double k, double window, bool causal)
{
    const double past = k > q ? k - q : 0;
    if (!causal)
        return q * k;
    if (window <= 0 || k <= window)
        return q * past + q * (q + 1) / 2;
    const double ramp = window > past ? (window - past < q ? window - past : q) : 0;
    return ramp * (past + (ramp + 1) / 2) + (q - ramp) * window;
}

static bool add_sequence(struct sums *s, const struct rule *r, const struct vg_launch *l, int64_t i)
{
    bool ok = true;
    const double q = (double)field(r, QUERIES, l, i, 0, 0, &ok), k = (double)field(r, KEYS, l, i, 0, 0, &ok);
    const double window = (double)field(r, WINDOW, l, i, 0, 0, &ok);
    const bool causal = field(r, CAUSAL, l, i, 1, 0, &ok) != 0;
    if (!ok || q == 0 || k == 0)
        return ok;
    s->cut = s->cut || (window > 0 && k > window);
    if (q == 1) {
        s->decodes += 1;
        s->decode_keys += keys_seen(q, k, window, causal);
    } else {
        s->queries += q;
        s->squares += q * q;
        s->keys += keys_seen(q, k, window, causal);
    }
    return true;
}

static int64_t mean(double sum, double n)
{
    return n > 0 ? (int64_t)(sum / n + 0.5) : 0;
}

static bool attention(struct maq_rec_op *op, const struct rule *r, const struct vg_launch *l)
{
    bool ok = true;
    struct sums s = {.cut = false};
    const int64_t batch = field(r, BATCH, l, 0, 0, 1, &ok), heads = field(r, HEADS, l, 0, 0, 1, &ok);
    const int64_t kv_heads = field(r, KV_HEADS, l, 0, 0, 1, &ok), dim = field(r, DIM, l, 0, 0, 1, &ok);
    const int64_t v_dim = field(r, V_DIM, l, 0, dim, 1, &ok);
    if (!ok || batch > SEQUENCES_MOST || heads > MAQ_REC_HEADS_MOST || kv_heads > heads || dim > MAQ_REC_HEADS_MOST ||
        v_dim > MAQ_REC_HEADS_MOST)
        return false;
    for (int64_t i = 0; i < batch; i++)
        if (!add_sequence(&s, r, l, i))
            return false;
    if (s.queries + s.decodes == 0)
        return false;
    const bool causal = field(r, CAUSAL, l, 0, 1, 0, &ok) != 0, older = field(r, FLASH1, l, 0, 0, 0, &ok) != 0,
               old = older || field(r, FLASH2, l, 0, 0, 0, &ok) != 0;
    op->flags = (causal ? MAQ_REC_CAUSAL : 0u) | (old ? MAQ_REC_FLASH2 : 0u) | (older ? MAQ_REC_FLASH1 : 0u) |
                (s.cut ? MAQ_REC_WINDOW : 0u);
    const int64_t d[6] = {
        (int64_t)s.queries, mean(s.keys, s.queries),        mean(s.squares, s.queries),
        (int64_t)s.decodes, mean(s.decode_keys, s.decodes), MAQ_REC_HEADS(heads, kv_heads, dim, v_dim)};
    memcpy(op->d, d, sizeof d);
    return ok;
}

static bool sizes(struct maq_rec_op *op, const struct rule *r, const struct vg_launch *l)
{
    bool ok = true;
    int64_t d[6] = {0};
    for (unsigned i = 0; i < sizeof d / sizeof *d && r->kind->field[i] != NULL; i++)
        d[i] = field(r, i, l, 0, i < r->kind->needed ? 0 : 1, 0, &ok);
    if (ok)
        memcpy(op->d, d, sizeof d);
    return ok;
}

/*
 * Products of experts, `rows` together: each row is of an expert by chance, so that of E some have none and are not read:
 *
 *     read = E (1 - (1 - 1/E)^rows)
 */
static void deal_rows(struct maq_rec_op *op)
{
    double unread = 1, power = 1 - 1 / (double)op->d[3];
    const double rows = (double)op->d[0];
    for (uint64_t n = (uint64_t)op->d[0]; n > 0; n >>= 1, power *= power)
        unread *= n & 1 ? power : 1;
    op->d[3] = (int64_t)((double)op->d[3] * (1 - unread) + 0.5);
    op->d[3] = op->d[3] > 1 ? op->d[3] : 1;
    op->d[0] = (int64_t)(rows / (double)op->d[3] + 0.5);
    op->d[0] = op->d[0] > 1 ? op->d[0] : 1;
}

static bool grouped(struct maq_rec_op *op, const struct rule *r, const struct vg_launch *l)
{
    if (!sizes(op, r, l) || op->d[0] < 1 || op->d[3] < 1) {
        memset(op->d, 0, sizeof op->d);
        return false;
    }
    deal_rows(op);
    return true;
}

static bool read_fields(struct maq_rec_op *op, const struct rule *r, const struct vg_launch *l)
{
    switch ((int)r->kind->kind) {
    case MAQ_REC_SEQUENCES:
    case MAQ_REC_SEQUENCES_BWD:
        return attention(op, r, l);
    case MAQ_REC_GROUPED_GEMM:
        return grouped(op, r, l);
    default:
        return sizes(op, r, l);
    }
}

static bool holds(const struct rule *r, const struct vg_launch *l)
{
    bool ok = true;
    if (!vg_kernel_pattern_fits(&r->about, l->kernel))
        return false;
    return r->condition == NULL || (vg_expression(r->condition, "", l, 0, &ok) != 0 && ok);
}

/* Whether any rule names the kernel. */
static bool spoken_of(const struct vg_kernel *kernel)
{
    static struct vg_unnamed none;
    return vg_rules_name(&rules, &none, kernel);
}

void vg_operator_rules_apply(struct maq_rec_op *op, const struct vg_launch *l)
{
    vg_values_load();
    if (!spoken_of(l->kernel))
        return;
    const struct rule *at = rules.at;
    for (uint32_t i = 0; i < rules.n; i++) {
        const struct rule *r = &at[i];
        if (!holds(r, l) || !read_fields(op, r, l))
            continue;
        op->kind = (uint16_t)r->kind->kind;
        op->type = op->out = r->kind->type == BY_NAME ? (uint8_t)vg_element_type(l->kernel->name) : r->kind->type;
        op->flags |= r->kind->flags;
        return;
    }
}
