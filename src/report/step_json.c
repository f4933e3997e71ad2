/* SPDX-License-Identifier: Apache-2.0 */
/* step_json.c - seconds by bucket as a JSON map. See step_json.h. */
#include "report/step_json.h"

#include "maquette/graph.h"

/* JSON names of the buckets: those of the text with blanks and capitals put right, and a unit. */
static const char *const bucket_keys[] = {
    [MAQ_BUCKET_FORWARD] = "forward_s",     [MAQ_BUCKET_BACKWARD] = "backward_s",
    [MAQ_BUCKET_RECOMPUTE] = "recompute_s", [MAQ_BUCKET_TP] = "exposed_tp_comm_s",
    [MAQ_BUCKET_CP] = "exposed_cp_comm_s",  [MAQ_BUCKET_EP] = "exposed_ep_comm_s",
    [MAQ_BUCKET_PP] = "exposed_pp_comm_s",  [MAQ_BUCKET_DP] = "exposed_dp_comm_s",
    [MAQ_BUCKET_BUBBLE] = "bubble_s",       [MAQ_BUCKET_OPTIMIZER] = "optimizer_s",
    [MAQ_BUCKET_HOST] = "host_s",           [MAQ_BUCKET_OTHER] = "other_s"};
_Static_assert(sizeof bucket_keys / sizeof bucket_keys[0] == MAQ_BUCKET_COUNT, "a key per bucket");

void maq_json_buckets(struct maq_json map, const double *seconds)
{
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        maq_json_real(map, bucket_keys[b], seconds[b]);
}
