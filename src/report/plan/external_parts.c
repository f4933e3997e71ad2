/* SPDX-License-Identifier: Apache-2.0 */
/* external_parts.c - the best plan that was composed of what a parallelizer answers: its stages, what bounds it, what was asked. */
#include "report/plan/external_parts.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/words.h"

/* By the numbers of the plan: 0 is the embedding, the last one the output. */
static const char *layers(char buf[32], uint32_t first, uint32_t n)
{
    if (n == 1)
        maq__snprintf(buf, 32, "%u", first);
    else
        maq__snprintf(buf, 32, "%u-%u", first, first + n - 1);
    return buf;
}

static void put_degrees(struct maq_table *table, const struct maq_slices_stage *s)
{
    char cp[16] = "", ep[16] = "";
    if (s->cp > 1)
        maq__snprintf(cp, sizeof cp, " cp%u", s->cp);
    if (s->ep > 1)
        maq__snprintf(ep, sizeof ep, " ep%u", s->ep);
    if (s->tp > 0)
        maq_table_cell(table, "%u x %u%s%s", s->tp, s->replicas, cp, ep);
    else
        maq_table_cell(table, "?");
}

void maq_external_stages_table(struct maq_table *table, const struct maq_slices_result *r)
{
    static const struct maq_table_column columns[] = {
        {"stage", true, false},   {"on", false, true},         {"layers", false, false},   {"devices", true, false},
        {"tp x dp", true, false}, {"recompute", false, false}, {"sharding", false, false}, {"wave", true, false},
        {"hops", true, false},    {"memory", true, false}};
    const struct maq_slices_plan *p = &r->plans[0];
    char text[32], time[32], hop[32], bytes[32], has[32];
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const struct maq_slices_stage *s = &p->stages[i];
        maq_table_row(table, i == p->bottleneck ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        maq_table_cell(table, "%u", i);
        maq_table_cell(table, "%s", maq_text_clean(&table->arena, r->islands[s->island].device));
        maq_table_cell(table, "%s", layers(text, s->first_layer, s->layers));
        maq_table_cell(table, "%u", s->devices);
        put_degrees(table, s);
        maq_table_cell(table, "%s",
                       s->recompute < 0                     ? "?"
                       : s->recompute == MAQ_RECOMPUTE_NONE ? "-"
                                                            : maq_words_recompute(s->recompute));
        maq_table_cell(table, "%s", s->sharding < 0 ? "?" : maq_words_sharding_cell(s->sharding));
        maq_table_cell(table, "%s", maq_format_time(time, s->compute_s));
        maq_table_cell(table, "%s", maq_format_time(hop, s->hop_s));
        maq_table_cell(table, "%s of %s", maq_format_bytes(bytes, s->memory_bytes),
                       maq_format_bytes(has, s->capacity_bytes));
    }
}

void maq_external_step_lines(const struct maq_lines *to, const struct maq_slices_result *r)
{
    const struct maq_slices_plan *p = &r->plans[0];
    const struct maq_slices_stage *slow = &p->stages[p->bottleneck];
    char step[32], pace[32], fill[32], sync[32], line[512];
    maq__snprintf(
        line, sizeof line,
        "%s: %u wave%s of %u sample%s, %s each at the pace of stage %u (%s); the pipeline fills in %s, gradients "
        "and optimizer take %s",
        maq_words_seconds(step, p->step_s), p->waves, p->waves == 1 ? "" : "s", p->wave_samples,
        p->wave_samples == 1 ? "" : "s", maq_format_time(pace, p->bottleneck_s), p->bottleneck,
        r->islands[slow->island].device, maq_format_time(fill, p->fill_s), maq_format_time(sync, p->sync_s));
    to->put(to->user, "step", line);
    if (r->exact)
        maq__snprintf(line, sizeof line, "no other pipeline of the parallelizer's plans is faster (gap 0 %%)");
    else
        maq__snprintf(line, sizeof line,
                      "no pipeline of the parallelizer's plans is faster than %s, so this one is at most %.1f %% off",
                      maq_words_seconds(step, r->bound_s), 100 * r->gap);
    to->put(to->user, "proven", line);
}

void maq_external_island_lines(const struct maq_lines *to, const struct maq_slices_result *r)
{
    char line[512];
    for (uint32_t g = 0; g < r->n_islands; g++) {
        const struct maq_slices_island *i = &r->islands[g];
        maq__snprintf(line, sizeof line, "%u %s: %u used", i->nodes * i->devices_per_node, i->device, i->used);
        to->put(to->user, g == 0 ? "islands" : "", line);
    }
}

void maq_external_call_lines(const struct maq_lines *to, const struct maq_slices_result *r)
{
    const struct maq_slices_calls *c = &r->calls;
    char made[32], all[32], redundancy[32], infeasibility[32], imbalance[32], reuse[32], line[512];
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    maq__snprintf(line, sizeof line, "%.200s: %u atoms, %u slices, %u of them different",
                  maq_text_clean(&arena, r->parallelizer), r->n_atoms, r->n_slices, r->n_distinct);
    to->put(to->user, "parallelizer", line);
    maq_arena_fini(&arena);
    maq__snprintf(line, sizeof line,
                  "%s calls of %s; saved by redundancy %s, infeasibility %s, imbalance %s, reuse at other positions %s",
                  maq_words_integer(made, (int64_t)c->made), maq_words_integer(all, (int64_t)c->all),
                  maq_words_integer(redundancy, (int64_t)c->redundancy),
                  maq_words_integer(infeasibility, (int64_t)c->infeasibility),
                  maq_words_integer(imbalance, (int64_t)c->imbalance), maq_words_integer(reuse, (int64_t)c->reuse));
    to->put(to->user, "asked", line);
}

void maq_external_pieces_table(struct maq_table *table, const struct maq_slices_result *r)
{
    static const struct maq_table_column columns[] = {{"layers", false, false},
                                                      {"on", false, true},
                                                      {"stages", true, false},
                                                      {"in the parallelizer's words", false, true}};
    const struct maq_slices_plan *p = &r->plans[0];
    char text[32];
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 0; i < p->n_pieces; i++) {
        const struct maq_slices_piece *piece = &p->pieces[i];
        maq_table_row(table, MAQ_INK_PLAIN);
        maq_table_cell(table, "%s", layers(text, piece->first_layer, piece->layers));
        maq_table_cell(table, "%s", maq_text_clean(&table->arena, r->islands[piece->island].device));
        maq_table_cell(table, "%u", piece->n_stages);
        maq_table_cell(table, "%s", piece->text[0] ? maq_text_clean(&table->arena, piece->text) : "-");
    }
}
