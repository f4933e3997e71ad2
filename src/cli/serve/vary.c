/* SPDX-License-Identifier: Apache-2.0 */
/* vary.c - reads the lists, runs each combination, and gathers what other processes found. */
#include "cli/serve/vary.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"
#include "maquette/range.h"
#include "maquette/report_serve.h"

#define AXES_MOST 12u
#define VALUES_MOST 256u
#define VARIANTS_MOST 100000u

struct axis {
    size_t option;
    const char *values[VALUES_MOST];
    uint32_t n;
};

struct sweep {
    struct axis axes[AXES_MOST];
    const char *names[AXES_MOST];
    struct maq_serve_variants found;
    const char **values; /* [found.n * n_axes] */
};

/* ---- lists ---- */

static enum maq_status refuse(struct cli *cli, const char *what, const char *text)
{
    return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--vary rate=2..64:x2 --vary tp=2,4,8 --vary engine=vllm,sglang",
                     "--vary '%.60s': %s", text, what);
}

static bool may_vary(size_t option)
{
    enum cli_option_kind kind = cli_serve_table[option].kind;
    if (option == SERVE_WHAT_IF)
        return false;
    bool of_the_job = (kind == CLI_JOB && option != SERVE_SPACE) || kind == CLI_PRICE;
    return of_the_job || !cli_serve_is_of_the_line(option);
}

static size_t option_of(const char *name, size_t length)
{
    size_t option = 0;
    for (; option < SERVE_COUNT; option++) {
        const char *flag = cli_serve_table[option].name + 2;
        if (may_vary(option) && strlen(flag) == length && memcmp(flag, name, length) == 0)
            break;
    }
    return option;
}

static bool add(struct axis *a, const char *value)
{
    if (a->n == VALUES_MOST || !value)
        return false;
    a->values[a->n++] = value;
    return true;
}

/* Of an option that takes words, or none: then true and false. */
static bool takes(const struct cli_option *o, const char *value)
{
    if (o->kind == CLI_FLAG)
        return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    for (const char *const *word = o->words; word && *word; word++)
        if (strcmp(*word, value) == 0)
            return true;
    return !o->words;
}

/* "4", "fp8", "2..64:x2" */
static enum maq_status add_values(struct cli *cli, struct axis *a, const char *text)
{
    double numbers[VALUES_MOST];
    uint32_t n = strstr(text, "..") ? maq_range_read(numbers, VALUES_MOST, text) : 0;
    if (!*text)
        return refuse(cli, "a value is missing", cli_serve_table[a->option].name + 2);
    if (n == 0 && strstr(text, ".."))
        return refuse(cli, "a range is FIRST..LAST:xFACTOR or FIRST..LAST:+STEP, of 256 numbers at most", text);
    if (n == 0 && !takes(&cli_serve_table[a->option], text))
        return refuse(cli, cli_printf(cli, "%s does not take it", cli_serve_table[a->option].name), text);
    bool ok = n > 0 || add(a, text);
    for (uint32_t i = 0; i < n && ok; i++)
        ok = add(a, cli_printf(cli, "%.12g", numbers[i]));
    return ok ? MAQ_OK : refuse(cli, "an option has 256 values at most", text);
}

static enum maq_status unknown(struct cli *cli, const char *name)
{
    struct cli_nearest near;
    cli_nearest_init(&near, name, strlen(name));
    for (size_t i = 0; i < SERVE_COUNT; i++)
        if (may_vary(i))
            cli_nearest_try(&near, cli_serve_table[i].name + 2, strlen(cli_serve_table[i].name + 2));
    const char *hint =
        near.best ? cli_printf(cli, "did you mean '%s'?", near.best) : "maquette serve --help-all lists them";
    return cli_usage(cli, MAQ_CODE_CLI_VALUE, hint,
                     "--vary '%.60s': no option of the deployment or its requests has this name", name);
}

static enum maq_status begin_axis(struct cli *cli, struct sweep *s, const char *name, size_t length)
{
    size_t option = option_of(name, length);
    const char *text = cli_printf(cli, "%.*s", (int)length, name);
    if (!text)
        return MAQ_NO_MEMORY;
    if (option == SERVE_COUNT)
        return unknown(cli, text);
    for (uint32_t a = 0; a < s->found.n_axes; a++)
        if (s->axes[a].option == option)
            return refuse(cli, "it is named twice", text);
    if (s->found.n_axes == AXES_MOST)
        return refuse(cli, "12 options vary at most", text);
    s->names[s->found.n_axes] = cli_serve_table[option].name + 2;
    s->axes[s->found.n_axes++].option = option;
    return MAQ_OK;
}

