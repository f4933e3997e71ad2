/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_names.c - names of the nodes of a captured job, their streams and their buckets.
 *
 * A stream of the program becomes a stream of the graph by what runs on it: that of the axis of its communicators where these
 * take most of its time, that of copies, otherwise compute. Two streams of a program may become one stream of the graph; its
 * nodes then overlap, as they did in the program.
 *
 * The axis of a communicator: from the name of its process group where it has one (Megatron's and torch's device meshes name
 * them); else messages are pipeline, all-to-all is expert parallel, members that follow each other inside a node tensor
 * parallel, and the rest data parallel. Kernels of DeepEP, which are none of NCCL's, are expert parallel by their names.
 *
 * Annotations that say what part of a step they are: "backward", "forward", "optimizer", "recompute" in them, or the marks of
 * zero-bubble schedules, (F), (B) and (W), at their end.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "capture/build.h"
#include "capture/graph/graph.h"

static const char *type_name(unsigned type)
{
    static const char *const names[MAQ_REC_TYPE_COUNT] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                                          "fp16", "fp32",  "fp64",  "bf16",   "fp8",   "fp8",
                                                          "tf32", "fp4",   "bit",   ""};
    return type < MAQ_REC_TYPE_COUNT ? names[type] : "";
}

const char *maq_rec_coll_word(unsigned coll)
{
    static const char *const words[MAQ_REC_COLL_COUNT] = {
        [MAQ_REC_ALL_REDUCE] = "all-reduce",
        [MAQ_REC_ALL_GATHER] = "all-gather",
        [MAQ_REC_REDUCE_SCATTER] = "reduce-scatter",
        [MAQ_REC_BROADCAST] = "broadcast",
        [MAQ_REC_REDUCE] = "reduce",
        [MAQ_REC_ALL_TO_ALL] = "all-to-all",
        [MAQ_REC_GATHER] = "gather",
        [MAQ_REC_SCATTER] = "scatter",
        [MAQ_REC_P2P_PAIR] = "send/recv",
    };
    return coll < MAQ_REC_COLL_COUNT ? words[coll] : "collective";
}

/* The first of some template arguments that is a type of somebody's own, without its arguments: what a general kernel is for. */
static struct maq_str first_type(struct maq_str args)
{
    size_t from = 0, depth = 0;
    bool looked = false; /* at the argument that begins at `from` */
    for (size_t i = 0; i < args.len; i++) {
        char c = args.ptr[i];
        bool ends = depth == 0 && (c == ',' || c == '>');
        if (ends || c == '<' || c == '(') {
            struct maq_str arg = maq_str_trim((struct maq_str){args.ptr + from, i - from});
            if (depth == 0 && !looked && memmem(arg.ptr, arg.len, "::", 2))
                return arg;
            looked = !ends;
        }
        depth += c == '<' || c == '(';
        if (depth == 0 && c == '>')
            break;
        depth -= depth > 0 && (c == '>' || c == ')');
        from = ends ? i + 1 : from;
    }
    return (struct maq_str){"", 0};
}

/* "void cutlass::device_kernel<ours::gemm<128, 64> >(int)" -> "cutlass::device_kernel<ours::gemm>". */
static void plain_name(char buf[160], const char *name)
{
    struct maq_str s = maq_str_of(name), head, args;
    if (maq_str_starts(s, "void "))
        s = (struct maq_str){s.ptr + 5, s.len - 5};
    args = maq_str_split(s, '<', &head);
    if (args.ptr) {
        struct maq_str type = first_type(args);
        int shown = (int)(head.len < 70 ? head.len : 70);
        if (type.len > 0)
            maq__snprintf(buf, 160, "%.*s<%.*s>", shown, head.ptr, (int)(type.len < 70 ? type.len : 70), type.ptr);
        else
            maq__snprintf(buf, 160, "%.*s", shown, head.ptr);
        return;
    }
    if (!maq_str_starts(s, "(anonymous"))
        (void)maq_str_split(s, '(', &head);
    head = maq_str_trim(head.len > 0 ? head : s);
    maq__snprintf(buf, 160, "%.*s", (int)(head.len < 150 ? head.len : 150), head.ptr);
}

