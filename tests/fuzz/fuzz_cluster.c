/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cluster.c - clusters from any bytes: the first byte chooses the synthetic line or a whole document; what
 * loads is placed on.
 *
 * Names of files are left out: a fuzzer has no business reading the disk.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "cluster/cluster_internal.h"
#include "maquette/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct maq_cluster *c, uint32_t seed)
{
    MAQ_ASSERT(c->devices > 0 && c->n_groups > 0 && c->oversubscription >= 1);
    for (uint32_t stride = 1; stride <= c->devices && stride < 1000; stride = stride * 3 + seed % 5) {
        uint32_t first = seed % c->devices, size = (c->devices - 1 - first) / stride + 1;
        struct maq_placement at = maq_cluster_place(c, first, size, stride);
        struct maq_links links = maq_cluster_links(c, &at, 1 + seed % 9);
        MAQ_ASSERT(at.per_domain >= 1 && at.per_node >= 1 && at.domains >= 1 && at.domains <= size);
        MAQ_ASSERT((uint64_t)at.per_domain * at.domains >= size && at.per_domain <= size);
        MAQ_ASSERT(links.near.bps > 0 && (at.domains == 1 || links.host.bps > 0 || links.far.bps > 0));
    }
    for (uint32_t g = 0; g < c->n_groups; g++)
        MAQ_ASSERT(maq_cluster_group_of(c, c->groups[g].first_rank) == &c->groups[g]);
}

static void line(struct maq_str text, struct maq_diag *diag, struct maq_arena *arena)
{
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = text};
    struct maq_cluster c;
    node.at = (struct maq_span){maq_diag_add_source(diag, "line", text.ptr, text.len), 0, (uint32_t)text.len};
    if (maq__cluster_synthetic(&c, &node, arena, diag) == MAQ_OK)
        use(&c, (uint32_t)text.len);
    else
        MAQ_ASSERT(maq_diag_errors(diag) > 0);
}

static void document(struct maq_str text, struct maq_diag *diag, struct maq_arena *arena)
{
    struct maq_doc doc;
    struct maq_cluster c;
    if (memmem(text.ptr, text.len, ".y", 2) || memmem(text.ptr, text.len, ".Y", 2) ||
        memmem(text.ptr, text.len, ".j", 2) || memmem(text.ptr, text.len, ".J", 2) || memchr(text.ptr, '\\', text.len))
        return;
    if (maq_doc_parse(&doc, "document", text, MAQ_ORIGIN_DOCUMENT, diag) == MAQ_OK && doc.root &&
        maq_cluster_load(&c, doc.root, arena, diag) == MAQ_OK)
        use(&c, (uint32_t)text.len);
    maq_doc_fini(&doc);
}

static bool names_a_topology(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 8 <= size; i++)
        if (strncasecmp((const char *)data + i, "topology", 8) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || names_a_topology(data, size))
        return 0;
    struct maq_str text = {(const char *)data + 1, size - 1};
    struct maq_diag *diag = maq_diag_new();
    struct maq_arena arena;
    maq_arena_init(&arena, (size_t)64 << 20);
    if (diag && data[0] == '-')
        line(text, diag, &arena);
    else if (diag)
        document(text, diag, &arena);
    free(maq_diag_format(diag, 0, false));
    maq_arena_fini(&arena);
    maq_diag_free(diag);
    return 0;
}
