/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - what two reports of one command say, number by number.
 *
 *   settings   leaves of what was asked for (job, deployment, options) that are not the same
 *   figures    what the report answers: a step's time, throughput, a latency; some with the interval that the report gives them
 *   tables     a figure cut into parts that add up to it, or rows that are only listed
 *
 * A table that adds up does so exactly: what its parts leave of the whole, in a report in which they do not meet, is a row of its own. So
 * the changes of the rows are the change of the whole.
 *
 * How far two predictions can be told apart. Each has an interval [l, h] around its value v, and errors multiply: with errors that know
 * nothing of each other, the ratio r = after / before lies between
 *
 *   exp(ln r - sqrt(ln(after / after_l)^2 + ln(before_h / before)^2))
 *   exp(ln r + sqrt(ln(after_h / after)^2 + ln(before / before_l)^2))
 *
 * with the confidence of the intervals (the quadrature of the sides that face each other). Two predictions that rest on the same kernels
 * and links err together, and what they have in common cancels out of the ratio: the interval is too wide rather than too narrow.
 */
#ifndef MAQ_REPORT_DIFF_DIFF_H
#define MAQ_REPORT_DIFF_DIFF_H

#include "base/arena.h"
#include "maquette/report_diff.h"
#include "spec/doc.h"

enum maq_diff_side { MAQ_DIFF_BEFORE, MAQ_DIFF_AFTER, MAQ_DIFF_SIDES };

enum maq_diff_unit {
    MAQ_DIFF_SECONDS,
    MAQ_DIFF_BYTES,
    MAQ_DIFF_SHARE, /* of 1; shown in percent */
    MAQ_DIFF_COUNT, /* whole or mean numbers of things */
    MAQ_DIFF_PER_S, /* things a second */
    MAQ_DIFF_USD,
    MAQ_DIFF_UNIT_COUNT
};

/* A number of each report; NULL of `has`: that report does not have it. */
struct maq_diff_pair {
    double of[MAQ_DIFF_SIDES];
    bool has[MAQ_DIFF_SIDES];
};

/* A leaf of what was asked for. NULL: that report does not have it. */
struct maq_diff_setting {
    const char *section, *key; /* "plan", "tensor_model_parallel_size"; "maquette", "commit" */
    const struct maq_node *of[MAQ_DIFF_SIDES];
    bool aside; /* follows from the name of what it is of, which differs too: the FLOP/s of another GPU */
};

struct maq_diff_figure {
    const char *key, *name; /* "step_time_s"; "step" */
    enum maq_diff_unit unit;
    int better;                            /* 1: more is better, -1: less is, 0: neither */
    struct maq_diff_pair value, low, high; /* interval, where both reports have one */
    double confidence;                     /* of the interval; 0: there is none */
};

struct maq_diff_row {
    const char *key, *name; /* "exposed_tp_comm_s", "exposed TP comm" */
    struct maq_diff_pair value;
};

struct maq_diff_table {
    const char *key, *title, *note; /* note: NULL where there is none */
    enum maq_diff_unit unit;
    int better;
    bool adds_up; /* the rows to `whole` */
    struct maq_diff_row whole;
    struct maq_diff_row *rows;
    uint32_t n, size;
};

#define MAQ_DIFF_TABLES 6
#define MAQ_DIFF_FIGURES 24

struct maq_diff {
    struct maq_arena arena;
    struct maq_doc doc[MAQ_DIFF_SIDES];
    const char *file[MAQ_DIFF_SIDES];
    const char *schema;  /* "maquette.train/1" */
    const char *command; /* "train" */
    const char *of;     /* what the intervals are of: "what predictions can be off by", "what so many draws can tell" */
    bool is_prediction; /* and that is the error of predictions, and not of sampling */
    struct maq_diff_setting *settings;
    uint32_t n_settings, settings_size;
    struct maq_diff_figure figures[MAQ_DIFF_FIGURES]; /* the first is what the command is asked for */
    uint32_t n_figures;
    struct maq_diff_table tables[MAQ_DIFF_TABLES];
    uint32_t n_tables;
    const char *verdict[MAQ_DIFF_SIDES]; /* "does not fit in memory"; NULL: nothing is wrong */
};

/* ---- reading: read.c, settings.c, rows.c ------------------------------------------------------------------------------- */

struct maq_diff_reader {
    struct maq_diff *diff;
    struct maq_diag *diag;
    enum maq_status status; /* the first failure */
};

