/* session_options.h - what the commands that run a program have in common. */
#ifndef MAQ_CLI_SESSION_OPTIONS_H
#define MAQ_CLI_SESSION_OPTIONS_H

#include "cli/cli.h"

/* The first rows of each of their tables, in this order. */
enum cli_session_option {
    CLI_SESSION_WORLD,
    CLI_SESSION_PER_NODE,
    CLI_SESSION_DEVICE,
    CLI_SESSION_CLUSTER,
    CLI_SESSION_LIBRARIES,
    CLI_SESSION_MEMORY,
    CLI_SESSION_CLOCK,
    CLI_SESSION_TCP,
    CLI_SESSION_VALUES,
    CLI_SESSION_NCCL_MEMORY,
    CLI_SESSION_MEASURED,
    CLI_SESSION_KERNELS,
    CLI_SESSION_TIMEOUT,
    CLI_SESSION_JSON,
    CLI_SESSION_OUTPUT,
    CLI_SESSION_COUNT
};

extern const char *const cli_generations[], *const cli_clocks[];

/* clang-format off */
#define CLI_SESSION_OPTIONS                                                                                             \
    [CLI_SESSION_WORLD] = {"--world", CLI_VALUE, "N", "ranks of the job (devices of --cluster)", NULL, NULL},           \
    [CLI_SESSION_PER_NODE] = {"--per-node", CLI_VALUE, "N", "ranks on a node (devices of a node)", NULL, NULL},         \
    [CLI_SESSION_DEVICE] = {"--device", CLI_VALUE, "NAME", "the GPU that the program finds (h100-sxm); maquette show gpus", NULL, NULL}, \
    [CLI_SESSION_CLUSTER] = {"--cluster", CLI_VALUE, "CLUSTER", "\"h100-sxm:8 x 4, rail 400G\" or a file, for the times of collectives", NULL, NULL}, \
    [CLI_SESSION_LIBRARIES] = {"--libraries", CLI_VALUE, "12|13|auto|none|gpu", "CUDA generation of the program's libraries (auto); none: it uses no device; gpu: its own CUDA on this machine's GPU, NCCL alone is stood in for", NULL, cli_generations}, \
    [CLI_SESSION_MEMORY] = {"--memory", CLI_VALUE, "SIZE", "memory of a device: 80GB, 40GiB (as the catalogue says)", NULL, NULL}, \
    [CLI_SESSION_CLOCK] = {"--clock", CLI_VALUE, "virtual|real", "what host clocks of the program show (virtual)", NULL, cli_clocks}, \
    [CLI_SESSION_TCP] = {"--tcp", CLI_VALUE, "PORTS", "ports of the program's own rendezvous over TCP: 12345,29400 (none)", NULL, NULL}, \
    [CLI_SESSION_VALUES] = {"--values", CLI_VALUE, "FILE", "values that the program reads back from the device (zeros)", NULL, NULL}, \
    [CLI_SESSION_NCCL_MEMORY] = {"--nccl-memory", CLI_VALUE, "rule|none|FILE", "device memory of communicators: by NCCL's rule, not counted, or a profile of what it was seen to take (rule)", NULL, NULL}, \
    [CLI_SESSION_MEASURED] = {"--measured", CLI_VALUE, "FILE", "look costs up in FILE first, kernels that `maquette profile` measured", NULL, NULL}, \
    [CLI_SESSION_KERNELS] = {"--kernels", CLI_VALUE, "FILE.csv", "times of the program's own kernels: name,ns or name,grid,ns", NULL, NULL}, \
    [CLI_SESSION_TIMEOUT] = {"--timeout", CLI_VALUE, "SECONDS", "wall time after which a program is ended (none)", NULL, NULL}, \
    [CLI_SESSION_JSON] = {"--json", CLI_FLAG, NULL, "the report as JSON", NULL, NULL},                                  \
    [CLI_SESSION_OUTPUT] = {"--output", CLI_VALUE, "FILE", "write the report to FILE, not to standard error", NULL, NULL}
/* clang-format on */

/* The options above, and the program behind `--`, into `out`. captured: a captured job says how many ranks there are. */
enum maq_status cli_session_opts(struct maq_launch_opts *out, struct cli *cli, bool captured);
/* The report to --output, or to standard error, for standard output is the program's. Takes `text` (free()). */
enum maq_status cli_session_write(struct cli *cli, char *text);

#endif
