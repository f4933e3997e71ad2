/* yaml.c - the coefficients as data/fitted/collectives.yaml, which tools/coll-table.py reads. */
#include <stdio.h>

#include "base/check.h"
#include "fit.h"

const char *const fit_near_names[MAQ_COLL_NEAR_COUNT] = {
#define NAME(name, text) [MAQ_COLL_NEAR_##name] = (text),
    MAQ_COLL_NEAR_LIST(NAME)
#undef NAME
};
const char *const fit_far_names[MAQ_COLL_FAR_COUNT] = {
#define NAME(name, text) [MAQ_COLL_FAR_##name] = (text),
    MAQ_COLL_FAR_LIST(NAME)
#undef NAME
};
const char *const fit_transport_names[MAQ_TRANSPORT_COUNT] = {"verbs", "efa", "cxi", "cxi_sw", "sockets"};

const struct fit_generation fit_generations[FIT_GENERATIONS] = {
    {"ampere", MAQ_ARCH_AMPERE, "[volta, turing, ampere]"},
    {"ada", MAQ_ARCH_ADA, "[ada]"},
    {"hopper", MAQ_ARCH_HOPPER, "[hopper, cdna2, cdna3, cdna4, other]"},
    {"blackwell", MAQ_ARCH_BLACKWELL, "[blackwell]"},
};

static void write_curve(FILE *f, const char *name, const struct maq_coll_curve *c)
{
    fprintf(f, "    %s: {start_us: %.4g, hops: %.4g, gap: %.4g, share: %.4g, overlap: %.4g}\n", name, c->start_s * 1e6,
            c->hops, c->gap, c->share, c->overlap);
}

bool fit_write(const char *path, const struct fit *fit, const struct samples *samples,
               const double errors[2][FIT_BANDS])
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    (void)errors;
    (void)samples;
    fprintf(f, "generations:\n");
    for (int g = 0; g < FIT_GENERATIONS; g++) {
        const struct maq_coll_generation *at = &fit->generations[g];
        fprintf(f, "  %s:\n    used_for: %s\n    ll_bytes: %.4g\n    span: %.4g\n    contention: %.4g\n",
                fit_generations[g].name, fit_generations[g].used_for, at->ll_bytes, at->span, at->contention);
        for (int i = 0; i < MAQ_COLL_NEAR_COUNT; i++)
            write_curve(f, fit_near_names[i], &at->near[i]);
    }
    fprintf(f, "transports:\n");
    for (int t = 0; t < MAQ_TRANSPORT_COUNT; t++) {
        fprintf(f, "  %s:\n    channel_bps: %.4g\n    shared_port: %.4g\n", fit_transport_names[t],
                fit->transports[t].channel_bps, fit->transports[t].shared_port);
        for (int i = 0; i < MAQ_COLL_FAR_COUNT; i++)
            write_curve(f, fit_far_names[i], &fit->transports[t].far[i]);
    }
    return fclose(f) == 0;
}
