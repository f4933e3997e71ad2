/* SPDX-License-Identifier: Apache-2.0 */
/* islands.c - the islands of measured nodes, as text with the cluster that they make, and as JSON, schema "maquette.islands/1". */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/job_json.h"
#include "report/page.h"

#define LABEL 12

/* Names of nodes, the first and the last of long lists. */
static void put_names(struct maq_buf *out, const struct maq_islands *s, const struct maq_island *island)
{
    for (uint32_t i = 0; i < island->n; i++) {
        if (island->n > 8 && i == 4) {
            maq_buf_addf(out, " ... %u more ...", island->n - 6);
            i = island->n - 2;
        }
        maq_buf_addf(out, "%s%s", i > 0 ? " " : "", s->nodes[island->nodes[i]].name);
    }
}

static void put_row(struct maq_table *t, const struct maq_islands *s, uint32_t i)
{
    const struct maq_island *island = &s->at[i];
    const struct maq_measured_node *first = &s->nodes[island->nodes[0]];
    struct maq_buf names;
    char text[32];
    maq_buf_init(&names, 1 << 16);
    put_names(&names, s, island);
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s-%u", first->device, i + 1);
    maq_table_cell(t, "%u x %d", island->n, first->devices);
    maq_table_cell(t, "%s", maq_format_flops(text, island->flops));
    maq_table_cell(t, "%s", maq_format_bytes(text, island->mem_bytes));
    maq_table_cell(t, "%s", maq_format_rate(text, island->bps));
    maq_table_cell(t, "%s", maq_format_rate(text, island->link_bps));
    maq_table_cell(t, "%s", names.ptr ? names.ptr : "");
    maq_buf_fini(&names);
}

enum maq_status maq_report_islands_text(char **out, const struct maq_islands *s, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    static const struct maq_table_column columns[] = {
        {"island", false, false},   {"nodes", true, false},   {"compute", true, false}, {"memory", true, false},
        {"in a node", true, false}, {"network", true, false}, {"names", false, true}};
    struct maq_page page;
    struct maq_table table;
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_PLAIN, "%u nodes, %u %s\n\n", s->n_nodes, s->n, s->n == 1 ? "island" : "islands");
    maq_table_init(&table, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < s->n; i++)
        put_row(&table, s, i);
    maq_table_print(&page, &table, 0);
    maq_table_fini(&table);
    maq_page_putf(&page, MAQ_INK_FAINT,
                  "\nNodes of an island differ by at most %.3g %% in compute, %.3g %% in memory, %.3g %% in bandwidth "
                  "inside a node; "
                  "links that leave it\nare at most %.3g %% faster than those inside. The least of each is shown.\n\n",
                  100 * s->tolerance.compute, 100 * s->tolerance.memory, 100 * s->tolerance.bandwidth,
                  100 * s->tolerance.network);
    maq_buf_adds(&page.out, s->document);
    return maq_page_finish(out, &page, diag);
}

enum maq_status maq_report_islands_json(char **out, const struct maq_islands *s, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.islands/1");
    struct maq_json list = maq_json_list(document.root, "islands");
    for (uint32_t i = 0; i < s->n; i++) {
        const struct maq_island *island = &s->at[i];
        const struct maq_measured_node *first = &s->nodes[island->nodes[0]];
        struct maq_json item = maq_json_item(list), names = maq_json_list(item, "nodes");
        for (uint32_t k = 0; k < island->n; k++)
            maq_json_word(names, s->nodes[island->nodes[k]].name);
        maq_json_text(item, "device", first->device);
        maq_json_int(item, "devices_per_node", first->devices);
        MAQ_JSON_REALS(item, {"flop_per_s", island->flops}, {"memory_bytes", island->mem_bytes},
                       {"bandwidth_bytes_per_s", island->bps}, {"network_bytes_per_s", island->link_bps});
    }
    maq_json_text(document.root, "cluster", s->document);
    return maq_json_finish(out, &document, diag);
}
