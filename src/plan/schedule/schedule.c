/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - the table of pipeline schedules, and how one is built.
 *
 * Building: the rule of the kind writes the order of each stage (1f1b.c, interleaved.c,
 * zero_bubble.c, zero_bubble_search.c, controllable_memory.c, dualpipe.c); dependencies.c finds what waits for what and an order that suits all
 * stages at once; in_flight.c counts the activations in flight. Nothing of it depends on durations,
 * but for the searched kinds, whose order is made for them.
 *
 * A new schedule is one file with its order, and one row here. docs/schedules.md explains the table.
 */
#include "plan/schedule/schedule.h"

#include "base/check.h"
#include "plan/schedule/build.h"

/* clang-format off */
#define SEARCHED(word, most)                                                                                           \
    {.info = {.name = word,                                                                                            \
              .bubble = "searched: no more than 1f1b's, and zb-h1's where it fits",                                    \
              .memory = "at most " most " on every stage",                                                             \
              .needs = "durations",                                                                                    \
              .source = "Qi et al., arXiv 2401.10241; sail-sg/zero-bubble-pipeline-parallelism"},                      \
     .chunks = 1, .split = true, .searched = true, .order_all = maq__order_zb_searched}
/* clang-format on */

static const struct maq_schedule_rule rules[MAQ_SCHEDULE_COUNT] = {
    [MAQ_SCHEDULE_AUTO] = {.info = {.name = "auto"}},
    [MAQ_SCHEDULE_GPIPE] = {.info = {.name = "gpipe",
                                     .bubble = "(p-1)(F+B)",
                                     .memory = "m",
                                     .needs = "at most 65535 microbatches",
                                     .source = "Huang et al., arXiv 1811.06965"},
                            .chunks = 1,
                            .refuse = maq__refuse_gpipe,
                            .order = maq__order_gpipe},
    [MAQ_SCHEDULE_1F1B] = {.info = {.name = "1f1b",
                                    .bubble = "(p-1)(F+B)",
                                    .memory = "min(p-s, m) on stage s",
                                    .needs = "nothing",
                                    .source = "Narayanan et al., arXiv 2006.09503; Megatron-LM"},
                           .chunks = 1,
                           .order = maq__order_1f1b},
    [MAQ_SCHEDULE_INTERLEAVED] = {.info = {.name = "interleaved",
                                           .bubble = "(p-1)(f+b), f = F/v, b = B/v",
                                           .memory = "min(2(p-s-1) + (v-1)g + 1, mv) chunks on stage s",
                                           .needs = "v >= 2 chunks, p <= g <= m, m mod g = 0 or >= p",
                                           .source = "Narayanan et al., arXiv 2104.04473; Megatron-LM"},
                                  .refuse = maq__refuse_interleaved,
                                  .order = maq__order_interleaved},
    [MAQ_SCHEDULE_ZB_H1] = {.info = {.name = "zb-h1",
                                     .bubble = "(p-1)(F+B-W), B without W",
                                     .memory = "min(p, m) on every stage",
                                     .needs = "nothing",
                                     .source = "Qi et al., arXiv 2401.10241"},
                            .chunks = 1,
                            .split = true,
                            .order = maq__order_zb_h1},
    [MAQ_SCHEDULE_ZB_H2] = {.info = {.name = "zb-h2",
                                     .bubble = "(p-1)F when W >= (F+B)/2, B <= F and m >= 2p-1",
                                     .memory = "min(2p-1, m) on every stage",
                                     .needs = "nothing",
                                     .source = "Qi et al., arXiv 2401.10241"},
                            .chunks = 1,
                            .split = true,
                            .order = maq__order_zb_h2},
    [MAQ_SCHEDULE_ZB_1P] = SEARCHED("zb-1p", "p"),
    [MAQ_SCHEDULE_ZB_2P] = SEARCHED("zb-2p", "2p"),
    [MAQ_SCHEDULE_ZB_AUTO] = SEARCHED("zb-auto", "zero_bubble_max_pending_backward"),
    [MAQ_SCHEDULE_INTERLEAVED_ZB] = {.info = {.name = "interleaved-zb",
                                              .bubble = "(p-1)(f+b-w) of chunks",
                                              .memory = "min((v-1)g + p, mv) chunks on every stage",
                                              .needs = "v >= 2 chunks, m a multiple of max(1, floor(m/p))",
                                              .source = "PyTorch, ScheduleInterleavedZeroBubble"},
                                     .split = true,
                                     .refuse = maq__refuse_interleaved_zb,
                                     .order = maq__order_interleaved_zb},
    [MAQ_SCHEDULE_ZB_V] = {.info = {.name = "zb-v",
                                    .bubble = "p-1 chunk times when F = B = W and m >= 2p-1",
                                    .memory = "at most min(2p, 2m) chunks",
                                    .needs = "2 chunks in a V",
                                    .source = "Qi et al., arXiv 2401.10241"},
                           .chunks = 2,
                           .split = true,
                           .order_all = maq__order_zb_v},
    [MAQ_SCHEDULE_DUALPIPE] = {.info = {.name = "dualpipe",
                                        .bubble = "(p/2-1)(F&B+B-3W), B with W",
                                        .memory = "p+1, parameters twice",
                                        .needs = "p even, m even, m >= 2p",
                                        .source = "DeepSeek-V3, arXiv 2412.19437; deepseek-ai/DualPipe"},
                               .chunks = 2,
                               .split = true,
                               .pairs = true,
                               .refuse = maq__refuse_dualpipe,
                               .order = maq__order_dualpipe},
    [MAQ_SCHEDULE_V_MIN] = {.info = {.name = "v-min",
                                     .bubble = "4p-5 chunk times when F = B = W and m >= 2p",
                                     .memory = "about 2p/3 chunks",
                                     .needs = "2 chunks in a V",
                                     .source = "Qi et al., arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism"},
                            .chunks = 2,
                            .split = true,
                            .order_all = maq__order_controllable},
    [MAQ_SCHEDULE_V_HALF] = {.info = {.name = "v-half",
                                      .bubble = "3p-7 chunk times when F = B = W, p even and m >= 2p",
                                      .memory = "about p chunks",
                                      .needs = "2 chunks in a V",
                                      .source =
                                          "Qi et al., arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism"},
                             .chunks = 2,
                             .split = true,
                             .order_all = maq__order_controllable},
    [MAQ_SCHEDULE_DUALPIPE_V] = {.info = {.name = "dualpipe-v",
                                          .bubble = "(p-1)(F&B+B-3W) of chunks, B with W",
                                          .memory = "2p+1 chunks",
                                          .needs = "2 chunks in a V, m >= 2p",
                                          .source = "deepseek-ai/DualPipe; Sea AI Lab, cut in half"},
                                 .chunks = 2,
                                 .split = true,
                                 .pairs = true,
                                 .refuse = maq__refuse_dualpipe_v,
                                 .order = maq__order_dualpipe_v},
};

