/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_json.c - the resolved job in JSON.
 *
 * `plan` and `workload` are written from the tables that read them, so they hold every key that a job file may have
 * and can be given back to maquette as they are. Model and cluster are figures: what was computed with, whatever
 * document it came from.
 */
#include "report/job_json.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "maquette/cost.h"
#include "plan/framework.h"
#include "plan/keys.h"
#include "report/words.h"

/* --- plan and workload --------------------------------------------------------------------------------------- */

static bool is_switch(const char *const *names) /* "auto", "false", "true": decided by now */
{
    return strcmp(names[0], "auto") == 0 && names[1] && strcmp(names[1], "false") == 0;
}

static void add_field(struct maq_json map, const struct maq_field *f, const void *target)
{
    const void *at = (const char *)target + f->offset;
    int32_t narrow;
    int64_t wide;
    double real;
    bool truth;
    struct maq_str text;
    switch (f->type) {
    case MAQ_TYPE_I32:
        memcpy(&narrow, at, sizeof narrow);
        maq_json_int(map, f->key, narrow);
        break;
    case MAQ_TYPE_I64:
        memcpy(&wide, at, sizeof wide);
        maq_json_int(map, f->key, wide);
        break;
    case MAQ_TYPE_DOUBLE:
    case MAQ_TYPE_QTY:
        memcpy(&real, at, sizeof real);
        maq_json_real(map, f->key, real);
        break;
    case MAQ_TYPE_BOOL:
        memcpy(&truth, at, sizeof truth);
        maq_json_bool(map, f->key, truth);
        break;
    case MAQ_TYPE_ENUM:
        memcpy(&narrow, at, sizeof narrow);
        if (is_switch(f->names) && narrow != MAQ_AUTO)
            maq_json_bool(map, f->key, narrow == MAQ_ON);
        else
            maq_json_text(map, f->key, f->names[narrow]);
        break;
    case MAQ_TYPE_STR:
        memcpy(&text, at, sizeof text);
        maq_json_slice(map, f->key, text);
        break;
    case MAQ_TYPE_NODE:
    case MAQ_TYPE_END:
        break;
    }
}

static void add_section(struct maq_json map, const struct maq_field *fields, const void *target)
{
    for (; fields->type != MAQ_TYPE_END; fields++)
        add_field(map, fields, target);
}

void maq_json_words(struct maq_json map, enum maq_plan_list list, uint32_t bits)
{
    const struct maq_plan_words *words = &maq_plan_words[list];
    struct maq_json names = maq_json_list(map, words->key);
    for (int bit = 0; bit < words->n; bit++)
        if (bits & (1u << bit) && words->word(bit))
            maq_json_word(names, words->word(bit));
}

static void add_words(struct maq_json map, const struct maq_plan *plan, enum maq_plan_list list)
{
    if (maq_plan_bits(plan, list) != 0)
        maq_json_words(map, list, maq_plan_bits(plan, list));
}

void maq_json_plan(struct maq_json map, const struct maq_plan *plan)
{
    struct maq_plan_doc doc = {.plan = *plan};
    add_section(map, maq_plan_fields, &doc);
    add_words(map, plan, MAQ_PLAN_GRAPH_SCOPE);
    add_words(map, plan, MAQ_PLAN_OFFLOAD_MODULES);
    if (plan->recompute == MAQ_RECOMPUTE_SELECTIVE)
        add_words(map, plan, MAQ_PLAN_RECOMPUTE_MODULES);
}

/* --- model and cluster --------------------------------------------------------------------------------------- */

void maq_json_model(struct maq_json map, const struct maq_model *m)
{
    char mixers[64];
    int32_t experts, topk = maq_words_topk(m, &experts);
    maq_json_text(map, "name", m->name);
    maq_json_text(map, "source", m->source);
    MAQ_JSON_INTS(map, {"parameters", m->params}, {"active_parameters", m->active_params}, {"layers", m->num_layers});
    maq_json_text(map, "mixers", maq_words_mixers(mixers, m));
    MAQ_JSON_INTS(map, {"hidden_size", m->hidden}, {"vocab_size", m->vocab}, {"max_position_embeddings", m->max_seq});
    maq_json_bool(map, "tied_embeddings", m->tied_embeddings);
    MAQ_JSON_INTS(map, {"experts", experts}, {"experts_per_token", topk}, {"mtp_layers", m->mtp_layers});
}

