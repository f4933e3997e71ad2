/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_completion.c - `maquette completion SHELL`: what a shell needs to complete commands, options and names, written from the tables that
 * read them.
 *
 * bash: a function that looks at the words before the cursor. zsh: a line of _arguments for each option. fish: a `complete` for each.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/option_values.h"

#define DOC 80 /* bytes of a description */

/* Text inside single quotes; of zsh's descriptions brackets and colons mean something. */
static void put_quoted(FILE *out, const char *text, bool zsh)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (zsh && (*text == '[' || *text == ']' || *text == ':' || *text == '\\'))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void put_words(FILE *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

static void put_names(FILE *out, enum maq_catalogue_kind kind)
{
    const char *name;
    for (size_t i = 0; (name = maq_catalogue_name(kind, i)) != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", name);
}

static void put_head(FILE *out, const char *first, const char *shell)
{
    fprintf(out, "%s# Completions of maquette %s for %s, written by `maquette completion %s`.\n", first, maq_version(),
            shell, shell);
}

/* Whether the first argument may be a kind or a name of the catalogue. */
static bool takes_names(const struct cli_command *command)
{
    return command == &cli_show;
}

/* ---- bash ---- */

static void bash_values(FILE *out, const struct cli_command *command)
{
    struct cli_shown_option o;
    for (size_t i = 0; cli_shown_option(&o, command, i); i++) {
        if (!o.words && o.names < 0)
            continue;
        fprintf(out, "    '%s %s') echo ", command->name, o.name);
        if (o.words)
            put_words(out, o.words);
        else
            fprintf(out, "$(_maquette_names %s)", maq_catalogue_kind_name((enum maq_catalogue_kind)o.names));
        fputs(" ;;\n", out);
    }
}

static void write_bash(FILE *out)
{
    struct cli_shown_option o;
    put_head(out, "", "bash");
    fputs("_maquette_names() {\n    case $1 in\n", out);
    for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++) {
        fprintf(out, "    %s) echo ", maq_catalogue_kind_name((enum maq_catalogue_kind)k));
        put_names(out, (enum maq_catalogue_kind)k);
        fputs(" ;;\n", out);
    }
    fputs("    esac\n}\n_maquette_options() {\n    case $1 in\n", out);
    for (size_t c = 0; cli_commands[c]; c++) {
        fprintf(out, "    '%s') echo --help --help-all", cli_commands[c]->name);
        for (int i = 0; i < CLI_COMMON_COUNT; i++)
            if (cli_takes_common(cli_commands[c], (enum cli_common)i))
                fprintf(out, " %s", cli_common_options[i].name);
        for (size_t i = 0; cli_shown_option(&o, cli_commands[c], i); i++)
            fprintf(out, " %s", o.name);
        fputs(" ;;\n", out);
    }
    fputs("    esac\n}\n_maquette_values() {\n    case \"$1 $2\" in\n", out);
    for (size_t c = 0; cli_commands[c]; c++)
        bash_values(out, cli_commands[c]);
    fputs("    esac\n}\n_maquette() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} option= words= "
          "command=${COMP_WORDS[1]}\n"
          "    # --option=value is three words here\n"
          "    if [[ $current == = ]]; then option=$before current=\n"
          "    elif [[ $before == = ]]; then option=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    elif [[ $before == --* ]]; then option=$before; fi\n"
          "    case \"$command ${COMP_WORDS[2]}\" in\n",
          out);
    for (size_t c = 0; cli_commands[c]; c++)
        if (strchr(cli_commands[c]->name, ' '))
            fprintf(out, "    '%s') [[ $COMP_CWORD -gt 2 ]] && command='%s' ;;\n", cli_commands[c]->name,
                    cli_commands[c]->name);
    fputs("    esac\n    if [[ $COMP_CWORD -eq 1 ]]; then words='--help --version", out);
    for (size_t c = 0; cli_commands[c]; c++)
        if (!strchr(cli_commands[c]->name, ' '))
            fprintf(out, " %s", cli_commands[c]->name);
    fputs("'\n    elif [[ $current == -* ]]; then words=$(_maquette_options \"$command\")\n"
          "    elif [[ -n $option ]]; then words=$(_maquette_values \"$command\" \"$option\")\n",
          out);
    for (size_t c = 0; cli_commands[c]; c++)
        if (takes_names(cli_commands[c])) {
            fprintf(out, "    elif [[ $command == %s ]]; then words='", cli_commands[c]->name);
            for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++)
                fprintf(out, "%s ", maq_catalogue_kind_name((enum maq_catalogue_kind)k));
            fputs("'\n", out);
            for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++)
                fprintf(out, "        words+=\" $(_maquette_names %s)\"\n",
                        maq_catalogue_kind_name((enum maq_catalogue_kind)k));
        }
    fputs("    elif [[ $COMP_CWORD -eq 2 ]]; then\n        case $command in\n", out);
    for (size_t c = 0; cli_commands[c]; c++) {
        const char *space = strchr(cli_commands[c]->name, ' ');
        if (space)
            fprintf(out, "        %.*s) words='%s' ;;\n", (int)(space - cli_commands[c]->name), cli_commands[c]->name,
                    space + 1);
    }
    fputs("        esac\n    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "}\n"
          "complete -o default -F _maquette maquette # files where there is nothing else\n",
          out);
}