const char *maq_captured_op_text(char buf[160], const struct maq_captured_op *op)
{
    const struct maq_rec_op *o = op->what;
    const long long *d = (const long long *)o->d;
    const char *type = type_name(o->type);
    switch ((enum maq_rec_op_kind)o->kind) {
    case MAQ_REC_GEMM:
        if (d[3] > 1)
            maq__snprintf(buf, 160, "gemm %lldx%lldx%lld x %lld %s", d[0], d[1], d[2], d[3], type);
        else
            maq__snprintf(buf, 160, "gemm %lldx%lldx%lld %s", d[0], d[1], d[2], type);
        break;
    case MAQ_REC_GROUPED_GEMM:
        maq__snprintf(buf, 160, "grouped_gemm %lld x %lldx%lldx%lld %s", d[3], d[0], d[1], d[2], type);
        break;
    case MAQ_REC_ATTENTION:
    case MAQ_REC_ATTENTION_BWD:
        maq__snprintf(buf, 160, "%s %lld x %lld tokens, %lld keys, %lld:%lld heads of %lld %s",
                      o->kind == MAQ_REC_ATTENTION ? "attention" : "attention_bwd", d[0], d[3], d[4], d[1], d[2], d[5],
                      type);
        break;
    case MAQ_REC_NORM:
    case MAQ_REC_NORM_BWD:
        maq__snprintf(buf, 160, "%s %lld x %lld %s", o->kind == MAQ_REC_NORM ? "norm" : "norm_bwd", d[0], d[1], type);
        break;
    case MAQ_REC_SEQUENCES:
    case MAQ_REC_SEQUENCES_BWD:
        maq__snprintf(buf, 160, "%s %lld queries, %lld keys; %lld decoding, %lld keys %s",
                      o->kind == MAQ_REC_SEQUENCES ? "attention" : "attention_bwd", d[0], d[1], d[3], d[4], type);
        break;
    case MAQ_REC_ELEMENTWISE:
        maq__snprintf(buf, 160, "elementwise %lld, %lld bytes read, %lld written", d[0], d[1], d[2]);
        break;
    case MAQ_REC_GATED_ACTIVATION:
    case MAQ_REC_ROPE:
    case MAQ_REC_EMBEDDING:
    case MAQ_REC_SOFTMAX:
    case MAQ_REC_QUANTIZE:
        maq__snprintf(buf, 160, "%s %lld x %lld %s",
                      o->kind == MAQ_REC_ROPE        ? "rope"
                      : o->kind == MAQ_REC_QUANTIZE  ? "quantize"
                      : o->kind == MAQ_REC_EMBEDDING ? "embedding"
                      : o->kind == MAQ_REC_SOFTMAX   ? "softmax"
                                                     : "gated_activation",
                      d[0], d[1], type);
        break;
    case MAQ_REC_KERNEL:
    case MAQ_REC_WORK:
    case MAQ_REC_CONV:
    case MAQ_REC_LIBRARY:
    case MAQ_REC_PART:
    case MAQ_REC_OP_KIND_COUNT:
    default:
        plain_name(buf, op->name);
    }
    return buf;
}

const char *maq_captured_coll_text(char buf[160], const struct maq_rec *r, uint32_t size)
{
    static const char *const names[MAQ_REC_COLL_COUNT] = {"all_reduce", "all_gather", "reduce_scatter",
                                                          "broadcast",  "reduce",     "all_to_all",
                                                          "gather",     "scatter",    "send_recv"};
    unsigned kind = MAQ_REC_COLL_KIND(r->id);
    const char *name = r->kind == MAQ_REC_COLL && kind < MAQ_REC_COLL_COUNT ? names[kind] : "send_recv";
    double b = (double)r->bytes;
    const char *unit = b >= 0x1p30 ? "GiB" : b >= 0x1p20 ? "MiB" : b >= 0x1p10 ? "KiB" : "B";
    double of = unit[0] == 'G' ? 0x1p30 : unit[0] == 'M' ? 0x1p20 : unit[0] == 'K' ? 0x1p10 : 1;
    maq__snprintf(buf, 160, "%s %.4g %s over %u ranks", name, b / of, unit, r->kind == MAQ_REC_COLL ? size : 2);
    return buf;
}

