/* SPDX-License-Identifier: Apache-2.0 */
/* launch_options.h - what the commands that run a program have in common. */
#ifndef MAQ_CLI_LAUNCH_OPTIONS_H
#define MAQ_CLI_LAUNCH_OPTIONS_H

#include "cli/cli.h"

/* The first rows of each of their tables, in this order. */
enum cli_launch_option {
    CLI_LAUNCH_WORLD,
    CLI_LAUNCH_PER_NODE,
    CLI_LAUNCH_DEVICE,
    CLI_LAUNCH_CLUSTER,
    CLI_LAUNCH_LIBRARIES,
    CLI_LAUNCH_MEMORY,
    CLI_LAUNCH_CLOCK,
    CLI_LAUNCH_TCP,
    CLI_LAUNCH_VALUES,
    CLI_LAUNCH_NCCL_MEMORY,
    CLI_LAUNCH_MEASURED,
    CLI_LAUNCH_KERNELS,
    CLI_LAUNCH_TIMEOUT,
    CLI_LAUNCH_JSON,
    CLI_LAUNCH_OUTPUT,
    CLI_LAUNCH_COUNT
};

extern const char *const cli_generations[], *const cli_clocks[];

/* clang-format off */
#define CLI_LAUNCH_OPTIONS                                                                                             \
    [CLI_LAUNCH_WORLD] = {"--world", CLI_VALUE, "N", "ranks of the job (devices of --cluster)", NULL, NULL},           \
    [CLI_LAUNCH_PER_NODE] = {"--per-node", CLI_VALUE, "N", "ranks on a node (devices of a node)", NULL, NULL},         \
    [CLI_LAUNCH_DEVICE] = {"--device", CLI_VALUE, "NAME", "the GPU that the program finds (h100-sxm); maquette show gpus", NULL, NULL}, \
    [CLI_LAUNCH_CLUSTER] = {"--cluster", CLI_VALUE, "CLUSTER", "\"h100-sxm:8 x 4, rail 400G\" or a file, for the times of collectives", NULL, NULL}, \
    [CLI_LAUNCH_LIBRARIES] = {"--libraries", CLI_VALUE, "12|13|auto|none|gpu", "CUDA of the program's libraries (auto); none: it uses no device; gpu: this machine's own, and NCCL alone is stood in for", NULL, cli_generations}, \
    [CLI_LAUNCH_MEMORY] = {"--memory", CLI_VALUE, "SIZE", "memory of a device: 80GB, 40GiB (as the catalogue says)", NULL, NULL}, \
    [CLI_LAUNCH_CLOCK] = {"--clock", CLI_VALUE, "virtual|real", "what host clocks of the program show (virtual)", NULL, cli_clocks}, \
    [CLI_LAUNCH_TCP] = {"--tcp", CLI_VALUE, "PORTS", "ports of the program's own rendezvous over TCP: 12345,29400 (none)", NULL, NULL}, \
    [CLI_LAUNCH_VALUES] = {"--values", CLI_VALUE, "FILE", "values that the program reads back from the device (zeros)", NULL, NULL}, \
    [CLI_LAUNCH_NCCL_MEMORY] = {"--nccl-memory", CLI_VALUE, "rule|none|FILE", "device memory of communicators: by NCCL's rule, not counted, or a profile of what it was seen to take (rule)", NULL, NULL}, \
    [CLI_LAUNCH_MEASURED] = {"--measured", CLI_VALUE, "FILE", "look costs up in FILE first, kernels that `maquette profile` measured", NULL, NULL}, \
    [CLI_LAUNCH_KERNELS] = {"--kernels", CLI_VALUE, "FILE.csv", "times of the program's own kernels: name,ns or name,grid,ns", NULL, NULL}, \
    [CLI_LAUNCH_TIMEOUT] = {"--timeout", CLI_VALUE, "SECONDS", "wall time after which it is ended, of a capture the whole (none)", NULL, NULL}, \
    [CLI_LAUNCH_JSON] = {"--json", CLI_FLAG, NULL, "the report as JSON", NULL, NULL},                                  \
    [CLI_LAUNCH_OUTPUT] = {"--output", CLI_VALUE, "FILE", "write the report to FILE, not to standard error", NULL, NULL}
/* clang-format on */

/* The options above, and the program behind `--`, into `out`. captured: a captured job says how many ranks there are. */
enum maq_status cli_launch_opts(struct maq_launch_opts *out, struct cli *cli, bool captured);
/* The report to --output, or to standard error, for standard output is the program's. Takes `text` (free()). */
enum maq_status cli_launch_write(struct cli *cli, char *text);

#endif