static enum maq_status read_lists(struct sweep *s, struct cli *cli)
{
    char *text = cli_printf(cli, "%s", cli->values[SERVE_VARY]);
    if (!text)
        return MAQ_NO_MEMORY;
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        char *equals = strchr(at, '=');
        enum maq_status status = equals ? begin_axis(cli, s, at, (size_t)(equals - at)) : MAQ_OK;
        if (status == MAQ_OK && s->found.n_axes == 0)
            status = refuse(cli, "an option and its values are wanted", at);
        if (status == MAQ_OK)
            status = add_values(cli, &s->axes[s->found.n_axes - 1], equals ? equals + 1 : at);
        if (status != MAQ_OK)
            return status;
    }
    uint64_t all = 1;
    for (uint32_t a = 0; a < s->found.n_axes; a++)
        if ((all *= s->axes[a].n) > VARIANTS_MOST)
            return refuse(cli, "there are more than 100,000 combinations", cli->values[SERVE_VARY]);
    s->found.n = (uint32_t)all;
    return MAQ_OK;
}

static enum maq_status list_variants(struct sweep *s)
{
    uint32_t n = s->found.n, axes = s->found.n_axes;
    s->found.axes = s->names;
    s->found.at = calloc(n, sizeof *s->found.at);
    s->values = calloc((size_t)n * axes, sizeof *s->values);
    if (!s->found.at || !s->values)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rest = i;
        for (uint32_t a = axes; a-- > 0; rest /= s->axes[a].n)
            s->values[(size_t)i * axes + a] = s->axes[a].values[rest % s->axes[a].n];
        s->found.at[i].values = &s->values[(size_t)i * axes];
    }
    return MAQ_OK;
}

/* ---- one combination ---- */

static enum maq_status set(struct cli *cli, size_t option, const char *value)
{
    const struct cli_option *o = &cli_serve_table[option];
    if (o->path)
        return cli_add_override(cli, "--vary", o->path, value);
    cli->values[option] = o->kind != CLI_FLAG ? value : strcmp(value, "true") == 0 ? "" : NULL;
    return MAQ_OK;
}

static const struct maq_diag_item *first_error(const struct maq_diag *diag)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->severity == MAQ_ERROR)
            return maq_diag_at(diag, i);
    return NULL;
}

/* What was said of one that cannot be. */
static const char *reason(struct cli *cli, const struct maq_diag *diag, enum maq_status status)
{
    const struct maq_diag_item *item = first_error(diag);
    return item ? cli_printf(cli, "%.*s", (int)item->msg.len, item->msg.ptr) : maq_status_text(status);
}

/* A call that asks for an end ends all, in the words of the run that it ended. */
static bool is_stopped(struct cli *cli, const struct maq_diag *diag)
{
    const struct maq_diag_item *item = cli->stop && *cli->stop ? first_error(diag) : NULL;
    if (item)
        maq_diag_add(cli->diag, item->severity, item->code, (struct maq_span){0}, NULL, "%.*s", (int)item->msg.len,
                     item->msg.ptr);
    return item != NULL;
}

/* Only what ends the whole is no MAQ_OK. */
static enum maq_status run_one(struct sweep *s, struct cli *cli, uint32_t number,
                               enum maq_status (*serve)(struct maq_serve_variant *out, struct cli *cli))
{
    const char *values[CLI_OPTIONS_MAX];
    size_t n_overrides = cli->n_overrides;
    struct maq_override *overrides = calloc(n_overrides + 1, sizeof *overrides);
    struct maq_diag *outer = cli->diag, *diag = maq_diag_new();
    struct maq_serve_variant *v = &s->found.at[number];
    enum maq_status status = diag && overrides ? MAQ_OK : MAQ_NO_MEMORY;
    memcpy(values, cli->values, sizeof values);
    if (overrides && n_overrides > 0)
        memcpy(overrides, cli->overrides, n_overrides * sizeof *overrides);
    cli->diag = diag;
    for (uint32_t a = 0; a < s->found.n_axes && status == MAQ_OK; a++)
        status = set(cli, s->axes[a].option, v->values[a]);
    if (status == MAQ_OK)
        status = serve(v, cli);
    cli->diag = outer;
    if (status != MAQ_OK && status != MAQ_NO_MEMORY && !is_stopped(cli, diag)) {
        v->why = reason(cli, diag, status);
        status = v->why ? MAQ_OK : MAQ_NO_MEMORY;
    }
    memcpy(cli->values, values, sizeof values);
    if (overrides && n_overrides > 0)
        memcpy(cli->overrides, overrides, n_overrides * sizeof *overrides);
    cli->n_overrides = n_overrides;
    free(overrides);
    maq_diag_free(diag);
    return status;
}

