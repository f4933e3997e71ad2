/* SPDX-License-Identifier: Apache-2.0 */
/* plan_failures.c - failures of `maquette serve plan`: the closed form for the search, draws for what it found. */
#include "cli/serve/plan_failures.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

#define AVAILABILITY 0.99
#define DRAWS 20u
#define YEAR_S (365.25 * 86400)

/* Of one of several parts: they may wait for the same spare nodes, and each counts on a share of them. */
static struct maq_availability_spec spec_of(const struct plan_failures *f, const struct maq_serve_candidate *c,
                                            struct maq_serve_together with)
{
    const struct maq_node_group *g = &c->job->cluster.groups[0];
    return (struct maq_availability_spec){.failures = maq_failures_get(f->given->failures),
                                          .gpus = c->gpus,
                                          .gpus_per_node = (uint32_t)g->devices_per_node,
                                          .spare_nodes = f->given->spare_nodes / with.parts,
                                          .network =
                                              with.pools && c->job->cluster.devices > (uint32_t)g->devices_per_node,
                                          .start_s = f->given->start_s,
                                          .load_s = c->load_s};
}

/* Whatever makes parts fail together, all are there for no less than the share that is asked if each lacks a part of what may lack. */
static enum maq_status replicas(uint32_t *n, void *user, const struct maq_serve_candidate *c, uint32_t needed,
                                uint32_t most, struct maq_serve_together with)
{
    const struct plan_failures *f = user;
    const struct maq_availability_spec spec = spec_of(f, c, with);
    return maq_availability_needs(n, &spec, needed, most, 1 - (1 - f->availability) / with.parts);
}

static enum maq_status load(double *out, void *user, const struct maq_serve_candidate *c, struct maq_diag *diag)
{
    const struct plan_failures *f = user;
    (void)diag; /* the command's own */
    return cli_serve_load_time(out, f->cli, c->job, &c->options);
}

enum maq_status cli_plan_failures_read(struct plan_failures *out, struct serve_given *given, struct cli *cli)
{
    static const int of_failures[] = {SERVE_AVAILABILITY, SERVE_DRAWS};
    enum maq_status worst = cli_serve_outages(given, cli, NULL, 0);
    out->given = given->failures ? given : NULL; /* to be freed, whatever else is wrong */
    for (size_t i = 0; i < CLI_COUNT(of_failures); i++)
        if (cli->values[of_failures[i]] && !cli->values[SERVE_FAILURES])
            worst = cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--failures llama3",
                                                     "%s has no effect: no replica fails",
                                                     cli_serve_table[of_failures[i]].name));
    worst = cli_first_fault(worst, cli_count(cli, &given->draws, SERVE_DRAWS, 1, MAQ_ATTAINMENT_DRAWS, DRAWS));
    worst = cli_first_fault(
        worst, cli_serve_number(cli, &out->availability, SERVE_AVAILABILITY, 0.01, 0.999999, AVAILABILITY));
    if (worst != MAQ_OK || !given->failures)
        return worst;
    out->cli = cli;
    out->reserve = (struct maq_serve_reserve){.replicas = replicas, .load = load, .user = out};
    out->report = (struct maq_report_plan_failures){.what = cli->values[SERVE_FAILURES],
                                                    .availability = out->availability,
                                                    .spare_nodes = given->spare_nodes,
                                                    .span_s = YEAR_S};
    return MAQ_OK;
}

/* Of each part with its spares, and without. */
static enum maq_status closed_form(struct plan_failures *f, const struct maq_serve_search_result *s)
{
    f->parts = calloc(2 * (size_t)s->n_fleet, sizeof *f->parts);
    enum maq_status status = f->parts ? MAQ_OK : MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < s->n_fleet && status == MAQ_OK; i++) {
        const struct maq_serve_part_of_fleet *part = &s->fleet[i];
        const struct maq_serve_together with = {.parts = s->n_fleet, .pools = part->role != MAQ_ROLE_BOTH};
        const struct maq_availability_spec spec = spec_of(f, &s->candidates[part->candidate], with);
        status = maq_availability_of(&f->parts[i], &spec, part->replicas, part->needed);
        if (status == MAQ_OK)
            status = maq_availability_of(&f->parts[s->n_fleet + i], &spec, part->needed, part->needed);
    }
    f->report.parts = f->parts;
    f->report.without = f->parts + s->n_fleet;
    return status;
}

/* The requests through failures, with the spares and, of the same failures, without. */
static enum maq_status through(struct plan_failures *f, const struct maq_fleet *all, const struct maq_fleet *needed,
                               const struct maq_requests *requests, const struct maq_outage_spec *spec, bool spares,
                               struct cli *cli)
{
    const struct serve_given *g = f->given;
    struct maq_serve_result *r = NULL;
    struct maq_attainment fewer;
    enum maq_status status =
        maq_fleet_attainment(&f->attainment, &r, all, requests, spec, g->draws, &g->slo, cli->diag);
    maq_serve_free(r);
    r = NULL;
    f->report.attainment = &f->attainment;
    if (status != MAQ_OK || !spares)
        return status;
    status = maq_fleet_attainment(&fewer, &r, needed, requests, spec, g->draws, &g->slo, cli->diag);
    maq_serve_free(r);
    if (status == MAQ_OK)
        f->no_spares = maq_what_if_of("no spare replicas", &f->attainment, &fewer);
    f->report.no_spares = status == MAQ_OK ? &f->no_spares : NULL;
    return status;
}

enum maq_status cli_plan_failures_look(struct plan_failures *f, const struct maq_serve_search_result *s,
                                       const struct maq_fleet *fleet, const struct maq_requests *requests,
                                       struct cli *cli)
{
    struct maq_fleet_member *members = calloc(2 * (size_t)s->n_fleet, sizeof *members);
    uint32_t *needed = calloc(s->n_fleet, sizeof *needed);
    enum maq_status status = members && needed ? closed_form(f, s) : MAQ_NO_MEMORY;
    bool spares = false;
    for (uint32_t i = 0; members && needed && i < s->n_fleet; i++) {
        members[i] = fleet->members[i];
        members[i].load_s = s->candidates[s->fleet[i].candidate].load_s;
        members[s->n_fleet + i] = members[i];
        members[i].replicas = s->fleet[i].replicas;
        needed[i] = s->fleet[i].needed;
        spares = spares || s->fleet[i].replicas > needed[i];
    }
    struct maq_fleet all = *fleet, fewer = *fleet;
    all.members = members;
    fewer.members = members ? members + s->n_fleet : NULL;
    struct maq_outage_spec spec = {.failures = maq_failures_get(f->given->failures),
                                   .start_s = f->given->start_s,
                                   .spare_nodes = f->given->spare_nodes,
                                   .span_s = YEAR_S,
                                   .seed = f->given->spec.seed};
    if (status == MAQ_OK)
        status = maq_availability_draw(&f->there, &all, needed, &spec, f->given->draws, cli->diag);
    f->report.there = &f->there;
    f->report.stream_s = spec.span_s = requests->n > 0 ? requests->at[requests->n - 1].arrival_s : 0;
    if (status == MAQ_OK && f->given->slo.n > 0)
        status = through(f, &all, &fewer, requests, &spec, spares, cli);
    free(members);
    free(needed);
    return status == MAQ_NO_MEMORY ? cli_no_memory(cli) : status;
}

void cli_plan_failures_end(struct plan_failures *f)
{
    free(f->parts);
    if (f->given)
        maq_failures_free(f->given->failures);
}
