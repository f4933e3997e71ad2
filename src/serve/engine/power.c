/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power.c - watts of a GPU while it serves.
 *
 *   P = TDP min(1, b + m M + c C)
 *
 * M: the share of the time that the traffic of all operators would take at the memory's rate; C: the share that all products would take at the peak of
 * their types. b is what a GPU draws with kernels on it, whatever they do; m and c what memory and matrix units add to it. The board's
 * power limit is the most that it draws. b, m and c are shares of the device's power (catalogue), so that they carry over to another one. Links, the
 * host and the fans of the node are not in it, nor what a GPU saves while it has nothing to do.
 *
 * Fitted by tools/fit-serve-power to the power that ML.ENERGY measured of saturated deployments; power_fit.h says how far off each kind of
 * device is when the fit has not seen it, and where four of five measured runs were.
 */
#include <string.h>

#include "serve/engine/power_fit.h"
#include "serve/engine/run.h"

bool maq_serve_power(struct maq_serve_power *out, const struct maq_serve_result *r)
{
    const struct maq_device *device = &r->job->cluster.groups[r->job->stages[0].group].device;
    double share = MAQ_POWER_BASE + MAQ_POWER_MEMORY * r->memory_share + MAQ_POWER_MATRIX * r->matrix_share,
           watts = device->tdp_w * (share < 1 ? share : 1), all = watts * r->n_devices;
    *out = (struct maq_serve_power){.matrix_share = r->matrix_share, .memory_share = r->memory_share};
    if (r->afd.known && strcmp(r->afd.ffn_device, device->name) != 0) /* the shares are means over all GPUs */
        return false;
    if (!(device->tdp_w > 0) || r->finished == 0 || !(r->output_tokens_per_s > 0))
        return false;
    out->watts = watts;
    out->low_watts = watts * MAQ_POWER_LOW;
    out->high_watts = watts * MAQ_POWER_HIGH < device->tdp_w ? watts * MAQ_POWER_HIGH : device->tdp_w;
    out->joules_per_output_token = all / r->output_tokens_per_s;
    out->joules_per_token = all / r->total_tokens_per_s;
    return true;
}
