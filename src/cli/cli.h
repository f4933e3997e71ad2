/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what the commands share: the program's state, option tables, output.
 *
 * A command is one file with a static table of options and a function; main.c has the list. The tables are all there
 * is: they parse, they print --help, they give the words for "did you mean".
 */
#ifndef MAQ_CLI_CLI_H
#define MAQ_CLI_CLI_H

#include <signal.h>

#include "maquette/maquette.h"

#define CLI_OPTIONS_MAX 160
#define CLI_COLUMNS_DEFAULT 100
#define CLI_JOB_FILES 8 /* max_args of a command whose job may be several files of a framework */
#define CLI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One run of the program. */
/* Options that every command takes. A command's own of the same name goes before. */
enum cli_common { CLI_QUIET, CLI_VERBOSE, CLI_STATS, CLI_COMMON_COUNT };
struct cli_common_option {
    const char *name, *doc;
};
extern const struct cli_common_option cli_common_options[CLI_COMMON_COUNT];

struct cli {
    struct maq_diag *diag;
    const struct cli_command *command;
    struct cli_called *called;         /* a program called the command: what it gets (call.h); NULL = a person did */
    struct maq_str document;           /* the job that `-` stands for: a call's, or standard input once it was read, */
    char *input;                       /* which is kept here */
    const volatile sig_atomic_t *stop; /* and what asks for an end; NULL = nothing */
    void (*tell)(void *user, const char *line); /* and who is told how far it is; NULL = nobody */
    void *tell_user;
    char *text, *json; /* a report that was written, until it is delivered; NULL = not in this form */
    enum maq_status text_status, json_status;
    char *page; /* of --html, until it is written */
    bool color_out, color_err, unicode;
    bool wrote;                    /* something is on standard output */
    bool quiet;                    /* another process of several reports */
    bool common[CLI_COMMON_COUNT]; /* options that every command takes, whether they are given */
    bool told;                     /* diagnostics are on standard error already */
    bool reader_gone;              /* who read standard output closed it: nobody is left to tell */
    uint32_t columns;
    /* options of the command, as parsed */
    const char *values[CLI_OPTIONS_MAX]; /* by the number of the option in the command's table; NULL = not given */
    struct maq_span given_at[CLI_OPTIONS_MAX]; /* where the job gave it (its section `serve`); nowhere = the line did */
    struct maq_override *overrides;            /* job keys, in the order given */
    size_t n_overrides, overrides_size;
    const char *behind, *behind_flag; /* the word behind the last option that takes no value, and that option */
    const char *torn;                 /* the word behind a cluster without quotes, */
    bool torn_told;                   /* and whether that was said */
    bool machine_told; /* options that say the machine were met, and the cluster that they mean was said */
    const char **args; /* what is no option */
    size_t n_args;
    size_t n_before;                  /* of them before a `--` */
    int exit_status;                  /* of a program that was run; 0 = maquette's own */
    double started_s, shown_s;        /* of the progress line; 0 = not begun, not shown */
    char left[32];                    /* what cli_left() says */
    struct maq_megatron *megatron;    /* what the words behind `--` say; NULL = none */
    struct maq_serve_command *served; /* the same, of a serving engine */
    char **owned;                     /* strings made while parsing */
    size_t n_owned, owned_size;
};

enum cli_option_kind {
    CLI_FLAG,  /* takes no value */
    CLI_VALUE, /* takes one */
    CLI_LIST,  /* takes one or several, cut at commas; may be given again, which adds to it */
    CLI_JOB,   /* takes one, which is laid over the job document at `path` */
    CLI_PRICE, /* the same, and a number without a unit is US dollars an hour */
    CLI_SET,   /* path=value, likewise */
    CLI_SPACE, /* key=value,value: a list of the job's section at `path` */
    CLI_AXES   /* key=value,value; may be given again, which adds to it behind a comma */
};

struct cli_option {
    const char *name; /* "--json" */
    enum cli_option_kind kind;
    const char *value; /* what stands for it in help: "FILE" */
    const char *doc;
    const char *path;         /* CLI_JOB */
    const char *const *words; /* the values it takes, when they are words; NULL-terminated */
};

/* Rows that every command of a job has. */
#define CLI_OPTION_MODEL                                                                                               \
    {                                                                                                                  \
        "--model", CLI_JOB, "MODEL", "name (maquette show models, or of Hugging Face) or a config.json", "model", NULL \
    }