/* ---- zsh ---- */

static void zsh_option(FILE *out, const struct cli_shown_option *o)
{
    char doc[DOC];
    cli_short_doc(doc, sizeof doc, o->doc);
    fprintf(out, "      '*%s%s[", o->name, o->value ? "=" : "");
    put_quoted(out, doc, true);
    fputs("]", out);
    if (o->value) {
        fputs(":", out);
        put_quoted(out, o->value, true);
        fputs(":", out);
        if (o->words) {
            fputs("(", out);
            put_words(out, o->words);
            fputs(")", out);
        } else if (o->names >= 0)
            fprintf(out, "_maquette_%s", maq_catalogue_kind_name((enum maq_catalogue_kind)o->names));
        else
            fputs(o->files ? "_files" : " ", out);
    }
    fputs("' \\\n", out);
}

static void write_zsh(FILE *out)
{
    struct cli_shown_option o;
    char doc[DOC];
    put_head(out, "#compdef maquette\n", "zsh");
    for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++) {
        fprintf(out, "_maquette_%s() {\n  local -a names\n  names=(",
                maq_catalogue_kind_name((enum maq_catalogue_kind)k));
        put_names(out, (enum maq_catalogue_kind)k);
        fputs(")\n  compadd -a names\n  _files\n}\n", out);
    }
    fputs("_maquette_any() {\n  compadd --", out);
    for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++)
        fprintf(out, " %s", maq_catalogue_kind_name((enum maq_catalogue_kind)k));
    fputs("\n", out);
    for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++)
        fprintf(out, "  _maquette_%s\n", maq_catalogue_kind_name((enum maq_catalogue_kind)k));
    fputs("}\n_maquette() {\n  local -a commands\n  commands=(\n", out);
    for (size_t c = 0; cli_commands[c]; c++) {
        if (strchr(cli_commands[c]->name, ' '))
            continue;
        fprintf(out, "    '%s:", cli_commands[c]->name);
        cli_short_doc(doc, sizeof doc, cli_commands[c]->summary);
        put_quoted(out, doc, true);
        fputs("'\n", out);
    }
    fputs("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  local command=$words[2]\n  "
          "shift words; (( CURRENT-- ))\n",
          out);
    for (size_t c = 0; cli_commands[c]; c++)
        if (strchr(cli_commands[c]->name, ' '))
            fprintf(out,
                    "  if [[ \"$words[1] $words[2]\" == '%s' ]] && (( CURRENT > 2 )); then command='%s'; shift words; "
                    "(( CURRENT-- )); fi\n",
                    cli_commands[c]->name, cli_commands[c]->name);
    fputs("  case $command in\n", out);
    for (size_t c = 0; cli_commands[c]; c++) {
        fprintf(out,
                "  '%s')\n    _arguments -s \\\n      '--help[how to use the command]' \\\n      '--help-all[all of "
                "its options]' \\\n",
                cli_commands[c]->name);
        for (int i = 0; i < CLI_COMMON_COUNT; i++)
            if (cli_takes_common(cli_commands[c], (enum cli_common)i))
                fprintf(out, "      '%s[%s]' \\\n", cli_common_options[i].name, cli_common_options[i].doc);
        for (size_t i = 0; cli_shown_option(&o, cli_commands[c], i); i++)
            zsh_option(out, &o);
        fprintf(out, "      '*:file:%s' ;;\n", takes_names(cli_commands[c]) ? "_maquette_any" : "_files");
    }
    fputs("  esac\n}\n_maquette \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_option(FILE *out, const struct cli_command *command, const struct cli_shown_option *o)
{
    char doc[DOC];
    cli_short_doc(doc, sizeof doc, o->doc);
    fprintf(out, "complete -c maquette -n \"__maquette_is '%s'\" -l %s", command->name, o->name + 2);
    if (o->words) {
        fputs(" -x -a '", out);
        put_words(out, o->words);
        fputs("'", out);
    } else if (o->names >= 0)
        fprintf(out, " -r -a '(__maquette_%s)'", maq_catalogue_kind_name((enum maq_catalogue_kind)o->names));
    else if (o->value)
        fputs(o->files ? " -r" : " -x", out);
    fputs(" -d '", out);
    for (const char *c = doc; *c; c++)
        fprintf(out, *c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
    fputs("'\n", out);
}

static void write_fish(FILE *out)
{
    struct cli_shown_option o;
    char doc[DOC];
    put_head(out, "", "fish");
    for (int k = 0; k < MAQ_CATALOGUE_KIND_COUNT; k++) {
        fprintf(out, "function __maquette_%s\n    string split ' ' '",
                maq_catalogue_kind_name((enum maq_catalogue_kind)k));
        put_names(out, (enum maq_catalogue_kind)k);
        fputs("'\nend\n", out);
    }
    fputs("function __maquette_is\n    set -l words (commandline -opc) '' ''\n    set -l command $words[2]\n", out);
    for (size_t c = 0; cli_commands[c]; c++)
        if (strchr(cli_commands[c]->name, ' '))
            fprintf(out, "    test \"$words[2] $words[3]\" = '%s'; and set command '%s'\n", cli_commands[c]->name,
                    cli_commands[c]->name);
    fputs("    test \"$command\" = \"$argv[1]\"\nend\n", out);
    for (size_t c = 0; cli_commands[c]; c++) {
        const struct cli_command *command = cli_commands[c];
        const char *space = strchr(command->name, ' ');
        cli_short_doc(doc, sizeof doc, command->summary);
        if (space)
            fprintf(out, "complete -c maquette -n \"__maquette_is '%.*s'\" -a '%s'", (int)(space - command->name),
                    command->name, space + 1);
        else
            fprintf(out, "complete -c maquette -n __fish_use_subcommand -f -a '%s'", command->name);
        fprintf(out, " -d '%s'\n", doc);
        for (int k = 0; takes_names(command) && k < MAQ_CATALOGUE_KIND_COUNT; k++)
            fprintf(out, "complete -c maquette -n \"__maquette_is '%s'\" -a '%s (__maquette_%s)'\n", command->name,
                    maq_catalogue_kind_name((enum maq_catalogue_kind)k),
                    maq_catalogue_kind_name((enum maq_catalogue_kind)k));
        for (int i = 0; i < CLI_COMMON_COUNT; i++)
            if (cli_takes_common(command, (enum cli_common)i))
                fprintf(out, "complete -c maquette -n \"__maquette_is '%s'\" -l %s -d '%s'\n", command->name,
                        cli_common_options[i].name + 2, cli_common_options[i].doc);
        for (size_t i = 0; cli_shown_option(&o, command, i); i++)
            fish_option(out, command, &o);
        fprintf(out, "complete -c maquette -n \"__maquette_is '%s'\" -l help -d 'how to use the command'\n",
                command->name);
        fprintf(out, "complete -c maquette -n \"__maquette_is '%s'\" -l help-all -d 'all of its options'\n",
                command->name);
    }
}

static const struct shell {
    const char *name;
    void (*write)(FILE *out);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

static enum maq_status run(struct cli *cli)
{
    static const char hint[] = "maquette completion bash, zsh or fish";
    char *text = NULL;
    size_t len = 0;
    if (cli->n_args == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, hint, "there is no shell");
    for (size_t i = 0; i < CLI_COUNT(shells); i++) {
        if (strcmp(cli->args[0], shells[i].name) != 0)
            continue;
        FILE *out = open_memstream(&text, &len);
        if (!out)
            return cli_no_memory(cli);
        shells[i].write(out);
        if (fclose(out) != 0 || !text) {
            free(text);
            return cli_no_memory(cli);
        }
        return cli_write(cli, text, NULL);
    }
    return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, hint, "no completions for '%.80s'", cli->args[0]);
}

const struct cli_command cli_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .summary = "print what a shell needs to complete commands, options and names",
    .about = "Prints completions for a shell: of commands, options, their words, and of the models, GPUs and "
             "frameworks that this program "
             "has. `meson install` puts them where each shell looks.\n",
    .examples = "  source <(maquette completion bash)\n"
                "  maquette completion zsh >~/.zfunc/_maquette\n"
                "  maquette completion fish >~/.config/fish/completions/maquette.fish\n",
    .max_args = 1,
    .run = run,
};
