/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compose.c - how long composing pipelines takes, and what it finds.
 *
 * Sailor's cases (OPT-350M and GPT-Neo-2.7B on A100-40 and V100-16) need its profiles in $MAQ_SHARED/data/planners/sailor and are left
 * out without. The synthetic case has 4 islands of 128 devices, a factor of 1, 0.6, 0.4 and 0.25 in speed apart, and 96 equal layers
 * between an embedding and a head; costs are closed forms, written below. Times are CPU seconds of one thread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "maquette/planner_measured.h"
#include "planner/compose/search.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Sailor's cases ---- */

static void print_counts(const struct maq_compose_counts *c)
{
    printf("    cases %llu (bounded %llu), programs %llu, knapsacks %llu, parts of plans %llu (bounded %llu, dominated "
           "%llu), plans %llu\n",
           (unsigned long long)c->cases, (unsigned long long)c->cases_bounded, (unsigned long long)c->programs,
           (unsigned long long)c->knapsacks, (unsigned long long)c->considered, (unsigned long long)c->bounded,
           (unsigned long long)c->dominated, (unsigned long long)c->evaluated);
}

static void print_plan(const struct maq_compose_plan *plan, const struct maq_compose_pool *pools)
{
    for (uint32_t k = 0; k < plan->n_pipelines; k++) {
        const struct maq_compose_pipeline *p = &plan->pipelines[k];
        printf("    mbs %u, %u pipelines of %u micro batches:", plan->micro_batch, p->count, p->microbatches);
        for (uint32_t i = 0; i < p->n_stages; i++) {
            const struct maq_compose_stage *s = &p->stages[i];
            printf(" %uL", s->layers);
            for (uint32_t j = 0; j < s->n_parts; j++)
                printf(" %ux%s tp%u b%u", s->parts[j].replicas, pools[s->parts[j].pool].device, s->parts[j].tp,
                       s->parts[j].micro_batch);
            if (i + 1 < p->n_stages)
                printf(" |");
        }
        printf("\n");
    }
}

static int sailor_case(const char *folder, const char *model, uint32_t gbs, uint32_t a100, uint32_t v100,
                       enum maq_compose_class of)
{
    const struct maq_compose_pool pools[] = {{.device = "A100-40", .count = a100},
                                             {.device = "V100-16", .count = v100}};
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *r;
    problem.folder = folder;
    problem.model = model;
    problem.pools = pools;
    problem.n_pools = v100 > 0 ? 2 : 1;
    problem.global_batch = gbs;
    problem.of = of;
    problem.threads = 1;
    struct maq_diag *diag = maq_diag_new();
    double start = cpu_s();
    if (maq_compose(&r, &problem, diag) != MAQ_OK) {
        char *text = maq_diag_format(diag, 0, false);
        fprintf(stderr, "%s", text ? text : "out of memory\n");
        free(text);
        maq_diag_free(diag);
        return 1;
    }
    double took = cpu_s() - start;
    printf("%-12s gbs %4u, %3u A100-40 + %3u V100-16, %-9s: ", model, gbs, a100, v100, maq_compose_class_name(of));
    if (r->n_plans > 0) {
        printf("%8.4f s, bound %8.4f s, gap %5.2f %%%s, %.2f s CPU\n", r->plans[0].step_s, r->bound_s, 100 * r->gap,
               r->exact ? " (exact)" : "", took);
        print_plan(&r->plans[0], pools);
    } else {
        printf("nothing fits, %.2f s CPU\n", took);
    }
    print_counts(&r->counts);
    maq_compose_result_free(r);
    maq_diag_free(diag);
    return 0;
}

/* ---- the synthetic case ---- */

#define LAYERS 96u
#define ATOMS (LAYERS + 2)
#define ISLANDS 4u
#define DEVICES 128u
#define BATCH 1024u

struct synthetic_case {
    uint32_t micro_batch, replicas;
};

static const double speeds[ISLANDS] = {1, 0.6, 0.4, 0.25};
static const double memories[ISLANDS] = {80e9, 40e9, 32e9, 24e9};

static double ring_s(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n, double bytes,
                     uint32_t ranks)
{
    double bps = 25e9;
    for (uint32_t i = 0; i < n; i++)
        bps = fmin(bps, 10e9 * (1 + speeds[t->options[parts[i].option].kind]));
    return ranks > 1 ? 2.0 * (ranks - 1) / ranks * bytes / bps + 10e-6 * ranks : 0;
}

