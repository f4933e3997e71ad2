/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_file.c - a table of what the files of other tools begin with. See foreign_file.h.
 *
 * A kind is told by words that all have to be in the first bytes, and by how the file begins. The words are those that the tools print:
 *
 *   PyTorch execution trace   ExecutionTraceObserver: {"schema": "1.0.2-chakra.0.0.4", "pid": ..., "nodes": [...
 *   PyTorch profiler trace    Kineto: {"schemaVersion": ..., "deviceProperties": ..., "traceEvents": ...
 *   nccl-tests                "# nThread 1 nGpus 8 minBytes ...", then "out-of-place", "algbw", "busbw"
 *   NCCL's topology, graphs   NCCL_TOPO_DUMP_FILE: <system version="1">; NCCL_GRAPH_DUMP_FILE: <graphs version="1">
 *   hwloc's topology          lstopo x.xml: <!DOCTYPE topology
 *   nvidia-smi topo -m        a matrix whose first row names GPU0, with a legend
 *   SLURM's topology.conf     SwitchName=
 *   ASTRA-sim's network       topology: [ Ring ], npus_count: [ 8 ]
 */
#include "spec/foreign_file.h"

#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"

#define WORDS 3

#define CONVERT                                                                                                        \
    "`maquette graph` reads what Chakra's converter (chakra_trace_link, chakra_converter) makes of it, and traces of " \
    "torch.profiler as they are"
#define PROFILE "`maquette graph`, `replay` and `risk fit` read such traces"
#define TABLE "`maquette validate collectives` reads it, and a table with the columns that docs/validate.md lists"
#define CLUSTER "a cluster is written as \"h100-sxm:8 x 4, nics 8 x 400G\", or as YAML: docs/clusters.md"
#define NODE "`--cluster` takes it: the file of a node, or 'h100-sxm:8 x 4, topology FILE' (docs/clusters.md)"

static const struct kind {
    const char *begins; /* any of these bytes, behind blanks; NULL = anything */
    const char *word[WORDS];
    struct maq_foreign foreign;
} kinds[] = {
    {"{", {"\"schema\"", "-chakra.", "\"pid\""}, {"a PyTorch execution trace", CONVERT, false}},
    {"{[", {"\"traceEvents\""}, {"a trace of PyTorch's profiler", PROFILE, true}},
    {"{", {"\"schemaVersion\"", "\"deviceProperties\""}, {"a trace of PyTorch's profiler", PROFILE, true}},
    {NULL, {"# nThread ", "nGpus ", "minBytes "}, {"a log of nccl-tests", TABLE, false}},
    {NULL, {"out-of-place", "algbw", "busbw"}, {"a log of nccl-tests", TABLE, false}},
    {"<", {"<system ", "<cpu "}, {"a topology file of NCCL", NODE, false}},
    {"<", {"<graphs ", "<graph "}, {"a file of NCCL's graphs", CLUSTER, false}},
    {"<", {"topology", "<object type="}, {"a topology file of hwloc", CLUSTER, false}},
    {NULL, {"GPU0\t", "CPU Affinity"}, {"the matrix of `nvidia-smi topo -m`", NODE, false}},
    {NULL, {"SwitchName="}, {"a topology file of SLURM", CLUSTER, false}},
    {NULL, {"topology:", "npus_count:"}, {"a network of ASTRA-sim", CLUSTER, false}},
};

static bool begins_with_any(struct maq_str head, const char *bytes)
{
    size_t i = head.len >= 3 && memcmp(head.ptr, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < head.len && (head.ptr[i] == ' ' || head.ptr[i] == '\t' || head.ptr[i] == '\r' || head.ptr[i] == '\n'))
        i++;
    return !bytes || (i < head.len && head.ptr[i] != '\0' && strchr(bytes, head.ptr[i]));
}

const struct maq_foreign *maq_foreign_bytes(struct maq_str head)
{
    head.len = head.len < MAQ_FOREIGN_HEAD ? head.len : MAQ_FOREIGN_HEAD;
    for (size_t k = 0; head.len > 0 && k < MAQ_COUNT(kinds); k++) {
        bool all = begins_with_any(head, kinds[k].begins);
        for (size_t w = 0; w < WORDS && all && kinds[k].word[w]; w++)
            all = memmem(head.ptr, head.len, kinds[k].word[w], strlen(kinds[k].word[w])) != NULL;
        if (all)
            return &kinds[k].foreign;
    }
    return NULL;
}

const struct maq_foreign *maq_foreign_file(const char *path)
{
    char head[MAQ_FOREIGN_HEAD];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* what is read from a pipe is gone */
        return NULL;
    gzFile f = gzopen(path, "rb"); /* plain files as they are */
    int n = f ? gzread(f, head, sizeof head) : 0;
    if (f)
        (void)gzclose_r(f);
    return n > 0 ? maq_foreign_bytes((struct maq_str){head, (size_t)n}) : NULL;
}

enum maq_status maq_foreign_refuse(const struct maq_foreign *f, const char *path, const char *expected,
                                   struct maq_span at, struct maq_diag *diag)
{
    return f ? maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FOREIGN_FILE, at, f->hint, "%.200s is %s, not %s", path,
                             f->what, expected)
             : MAQ_OK;
}