const struct maq_schedule_rule *maq__schedule_rule(int kind)
{
    return kind > MAQ_SCHEDULE_AUTO && kind < MAQ_SCHEDULE_COUNT ? &rules[kind] : NULL;
}

bool maq_schedule_is_searched(int kind)
{
    const struct maq_schedule_rule *rule = maq__schedule_rule(kind);
    return rule && rule->searched;
}

const char *maq_schedule_name(enum maq_schedule_kind kind)
{
    return (unsigned)kind < MAQ_SCHEDULE_COUNT ? rules[kind].info.name : "?";
}

const struct maq_schedule_info *maq_schedule_info(size_t i)
{
    return i < MAQ_SCHEDULE_COUNT - 1 ? &rules[i + 1].info : NULL;
}

static int effective_kind(int kind, uint32_t chunks)
{
    if (kind != MAQ_SCHEDULE_AUTO)
        return kind;
    return chunks > 1 ? MAQ_SCHEDULE_INTERLEAVED : MAQ_SCHEDULE_1F1B;
}

uint32_t maq_schedule_chunks(int kind, uint32_t vp)
{
    const struct maq_schedule_rule *rule = maq__schedule_rule(effective_kind(kind, vp));
    return rule && rule->chunks ? rule->chunks : vp;
}

/* ---- what is refused ---- */

