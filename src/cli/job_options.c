/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_options.c - every key of plan and workload as an option of the command line.
 *
 * `tensor_model_parallel_size` with the alias `tp` is --tensor-model-parallel-size and --tp, with '-' or '_'. What is
 * laid over the document is the long key; other spellings of the same key that the document may hold are taken away
 * with a null, so that a flag always wins. Behind `--` stands the command line of a Megatron-LM script: it lies between
 * the document and the options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/codes.h"

#define INPUT_MAX ((size_t)64 * 1024 * 1024) /* bytes of standard input that are read */

static const char *const sections[] = {"plan", "workload"};

const char *const cli_file_forms[] = {"accelerate",         "axolotl", "deepspeed", "llama-factory", "torchtitan",
                                      "training-arguments", NULL};
const char *const cli_providers[] = {"analytical", "fitted", "measured", NULL};

bool cli_job_option(size_t i, struct cli_job_option *out)
{
    for (size_t s = 0; s < CLI_COUNT(sections); s++) {
        const size_t n = maq_job_options(sections[s]);
        if (i < n) {
            *out = (struct cli_job_option){.section = sections[s], .words = maq_option_words(sections[s], i)};
            return maq_job_option(sections[s], i, &out->option);
        }
        i -= n;
    }
    return false;
}

static bool same_name(const char *a, size_t n, const char *b, size_t m)
{
    if (n != m)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]))
            return false;
    return true;
}

bool cli_job_option_is(const struct cli_job_option *option, const char *name, size_t len)
{
    if (len < 3 || name[0] != '-' || name[1] != '-')
        return false;
    name += 2;
    len -= 2;
    if (same_name(name, len, option->option.key, strlen(option->option.key)))
        return true;
    for (const char *at = option->option.aliases; *at;) {
        size_t n = strcspn(at, "|");
        if (same_name(name, len, at, n))
            return true;
        at += n + (at[n] == '|');
    }
    return false;
}

enum maq_status cli_add_override(struct cli *cli, const char *flag, const char *path, const char *value)
{
    if (cli->n_overrides == cli->overrides_size) {
        size_t size = cli->overrides_size ? cli->overrides_size * 2 : 32;
        struct maq_override *grown = realloc(cli->overrides, size * sizeof *grown);
        if (!grown)
            return maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                                 "out of memory");
        cli->overrides = grown;
        cli->overrides_size = size;
    }
    cli->overrides[cli->n_overrides++] = (struct maq_override){flag, path, value};
    return MAQ_OK;
}

/* Before all that the options say, which win. */
static enum maq_status lay_under(struct cli *cli, const struct maq_override *overrides, size_t n)
{
    size_t size = cli->n_overrides + n;
    struct maq_override *both = malloc((size + 1) * sizeof *both);
    if (!both)
        return maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory");
    if (n > 0)
        memcpy(both, overrides, n * sizeof *both);
    if (cli->n_overrides > 0)
        memcpy(both + n, cli->overrides, cli->n_overrides * sizeof *both);
    free(cli->overrides);
    cli->overrides = both;
    cli->n_overrides = size;
    cli->overrides_size = size + 1;
    return MAQ_OK;
}

enum maq_status cli_job_megatron(struct cli *cli, const char *const *words, size_t n_words)
{
    enum maq_status status =
        maq_megatron_read(&cli->megatron, words, n_words, cli->command->megatron == CLI_MEGATRON_OPEN, cli->diag);
    if (status != MAQ_OK)
        return status;
    for (size_t i = 0; i < cli->n_overrides; i++)
        if (strcmp(cli->overrides[i].path, "model") == 0)
            maq_megatron_drop_model(cli->megatron);
    return lay_under(cli, cli->megatron->overrides, cli->megatron->n_overrides);
}

enum maq_status cli_job_engine(struct cli *cli, const char *const *words, size_t n_words)
{
    enum maq_status status = maq_serve_command_read(&cli->served, words, n_words, cli->diag);
    return status == MAQ_OK ? lay_under(cli, cli->served->overrides, cli->served->n_overrides) : status;
}

enum maq_status cli_job_override(struct cli *cli, const struct cli_job_option *option, const char *flag,
                                 const char *value)
{
    const char *path = cli_printf(cli, "%s.%s", option->section, option->option.key);
    return path ? cli_add_override(cli, flag, path, value) : MAQ_NO_MEMORY;
}

enum maq_status cli_job_set(struct cli *cli, const char *assignment)
{
    size_t n = strcspn(assignment, "=");
    struct cli_job_option option;
    if (assignment[n] != '=' || n == 0)
        return cli_usage(cli, MAQ_CODE_CLI_SET, "write it as section.key=value, for example --set plan.tp=4",
                         "--set %.60s: there is no path=value in it", assignment);
    const char *value = assignment + n + 1;
    for (size_t i = 0; cli_job_option(i, &option); i++) {
        size_t section = strlen(option.section);
        if (n <= section + 1 || strncmp(assignment, option.section, section) != 0 || assignment[section] != '.')
            continue;
        const char *name = cli_printf(cli, "--%.*s", (int)(n - section - 1), assignment + section + 1);
        if (!name)
            return MAQ_NO_MEMORY;
        if (cli_job_option_is(&option, name, strlen(name)))
            return cli_job_override(cli, &option, "--set", value);
    }
    const char *path = cli_printf(cli, "%.*s", (int)n, assignment);
    return path ? cli_add_override(cli, "--set", path, value) : MAQ_NO_MEMORY;
}

