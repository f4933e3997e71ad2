/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_validate.h - what the validations share: their options, read once by cmd_validate.c.
 */
#ifndef MAQ_CLI_CMD_VALIDATE_H
#define MAQ_CLI_CMD_VALIDATE_H

#include "cli/cli.h"
#include "maquette/validate.h"
#include "maquette/validate_serve.h"

#define CLI_VALIDATE_FILTERS 32u

struct cli_validate_options {
    struct maq_validate_opts opts; /* threads, and the filters below */
    struct maq_validate_filter filters[CLI_VALIDATE_FILTERS];
    uint32_t worst;
    bool json;
    const char *plot, *output, *html;  /* files; NULL = none, standard output, none */
    bool leave_device_out, analytical; /* kernels: what may answer */
    const char *metric;                /* of the plot; NULL = the first */
    const char *profile;               /* plans: folder of the profile; NULL = none */
    bool sailor;                       /* plans: Sailor's rule judges */
    const char *job;                   /* ranking: what the plans are laid over */
    const char *layers_at;             /* ranking: which entries are layers, "3-14,41-52"; NULL = all behind those */
    uint32_t layers_before;            /* ranking: entries of a partition in front of the first layer */
};

/* One thing that can be validated: a name for the command line, and what runs. MAQ_NO: no row could be compared. */
struct cli_validation {
    const char *name;
    bool many; /* takes several files */
    enum maq_status (*run)(struct cli *cli, const char *path, const struct cli_validate_options *options);
};

extern const struct cli_validation cli_validate_train, cli_validate_collectives, cli_validate_kernels,
    cli_validate_plans, cli_validate_ranking, cli_validate_risk, cli_validate_schedule, cli_validate_serve,
    cli_validate_serve_log, cli_validate_choice;

/* The page of --html, where it is asked for: what is compared, its report and its document, and a plot or NULL. */
#define CLI_VALIDATE_PAGE(cli, o, what, text, json, svg)                                                               \
    ((o)->html ? cli_validate_page((cli), (o)->html, (what), (text), (json), (svg)) : MAQ_OK)
/* Takes the texts (free()); NULL of the first two is reported as out of memory. */
enum maq_status cli_validate_page(struct cli *cli, const char *path, const char *what, char *text, char *json,
                                  char *svg);
/* Takes `text` (free()); NULL is reported as out of memory. */
enum maq_status cli_validate_write(struct cli *cli, char *text, const char *path);

#endif
