/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speculation.c - speculative decoding as it is asked for, by options or by the engine's own command line; what drafts, as a job.
 *
 * How many drafts are accepted is a property of model, drafter and text, of which there is no default: without it, or without the number of
 * drafts, options are refused and a command line's speculation is left out, with a warning.
 */
#include <stddef.h>
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

static const int own_options[] = {SERVE_DRAFT_METHOD, SERVE_DRAFT_MODEL, SERVE_DRAFT_TOKENS, SERVE_DRAFT_TP};

/* The first of the options that is given; NULL: none. */
static const char *asked_by(const struct cli *cli)
{
    for (size_t i = 0; i < CLI_COUNT(own_options); i++)
        if (cli->values[own_options[i]])
            return cli_serve_table[own_options[i]].name;
    return NULL;
}

static int method_of(const char *word)
{
    for (int i = 0; i < MAQ_DRAFT_COUNT; i++)
        if (strcmp(word, maq_draft_method_name((enum maq_draft_method)i)) == 0)
            return i;
    return MAQ_DRAFT_NONE;
}

enum maq_status cli_serve_other_model(struct maq_loaded_job **loaded, struct cli *cli, const struct maq_job *job,
                                      int option, const char *model, const char *tp, struct maq_diag *diag)
{
    const char *path = cli->n_args > 0 ? cli->args[0] : NULL, *flag = cli_serve_table[option].name;
    struct maq_override *list = malloc((cli->n_overrides + 4) * sizeof *list);
    size_t n = 0;
    int64_t devices = 0;
    for (uint32_t g = 0; g < job->cluster.n_groups; g++)
        devices += (int64_t)job->cluster.groups[g].nodes * job->cluster.groups[g].devices_per_node;
    const char *batch = cli_printf(cli, "%lld", (long long)devices); /* that suits any degrees */
    if (!list || !batch) {
        free(list);
        return MAQ_NO_MEMORY;
    }
    for (size_t i = 0; i < cli->n_overrides; i++)
        if (strncmp(cli->overrides[i].path, "model", strlen("model")) != 0)
            list[n++] = cli->overrides[i];
    list[n++] = (struct maq_override){flag, "model", model};
    list[n++] = (struct maq_override){flag, "plan.tensor_model_parallel_size", tp};
    list[n++] = (struct maq_override){flag, "plan.pipeline_model_parallel_size", "1"};
    list[n++] = (struct maq_override){flag, "workload.global_batch_size", batch};
    enum maq_status status = maq_job_load(loaded, path, list, n, diag);
    free(list);
    return status;
}

/* What drafts by its name; that of a head is often one that only its owner knows: then it is taken to be like the model's last layer. */
static enum maq_status name_drafter(struct serve_given *out, struct cli *cli, const struct maq_job *job,
                                    const char *name, const char *tp)
{
    struct maq_speculation *s = &out->options.speculation;
    struct maq_checkpoint_name checkpoint;
    const char *model = name;
    if (maq_checkpoint_name(&checkpoint, name)) {
        s->weights = (int)checkpoint.weights;
        s->expert_weights = (int)checkpoint.expert_weights;
        if (checkpoint.model_len > 0)
            model = cli_printf(cli, "%.*s", (int)checkpoint.model_len, name + checkpoint.model_at);
    }
    if (!model)
        return MAQ_NO_MEMORY;
    if (s->method == MAQ_DRAFT_MODEL)
        return cli_serve_other_model(&out->drafter, cli, job, SERVE_DRAFT_MODEL, model, tp, cli->diag);
    struct maq_diag *aside = maq_diag_new();
    enum maq_status status =
        aside ? cli_serve_other_model(&out->drafter, cli, job, SERVE_DRAFT_MODEL, model, tp, aside) : MAQ_NO_MEMORY;
    maq_diag_free(aside);
    if (status == MAQ_OK || status == MAQ_NO_MEMORY)
        return status;
    out->drafter = NULL;
    maq_diag_add(cli->diag, MAQ_WARNING, MAQ_CODE_CLI_DRAFTS, (struct maq_span){0},
                 "--speculative-model with the head's config.json",
                 "the sizes of the head '%.80s' are not known: it is taken to be like the model's last layer", name);
    return MAQ_OK;
}