static void add_origin(struct maq_json map, const char *name, const char *title, const char *source)
{
    maq_json_text(map, "name", name);
    maq_json_text(map, "title", title);
    maq_json_text(map, "source", source);
}

void maq_json_device(struct maq_json map, const struct maq_device *d)
{
    add_origin(map, d->name, d->title, d->source);
    struct maq_json peak = maq_json_map(map, "peak_flop_per_s");
    struct maq_json sustained = maq_json_map(map, "sustained_flop_per_s");
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++) {
        if (d->peak_flops[t] > 0)
            maq_json_real(peak, maq_dtype_name((enum maq_dtype)t), d->peak_flops[t]);
        if (d->sustained_flops[t] > 0)
            maq_json_real(sustained, maq_dtype_name((enum maq_dtype)t), fmin(d->sustained_flops[t], d->peak_flops[t]));
    }
    if (d->sustained_from)
        maq_json_text(map, "sustained_from", d->sustained_from);
    maq_json_real(map, "vector_flop_per_s", d->vector_flops);
    maq_json_count(map, "memory_bytes", d->mem_bytes);
    maq_json_real(map, "memory_bytes_per_s", d->mem_bps);
    maq_json_count(map, "l2_bytes", d->l2_bytes);
    maq_json_real(map, "l2_bytes_per_s", d->l2_bps);
    maq_json_int(map, "sms", d->sms);
    MAQ_JSON_REALS(map, {"clock_hz", d->clock_hz}, {"power_w", d->tdp_w}, {"launch_s", d->launch_s});
    maq_json_int(map, "domain_devices", d->domain_devices);
    maq_json_real(map, "domain_bytes_per_s", d->domain_bps);
    maq_json_real(map, "domain_latency_s", d->domain_latency_s);
    maq_json_bool(map, "domain_multicast", d->domain_multicast);
    if (d->domain_contention >= 0)
        maq_json_real(map, "domain_contention", d->domain_contention);
    maq_json_real(map, "host_bytes_per_s", d->host_bps);
    maq_json_text(map, "host_cpu", maq_host_cpu_name((enum maq_host_cpu)d->host_cpu));
    maq_json_real(map, "host_clock_hz", d->host_clock_hz);
    maq_json_int(map, "devices_per_node", d->devices_per_node);
    maq_json_text(map, "fabric", d->fabric);
    if (d->usd_per_hour > 0)
        maq_json_real(map, "usd_per_hour", d->usd_per_hour);
}

void maq_json_fabric(struct maq_json map, const struct maq_fabric *f)
{
    add_origin(map, f->name, f->title, f->source);
    MAQ_JSON_REALS(map, {"nic_bytes_per_s", f->nic_bps}, {"latency_s", f->latency_s}, {"efficiency", f->efficiency});
    maq_json_bool(map, "in_network_reduction", f->in_network_reduction);
    maq_json_real(map, "nics_per_device", f->nics_per_device);
    maq_json_text(map, "transport", maq_transport_name((enum maq_transport)f->transport));
}

void maq_json_framework(struct maq_json map, const struct maq_framework *f)
{
    add_origin(map, f->name, f->title, f->source);
    add_section(maq_json_map(map, "host_s"), maq_host_fields, &f->host);
    add_section(map, maq_framework_fields, f);
}

struct maq_json maq_json_island(struct maq_json list, const char *device, int64_t nodes, int64_t devices_per_node,
                                int64_t used)
{
    struct maq_json map = maq_json_item(list);
    maq_json_text(map, "device", device);
    MAQ_JSON_INTS(map, {"nodes", nodes}, {"devices_per_node", devices_per_node}, {"used", used});
    return map;
}

