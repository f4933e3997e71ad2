/* offload_clash.c - what does not go with inputs of modules on the host; see job_build.h. */
#include "plan/job_build.h"

#define EXPERTS (1u << MAQ_OFFLOAD_EXPERT_FC1 | 1u << MAQ_OFFLOAD_MOE_ACT | 1u << MAQ_OFFLOAD_FUSED_GROUP_MLP)

const char *maq_offload_clash(const struct maq_plan *plan, const char **remedy)
{
    uint32_t moved = plan->offload_modules;
    if (moved == 0)
        return NULL;
    if (plan->offload_layers > 0) {
        *remedy = "use one of the two";
        return "cpu_offloading_num_layers offloads whole layers, offload_modules inputs of modules";
    }
    if (plan->recompute == MAQ_RECOMPUTE_FULL) {
        *remedy = "use recompute_granularity: selective";
        return "layers that are recomputed keep nothing that could be offloaded";
    }
    if (moved & EXPERTS && plan->recompute_parts & 1u << MAQ_PART_MOE) {
        *remedy = "leave moe out of recompute_modules, or the experts' modules out of this";
        return "with moe recomputed the experts keep nothing that could be offloaded";
    }
    return NULL;
}