#define CLI_OPTION_CLUSTER                                                                                             \
    {                                                                                                                  \
        "--cluster", CLI_JOB, "CLUSTER", "\"h100-sxm:8 x 4, rail 400G\" or a file", "cluster", NULL                    \
    }
#define CLI_OPTION_FRAMEWORK                                                                                           \
    {                                                                                                                  \
        "--framework", CLI_JOB, "NAME", "what runs the job (maquette show frameworks)", "framework", NULL              \
    }
#define CLI_OPTION_NAME                                                                                                \
    {                                                                                                                  \
        "--name", CLI_JOB, "TEXT", "title of the report", "name", NULL                                                 \
    }
#define CLI_OPTION_SET                                                                                                 \
    {                                                                                                                  \
        "--set", CLI_SET, "PATH=VALUE", "any value of the job: --set model.num_hidden_layers=2", NULL, NULL            \
    }
#define CLI_OPTION_MEASURED                                                                                            \
    {                                                                                                                  \
        "--measured", CLI_JOB, "FILE", "look costs up in FILE first, kernels that `maquette profile` measured",        \
            "cost.measured", NULL                                                                                      \
    }
#define CLI_OPTION_COST                                                                                                \
    {                                                                                                                  \
        "--cost", CLI_JOB, "analytical|fitted|measured", "the best kind of cost that may be used (measured)",          \
            "cost.provider", cli_providers                                                                             \
    }
#define CLI_OPTION_PRICE                                                                                               \
    {                                                                                                                  \
        "--price", CLI_PRICE, "USD", "US dollars an hour for each device: what tokens cost", "cost.price", NULL        \
    }
#define CLI_OPTION_OUTPUT                                                                                              \
    {                                                                                                                  \
        "--output", CLI_VALUE, "FILE", "write the report to FILE, not to standard output", NULL, NULL                  \
    }
/* `what` it prints, and what is left out for it. */
#define CLI_OPTION_WRITE_AS(what, instead)                                                                             \
    {                                                                                                                  \
        "--write-as", CLI_VALUE, "FORM",                                                                               \
            what " a framework's configuration file, which is read back first" instead                                 \
                 ": accelerate, axolotl, deepspeed, llama-factory, torchtitan, training-arguments",                    \
            NULL, cli_file_forms                                                                                       \
    }
#define CLI_OPTION_HTML                                                                                                \
    {                                                                                                                  \
        "--html", CLI_VALUE, "FILE", "the report as one HTML file with charts, beside what is printed", NULL, NULL     \
    }
/* Of commands that read what was recorded; the command tells its findings: maq_diag_set_strict(). */
#define CLI_OPTION_STRICT                                                                                              \
    {                                                                                                                  \
        "--strict", CLI_FLAG, NULL, "refuse recorded data at the first thing in it that would be mended", NULL, NULL   \
    }
#define CLI_OPTION_COMM_SIZE                                                                                           \
    {                                                                                                                  \
        "--comm-size", CLI_VALUE, "input|count",                                                                       \
            "what comm_size is of in Chakra traces: a rank's whole input, or its part as NCCL counts (by who wrote "   \
            "them)",                                                                                                   \
            NULL, cli_comm_sizes                                                                                       \
    }

struct cli_command {
    const char *name, *args, *summary; /* "train", "[JOB.yaml] [OPTION...]", one line */
    const char *about;                 /* for --help: paragraphs that end with \n, "  word   what it is\n" for a list */
    const char *examples;              /* lines; each ends with \n */
    const char *brief;                 /* in the place of `about` where --help has to be short; NULL: about */
    const char *const *often;          /* names of the options that it then has; NULL-terminated. NULL: it is short */
    const struct cli_option *options;
    size_t n_options;
    const size_t *
        leaves_out; /* of them, those that are another command's: numbers that grow, n_options at the end; NULL = none */
    size_t max_args;
    bool job;         /* takes every key of plan and workload as an option too */
    bool job_in_help; /* whose --help describes them; that of the others says where they are described */
    /* behind `--` the arguments of a Megatron-LM script, whole or without what a search decides */
    enum { CLI_MEGATRON_NONE, CLI_MEGATRON_WHOLE, CLI_MEGATRON_OPEN } megatron;
    bool callable; /* by a program (call.h): its reports are those of CLI_REPORT */
    bool engine;   /* behind `--` the command line of a serving engine */
    enum maq_status (*run)(struct cli *cli);
};

extern const char *const cli_file_forms[];
extern const char *const cli_providers[]; /* words of --cost. job_options.c */

