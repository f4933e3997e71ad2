/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup.c - MLPerf v3.1 logs of GPT-3: how long programs take to start, and how much whole runs vary.
 *
 * Runs of one system consist of the same blocks of steps between evaluations, in each run one after the other. A block's time is what is
 * common to all runs at that place (the first blocks are cold), what is common to the run, and a rest that is independent. From the
 * rest alone the times of whole runs would vary by
 *
 *   CV(run) = sd(rest) / (mean block sqrt(blocks))
 *
 * with the variance of the rest over (runs - 1) (blocks - 1) degrees of freedom (two-way analysis of variance without repetition).
 * That is what is predicted; what is observed is the CV of the runs that have equally many blocks. Of three runs a CV is known within a
 * factor of three.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "maquette/failures.h"
#include "risk/csv_table.h"
#include "validate/risk/table.h"

#define MOST_SYSTEMS 64u
#define MOST_RUNS 16u
#define MOST_BLOCKS 256u
#define LEAST_BLOCKS 10u
#define SOURCE "MLPerf Training v3.1, GPT-3 (mlcommons/training_results_v3.1; unverified derived metric)"

/* Numbers of one system's runs. */
struct system {
    const char *name; /* system */
    uint32_t n_runs, blocks[MOST_RUNS];
    double init_s[MOST_RUNS];               /* of mlperf_runs.csv */
    double block_s[MOST_RUNS][MOST_BLOCKS]; /* of mlperf_blocks.csv.gz */
};

struct systems {
    struct maq_arena *arena;
    struct system *at; /* [MOST_SYSTEMS] */
    uint32_t n;
};

static struct system *find(struct systems *all, struct maq_str name)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (maq_str_is(name, all->at[i].name))
            return &all->at[i];
    if (all->n == MOST_SYSTEMS)
        return NULL;
    struct system *s = &all->at[all->n++];
    s->name = maq_arena_strdup(all->arena, name);
    return s->name ? s : NULL;
}

/* Reads the GPT-3 rows of a table: value into a place by run and, where there is a column for it, block. */
static enum maq_status read_table(struct systems *all, struct maq_csv_table *rows, const char *value_name, bool blocks)
{
    uint32_t bench, system, run, value, block = MAQ_NO_COLUMN;
    bool more;
    MAQ_TRY(maq_rows_need(&bench, rows, "bench"));
    MAQ_TRY(maq_rows_need(&system, rows, "system"));
    MAQ_TRY(maq_rows_need(&run, rows, "run"));
    MAQ_TRY(maq_rows_need(&value, rows, value_name));
    if (blocks)
        MAQ_TRY(maq_rows_need(&block, rows, "block_idx"));
    for (;;) {
        uint32_t r, b = 0;
        double x;
        MAQ_TRY(maq_rows_next(&more, rows));
        if (!more)
            return MAQ_OK;
        if (!maq_str_is(rows->field[bench], "gpt3"))
            continue;
        MAQ_TRY(maq_rows_whole(&r, rows, run, 1000000));
        MAQ_TRY(maq_rows_real(&x, rows, value));
        if (blocks)
            MAQ_TRY(maq_rows_whole(&b, rows, block, 1000000));
        struct system *s = find(all, rows->field[system]);
        if (!s || r >= MOST_RUNS || b >= MOST_BLOCKS)
            continue;
        s->n_runs = s->n_runs > r + 1 ? s->n_runs : r + 1;
        if (blocks) {
            s->block_s[r][b] = x;
            s->blocks[r] = s->blocks[r] > b + 1 ? s->blocks[r] : b + 1;
        } else {
            s->init_s[r] = x;
        }
    }
}

static enum maq_status read_file(struct systems *all, const char *path, const char *value, bool blocks,
                                 struct maq_diag *diag)
{
    struct maq_csv_table *rows = maq__calloc(sizeof *rows);
    if (!rows)
        return maq_no_memory(diag, NULL);
    enum maq_status status = maq_rows_open(rows, path, diag);
    if (status == MAQ_OK)
        status = read_table(all, rows, value, blocks);
    maq_rows_close(rows);
    free(rows);
    return status;
}

/* --- start-up --- */

/* Devices of "eos-dfw_n1024_ngc23.09_nemo"; 0 for other systems. */
static double eos_devices(const char *name)
{
    const char *n = strstr(name, "_n");
    int64_t nodes = 0;
    if (strncmp(name, "eos", 3) != 0 || !n)
        return 0;
    for (n += 2; *n >= '0' && *n <= '9'; n++)
        nodes = 10 * nodes + *n - '0';
    return 8.0 * (double)nodes;
}