static enum maq_status load(struct serve_given *out, struct cli *cli, const struct maq_job *job, const char *name,
                            bool open)
{
    struct maq_speculation *s = &out->options.speculation;
    uint32_t tp, whole = open ? 1 : (uint32_t)job->plan.tp,
                 said = cli->served && cli->served->drafter_tp > 0 ? (uint32_t)cli->served->drafter_tp : 0;
    bool has_model = s->method == MAQ_DRAFT_MODEL || s->method == MAQ_DRAFT_EAGLE || s->method == MAQ_DRAFT_EAGLE3;
    enum maq_status status = cli_count(cli, &tp, SERVE_DRAFT_TP, 1, 1u << 16, said > 0 ? said : whole);
    if (status != MAQ_OK || !name || !has_model)
        return status;
    const char *ranks = cli_printf(cli, "%u", s->method == MAQ_DRAFT_MODEL ? tp : whole);
    status = ranks ? name_drafter(out, cli, job, name, ranks) : MAQ_NO_MEMORY;
    if (status == MAQ_OK && out->drafter)
        s->draft = maq_job_get(out->drafter);
    return status;
}

/* What is missing is said once: a fault of options, a warning of a command line, whose speculation is left out. */
static enum maq_status too_little(struct serve_given *out, struct cli *cli, const char *from, const char *hint,
                                  const char *what)
{
    bool own = asked_by(cli) != NULL;
    out->options.speculation = (struct maq_speculation){.method = MAQ_DRAFT_NONE};
    if (own)
        return cli_usage(cli, MAQ_CODE_CLI_DRAFTS, hint, "%s: %s", from, what);
    maq_diag_add(cli->diag, MAQ_WARNING, MAQ_CODE_CLI_DRAFTS, (struct maq_span){0}, hint, "%s is left out: %s", from,
                 what);
    return MAQ_OK;
}

enum maq_status cli_serve_speculation(struct serve_given *out, struct cli *cli, const struct maq_job *job, bool open)
{
    struct maq_speculation *s = &out->options.speculation;
    const struct maq_serve_command *c = cli->served;
    const char *own = asked_by(cli),
               *from = own ? own
                       : c ? c->speculates
                           : NULL,
               *name = cli->values[SERVE_DRAFT_MODEL] ? cli->values[SERVE_DRAFT_MODEL]
                       : c                            ? c->drafter
                                                      : NULL,
               *shares = cli->values[SERVE_ACCEPTANCE] ? cli->values[SERVE_ACCEPTANCE]
                         : c                           ? c->acceptance
                                                       : NULL;
    uint32_t tokens;
    if (cli->values[SERVE_DRAFT_METHOD])
        s->method = (enum maq_draft_method)method_of(cli->values[SERVE_DRAFT_METHOD]);
    else if (s->method == MAQ_DRAFT_NONE && cli->values[SERVE_DRAFT_MODEL])
        s->method = MAQ_DRAFT_MODEL;
    enum maq_status status = cli_count(cli, &tokens, SERVE_DRAFT_TOKENS, 1, MAQ_DRAFT_MOST, (uint32_t)s->tokens);
    if (status != MAQ_OK)
        return status;
    if (cli->values[SERVE_DRAFT_TOKENS])
        s->branches = s->verified = 0;
    s->tokens = (int32_t)tokens;
    s->seed = out->spec.seed;
    if (!from && cli->values[SERVE_ACCEPTANCE])
        return cli_usage(cli, MAQ_CODE_CLI_DRAFTS, "--speculative-method eagle3 --num-speculative-tokens 3",
                         "--acceptance: nobody drafts");
    if (!from || (cli->values[SERVE_DRAFT_METHOD] && s->method == MAQ_DRAFT_NONE)) {
        *s = (struct maq_speculation){.method = MAQ_DRAFT_NONE};
        return MAQ_OK;
    }
    if (s->method == MAQ_DRAFT_NONE)
        return too_little(out, cli, from, "--speculative-method ngram", "who drafts is not said");
    if (s->tokens == 0)
        return too_little(out, cli, from, "--num-speculative-tokens 3", "how many drafts there are is not said");
    if (!shares)
        return too_little(out, cli, from, "--acceptance 0.7",
                          "what share of drafts is accepted depends on model, drafter and text, and is not said");
    status = maq_acceptance_read(s, shares, cli->diag);
    return status == MAQ_OK ? load(out, cli, job, name, open) : status;
}
