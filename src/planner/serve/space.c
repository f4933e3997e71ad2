/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - values of the axes: what is told, what the user lists, what is tried where nobody says. */
#include "planner/serve/space.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "planner/codes.h"

#define MOST_DEGREE 4096
#define LEAST_SEQS 8
#define LEAST_TOKENS 2048
#define MOST_TOKENS 16384

const char *maq_serve_axis_name(enum maq_serve_axis axis)
{
    static const char *const names[MAQ_SERVE_AXIS_COUNT] = {
#define NAME(id, name, what) [MAQ_SERVE_AXIS_##id] = name,
        MAQ_SERVE_AXIS_LIST(NAME)
#undef NAME
    };
    return (unsigned)axis < MAQ_SERVE_AXIS_COUNT ? names[axis] : "unknown";
}

const char *maq_serve_verdict_name(enum maq_serve_verdict verdict)
{
    static const char *const names[MAQ_SERVE_VERDICT_COUNT] = {
#define NAME(id, name, what) [MAQ_SERVE_VERDICT_##id] = name,
        MAQ_SERVE_VERDICT_LIST(NAME)
#undef NAME
    };
    return (unsigned)verdict < MAQ_SERVE_VERDICT_COUNT ? names[verdict] : "unknown";
}

/* ---- values in words ---- */

const char *maq_serve_axis_word(char buf[MAQ_SERVE_WORD], enum maq_serve_axis axis, int32_t value)
{
    if (axis == MAQ_SERVE_AXIS_ENGINE)
        return maq_engine_name((enum maq_engine)value);
    if (axis == MAQ_SERVE_AXIS_WEIGHTS)
        return maq_weights_name((enum maq_weights)value);
    if (axis == MAQ_SERVE_AXIS_KV)
        return value ? "fp8" : "auto";
    if (axis == MAQ_SERVE_AXIS_EP && value == MAQ_SERVE_EP_ALL)
        return "all";
    if ((axis == MAQ_SERVE_AXIS_SEQS || axis == MAQ_SERVE_AXIS_TOKENS) && value == 0)
        return "default";
    maq__snprintf(buf, MAQ_SERVE_WORD, "%d", value);
    return buf;
}

/* Values of an axis that has words. */
static int32_t words_of(enum maq_serve_axis axis)
{
    return axis == MAQ_SERVE_AXIS_ENGINE    ? MAQ_ENGINE_COUNT
           : axis == MAQ_SERVE_AXIS_WEIGHTS ? MAQ_WEIGHTS_COUNT
           : axis == MAQ_SERVE_AXIS_KV      ? 2
                                            : 0;
}

static bool read_value(int32_t *out, enum maq_serve_axis axis, struct maq_str text)
{
    static const enum maq_serve_axis named[] = {MAQ_SERVE_AXIS_EP, MAQ_SERVE_AXIS_SEQS, MAQ_SERVE_AXIS_TOKENS};
    char buf[MAQ_SERVE_WORD];
    int64_t n;
    for (int32_t v = 0; v < words_of(axis); v++)
        if (maq_str_eq(text, maq_str_of(maq_serve_axis_word(buf, axis, v)))) {
            *out = v;
            return true;
        }
    for (size_t i = 0; i < MAQ_COUNT(named); i++) {
        int32_t v = named[i] == MAQ_SERVE_AXIS_EP ? MAQ_SERVE_EP_ALL : 0;
        if (axis == named[i] && maq_str_eq(text, maq_str_of(maq_serve_axis_word(buf, axis, v)))) {
            *out = v;
            return true;
        }
    }
    if (words_of(axis) > 0 || !maq_str_to_i64(&n, text) || n < (axis == MAQ_SERVE_AXIS_AFD ? 0 : 1) || n > (1 << 20))
        return false;
    *out = (int32_t)n;
    return true;
}

static void add(struct maq_serve_values *v, int32_t value)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->at[i] == value)
            return;
    if (v->n < MAQ_SERVE_AXIS_VALUES)
        v->at[v->n++] = value;
}

/* ---- lists ---- */

static enum maq_status bad_axis(struct maq_str key, struct maq_diag *diag)
{
    return maq_diag_fail(
        MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_AXIS, (struct maq_span){0},
        "tp, pp, dp, ep, afd-ffn-ranks, afd-micro-batches, engine, weights, kv-cache-dtype, max-num-seqs, "
        "max-num-batched-tokens",
        "a deployment is not searched along '%.*s'", (int)(key.len < 60 ? key.len : 60), key.ptr);
}