/* The node at "latency.ttft_s.mean", "plans.0.breakdown"; NULL where there is none, or null. */
struct maq_node *maq_diff_node(const struct maq_diff *diff, enum maq_diff_side side, const char *path);
/* A number at `path` of each report. One that is there and is none is a fault. */
struct maq_diff_pair maq_diff_number(struct maq_diff_reader *r, const char *path);
/* The same in a map of each; NULL: that one has none. */
struct maq_diff_pair maq_diff_member(struct maq_diff_reader *r, struct maq_node *const map[MAQ_DIFF_SIDES],
                                     const char *path);

/* Adds the leaves below `path` that differ, by the section that they are of: their first word, or `section` where it is not NULL. */
void maq_diff_settings(struct maq_diff_reader *r, const char *path, const char *section);
/* The same of two nodes, NULL: that report has none. What the program answered, whose names end in a unit, is no setting, nor is what `less`
 * names (ended by NULL). */
void maq_diff_settings_of(struct maq_diff_reader *r, struct maq_node *const of[MAQ_DIFF_SIDES], const char *section,
                          const char *const *less);
/* A leaf of each. */
void maq_diff_setting(struct maq_diff_reader *r, const char *section, const char *key,
                      struct maq_node *const of[MAQ_DIFF_SIDES]);

/* A figure, where a report at least has it; NULL: none has. What a report must have and does not is a fault. */
struct maq_diff_figure *maq_diff_figure(struct maq_diff_reader *r, const char *key, const char *name,
                                        enum maq_diff_unit unit, int better, struct maq_diff_pair value);
void maq_diff_interval(struct maq_diff_figure *figure, double confidence, struct maq_diff_pair low,
                       struct maq_diff_pair high);
void maq_diff_require(struct maq_diff_reader *r, const char *path);

struct maq_diff_table *maq_diff_table(struct maq_diff_reader *r, const char *key, const char *title,
                                      enum maq_diff_unit unit, int better);
void maq_diff_row(struct maq_diff_reader *r, struct maq_diff_table *table, const char *key, const char *name,
                  struct maq_diff_pair value);
/* A name of a document in words, "exposed_tp_comm" as "exposed TP comm"; NULL when out of memory. */
const char *maq_diff_words(struct maq_arena *arena, struct maq_str key);
/* A row for each member of two maps whose name ends with `suffix`, which is taken off; a row for each item of two lists by its name. */
void maq_diff_members(struct maq_diff_reader *r, struct maq_diff_table *table,
                      struct maq_node *const map[MAQ_DIFF_SIDES], const char *suffix);
void maq_diff_items(struct maq_diff_reader *r, struct maq_diff_table *table,
                    struct maq_node *const list[MAQ_DIFF_SIDES], const char *name, const char *value);
/* `says_no` as the verdict of each report that has false at `path`. */
void maq_diff_verdict(struct maq_diff *diff, const char *path, const char *says_no);
/* The nodes at `path` of both reports. */
void maq_diff_nodes(struct maq_node *out[MAQ_DIFF_SIDES], const struct maq_diff *diff, const char *path);
/* Closes a table whose parts add up to `whole`: adds what they leave of it, under that name, and puts the largest change first. */
void maq_diff_add_up(struct maq_diff_reader *r, struct maq_diff_table *table, const char *key, const char *name,
                     struct maq_diff_pair whole, const char *rest);
/* The sum of the rows, for a report that does not say it. */
struct maq_diff_pair maq_diff_sum(const struct maq_diff_table *table);

/* ---- what is compared: train.c, mixed.c, serve.c, serve_plan.c, risk.c, replay.c ------------------------------------------------------- */

struct maq_diff_kind {
    const char *schema, *command; /* "maquette.train/1", "maquette train" */
    void (*read)(struct maq_diff_reader *r);
};
extern const struct maq_diff_kind maq_diff_kinds[]; /* ended by one without a schema */

void maq_diff_read_train(struct maq_diff_reader *r);
void maq_diff_read_plan(struct maq_diff_reader *r);
void maq_diff_read_mixed(struct maq_diff_reader *r);
void maq_diff_read_serve(struct maq_diff_reader *r);
void maq_diff_read_serve_plan(struct maq_diff_reader *r);
void maq_diff_read_risk_step(struct maq_diff_reader *r);
void maq_diff_read_risk_run(struct maq_diff_reader *r);
void maq_diff_read_replay(struct maq_diff_reader *r);

/* ---- what it means: change.c ------------------------------------------------------------------------------------ */

/* after - before; what is missing in one of two is 0. */
double maq_diff_change(struct maq_diff_pair value);
/* after / before - 1 into *out; false where there is no such number. */
bool maq_diff_relative(double *out, struct maq_diff_pair value);
/* The interval of after / before - 1; false where the figure has none. */
bool maq_diff_change_interval(double *low, double *high, const struct maq_diff_figure *figure);
/* Neither a setting nor a number differs. */
bool maq_diff_is_same(const struct maq_diff *diff);

#endif
