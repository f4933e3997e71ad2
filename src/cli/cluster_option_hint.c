/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_option_hint.c - --gpus 64 --gpu h100: options of other programs that say the machine, and the --cluster that they mean together.
 *
 * What is said of GPUs, nodes and GPUs of a node is read wherever it stands on the command line, so that the hint is the whole cluster and
 * not a part of it. One message for all of them.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum word { GPUS, PER_NODE, NODES, DEVICE, WORDS };

/* Words between bars, as in synonyms.c. */
static const char *const names[WORDS] = {
    [GPUS] = "gpus|num-gpus|ngpus|n-gpus|gpu-count|num-devices|devices|world-size",
    [PER_NODE] = "gpus-per-node|nproc-per-node|nproc|devices-per-node|n-gpus-per-node",
    [NODES] = "nodes|nnodes|num-nodes|n-nodes",
    [DEVICE] = "gpu|device|gpu-type|gpu-name|accelerator|hardware",
};

static bool find_word(enum word *out, const char *name, size_t len)
{
    for (int w = 0; w < WORDS; w++)
        for (const char *at = names[w]; *at;) {
            size_t n = strcspn(at, "|"), i = 0;
            while (i < n && n == len && at[i] == (name[i] == '_' ? '-' : name[i]))
                i++;
            if (i == n && n == len) {
                *out = (enum word)w;
                return true;
            }
            at += n + (at[n] == '|');
        }
    return false;
}

/* What an argument says: the word of an option, and its value, behind '=' or in the next argument; NULL: it has none. */
static bool read_one(enum word *word, const char **value, const char *argument, const char *next)
{
    size_t dashes = strspn(argument, "-"), len = strcspn(argument + dashes, "=");
    if (dashes == 0 || dashes > 2 || !find_word(word, argument + dashes, len))
        return false;
    *value = argument[dashes + len] == '=' ? argument + dashes + len + 1 : next && next[0] != '-' ? next : NULL;
    return true;
}

/* A count of up to seven digits; 0: it is none. */
static long number_of(const char *text)
{
    long n = 0;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && digits < 8; i++)
        n = n * 10 + (text[i] - '0');
    return text[digits] == '\0' ? n : 0;
}

bool cli_is_cluster_value(const char *text)
{
    char line[64], words[64];
    return number_of(text) > 0 || ((size_t)snprintf(words, sizeof words, "node %s", text) < sizeof words &&
                                   maq_cluster_in_words(line, sizeof line, words));
}

/* The cluster in words that maq_cluster_in_words() knows. */
static void put_together(char words[128], const long number[WORDS], const char *device)
{
    long nodes = number[NODES], per = number[PER_NODE];
    if (nodes == 0 && per > 0 && number[GPUS] > 0 && number[GPUS] % per == 0)
        nodes = number[GPUS] / per;
    if (per == 0 && nodes > 0 && number[GPUS] > 0 && number[GPUS] % nodes == 0)
        per = number[GPUS] / nodes;
    if (per > 0)
        (void)snprintf(words, 128, "%ld nodes of %ld %s", nodes > 0 ? nodes : 1, per, device);
    else if (nodes > 0)
        (void)snprintf(words, 128, "%ld nodes of %s", nodes, device);
    else if (number[GPUS] > 0)
        (void)snprintf(words, 128, "%ld %s", number[GPUS], device);
    else
        (void)snprintf(words, 128, "node %s", device);
}

bool cli_cluster_option_hint(char hint[256], const char *name, size_t len, int argc, char **argv)
{
    enum word word;
    long number[WORDS] = {0};
    const char *device = NULL, *value;
    char words[128], line[160];
    if (!find_word(&word, name, len))
        return false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--cluster") == 0 || strncmp(argv[i], "--cluster=", 10) == 0)
            return false; /* what it says stands beside: synonyms.c */
        if (!read_one(&word, &value, argv[i], i + 1 < argc ? argv[i + 1] : NULL) || !value ||
            !cli_is_cluster_value(value))
            continue;
        if (number_of(value) > 0)
            number[word == DEVICE ? GPUS : word] = number_of(value);
        else
            device = value;
    }
    bool any = number[GPUS] > 0 || number[PER_NODE] > 0 || number[NODES] > 0;
    if (!device && !any)
        return false;
    put_together(words, number, device ? device : "h100-sxm");
    bool whole = device && !any && maq_cluster_in_words(line, sizeof line, device); /* "8xh100" */
    if (!whole && !maq_cluster_in_words(line, sizeof line, words))
        return false;
    (void)snprintf(hint, 256, "did you mean --cluster '%s'?%s", line,
                   device ? "" : " (with the name of your GPU: maquette show gpus)");
    return true;
}