extern const struct cli_command *const cli_commands[]; /* NULL-terminated. commands.c */
extern const struct cli_command cli_train, cli_plan, cli_islands, cli_risk, cli_show, cli_profile;
extern const struct cli_command cli_run, cli_capture, cli_graph, cli_replay, cli_emulate;
extern const struct cli_command cli_validate, cli_serve, cli_serve_plan, cli_diff, cli_completion, cli_manual,
    cli_schema, cli_explain, cli_ui;

extern const char *const cli_comm_sizes[]; /* words of --comm-size. read_capture.c */
/* The captured job, or the traces, that the arguments name; `comm_size` is the value of --comm-size, or NULL. read_capture.c */
enum maq_status cli_read_capture(struct cli *cli, struct maq_capture **out, const char *comm_size);

/* The command of the most words that the arguments, one at least, begin with; *words has how many. NULL: it is none. */
const struct cli_command *cli_find_command(int *words, int argc, char **argv);
enum maq_status cli_unknown_command(struct cli *cli, const char *name);

/* Whether the command has that row of its table. options.c */
bool cli_takes(const struct cli_command *command, size_t option);
/* Options of the command into `cli`. All faults are reported; then MAQ_USAGE. options.c */
enum maq_status cli_parse(struct cli *cli, const struct cli_command *command, int argc, char **argv);
void cli_fini(struct cli *cli);
/* Refuses names of files that say another format than what is written into them. output_names.c */
enum maq_status cli_check_output_names(struct cli *cli);
/* The whole number that an option has, `otherwise` where it is not given. */
enum maq_status cli_count(struct cli *cli, uint32_t *out, size_t option, uint32_t least, uint32_t most,
                          uint32_t otherwise);

/* Help on standard output. help.c */
enum maq_status cli_help(struct cli *cli);
/* `all`: every option; else no more than fits a screen. */
enum maq_status cli_help_command(struct cli *cli, const struct cli_command *command, bool all);

/* Text to standard output, or to a file when path is not NULL. Takes `text` (free()). output.c */
enum maq_status cli_write(struct cli *cli, char *text, const char *path);
/* Before a long computation: whether a file could be written there; NULL: none is wanted. output.c */
enum maq_status cli_can_write(struct cli *cli, const char *path);

/*
 * A report, in the form that was asked for, to where it goes; of a call in both. `stem`: what the names of the functions that write it
 * begin with; behind `opts` what it is made of. output.c
 */
#define CLI_REPORT(cli, is_json, path, stem, opts, ...)                                                                \
    ((cli)->text_status =                                                                                              \
         (cli)->called || !(is_json) ? stem##_text(&(cli)->text, __VA_ARGS__, (opts), (cli)->diag) : MAQ_OK,           \
     (cli)->json_status =                                                                                              \
         (cli)->called || (is_json) ? stem##_json(&(cli)->json, __VA_ARGS__, (opts), (cli)->diag) : MAQ_OK,            \
     cli_deliver((cli), (path)))
enum maq_status cli_deliver(struct cli *cli, const char *path);