static void add_cluster(struct maq_json map, const struct maq_cluster *c)
{
    maq_json_text(map, "name", c->name);
    maq_json_int(map, "devices", c->devices);
    maq_json_int(map, "nodes_per_switch", c->nodes_per_switch);
    maq_json_real(map, "oversubscription", c->oversubscription);
    maq_json_text(map, "nccl_algo", maq_nccl_algo_name((enum maq_nccl_algo)c->nccl_algo));
    struct maq_json groups = maq_json_list(map, "groups");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        const struct maq_node_group *g = &c->groups[i];
        struct maq_json group = maq_json_item(groups);
        MAQ_JSON_INTS(group, {"nodes", g->nodes}, {"devices_per_node", g->devices_per_node},
                      {"domain_devices", g->domain_devices});
        maq_json_real(group, "domain_bytes_per_s", g->domain_bps);
        if (g->domain_contention >= 0)
            maq_json_real(group, "domain_contention", g->domain_contention);
        maq_json_int(group, "nics_per_node", g->nics_per_node);
        maq_json_bool(group, "rail_optimized", g->rail_optimized);
        maq_json_device(maq_json_map(group, "device"), &g->device);
        maq_json_fabric(maq_json_map(group, "fabric"), &g->fabric);
    }
    struct maq_json links = maq_json_list(map, "links");
    for (uint32_t i = 0; i < c->n_links; i++) {
        struct maq_json link = maq_json_item(links);
        maq_json_int(link, "from", c->links[i].a);
        maq_json_int(link, "to", c->links[i].b);
        MAQ_JSON_REALS(link, {"bytes_per_s", c->links[i].bps}, {"flow_bytes_per_s", c->links[i].flow_bps},
                       {"latency_s", c->links[i].latency_s});
    }
}

void maq_json_open_job(struct maq_json map, const struct maq_job *job)
{
    maq_json_text(map, "name", job->name);
    maq_json_model(maq_json_map(map, "model"), &job->model);
    add_cluster(maq_json_map(map, "cluster"), &job->cluster);
    add_section(maq_json_map(map, "workload"), maq_workload_fields, &job->workload);
}

void maq_json_job(struct maq_json map, const struct maq_job *job)
{
    maq_json_text(map, "name", job->name);
    maq_json_model(maq_json_map(map, "model"), &job->model);
    add_cluster(maq_json_map(map, "cluster"), &job->cluster);
    maq_json_plan(maq_json_map(map, "plan"), &job->plan);
    add_section(maq_json_map(map, "workload"), maq_workload_fields, &job->workload);
    maq_json_framework(maq_json_map(map, "framework"), &job->framework);
    struct maq_json cost = maq_json_map(map, "cost");
    maq_json_text(cost, "measured", job->measured);
    maq_json_text(cost, "provider", maq_provider_name((enum maq_provider)job->cost_provider));
    maq_json_int(map, "microbatches", job->microbatches);
}

static void add_unsaid(struct maq_json map, const struct maq_framework_words *words)
{
    struct maq_json list = maq_json_list(map, "without_words");
    for (uint32_t i = 0; i < words->n_unsaid; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "key", words->unsaid[i].key);
        maq_json_text(item, "value", words->unsaid[i].value);
        maq_json_text(item, "instead", words->unsaid[i].instead);
    }
}

void maq_json_framework_words(struct maq_json map, const struct maq_framework_words *words,
                              const struct maq_train_result *said, int vocabulary)
{
    maq_json_text(map, "megatron_arguments", words && vocabulary == MAQ_VOCABULARY_MEGATRON ? words->text : NULL);
    if (!words) {
        maq_json_null(map, "framework_words");
        return;
    }
    struct maq_json own = maq_json_map(map, "framework_words");
    maq_json_text(own, "framework", words->title);
    maq_json_text(own, "text", words->text);
    maq_json_text(own, "refused", words->refused);
    add_unsaid(own, words);
    if (said) {
        maq_json_real(own, "step_time_s", said->step_s);
        maq_json_bool(own, "fits", said->fits);
    }
}
