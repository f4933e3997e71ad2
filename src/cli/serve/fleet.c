/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.c - members of a fleet out of options and documents. */
#include "cli/serve/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"

/* ---- a document ---- */

/* What members say by themselves, and what shows or times one deployment. */
static enum maq_status check_options(struct cli *cli, bool own_clusters)
{
    static const struct {
        int option;
        const char *hint;
    } not_of_fleets[] = {{SERVE_REPLICAS, "replicas: 4 in a member of `fleet`"},
                         {SERVE_PREFILL_REPLICAS, "role: prefill in a member of `fleet`"},
                         {SERVE_TRACE, "one deployment at one rate"},
                         {SERVE_BATCH, "one deployment"},
                         {SERVE_POWER, "one deployment"}};
    for (size_t i = 0; i < CLI_COUNT(not_of_fleets); i++)
        if (cli->values[not_of_fleets[i].option])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, not_of_fleets[i].hint,
                             "%s does not go with the fleet of a document",
                             cli_serve_table[not_of_fleets[i].option].name);
    for (size_t i = 0; i < cli->n_overrides && own_clusters; i++)
        if (strcmp(cli->overrides[i].flag, cli_serve_table[SERVE_CLUSTER].name) == 0)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "fleet: [{cluster: ...}]",
                             "--cluster: members of the fleet have clusters of their own");
    return MAQ_OK;
}

/* Members without a cluster stand on the document's, one behind another. */
static enum maq_status check_clusters(struct cli *cli, const struct maq_loaded_job *loaded)
{
    const struct maq_job_member *m;
    bool shared = false, left = false;
    for (uint32_t i = 0; (m = maq_job_fleet_member(loaded, i)); i++) {
        left |= shared && m->own_cluster;
        if (left && !m->own_cluster)
            return maq_diag_fail(MAQ_BAD_INPUT, cli->diag, MAQ_CODE_CLI_VALUE, m->at,
                                 "put it behind the others that have none, or give it a cluster",
                                 "a member on the document's cluster, behind one that has its own");
        shared |= !m->own_cluster;
    }
    return MAQ_OK;
}

enum maq_status cli_serve_begin_fleet(struct serve_given *given, struct cli *cli, const struct maq_loaded_job *loaded)
{
    const struct maq_job_member *m;
    enum maq_status worst = MAQ_OK;
    bool own = false;
    for (given->n_members = 0; (m = maq_job_fleet_member(loaded, given->n_members)); given->n_members++) {
        own |= m->own_cluster;
        worst = cli_first_fault(worst, cli_serve_check_member(cli, m));
    }
    if (worst == MAQ_OK && given->n_members > 0)
        worst = check_options(cli, own);
    return worst == MAQ_OK ? check_clusters(cli, loaded) : worst;
}

/* The job of another member, and its options behind those of the command line. */
static enum maq_status read_member(struct serve_fleet *f, uint32_t i, struct cli *cli,
                                   const struct serve_checkpoint *checkpoint, const char *const *line)
{
    const char *number = cli_printf(cli, "%u", i);
    if (!number)
        return MAQ_NO_MEMORY;
    for (size_t k = 0; k < cli->n_overrides; k++)
        if (strcmp(cli->overrides[k].path, MAQ_JOB_FLEET_MEMBER) == 0)
            cli->overrides[k].value = number;
    memcpy(cli->values, line, sizeof cli->values);
    enum maq_status status = cli_serve_load(&f->loaded[i], cli);
    if (status == MAQ_OK)
        status = cli_serve_section(cli, f->loaded[i]);
    f->given[i].n_members = f->n;
    return status == MAQ_OK ? cli_serve_options(&f->given[i], checkpoint, cli, maq_job_get(f->loaded[i]), false)
                            : status;
}