/* The page of a report beside it, where --html asks for one (`file`): made by stem##_html of what the report is made of. output.c */
#define CLI_PAGE(cli, file, stem, opts, ...)                                                                           \
    ((file) ? cli_write_page((cli), stem##_html(&(cli)->page, __VA_ARGS__, (opts), (cli)->diag), (file)) : MAQ_OK)
enum maq_status cli_write_page(struct cli *cli, enum maq_status made, const char *path);
/* Such a page, taken (free()), to its file. */
enum maq_status cli_put_page(struct cli *cli, char *page, const char *path);
/* The file of a page that goes to who called the command. */
extern const char cli_page_of_call[];

/* What a report was made of, for who called the command, and then owns it; where nobody did it is freed. call.c */
void cli_keep_job(struct cli *cli, struct maq_loaded_job *job);
void cli_keep_train(struct cli *cli, struct maq_train_result *result);
void cli_keep_search(struct cli *cli, struct maq_search_result *result);
void cli_keep_served(struct cli *cli, struct maq_serve_result *result, struct maq_request_set *requests);

/* How two things ended of which one does not wait for the other: a report, and the file beside it. */
static inline enum maq_status cli_first_fault(enum maq_status first, enum maq_status second)
{
    return first != MAQ_OK ? first : second;
}
/* What diagnostics there are, to standard error. */
void cli_print_diag(const struct cli *cli);
/* Whether `command` takes it as that. */
bool cli_takes_common(const struct cli_command *command, enum cli_common option);
/* With --stats, what the command took since then, by the monotonic clock. */
void cli_print_stats(const struct cli *cli, double began_s);
/* Looks at the terminals behind the standard streams. */
void cli_look_around(struct cli *cli);

/* Ctrl-C asks for an end instead of ending the program; a second one ends it. Of a call, what its caller asks. progress.c */
const volatile sig_atomic_t *cli_catch_interrupts(struct cli *cli);
/* The same for every signal that asks for an end; what is there is its number. */
const volatile sig_atomic_t *cli_catch_ends(void);
/* One line on a terminal's standard error that writes over itself, once a second has passed; "" takes it away. Not thread-safe. */
void cli_progress(struct cli *cli, const char *fmt, ...) MAQ_PRINTF(2, 3);
/* ", about 3 min left" for a progress line, when `done` of `all` took as long as it did so far; "" where that says too little. In cli. */
const char *cli_left(struct cli *cli, double done, double all);
/* The same of a time. */
void cli_time_left(char out[32], double elapsed_s, double done, double all);

struct maq_report_opts cli_report_opts(const struct cli *cli, bool to_file);

enum maq_status cli_no_memory(struct cli *cli);

/* A fault of usage: adds it and returns MAQ_USAGE. A message that begins with the name of an option points to where the job gave that option,
 * and is then MAQ_BAD_INPUT. */
enum maq_status cli_usage(struct cli *cli, uint16_t code, const char *hint, const char *fmt, ...) MAQ_PRINTF(4, 5);
/* malloc for the life of the run; NULL when out of memory (reported). */
char *cli_printf(struct cli *cli, const char *fmt, ...) MAQ_PRINTF(2, 3);

/* Job options: row i over plan and workload; false at the end. job_options.c */
struct cli_job_option {
    struct maq_option option;
    const char *section;
    const char *const *words;
};
bool cli_job_option(size_t i, struct cli_job_option *out);
/* Whether `name` ("--tp", "--tensor-model-parallel-size", with - or _) is the row's key or one of its aliases. */
bool cli_job_option_is(const struct cli_job_option *option, const char *name, size_t len);
/* Lays the option's value over the job, whatever spelling the document uses. */
enum maq_status cli_job_override(struct cli *cli, const struct cli_job_option *option, const char *flag,
                                 const char *value);
/* `path=value` of --set; short paths of plan and workload are spelled out. */
enum maq_status cli_job_set(struct cli *cli, const char *assignment);
/* `key=a,b` of --space: search.key = [a, b], for the section "search". */
enum maq_status cli_job_list(struct cli *cli, const struct cli_option *option, const char *assignment);
/* Lays the words of a Megatron-LM script's command line under the options. */
enum maq_status cli_job_megatron(struct cli *cli, const char *const *words, size_t n_words);
/* Lays what the command line of a serving engine says of the job under the options. */
enum maq_status cli_job_engine(struct cli *cli, const char *const *words, size_t n_words);
/* Loads the job that a file (NULL: none) and the options describe, and refuses settings that have no effect. `open`: for a search. */
enum maq_status cli_load_job(struct maq_loaded_job **out, struct cli *cli, const char *path, bool open);
enum maq_status cli_add_override(struct cli *cli, const char *flag, const char *path, const char *value);
/* The same, and no more, for a command that reads its job several times: standard input is read once. */
enum maq_status cli_read_job(struct maq_loaded_job **out, struct cli *cli, const char *path, bool open);

/* The --cluster that options of other programs mean, --gpus 64 --gpu h100; false: `name` is none of them, or they say too little. Whether
 * a word is the value of one. cluster_option_hint.c */
bool cli_cluster_option_hint(char hint[256], const char *name, size_t len, int argc, char **argv);
bool cli_is_cluster_value(const char *text);

/*
 * Hints for another program's word for an option, its name without dashes, one at a call: *row is 0 at first. Name of the command meant by a word. NULL:
 * none, or no more. synonyms.c
 */
const char *cli_option_synonym(const char *name, size_t len, size_t *row);
const char *cli_command_synonym(const char *name);

/* Nearest word, for "did you mean". nearest.c */
struct cli_nearest {
    const char *word, *best;
    size_t best_len, distance, word_len;
};
void cli_nearest_init(struct cli_nearest *n, const char *word, size_t len);
void cli_nearest_try(struct cli_nearest *n, const char *candidate, size_t len);

#endif
