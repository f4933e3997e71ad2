/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - a command that a program calls. See call.h. */
#include "cli/call.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

/* The result, and what it points into: overrides and words of the command line. */
struct owner {
    struct cli_called called;
    struct cli cli;
    char **words;
    size_t n_words;
    bool wants_page;
};

void cli_keep_job(struct cli *cli, struct maq_loaded_job *job)
{
    if (cli->called && !cli->called->job)
        cli->called->job = job;
    else
        maq_job_free(job);
}

void cli_keep_train(struct cli *cli, struct maq_train_result *result)
{
    if (cli->called)
        cli->called->train = result;
    else
        maq_train_result_free(result);
}

void cli_keep_search(struct cli *cli, struct maq_search_result *result)
{
    if (cli->called)
        cli->called->search = result;
    else
        maq_search_result_free(result);
}

void cli_keep_served(struct cli *cli, struct maq_serve_result *result, struct maq_request_set *requests)
{
    if (!cli->called) {
        maq_serve_free(result);
        maq_requests_free(requests);
        return;
    }
    result->capacity = NULL; /* the command's own: they are in the report */
    result->power = NULL;
    result->attainment = NULL;
    result->what_if = NULL;
    result->n_what_if = 0;
    result->n_members = 0; /* whose jobs are the command's */
    cli->called->served = result;
    cli->called->requests = requests;
}

void cli_called_free(struct cli_called *called)
{
    if (!called)
        return;
    struct owner *o = called->owner;
    maq_train_result_free(called->train);
    maq_search_result_free(called->search);
    maq_serve_free(called->served);
    maq_requests_free(called->requests);
    maq_job_free(called->job);
    free(called->text);
    free(called->json);
    free(called->page);
    cli_fini(&o->cli);
    for (size_t i = 0; o->words && i < o->n_words; i++)
        free(o->words[i]);
    free(o->words);
    free(o);
}

static struct owner *new_owner(const char *const *words, size_t n_words, const struct cli_call_opts *opts,
                               struct maq_diag *diag)
{
    struct owner *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->called.owner = o;
    o->cli.diag = diag;
    o->cli.called = &o->called;
    o->cli.quiet = true;
    o->cli.columns = opts && opts->columns > 0 ? opts->columns : CLI_COLUMNS_DEFAULT;
    o->cli.unicode = opts && opts->unicode;
    if (opts && opts->document)
        o->cli.document = (struct maq_str){opts->document, strlen(opts->document)};
    o->cli.stop = opts ? opts->stop : NULL;
    o->cli.tell = opts ? opts->progress : NULL;
    o->cli.tell_user = opts ? opts->user : NULL;
    o->wants_page = opts && opts->page;
    o->words = calloc(n_words + 1, sizeof *o->words);
    for (size_t i = 0; o->words && i < n_words; i++) {
        o->words[i] = strdup(words[i]);
        if (!o->words[i])
            break;
        o->n_words++;
    }
    if (o->n_words == n_words && o->words)
        return o;
    cli_called_free(&o->called);
    return NULL;
}

/* Options that say where a report goes, and in which form: it goes to the caller in all. */
static enum maq_status refuse_forms(struct cli *cli)
{
    static const char *const forms[] = {"--json", "--output"};
    for (size_t i = 0; i < cli->command->n_options; i++)
        for (size_t f = 0; f < CLI_COUNT(forms); f++)
            if (cli->values[i] && strcmp(cli->command->options[i].name, forms[f]) == 0)
                return cli_usage(cli, MAQ_CODE_CLI_OPTION, "the result has its text and its JSON",
                                 "%s means nothing to a call", forms[f]);
    return MAQ_OK;
}

/* As if --html had been given, where the command has it: the page goes to the caller. */
static void ask_for_page(struct cli *cli)
{
    for (size_t i = 0; i < cli->command->n_options; i++)
        if (strcmp(cli->command->options[i].name, "--html") == 0 && cli_takes(cli->command, i))
            cli->values[i] = cli_page_of_call;
}

static enum maq_status run(struct owner *o, bool open)
{
    struct cli *cli = &o->cli;
    int words = 1, n = (int)o->n_words;
    if (n == 0)
        return cli_usage(cli, MAQ_CODE_CLI_COMMAND, NULL, "no command is given");
    const struct cli_command *command = cli_find_command(&words, n, o->words);
    if (!command)
        return cli_unknown_command(cli, o->words[0]);
    if (!command->callable)
        return cli_usage(cli, MAQ_CODE_CLI_COMMAND, NULL, "maquette %s can only be run from a shell", command->name);
    enum maq_status status = cli_parse(cli, command, n - words, o->words + words);
    if (status == MAQ_OK)
        status = refuse_forms(cli);
    if (status == MAQ_OK)
        status = cli_check_output_names(cli);
    if (status == MAQ_OK && o->wants_page)
        ask_for_page(cli);
    if (status == MAQ_OK && open)
        status = cli_load_job(&o->called.job, cli, cli->n_args > 0 ? cli->args[0] : NULL, true);
    else if (status == MAQ_OK)
        status = command->run(cli);
    return status;
}

static enum maq_status call(struct cli_called **out, const char *const *words, size_t n_words,
                            const struct cli_call_opts *opts, bool open, struct maq_diag *diag)
{
    struct owner *o = new_owner(words, n_words, opts, diag);
    *out = NULL;
    if (!o)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    enum maq_status status = run(o, open);
    if ((status == MAQ_OK || status == MAQ_NO) && (open || o->called.json)) {
        o->called.status = status;
        o->cli.diag = NULL; /* the caller's, who may free it before this */
        *out = &o->called;
        return status;
    }
    cli_called_free(&o->called);
    return status;
}

enum maq_status cli_call(struct cli_called **out, const char *const *words, size_t n_words,
                         const struct cli_call_opts *opts, struct maq_diag *diag)
{
    return call(out, words, n_words, opts, false, diag);
}

enum maq_status cli_call_open(struct cli_called **out, const char *const *words, size_t n_words,
                              const struct cli_call_opts *opts, struct maq_diag *diag)
{
    return call(out, words, n_words, opts, true, diag);
}

/* ---- what may be said ---- */

static const struct cli_command *callable(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i]->callable ? cli_commands[i] : NULL;
    return NULL;
}

static bool hidden(const struct cli_command *command, size_t option)
{
    const char *name = command->options[option].name;
    return !cli_takes(command, option) || strcmp(name, "--json") == 0 || strcmp(name, "--output") == 0;
}

bool cli_call_option(struct cli_call_option *out, const char *command_name, size_t i)
{
    const struct cli_command *command = callable(command_name);
    struct cli_job_option job;
    if (!command)
        return false;
    for (size_t k = 0; k < command->n_options; k++) {
        const struct cli_option *o = &command->options[k];
        if (hidden(command, k) || i-- > 0)
            continue;
        *out = (struct cli_call_option){.name = o->name + 2,
                                        .aliases = "",
                                        .value = o->value ? o->value : "",
                                        .otherwise = "",
                                        .doc = o->doc,
                                        .words = o->words,
                                        .flag = o->kind == CLI_FLAG,
                                        .list = o->kind == CLI_SET || o->kind == CLI_SPACE || o->kind == CLI_AXES};
        return true;
    }
    if (!command->job || !cli_job_option(i, &job))
        return false;
    *out = (struct cli_call_option){.name = job.option.key,
                                    .aliases = job.option.aliases,
                                    .value = "",
                                    .otherwise = job.option.def,
                                    .doc = job.option.doc,
                                    .words = job.words};
    return true;
}