/* --- axes and streams -------------------------------------------------------------------------------------------------- */

static enum maq_stream axis_by_name(const char *name)
{
    static const struct {
        const char *word;
        enum maq_stream axis;
    } known[] = {{"expert_data", MAQ_STREAM_DP}, {"expert", MAQ_STREAM_EP},  {"pipeline", MAQ_STREAM_PP},
                 {"context", MAQ_STREAM_CP},     {"tensor", MAQ_STREAM_TP},  {"data_parallel", MAQ_STREAM_DP},
                 {"mesh_tp", MAQ_STREAM_TP},     {"mesh_dp", MAQ_STREAM_DP}, {"mesh_pp", MAQ_STREAM_PP},
                 {"mesh_cp", MAQ_STREAM_CP},     {"mesh_ep", MAQ_STREAM_EP}, {"fsdp", MAQ_STREAM_DP}};
    static const char *const exact[] = {"compute", "tp", "cp", "ep", "dp", "pp"};
    for (size_t i = 1; name && i < MAQ_COUNT(exact); i++)
        if (maq_str_ieq(maq_str_of(name), exact[i]))
            return (enum maq_stream)i;
    for (size_t i = 0; name && i < MAQ_COUNT(known); i++)
        if (strcasestr(name, known[i].word))
            return known[i].axis;
    return MAQ_STREAM_COUNT;
}

static bool neighbours(const struct maq_capture *c, const struct maq_captured_comm *m)
{
    if (m->size < 2 || m->size >= c->world || m->size > c->per_node || m->member[0] == UINT32_MAX)
        return false;
    for (uint32_t i = 1; i < m->size; i++)
        if (m->member[i] != m->member[i - 1] + 1)
            return false;
    return true;
}

static enum maq_stream axis_of(const struct maq_capture *c, const struct maq_rank_class *k, uint32_t ordinal)
{
    bool messages = false, exchanges = false;
    if (k->n_ranks == 0)
        return MAQ_STREAM_DP;
    const struct maq_captured_comm *m = &c->comm[k->comm[ordinal]];
    enum maq_stream named = axis_by_name(m->name);
    if (named != MAQ_STREAM_COUNT)
        return named;
    for (uint32_t i = 0; i < k->n_records; i++) {
        const struct maq_rec *r = &k->record[i];
        if (r->kind != MAQ_REC_COLL && r->kind != MAQ_REC_SEND && r->kind != MAQ_REC_RECV)
            continue;
        if (MAQ_REC_COLL_COMM(r->id) != ordinal)
            continue;
        messages |= r->kind != MAQ_REC_COLL;
        exchanges |= r->kind == MAQ_REC_COLL && MAQ_REC_COLL_KIND(r->id) == MAQ_REC_ALL_TO_ALL;
    }
    return messages ? MAQ_STREAM_PP : exchanges ? MAQ_STREAM_EP : neighbours(c, m) ? MAQ_STREAM_TP : MAQ_STREAM_DP;
}

static bool is_expert_exchange(const char *name)
{
    return strstr(name, "deep_ep::") || strstr(name, "::ep::internode::") || strstr(name, "::ep::intranode::");
}

