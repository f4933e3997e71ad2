/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.c - ranks of a program that ran, as JSON: schema "maquette.run/1" (docs/json.md). */
#include "base/check.h"
#include "maquette/report.h"
#include "report/json_util.h"

static void put_rank(struct maq_json list, const struct maq_launch_rank *r)
{
    struct maq_json m = maq_json_item(list);
    maq_json_int(m, "rank", r->rank);
    maq_json_int(m, "status", r->status);
    maq_json_bool(m, "used_device", r->records);
    MAQ_JSON_INTS(m, {"calls", r->calls}, {"launches", r->launches}, {"collectives", r->collectives},
                  {"messages", r->messages}, {"exchanges", r->exchanges}, {"operators", r->operators},
                  {"communicators", r->communicators});
    maq_json_real(m, "virtual_s", 1e-9 * (double)r->virtual_ns);
    maq_json_real(m, "device_s", 1e-9 * (double)r->device_ns);
    struct maq_json by = maq_json_map(m, "device_s_by_provider");
    for (size_t i = 0; i < MAQ_PROVIDER_COUNT; i++)
        maq_json_real(by, i == MAQ_PROVIDER_NONE ? "rule" : maq_provider_name((enum maq_provider)i),
                      1e-9 * (double)r->by_provider_ns[i]);
    maq_json_real(by, "stream_of_bytes", 1e-9 * (double)r->modelled_ns);
    maq_json_int(m, "device_peak_bytes", (int64_t)r->peak_bytes);
    maq_json_bool(m, "out_of_memory", r->out_of_memory);
    maq_json_int(m, "trace_bytes", (int64_t)r->trace_bytes);
    maq_json_text(m, "trace", r->trace);
    maq_json_int(m, "host_peak_bytes", (int64_t)r->host_peak_bytes);
    maq_json_real(m, "host_cpu_s", r->host_cpu_s);
    maq_json_real(m, "wall_s", r->wall_s);
}

enum maq_status maq_report_launch_json(char **out, const struct maq_launch *s, const struct maq_report_opts *opts,
                                       struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.run/1");
    maq_json_text(document.root, "device", s->device);
    MAQ_JSON_INTS(document.root, {"world", s->world}, {"ranks_per_node", s->per_node}, {"status", s->status},
                  {"store_requests", s->store_requests}, {"store_keys_invented", s->invented});
    struct maq_json first = maq_json_list(document.root, "ran_first");
    for (uint32_t i = 0; i < s->n_first; i++)
        MAQ_JSON_INTS(maq_json_item(first), {"rank", s->first[i].rank}, {"status", s->first[i].status});
    maq_json_int(document.root, "kept_ranks", s->n_kept);
    struct maq_json ranks = maq_json_list(document.root, "ranks");
    for (uint32_t i = 0; i < s->n_ranks; i++)
        put_rank(ranks, &s->rank[i]);
    struct maq_json rows = maq_json_list(document.root, "operators");
    for (uint32_t i = 0; i < s->n_asked; i++) {
        const struct maq_asked *a = &s->asked[i];
        struct maq_json m = maq_json_item(rows);
        maq_json_text(m, "name", a->name);
        maq_json_bool(m, "collective", a->collective);
        if (a->collective)
            maq_json_int(m, "ranks", a->ranks);
        MAQ_JSON_INTS(m, {"bytes", a->bytes}, {"ns", a->ns}, {"launches", a->launches});
        maq_json_text(m, "provider",
                      a->provider == MAQ_PROVIDER_NONE ? "rule" : maq_provider_name((enum maq_provider)a->provider));
        maq_json_bool(m, "stream_of_bytes", a->modelled);
    }
    return maq_json_finish(out, &document, diag);
}