/* ---- what processes tell each other: [[number, why or "", fits, overloaded, slo_met, gpus, [figures]], ...] ---- */

#define FIGURES 10
static void figures_of(double *out[FIGURES], struct maq_serve_variant *v)
{
    double *all[FIGURES] = {&v->requests_per_s, &v->goodput_per_s, &v->tokens_per_s_per_gpu, &v->tokens_per_s_per_user,
                            &v->ttft_mean_s,    &v->ttft_p95_s,    &v->tpot_mean_s,          &v->tpot_p95_s,
                            &v->e2el_mean_s,    &v->e2el_p95_s};
    memcpy(out, all, sizeof all);
}

static json_t *tell(uint32_t number, struct maq_serve_variant *v)
{
    double *figures[FIGURES];
    json_t *list = json_array();
    figures_of(figures, v);
    for (int i = 0; i < FIGURES && list; i++)
        json_array_append_new(list, json_real(*figures[i]));
    return json_pack("[i, s, b, b, b, i, o]", (int)number, v->why ? v->why : "", v->fits, v->overloaded, v->slo_met,
                     (int)v->gpus, list);
}

static bool hear(struct sweep *s, struct cli *cli, const char *text)
{
    json_t *all = json_loads(text, 0, NULL), *item;
    bool ok = json_is_array(all);
    size_t k;
    json_array_foreach(all, k, item)
    {
        int number, fits, overloaded, slo_met, gpus;
        const char *why;
        json_t *list;
        double *figures[FIGURES];
        ok = ok &&
             json_unpack(item, "[i, s, b, b, b, i, o]", &number, &why, &fits, &overloaded, &slo_met, &gpus, &list) ==
                 0 &&
             number >= 0 && (uint32_t)number < s->found.n && json_array_size(list) == FIGURES;
        if (!ok)
            break;
        struct maq_serve_variant *v = &s->found.at[number];
        v->why = *why ? cli_printf(cli, "%s", why) : NULL;
        v->fits = fits != 0;
        v->overloaded = overloaded != 0;
        v->slo_met = slo_met != 0;
        v->gpus = (uint32_t)gpus;
        figures_of(figures, v);
        for (int i = 0; i < FIGURES; i++)
            *figures[i] = json_number_value(json_array_get(list, (size_t)i));
    }
    json_decref(all);
    return ok;
}