static bool synthetic_option(struct maq_stage_option *o, uint32_t island, uint32_t tp, uint32_t micro_batch,
                             struct maq_arena *arena)
{
    double *time = MAQ_ARENA_NEW(arena, double, ATOMS + 1), *fixed = MAQ_ARENA_NEW(arena, double, ATOMS + 1);
    double *flight = MAQ_ARENA_NEW(arena, double, ATOMS + 1), *sync = MAQ_ARENA_NEW(arena, double, ATOMS + 1);
    double *update = MAQ_ARENA_NEW(arena, double, ATOMS + 1);
    if (!time || !fixed || !flight || !sync || !update)
        return false;
    for (uint32_t a = 0; a < ATOMS; a++) {
        double params = a == 0 || a == ATOMS - 1 ? 0.26e9 : 0.2e9, work = a == 0 ? 0.02 : a == ATOMS - 1 ? 1.3 : 1;
        double efficiency = 1 / (1 + 0.05 * (tp - 1)) * micro_batch / (micro_batch + 0.25);
        time[a + 1] = time[a] + 12e-3 * work * micro_batch / (speeds[island] * tp * efficiency);
        fixed[a + 1] = fixed[a] + 18 * params / tp;
        flight[a + 1] = flight[a] + 0.28e9 * (a == 0 ? 0.1 : 1) * micro_batch / tp;
        sync[a + 1] = sync[a] + 2 * params / tp;
    }
    *o = (struct maq_stage_option){.id = island << 8 | tp,
                                   .kind = island,
                                   .devices = tp,
                                   .samples = micro_batch,
                                   .context_bytes = 1e9,
                                   .time_s = time,
                                   .fixed_bytes = fixed,
                                   .flight_bytes = flight,
                                   .sync_bytes = sync,
                                   .update_s = update};
    return true;
}

static bool synthetic_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct synthetic_case *c = (const struct synthetic_case *)ctx + i;
    struct maq_stage_option *options = MAQ_ARENA_NEW(arena, struct maq_stage_option, ISLANDS * 4);
    uint32_t n = 0, samples = c->micro_batch * c->replicas;
    double *hops = MAQ_ARENA_NEW(arena, double, (size_t)ISLANDS * 4 * ISLANDS * 4 * ATOMS);
    if (!options || !hops)
        return false;
    for (uint32_t g = 0; g < ISLANDS; g++)
        for (uint32_t tp = 1; tp <= 8; tp *= 2)
            if (tp * c->replicas <= DEVICES) {
                if (!synthetic_option(&options[n], g, tp, c->micro_batch, arena))
                    return false;
                options[n].hop_class = n;
                n++;
            }
    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++)
            for (uint32_t a = 0; a < ATOMS; a++)
                hops[((size_t)from * n + to) * ATOMS + a] =
                    20e-6 + 32e6 * c->micro_batch / (options[from].kind == options[to].kind ? 20e9 : 5e9);
    *out = (struct maq_stage_table){.n_atoms = ATOMS,
                                    .n_kinds = ISLANDS,
                                    .n_options = n,
                                    .waves = (BATCH + samples - 1) / samples,
                                    .wave_samples = samples,
                                    .max_parts = 1,
                                    .max_in_flight = (BATCH + samples - 1) / samples,
                                    .options = options,
                                    .hops = {1, 1, 1, 0},
                                    .n_hop_classes = n,
                                    .forward_s = hops,
                                    .backward_s = hops,
                                    .sync_s = ring_s};
    for (uint32_t g = 0; g < ISLANDS; g++) {
        out->available[g] = DEVICES;
        out->capacity_bytes[g] = memories[g];
    }
    return true;
}

