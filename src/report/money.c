/* SPDX-License-Identifier: Apache-2.0 */
/* money.c - what a step, a run and tokens cost: their share of an hour of the devices. */
#include "report/money.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/words.h"

#define HOUR_S 3600.0
#define TRILLION 1e12

static struct maq_money money_of(double per_hour, double step_s, double tokens_per_s)
{
    return (struct maq_money){.per_hour = per_hour,
                              .per_step = per_hour * step_s / HOUR_S,
                              .per_trillion_tokens = per_hour / HOUR_S / tokens_per_s * TRILLION};
}

struct maq_money maq_money_of_train(const struct maq_train_result *train)
{
    return money_of(maq_cluster_usd_per_hour(&train->job->cluster), train->step_s, train->tokens_per_s);
}

static double price_of(const struct maq_cluster *c, const char *device)
{
    uint32_t g = 0;
    while (g + 1 < c->n_groups && strcmp(c->groups[g].device.name, device) != 0)
        g++;
    return c->groups[g].device.usd_per_hour;
}

struct maq_money maq_money_of_mixed(const struct maq_job *open, const struct maq_mixed_search_result *r)
{
    double per_hour = 0, step_s = r->n_plans > 0 ? r->plans[0].step_s : 0,
           tokens = (double)open->workload.gbs * (double)open->workload.seq;
    for (uint32_t g = 0; g < r->n_islands; g++) {
        double price = price_of(&open->cluster, r->islands[g].device);
        if (r->islands[g].used > 0 && price <= 0)
            return (struct maq_money){0};
        per_hour += price * r->islands[g].used;
    }
    return step_s > 0 ? money_of(per_hour, step_s, tokens / step_s) : (struct maq_money){0};
}

double maq_money_run_per_hour(const struct maq_job *job, const struct maq_run_result *run)
{
    double devices = maq_cluster_usd_per_hour(&job->cluster);
    double held = run->opts.spares * run->nodes / (run->nodes + run->opts.shared_nodes);
    return devices * (1 + held / run->nodes);
}

/* GPUs of one price, or those of attention and of FFN; 0: a price is not known. */
static double deployment_per_hour(const struct maq_serve_result *r, const struct maq_job *job, uint32_t devices)
{
    const struct maq_afd_result *a = &r->afd;
    const struct maq_device *device = &job->cluster.groups[0].device;
    if (!a->known || strcmp(a->ffn_device, device->name) == 0)
        return device->usd_per_hour * devices;
    double ffn = price_of(&job->cluster, a->ffn_device);
    return device->usd_per_hour > 0 && ffn > 0 ? device->usd_per_hour * a->attention_devices + ffn * a->ffn_devices : 0;
}

/* Each member has its own price; of replicas that come and leave those count that are held, in the mean. 0: a price is not known. */
static double usd_per_hour(const struct maq_serve_result *r)
{
    double sum = 0;
    if (r->availability.known)
        return r->availability.usd_per_hour;
    if (r->n_members == 0)
        return deployment_per_hour(r, r->job, r->n_devices);
    for (uint32_t m = 0; m < r->n_members; m++) {
        double each = deployment_per_hour(r, r->members[m].job, r->members[m].devices);
        if (!(each > 0))
            return 0;
        sum += each * r->members[m].replicas;
    }
    return sum;
}

struct maq_serve_money maq_money_of_serve(const struct maq_serve_result *r)
{
    double per_hour = usd_per_hour(r), per_s = per_hour / HOUR_S;
    if (!(per_hour > 0) || !(r->output_tokens_per_s > 0))
        return (struct maq_serve_money){0};
    return (struct maq_serve_money){.per_hour = per_hour,
                                    .per_million_output_tokens = per_s / r->output_tokens_per_s * 1e6,
                                    .per_million_tokens = per_s / r->total_tokens_per_s * 1e6};
}

const char *maq_words_usd(char buf[48], double usd)
{
    char n[32];
    if (usd >= 1000 && usd < 1e15)
        maq__snprintf(buf, 48, "%s USD", maq_words_integer(n, llround(usd)));
    else if (usd >= 1)
        maq__snprintf(buf, 48, "%.2f USD", usd);
    else
        maq__snprintf(buf, 48, "%.4g USD", usd);
    return buf;
}

void maq_json_money(struct maq_json map, struct maq_money m)
{
    if (m.per_hour <= 0)
        return;
    struct maq_json money = maq_json_map(map, "money");
    MAQ_JSON_REALS(money, {"usd_per_hour", m.per_hour}, {"usd_per_step", m.per_step},
                   {"usd_per_trillion_tokens", m.per_trillion_tokens});
}