const char *maq_schedule_refuse(char buf[160], int kind, uint32_t stages, uint32_t chunks, uint32_t microbatches,
                                uint32_t group)
{
    kind = effective_kind(kind, chunks);
    const struct maq_schedule_rule *rule = maq__schedule_rule(kind);
    if (!rule)
        return maq__refused(buf, "there is no schedule number %d", kind);
    const char *name = rule->info.name;
    if (stages == 0 || chunks == 0 || microbatches == 0)
        return maq__refused(buf, "%s needs at least one stage, one model chunk and one microbatch", name);
    if (rule->chunks && chunks != rule->chunks && !(kind == MAQ_SCHEDULE_DUALPIPE && chunks == 1))
        return maq__refused(buf, "%s has %s per stage, not %u", name,
                            rule->chunks == 1 ? "one model chunk" : "2 model chunks", chunks);
    if ((uint64_t)stages * chunks > MAQ_MAX_STAGES)
        return maq__refused(buf, "%u stages x %u model chunks are over the limit of %d virtual stages", stages, chunks,
                            MAQ_MAX_STAGES);
    const struct maq_schedule_spec spec = {.kind = kind,
                                           .stages = stages,
                                           .chunks = chunks,
                                           .microbatches = microbatches,
                                           .group = group ? group : stages};
    return rule->refuse ? rule->refuse(buf, &spec) : NULL;
}

/* ---- building ---- */

/* For up to o->capacity tasks, each of which is written as a whole. */
static bool allocate(struct maq__schedule_arrays *a, const struct maq_orders *o, bool pairs, struct maq_arena *arena)
{
    size_t n = o->capacity;
    a->tasks = MAQ_ARENA_RAW(arena, struct maq_task, n);
    a->next_on_stage = MAQ_ARENA_RAW(arena, uint32_t, n);
    a->stage_first = MAQ_ARENA_NEW(arena, uint32_t, o->stages);
    a->stage_last = MAQ_ARENA_NEW(arena, uint32_t, o->stages);
    a->grads = MAQ_ARENA_NEW(arena, uint32_t, 2 * (size_t)o->n_positions);
    a->grads_first = MAQ_ARENA_NEW(arena, uint32_t, o->stages + 1u);
    a->hot = MAQ_ARENA_RAW(arena, struct maq_task_hot, n);
    a->pair = pairs ? MAQ_ARENA_RAW(arena, struct maq_task_pair, n) : NULL;
    return a->tasks && a->next_on_stage && a->stage_first && a->stage_last && a->grads && a->grads_first && a->hot &&
           (a->pair || !pairs);
}

static enum maq_status write_orders(struct maq_orders *o, const struct maq_schedule_rule *rule,
                                    struct maq_arena *scratch)
{
    o->steps = MAQ_ARENA_RAW(scratch, struct maq_order_step, o->capacity);
    o->first = MAQ_ARENA_NEW(scratch, uint32_t, o->stages + 1);
    if (!o->steps || !o->first)
        return MAQ_NO_MEMORY;
    if (rule->order_all)
        return rule->order_all(o, scratch);
    for (uint32_t s = 0; s < o->stages; s++) {
        o->first[s] = o->n;
        rule->order(o, s);
    }
    o->first[o->stages] = o->n;
    return MAQ_OK;
}

static enum maq_status build(struct maq_schedule *s, struct maq_orders *o, const struct maq_schedule_rule *rule,
                             struct maq_arena *arena, struct maq_arena *scratch)
{
    struct maq__schedule_arrays arrays = {0};
    if (!allocate(&arrays, o, rule->pairs, arena))
        return MAQ_NO_MEMORY;
    MAQ_TRY(write_orders(o, rule, scratch));
    MAQ_TRY(maq__schedule_inflight(s, o, arena, scratch));
    return maq__schedule_link(s, o, &arrays, scratch);
}

static enum maq_status failed(enum maq_status status, struct maq_diag *diag)
{
    if (status == MAQ_LIMIT)
        return maq_diag_fail(status, diag, MAQ_CODE_SCHEDULE_LIMIT, (struct maq_span){0},
                             "use a smaller microbatch_group_size_per_vp_stage or a larger micro_batch_size",
                             "a stage would hold more than 65535 microbatches at once");
    return maq_no_memory(diag, "a pipeline schedule");
}