static enum maq_status add_startups(struct maq_risk_table *t, const struct systems *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        struct system *s = &all->at[i];
        double devices = eos_devices(s->name);
        if (!(devices > 0))
            continue;
        double seen = maq_quantile(s->init_s, s->n_runs, 0.5);
        maq_risk_compare(t,
                         &(const struct maq_risk_published){
                             "start", maq_arena_printf(t->arena, "start-up of GPT-3 on %.0f H100 (fitted)", devices),
                             "s", SOURCE, seen, 0.95 * seen, 1.05 * seen},
                         maq_startup_s(devices));
    }
    return MAQ_OK;
}

/* --- O10: runs --- */

struct variation {
    uint32_t runs, blocks;
    double predicted, observed; /* CV */
};

/* The number of blocks that most runs have. */
static uint32_t usual_blocks(const struct system *s)
{
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < s->n_runs; k++)
            same += s->blocks[k] == s->blocks[i];
        if (same > most) {
            most = same;
            best = s->blocks[i];
        }
    }
    return most > 1 ? best : 0;
}

static struct variation analyse(const struct system *s)
{
    struct variation v = {.blocks = usual_blocks(s)};
    uint32_t use[MOST_RUNS];
    double run_mean[MOST_RUNS] = {0}, mean = 0, rest = 0, between = 0;
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (v.blocks > 0 && s->blocks[i] == v.blocks)
            use[v.runs++] = i;
    if (v.blocks < LEAST_BLOCKS || v.runs < 2)
        return (struct variation){0};
    for (uint32_t i = 0; i < v.runs; i++) {
        run_mean[i] = maq_mean(s->block_s[use[i]], v.blocks);
        mean += run_mean[i] / v.runs;
    }
    for (uint32_t b = 0; b < v.blocks; b++) {
        double here = 0;
        for (uint32_t i = 0; i < v.runs; i++)
            here += s->block_s[use[i]][b] / v.runs;
        for (uint32_t i = 0; i < v.runs; i++) {
            double e = s->block_s[use[i]][b] - here - run_mean[i] + mean;
            rest += e * e;
        }
    }
    for (uint32_t i = 0; i < v.runs; i++)
        between += (run_mean[i] - mean) * (run_mean[i] - mean);
    v.predicted = sqrt(rest / ((v.runs - 1.0) * (v.blocks - 1.0)) / v.blocks) / mean;
    v.observed = sqrt(between / (v.runs - 1.0)) / mean;
    return v;
}

static void add_variations(struct maq_risk_table *t, const struct systems *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        struct variation v = analyse(&all->at[i]);
        if (v.runs == 0)
            continue;
        maq_risk_add(t,
                     (struct maq_validate_risk_row){.id = "O10",
                                                    .what = maq_arena_printf(t->arena, "CV of %u runs of %u blocks, %s",
                                                                             v.runs, v.blocks, all->at[i].name),
                                                    .unit = "%",
                                                    .source = SOURCE,
                                                    .observed = 100 * v.observed,
                                                    .low = 100 * v.observed / 3,
                                                    .high = 100 * v.observed * 3,
                                                    .predicted = 100 * v.predicted});
    }
}

static enum maq_status add_all(struct maq_risk_table *t, struct systems *starts, struct systems *runs)
{
    static const char *const files[] = {"startup/mlperf_runs.csv", "startup/mlperf_blocks.csv.gz"};
    const char *path[2] = {maq_risk_file(t, files[0]), maq_risk_file(t, files[1])};
    for (int i = 0; i < 2; i++)
        if (!path[i])
            maq_risk_add(t, (struct maq_validate_risk_row){
                                .id = i == 0 ? "start" : "O10",
                                .what = i == 0 ? "start-up of GPT-3 by size" : "CV of runs",
                                .unit = "",
                                .source = SOURCE,
                                .observed = (double)NAN,
                                .why = maq_arena_printf(t->arena, "there is no %s in %s", files[i], t->folder)});
    if (path[0]) {
        MAQ_TRY(read_file(starts, path[0], "init_total_s", false, t->diag));
        MAQ_TRY(add_startups(t, starts));
    }
    if (path[1]) {
        MAQ_TRY(read_file(runs, path[1], "block_seconds", true, t->diag));
        add_variations(t, runs);
    }
    return MAQ_OK;
}

enum maq_status maq_risk_rows_startup(struct maq_risk_table *t)
{
    struct maq_arena scratch;
    maq_arena_init(&scratch, 0);
    struct systems starts = {.arena = t->arena}, runs = {.arena = t->arena};
    starts.at = MAQ_ARENA_NEW(&scratch, struct system, MOST_SYSTEMS);
    runs.at = MAQ_ARENA_NEW(&scratch, struct system, MOST_SYSTEMS);
    enum maq_status status = starts.at && runs.at ? add_all(t, &starts, &runs) : maq_no_memory(t->diag, NULL);
    maq_arena_fini(&scratch);
    return status;
}