static int synthetic(void)
{
    static struct synthetic_case cases[3 * ISLANDS * DEVICES];
    struct maq_stage_source source = {0, synthetic_table, cases};
    struct maq_compose_limits options = MAQ_COMPOSE_LIMITS_INIT;
    struct maq_compose_tables_result r;
    struct maq_arena arena;
    for (uint32_t b = 1; b <= 4; b *= 2)
        for (uint32_t n = 1, waves = 0; n <= DEVICES; n++) {
            if ((BATCH + n * b - 1) / (n * b) != waves)
                cases[source.n++] = (struct synthetic_case){b, n};
            waves = (BATCH + n * b - 1) / (n * b);
        }
    maq_arena_init(&arena, 0);
    options.threads = 1;
    options.labels = 0; /* bounds alone: the exact search of one case takes minutes */
    options.beam = 24;
    options.grain = 0.01;
    options.aim = 0.05;
    double start = cpu_s();
    if (maq_compose_search(&r, &source, &options, &arena) != MAQ_OK)
        return 1;
    printf("synthetic, 4 islands x %u devices, %u layers, uniform: ", DEVICES, LAYERS);
    if (r.n > 0) {
        const struct maq_composition *c = &r.found[0].composition;
        printf("%8.4f s, bound %8.4f s, gap %5.2f %%%s, %u stages, mbs %u, %u replicas, %.2f s CPU\n", c->step_s,
               r.bound_s, 100 * (c->step_s / r.bound_s - 1), r.exact ? " (exact)" : "", c->n_stages,
               cases[r.found[0].table].micro_batch, cases[r.found[0].table].replicas, cpu_s() - start);
    } else {
        printf("nothing found, %.2f s CPU\n", cpu_s() - start);
    }
    printf("    cases %llu (bounded %llu), programs %llu, parts of plans %llu (bounded %llu, dominated %llu), plans "
           "%llu\n",
           (unsigned long long)r.counts.tables, (unsigned long long)r.counts.tables_bounded,
           (unsigned long long)r.counts.programs, (unsigned long long)r.counts.considered,
           (unsigned long long)r.counts.bounded, (unsigned long long)r.counts.dominated,
           (unsigned long long)r.counts.finished);
    maq_arena_fini(&arena);
    return 0;
}

/* Three types: the most that the profiles have of one zone for OPT-350M beside the two of Sailor's cases. */
static int three_types(const char *folder)
{
    const struct maq_compose_pool pools[] = {
        {.device = "A100-40", .count = 32}, {.device = "V100-16", .count = 32}, {.device = "GH-96", .count = 32}};
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *r;
    problem.folder = folder;
    problem.model = "OPT-350";
    problem.pools = pools;
    problem.n_pools = 3;
    problem.global_batch = 1024;
    problem.threads = 1;
    double start = cpu_s();
    if (maq_compose(&r, &problem, NULL) != MAQ_OK)
        return 1;
    double took = cpu_s() - start;
    if (r->n_plans > 0) {
        printf("OPT-350 gbs 1024, 32 A100-40 + 32 V100-16 + 32 GH-96, uniform: %.4f s, bound %.4f s%s, %.2f s CPU\n",
               r->plans[0].step_s, r->bound_s, r->exact ? " (exact)" : "", took);
        print_plan(&r->plans[0], pools);
    }
    print_counts(&r->counts);
    maq_compose_result_free(r);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *model;
        uint32_t gbs, a100, v100;
    } cases[] = {{"OPT-350", 1024, 32, 0},      {"OPT-350", 1024, 16, 16},  {"OPT-350", 1024, 32, 32},
                 {"OPT-350", 1024, 32, 96},     {"OPT-350", 1024, 80, 240}, {"GPT-Neo-2.7", 2048, 32, 96},
                 {"GPT-Neo-2.7", 2048, 80, 240}};
    const char *shared = getenv("MAQ_SHARED");
    int last = argc > 1 ? atoi(argv[1]) : MAQ_COMPOSE_UNIFORM, bad = 0; /* the largest class to search */
    char folder[4096];
    struct rusage usage;
    snprintf(folder, sizeof folder, "%s/data/planners/sailor", shared ? shared : "");
    for (size_t i = 0; shared && i < sizeof cases / sizeof *cases; i++)
        for (int of = 0; of <= last && of < MAQ_COMPOSE_CLASS_COUNT; of++)
            bad |= sailor_case(folder, cases[i].model, cases[i].gbs, cases[i].a100, cases[i].v100,
                               (enum maq_compose_class)of);
    if (shared)
        bad |= three_types(folder);
    else
        printf("compose: Sailor's cases need its profiles in $MAQ_SHARED/data/planners/sailor\n");
    fflush(stdout);
    bad |= synthetic();
    getrusage(RUSAGE_SELF, &usage);
    printf("    most memory: %.0f MB\n", (double)usage.ru_maxrss / 1024);
    return bad;
}