/* What the streams of a class are, by the time spent on each. */
static bool class_streams(struct maq_draft *d, uint32_t class_id)
{
    const struct maq_capture *c = d->capture;
    const struct maq_rank_class *k = &c->class_of_ranks[class_id];
    uint64_t(*spent)[MAQ_STREAM_COUNT] =
        maq_arena_array(&d->scratch, (size_t)k->n_streams + 1, sizeof *spent, _Alignof(uint64_t));
    d->axis[class_id] = MAQ_ARENA_NEW(&d->scratch, uint8_t, k->n_comms);
    d->stream_of[class_id] = MAQ_ARENA_NEW(&d->scratch, uint8_t, (size_t)k->n_streams + 1);
    if (!spent || !d->axis[class_id] || !d->stream_of[class_id])
        return false;
    for (uint32_t o = 0; o < k->n_comms; o++)
        d->axis[class_id][o] = (uint8_t)axis_of(c, k, o);
    for (uint32_t i = 0; i < k->n_records; i++) {
        const struct maq_rec *r = &k->record[i];
        enum maq_stream s = MAQ_STREAM_COMPUTE;
        if (r->stream >= k->n_streams)
            continue;
        if (r->kind == MAQ_REC_COPY)
            s = MAQ_STREAM_COPY;
        else if (r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV)
            s = (enum maq_stream)d->axis[class_id][MAQ_REC_COLL_COMM(r->id)];
        else if (r->kind == MAQ_REC_LAUNCH && is_expert_exchange(c->op[r->id].name))
            s = MAQ_STREAM_EP;
        else if (r->kind != MAQ_REC_LAUNCH)
            continue;
        bool gap = r->kind == MAQ_REC_LAUNCH && c->op[r->id].what->kind == MAQ_REC_LIBRARY;
        spent[r->stream][s] += gap ? 0 : r->ns + 1;
    }
    for (uint32_t s = 0; s < k->n_streams; s++)
        for (uint32_t to = 1; to < MAQ_STREAM_COUNT; to++)
            if (spent[s][to] > spent[s][d->stream_of[class_id][s]])
                d->stream_of[class_id][s] = (uint8_t)to;
    return true;
}

bool maq_draft_streams(struct maq_draft *d)
{
    uint32_t n = d->capture->n_classes;
    d->axis = MAQ_ARENA_NEW(&d->scratch, uint8_t *, n);
    d->stream_of = MAQ_ARENA_NEW(&d->scratch, uint8_t *, n);
    bool ok = d->axis && d->stream_of;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = class_streams(d, i);
    return ok;
}

/* --- parts of a step ---------------------------------------------------------------------------------------------------- */

enum maq_bucket maq_annotation_bucket(const char *text)
{
    static const struct {
        const char *word;
        enum maq_bucket bucket;
    } known[] = {{"optimizer", MAQ_BUCKET_OPTIMIZER},
                 {"recompute", MAQ_BUCKET_RECOMPUTE},
                 {"backward", MAQ_BUCKET_BACKWARD},
                 {"forward", MAQ_BUCKET_FORWARD}};
    size_t n = strlen(text);
    if (n >= 3 && text[n - 3] == '(' && text[n - 1] == ')' && strchr("FBW", text[n - 2]) && text[n - 2] != 0)
        return text[n - 2] == 'F' ? MAQ_BUCKET_FORWARD : MAQ_BUCKET_BACKWARD;
    for (size_t i = 0; i < MAQ_COUNT(known); i++)
        if (strcasestr(text, known[i].word))
            return known[i].bucket;
    return MAQ_BUCKET_COUNT;
}

enum maq_bucket maq_axis_bucket(enum maq_stream axis)
{
    static const uint8_t of[MAQ_STREAM_COUNT] = {
        [MAQ_STREAM_COMPUTE] = MAQ_BUCKET_OTHER, [MAQ_STREAM_TP] = MAQ_BUCKET_TP,    [MAQ_STREAM_CP] = MAQ_BUCKET_CP,
        [MAQ_STREAM_EP] = MAQ_BUCKET_EP,         [MAQ_STREAM_DP] = MAQ_BUCKET_DP,    [MAQ_STREAM_PP] = MAQ_BUCKET_PP,
        [MAQ_STREAM_COPY] = MAQ_BUCKET_OTHER,    [MAQ_STREAM_HOST] = MAQ_BUCKET_HOST};
    return (enum maq_bucket)of[axis];
}
