/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher.c - a table of launchers by name, and of modules of Python that are launchers (python -m). A launcher
 * called by a shell script is not found. See launcher.h.
 */
#include "launch/launcher.h"

#include <string.h>

#include "base/check.h"

static const struct {
    const char *called, *word; /* word: that it has to be followed by; NULL = none */
} programs[] = {
    {"torchrun", NULL}, {"accelerate", "launch"}, {"deepspeed", NULL},     {"horovodrun", NULL},
    {"mpirun", NULL},   {"mpiexec", NULL},        {"mpiexec.hydra", NULL}, {"orterun", NULL},
    {"prterun", NULL},  {"srun", NULL},           {"colossalai", "run"},   {"composer", NULL},
};

static const char *const modules[] = {"torch.distributed.run",      "torch.distributed.launch",
                                      "torch.distributed.launcher", "accelerate.commands.launch",
                                      "deepspeed.launcher.runner",  "composer.cli.launcher"};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* python [OPTION...] -m MODULE: what comes before a script or a `-c` are options. */
static const char *module_of(const char *const *arguments)
{
    for (const char *const *a = arguments + 1; *a && (*a)[0] == '-' && strcmp(*a, "-c") != 0; a++) {
        if (strcmp(*a, "-m") == 0)
            return a[1];
        if (strncmp(*a, "-m", 2) == 0)
            return *a + 2;
        if ((strcmp(*a, "-X") == 0 || strcmp(*a, "-W") == 0) && a[1])
            a++;
    }
    return NULL;
}

const char *maq_launcher_of(const char *const *arguments)
{
    const char *name = base_of(arguments[0]);
    for (size_t i = 0; i < MAQ_COUNT(programs); i++)
        if (strcmp(name, programs[i].called) == 0 &&
            (!programs[i].word || (arguments[1] && strcmp(arguments[1], programs[i].word) == 0)))
            return programs[i].called;
    const char *module = strncmp(name, "python", 6) == 0 ? module_of(arguments) : NULL;
    for (size_t i = 0; module && i < MAQ_COUNT(modules); i++)
        if (strcmp(module, modules[i]) == 0)
            return modules[i];
    return NULL;
}