static enum maq_status read_members(struct serve_fleet *f, struct cli *cli, const struct maq_loaded_job *loaded,
                                    const struct serve_checkpoint *checkpoint, const char *const *line)
{
    const char *first[CLI_OPTIONS_MAX];
    enum maq_status status = MAQ_OK;
    memcpy(first, cli->values, sizeof first);
    for (uint32_t i = 0; i < f->n && status == MAQ_OK; i++) {
        const struct maq_job_member *m = maq_job_fleet_member(loaded, i),
                                    *before = i > 0 ? maq_job_fleet_member(loaded, i - 1) : m;
        if (i > 0)
            status = read_member(f, i, cli, checkpoint, line);
        if (status != MAQ_OK)
            break;
        bool shares = !m->own_cluster && !before->own_cluster;
        f->members[i] = (struct maq_fleet_member){.job = maq_job_get(i > 0 ? f->loaded[i] : loaded),
                                                  .options = &f->given[i].options,
                                                  .replicas = m->replicas,
                                                  .weight = m->weight,
                                                  .role = (enum maq_role)m->role,
                                                  .own_cluster = i > 0 && !shares,
                                                  .shares_cluster = i > 0 && shares};
    }
    memcpy(cli->values, first, sizeof first);
    return status;
}

static enum maq_status read_document(struct serve_fleet *f, struct cli *cli, struct serve_given *given,
                                     const struct maq_loaded_job *loaded, const struct serve_checkpoint *checkpoint,
                                     const char *const *line)
{
    bool roles = false;
    f->given[0] = *given;
    enum maq_status status = read_members(f, cli, loaded, checkpoint, line);
    given->replicas = 0;
    for (uint32_t i = 0; i < f->n && status == MAQ_OK; i++) {
        given->replicas += f->members[i].replicas;
        roles |= f->members[i].role != MAQ_ROLE_BOTH;
    }
    return status == MAQ_OK ? cli_serve_handover(given, cli, roles) : status;
}

/* ---- options alone ---- */

static void take_pools(struct serve_fleet *f, const struct serve_given *given, const struct maq_job *job,
                       const struct maq_job *prefill)
{
    f->members[0] = (struct maq_fleet_member){.job = job,
                                              .options = &given->options,
                                              .replicas = given->replicas,
                                              .role = prefill ? MAQ_ROLE_DECODE : MAQ_ROLE_BOTH};
    if (prefill)
        f->members[1] = (struct maq_fleet_member){.job = prefill,
                                                  .options = &given->prefill,
                                                  .replicas = given->prefill_replicas,
                                                  .role = MAQ_ROLE_PREFILL,
                                                  .own_cluster = given->own_cluster};
}

/* ---- both ---- */

enum maq_status cli_serve_fleet(struct serve_fleet *out, struct cli *cli, struct serve_given *given,
                                const struct maq_loaded_job *loaded, const struct maq_job *prefill,
                                const struct serve_checkpoint *checkpoint, const char *const *line)
{
    enum maq_status status = MAQ_OK;
    *out = (struct serve_fleet){.n = given->n_members > 0 ? given->n_members : prefill ? 2 : 1};
    out->members = calloc(out->n, sizeof *out->members);
    out->loaded = calloc(out->n, sizeof *out->loaded);
    out->given = calloc(out->n, sizeof *out->given);
    if (!out->members || !out->loaded || !out->given)
        return MAQ_NO_MEMORY;
    if (given->n_members > 0)
        status = read_document(out, cli, given, loaded, checkpoint, line);
    else
        take_pools(out, given, maq_job_get(loaded), prefill);
    return status;
}

void cli_serve_end_fleet(struct serve_fleet *fleet)
{
    for (uint32_t i = 1; fleet->loaded && fleet->given && i < fleet->n; i++) {
        maq_job_free(fleet->loaded[i]);
        maq_job_free(fleet->given[i].drafter);
        maq_job_free(fleet->given[i].tower);
    }
    free(fleet->members);
    free(fleet->loaded);
    free(fleet->given);
}