/* The spec with what is left open filled in. */
static struct maq_schedule_spec settle(const struct maq_schedule_spec *spec)
{
    struct maq_schedule_spec full = *spec;
    full.kind = effective_kind(spec->kind, spec->chunks);
    full.chunks = maq_schedule_chunks(full.kind, spec->chunks);
    full.group = spec->group ? spec->group : spec->stages;
    if (full.kind == MAQ_SCHEDULE_INTERLEAVED_ZB)
        full.group = maq__interleaved_zb_group(spec->stages, spec->microbatches);
    if (maq_schedule_is_searched(full.kind))
        full.limit = full.kind == MAQ_SCHEDULE_ZB_1P   ? spec->stages
                     : full.kind == MAQ_SCHEDULE_ZB_2P ? 2 * spec->stages
                     : spec->limit > 0                 ? spec->limit
                                                       : spec->microbatches;
    return full;
}

static enum maq_status build_in(struct maq_schedule *out, const struct maq_schedule_spec *spec, struct maq_orders *o,
                                struct maq_arena *arena)
{
    const struct maq_schedule_rule *rule = maq__schedule_rule(spec->kind);
    struct maq_schedule s = {.kind = spec->kind,
                             .stages = spec->stages,
                             .chunks = spec->chunks,
                             .microbatches = spec->microbatches,
                             .group = spec->group,
                             .split_backward = rule->split,
                             .n_positions = o->n_positions};
    struct maq_arena_mark before = maq_arena_mark(arena);
    struct maq_arena scratch;
    maq_arena_init(&scratch, 0);
    enum maq_status status = build(&s, o, rule, arena, &scratch);
    maq_arena_fini(&scratch);
    if (status == MAQ_OK)
        *out = s;
    else
        maq_arena_reset(arena, before);
    return status;
}

static enum maq_status make(struct maq_schedule *out, const struct maq_schedule_spec *spec,
                            const struct maq_schedule_durations *durations, struct maq_arena *arena,
                            struct maq_diag *diag)
{
    char why[160];
    const char *refusal =
        maq_schedule_refuse(why, spec->kind, spec->stages, spec->chunks, spec->microbatches, spec->group);
    if (refusal)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SCHEDULE_REFUSED, (struct maq_span){0}, NULL, "%s", refusal);

    const struct maq_schedule_spec full = settle(spec);
    const struct maq_schedule_rule *rule = maq__schedule_rule(full.kind);
    MAQ_ASSERT(rule); /* or it had been refused */
    uint32_t n_positions = full.kind == MAQ_SCHEDULE_DUALPIPE ? full.stages : full.stages * full.chunks;
    uint64_t tasks = (uint64_t)n_positions * full.microbatches * (rule->split ? 3 : 2);
    if (tasks > MAQ_SCHEDULE_MAX_TASKS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SCHEDULE_LIMIT, (struct maq_span){0},
                             "use a larger micro_batch_size or fewer virtual stages",
                             "a pipeline of %u virtual stages and %u microbatches has %llu tasks; the limit is %u",
                             n_positions, full.microbatches, (unsigned long long)tasks, MAQ_SCHEDULE_MAX_TASKS);
    struct maq_orders o = {.kind = full.kind,
                           .stages = full.stages,
                           .chunks = full.chunks,
                           .microbatches = full.microbatches,
                           .group = full.group,
                           .limit = full.limit,
                           .durations = durations,
                           .n_positions = n_positions,
                           .capacity = (uint32_t)tasks};
    enum maq_status status = build_in(out, &full, &o, arena);
    return status == MAQ_OK ? MAQ_OK : failed(status, diag);
}

enum maq_status maq_schedule_make(struct maq_schedule *out, const struct maq_schedule_spec *spec,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    return make(out, spec, NULL, arena, diag);
}

enum maq_status maq_schedule_search(struct maq_schedule *out, const struct maq_schedule_spec *spec,
                                    const struct maq_schedule_durations *durations, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    MAQ_ASSERT(maq_schedule_is_searched(spec->kind));
    return make(out, spec, durations, arena, diag);
}

enum maq_status maq_schedule_build(struct maq_schedule *out, int kind, uint32_t stages, uint32_t chunks,
                                   uint32_t microbatches, uint32_t group, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    return maq_schedule_make(
        out,
        &(const struct maq_schedule_spec){
            .kind = kind, .stages = stages, .chunks = chunks, .microbatches = microbatches, .group = group},
        arena, diag);
}