/* "tp=2,4" */
static enum maq_status read_list(struct maq_serve_space *out, const char *list, struct maq_diag *diag)
{
    struct maq_str key, values = maq_str_split(maq_str_of(list), '=', &key), value;
    enum maq_status worst = MAQ_OK;
    int axis = 0;
    while (axis < MAQ_SERVE_AXIS_COUNT && !maq_str_eq(key, maq_str_of(maq_serve_axis_name((enum maq_serve_axis)axis))))
        axis++;
    if (axis == MAQ_SERVE_AXIS_COUNT)
        return bad_axis(key, diag);
    out->axis[axis].n = 0;
    do {
        int32_t v;
        values = maq_str_split(values, ',', &value);
        value = maq_str_trim(value);
        if (read_value(&v, (enum maq_serve_axis)axis, value))
            add(&out->axis[axis], v);
        else
            worst = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VALUE, (struct maq_span){0}, NULL,
                                  "'%.*s' is no value of %s", (int)(value.len < 60 ? value.len : 60), value.ptr,
                                  maq_serve_axis_name((enum maq_serve_axis)axis));
    } while (values.len > 0);
    return worst;
}

/* ---- what is told, and what is tried ---- */

static void powers(struct maq_serve_values *v, int32_t from, int32_t to)
{
    for (int32_t x = from; x <= to; x *= 2)
        add(v, x);
}

/* Degrees that divide a scale-up domain, and powers of two in it: of 6 GPUs 1, 2, 3, 4 and 6. */
static void shares(struct maq_serve_values *v, int32_t domain)
{
    for (int32_t x = 1; x <= domain && x <= MOST_DEGREE; x++)
        if (domain % x == 0 || (x & (x - 1)) == 0)
            add(v, x);
}

static void degrees(struct maq_serve_space *s, const struct maq_loaded_job *open, const struct maq_node_group *g,
                    const struct maq_serve_options *o)
{
    const struct maq_job *job = maq_job_get(open);
    int32_t devices = g->nodes * g->devices_per_node,
            domain = g->domain_devices < devices ? g->domain_devices : devices;
    bool experts = maq_model_has_experts(&job->model);
    if (maq_job_sets(open, "tensor_model_parallel_size"))
        add(&s->axis[MAQ_SERVE_AXIS_TP], job->plan.tp);
    else
        shares(&s->axis[MAQ_SERVE_AXIS_TP], domain);
    if (maq_job_sets(open, "pipeline_model_parallel_size"))
        add(&s->axis[MAQ_SERVE_AXIS_PP], job->plan.pp);
    else
        powers(&s->axis[MAQ_SERVE_AXIS_PP], 1, devices);
    if (o->dp > 0 || !experts)
        add(&s->axis[MAQ_SERVE_AXIS_DP], o->dp > 0 ? o->dp : 1);
    else
        powers(&s->axis[MAQ_SERVE_AXIS_DP], 1, devices);
    if (o->ep > 0 || !experts) {
        add(&s->axis[MAQ_SERVE_AXIS_EP], o->ep > 0 ? o->ep : 1);
    } else {
        add(&s->axis[MAQ_SERVE_AXIS_EP], 1);
        add(&s->axis[MAQ_SERVE_AXIS_EP], MAQ_SERVE_EP_ALL);
    }
}

static void limits(struct maq_serve_space *s, const struct maq_serve_options *o)
{
    add(&s->axis[MAQ_SERVE_AXIS_SEQS], o->max_num_seqs);
    if (o->max_num_seqs == 0)
        powers(&s->axis[MAQ_SERVE_AXIS_SEQS], LEAST_SEQS, 512);
    add(&s->axis[MAQ_SERVE_AXIS_TOKENS], o->max_num_batched_tokens);
    if (o->max_num_batched_tokens == 0)
        powers(&s->axis[MAQ_SERVE_AXIS_TOKENS], LEAST_TOKENS, MOST_TOKENS);
}

enum maq_status maq_serve_space_init(struct maq_serve_space *out, const struct maq_loaded_job *open, uint32_t group,
                                     const struct maq_serve_search_opts *opts, struct maq_diag *diag)
{
    enum maq_status worst = MAQ_OK;
    const struct maq_serve_options *o = opts->options;
    *out = (struct maq_serve_space){0};
    degrees(out, open, &maq_job_get(open)->cluster.groups[group], o);
    add(&out->axis[MAQ_SERVE_AXIS_AFD], o->afd.ffn_ranks);
    add(&out->axis[MAQ_SERVE_AXIS_MICRO], o->afd.micro_batches);
    add(&out->axis[MAQ_SERVE_AXIS_ENGINE], (int32_t)o->engine);
    add(&out->axis[MAQ_SERVE_AXIS_WEIGHTS], (int32_t)o->weights);
    add(&out->axis[MAQ_SERVE_AXIS_KV], o->kv_fp8);
    limits(out, o);
    for (size_t i = 0; i < opts->n_lists; i++) {
        enum maq_status status = read_list(out, opts->lists[i], diag);
        worst = worst == MAQ_OK ? status : worst;
    }
    return worst;
}