static enum maq_status exchange(struct sweep *s, struct cli *cli, struct maq_peers *peers, enum maq_status status)
{
    const char *const *texts;
    json_t *own = json_array();
    for (uint32_t i = peers->rank; status == MAQ_OK && own && i < s->found.n; i += peers->size)
        json_array_append_new(own, tell(i, &s->found.at[i]));
    char *text = own ? json_dumps(own, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    enum maq_status gathered = maq_peers_gather(peers, text && status == MAQ_OK ? text : "", &texts, cli->diag);
    free(text);
    json_decref(own);
    if (status != MAQ_OK || gathered != MAQ_OK)
        return status != MAQ_OK ? status : gathered;
    for (uint32_t r = 1; texts && r < peers->size; r++)
        if (!hear(s, cli, texts[r]))
            return maq_diag_fail(MAQ_IO, cli->diag, MAQ_CODE_CLI_VALUE, (struct maq_span){0}, NULL,
                                 "process %u sent nothing that can be read", r);
    return MAQ_OK;
}

/* ---- all of them ---- */

/* What is of one run. */
static enum maq_status check(struct cli *cli)
{
    static const int single[] = {SERVE_TRACE, SERVE_PER_REQUEST, SERVE_WHAT_IF, SERVE_BATCH};
    for (size_t i = 0; i < CLI_COUNT(single); i++)
        if (cli->values[single[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "leave it out", "%s is of one run, and --vary makes several",
                             cli_serve_table[single[i]].name);
    return MAQ_OK;
}

static enum maq_status run_all(struct sweep *s, struct cli *cli, struct maq_peers *peers,
                               enum maq_status (*serve)(struct maq_serve_variant *out, struct cli *cli))
{
    enum maq_status status = MAQ_OK;
    for (uint32_t i = peers->rank; i < s->found.n && status == MAQ_OK; i += peers->size) {
        cli_progress(cli, "%u of %u combinations", i, s->found.n);
        status = run_one(s, cli, i, serve);
    }
    cli_progress(cli, "%s", "");
    return peers->size > 1 ? exchange(s, cli, peers, status) : status;
}

static bool is_candidate(const struct maq_serve_variant *v)
{
    return !v->why && v->fits && !v->overloaded && v->slo_met;
}

static void mark_pareto(struct maq_serve_variants *variants)
{
    for (uint32_t i = 0; i < variants->n; i++) {
        struct maq_serve_variant *v = &variants->at[i];
        v->pareto = is_candidate(v);
        for (uint32_t k = 0; k < variants->n && v->pareto; k++) {
            const struct maq_serve_variant *w = &variants->at[k];
            double gpu = w->tokens_per_s_per_gpu - v->tokens_per_s_per_gpu,
                   user = w->tokens_per_s_per_user - v->tokens_per_s_per_user;
            bool beats = gpu >= 0 && user >= 0 && (gpu > 0 || user > 0 || k < i); /* of equal ones the first */
            v->pareto = k == i || !is_candidate(w) || !beats;
        }
    }
}

static enum maq_status report(struct sweep *s, struct cli *cli)
{
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[SERVE_OUTPUT] != NULL);
    bool any = false;
    mark_pareto(&s->found);
    for (uint32_t i = 0; i < s->found.n; i++) {
        any |= s->found.at[i].pareto;
        s->found.bounded |= s->found.at[i].goodput_per_s >= 0 && s->found.at[i].fits;
    }
    enum maq_status status =
        CLI_REPORT(cli, cli->values[SERVE_JSON], cli->values[SERVE_OUTPUT], maq_report_serve_vary, &opts, &s->found);
    if (status == MAQ_OK && cli->values[SERVE_HTML]) {
        char *page;
        opts = cli_report_opts(cli, true);
        status = maq_report_serve_vary_html(&page, &s->found, &opts, cli->diag);
        status = status == MAQ_OK ? cli_put_page(cli, page, cli->values[SERVE_HTML]) : status;
    }
    return status == MAQ_OK && !any ? MAQ_NO : status;
}

static enum maq_status sweep(struct cli *cli, struct maq_peers *peers,
                             enum maq_status (*serve)(struct maq_serve_variant *out, struct cli *cli))
{
    struct sweep *s = calloc(1, sizeof *s);
    enum maq_status status = s ? check(cli) : MAQ_NO_MEMORY;
    if (status == MAQ_OK)
        status = read_lists(s, cli);
    if (status == MAQ_OK)
        status = list_variants(s);
    if (status == MAQ_OK) {
        status = run_all(s, cli, peers, serve);
    }
    if (status == MAQ_OK && peers->rank == 0)
        status = report(s, cli);
    if (s) {
        free(s->found.at);
        free(s->values);
    }
    free(s);
    return status;
}

enum maq_status cli_serve_vary(struct cli *cli,
                               enum maq_status (*serve)(struct maq_serve_variant *out, struct cli *cli))
{
    struct maq_peers peers = {.size = 1, .on_node = 1};
    if (cli->called) /* a program's processes are its own */
        return sweep(cli, &peers, serve);
    enum maq_status status = maq_peers_open(&peers, cli->diag);
    cli->quiet = peers.rank > 0;
    if (status == MAQ_OK)
        status = sweep(cli, &peers, serve);
    cli_print_diag(cli); /* before they part: mpirun ends all when the first one ends with a fault, said or not */
    cli->told = true;
    maq_peers_close(&peers);
    return status;
}