enum maq_status cli_job_list(struct cli *cli, const struct cli_option *option, const char *assignment)
{
    size_t n = strcspn(assignment, "=");
    if (assignment[n] != '=' || n == 0 || assignment[n + 1] == '\0')
        return cli_usage(cli, MAQ_CODE_CLI_SET, "write it as key=value,value", "%s %.60s: there is no key=values in it",
                         option->name, assignment);
    const char *path = cli_printf(cli, "%s.%.*s", option->path, (int)n, assignment),
               *list = cli_printf(cli, "[%s]", assignment + n + 1);
    return path && list ? cli_add_override(cli, option->name, path, list) : MAQ_NO_MEMORY;
}

/* Further files beside the first, as the job's key `files`. */
static enum maq_status add_files(struct cli *cli)
{
    if (cli->command->max_args != CLI_JOB_FILES || cli->n_args < 2)
        return MAQ_OK;
    const char *list = "";
    for (size_t i = 1; i < cli->n_args && list; i++) {
        if (strpbrk(cli->args[i], "\"\\"))
            return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, NULL, "a file's name with quotes or backslashes: %.80s",
                             cli->args[i]);
        list = cli_printf(cli, "%s%s\"%s\"", list, *list ? ", " : "", cli->args[i]);
    }
    list = list ? cli_printf(cli, "[%s]", list) : NULL;
    return list ? cli_add_override(cli, "FILE", "files", list) : MAQ_NO_MEMORY;
}

/* Standard input into `cli`. More than a document may have is left to who reads it, who says so. */
static enum maq_status read_input(struct cli *cli)
{
    size_t size = 0, n = 0, got;
    do {
        size = size ? 2 * size : 65536;
        char *grown = realloc(cli->input, size);
        if (!grown)
            return cli_no_memory(cli);
        cli->input = grown;
        got = fread(cli->input + n, 1, size - n, stdin);
        n += got;
    } while (n == size && size <= INPUT_MAX);
    if (ferror(stdin))
        return maq_diag_fail(MAQ_IO, cli->diag, MAQ_CODE_CLI_INPUT, (struct maq_span){0}, NULL,
                             "cannot read standard input");
    cli->document = (struct maq_str){cli->input, n};
    return MAQ_OK;
}

enum maq_status cli_read_job(struct maq_loaded_job **out, struct cli *cli, const char *path, bool open)
{
    const bool dash = path && strcmp(path, "-") == 0;
    if (dash && !cli->document.ptr) {
        enum maq_status status = read_input(cli);
        if (status != MAQ_OK)
            return status;
    }
    if (dash) {
        const char *name = cli->called ? "job" : "stdin";
        return open ? maq_job_parse_open(out, name, cli->document, cli->overrides, cli->n_overrides, cli->diag)
                    : maq_job_parse(out, name, cli->document, cli->overrides, cli->n_overrides, cli->diag);
    }
    return open ? maq_job_load_open(out, path, cli->overrides, cli->n_overrides, cli->diag)
                : maq_job_load(out, path, cli->overrides, cli->n_overrides, cli->diag);
}

enum maq_status cli_load_job(struct maq_loaded_job **out, struct cli *cli, const char *path, bool open)
{
    struct maq_loaded_job *loaded;
    struct stat st;
    if (path && path == cli->behind && strcmp(path, "-") != 0 && stat(path, &st) != 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT,
                         strcmp(cli->behind_flag, "--json") == 0 ? "--output FILE writes to a file" : NULL,
                         "no job file is named '%.80s', and %s takes no value", path, cli->behind_flag);
    enum maq_status status = add_files(cli);
    if (status != MAQ_OK)
        return status;
    /* Standard input may be a framework's file: what reads files knows those. */
    if (path && !cli->document.ptr && strcmp(path, "-") == 0)
        status = open ? maq_job_load_open(&loaded, path, cli->overrides, cli->n_overrides, cli->diag)
                      : maq_job_load(&loaded, path, cli->overrides, cli->n_overrides, cli->diag);
    else
        status = cli_read_job(&loaded, cli, path, open);
    if (status != MAQ_OK)
        return status;
    status = maq_job_check_effects(loaded, cli->megatron, cli->diag);
    if (status == MAQ_OK && maq_job_is_post_training(loaded) && cli->command != &cli_train)
        status = cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "take `rl` out to ask of the policy's training by itself",
                           "a job of several models (rl) is read by maquette train alone");
    if (status != MAQ_OK) {
        maq_job_free(loaded);
        return status;
    }
    *out = loaded;
    return MAQ_OK;
}
