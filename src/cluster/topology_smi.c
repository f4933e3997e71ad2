/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology_smi.c - the matrix of `nvidia-smi topo -m`.
 *
 *           GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
 *   GPU0     X      NV18    PXB     0-51            0
 *   GPU1    NV18     X      SYS     0-51            0
 *   NIC0    PXB     SYS      X
 *
 * A cell says the path of two devices: NV# a bonded set of # NVLinks, PIX and PXB PCIe switches, PHB, NODE and SYS the host. Columns that
 * are no GPU and hold such words are network ports, NIC0 in new drivers and mlx5_0 in old ones. Behind switches each pair shows all
 * links of a GPU. A port counts that lies behind the same PCIe switches as some GPU; where none does, all count.
 */
#include <string.h>

#include "base/text.h"
#include "cluster/topology.h"

#define MOST_COLUMNS 256

struct row {
    struct maq_str cell[MOST_COLUMNS];
    int32_t n;
};

/* Words between blanks; colours that nvidia-smi writes around the heads of columns are left out. */
static void split(struct row *row, struct maq_str line)
{
    row->n = 0;
    size_t i = 0;
    while (i < line.len && row->n < MOST_COLUMNS) {
        while (i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t' || line.ptr[i] == '\r'))
            i++;
        if (i < line.len && line.ptr[i] == '\033') {
            while (i < line.len && line.ptr[i] != 'm')
                i++;
            i += i < line.len;
            continue;
        }
        size_t from = i;
        while (i < line.len && line.ptr[i] != ' ' && line.ptr[i] != '\t' && line.ptr[i] != '\r' &&
               line.ptr[i] != '\033')
            i++;
        if (i > from)
            row->cell[row->n++] = (struct maq_str){line.ptr + from, i - from};
    }
}

static bool numbered(int64_t *number, struct maq_str word, const char *head)
{
    size_t n = strlen(head);
    return word.len > n && memcmp(word.ptr, head, n) == 0 &&
           maq_str_to_i64(number, (struct maq_str){word.ptr + n, word.len - n});
}

static bool is_path(struct maq_str word)
{
    static const char *const words[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB"};
    int64_t links;
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (maq_str_eq(word, maq_str_of(words[i])))
            return true;
    return numbered(&links, word, "NV");
}

/* Columns up to the affinities: GPUs first, then ports. */
static int32_t devices_of(const struct row *head)
{
    int32_t n = 0;
    while (n < head->n && !maq_str_eq(head->cell[n], maq_str_of("CPU")) &&
           !maq_str_eq(head->cell[n], maq_str_of("NUMA")) && !maq_str_eq(head->cell[n], maq_str_of("GPU")))
        n++;
    return n;
}

static enum maq_status bad_row(const char *path, int line, const char *why, struct maq_span at, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, at,
                         "the matrix as `nvidia-smi topo -m` prints it, whole", "%.200s, line %d: %s", path, line, why);
}

/* The row of a GPU; near[port] is set where a port lies behind its PCIe switches. */
static const char *read_row(struct maq__topology *t, bool near[MOST_COLUMNS], const struct row *row, int32_t gpu,
                            int32_t gpus, int32_t columns)
{
    if (row->n < 1 + columns)
        return "a row with too few cells";
    for (int32_t c = 0; c < columns; c++) {
        struct maq_str cell = row->cell[1 + c];
        int64_t links = 0;
        if (!is_path(cell))
            return "a cell that is no path between devices";
        if (c < gpus && numbered(&links, cell, "NV"))
            t->links[gpu][c] = links > 0 && links <= MAQ_MAX_NVLINKS ? (int32_t)links : 0;
        if (c >= gpus && (maq_str_eq(cell, maq_str_of("PIX")) || maq_str_eq(cell, maq_str_of("PXB"))))
            near[c] = true;
    }
    return NULL;
}

enum maq_status maq__topology_smi(struct maq__topology *out, struct maq_str text, const char *path, struct maq_span at,
                                  struct maq_diag *diag)
{
    struct row row;
    bool near[MOST_COLUMNS] = {false};
    int32_t columns = 0, gpus = 0, seen = 0;
    for (int line = 1; text.len > 0; line++) {
        struct maq_str one;
        int64_t number;
        text = maq_str_split(text, '\n', &one);
        split(&row, one);
        if (columns == 0) {
            columns = row.n > 0 && numbered(&number, row.cell[0], "GPU") ? devices_of(&row) : 0;
            while (gpus < columns && numbered(&number, row.cell[gpus], "GPU"))
                gpus++;
            if (gpus > MAQ_TOPOLOGY_MOST)
                return bad_row(path, line, "more GPUs than a node has", at, diag);
        } else if (seen < gpus && row.n > 0) {
            if (!numbered(&number, row.cell[0], "GPU") || number != seen)
                return bad_row(path, line, "the rows of the GPUs do not follow one another", at, diag);
            const char *why = read_row(out, near, &row, seen++, gpus, columns);
            if (why)
                return bad_row(path, line, why, at, diag);
        }
    }
    if (seen < gpus)
        return bad_row(path, 1, "fewer rows than columns of GPUs", at, diag);
    out->gpus = gpus;
    out->switches_as_pairs = true;
    for (int32_t c = gpus; c < columns; c++)
        out->nics += near[c];
    if (out->nics == 0)
        out->nics = columns - gpus;
    return MAQ_OK;
}
