/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_names.c - tables of words in kernel names and group names, of which the first match counts. See
 * kernel_names.h.
 */
#include "risk/fit/kernel_names.h"

#include "base/check.h"
#include "base/text.h"

/* The first row with a word of the name counts. `bwd`: the operation where the name speaks of a backward pass. */
struct row {
    const char *word, *name, *bwd;
};

static const char *lookup(const struct row *rows, size_t n, struct maq_str s, bool backward)
{
    for (size_t i = 0; i < n; i++)
        if (maq_str_has(s, rows[i].word))
            return backward && rows[i].bwd ? rows[i].bwd : rows[i].name;
    return NULL;
}

static const struct row operators[] = {
    {"fmha", "attention", "attention_bwd"},
    {"flash", "attention", "attention_bwd"},
    {"sdpa", "attention", "attention_bwd"},
    {"cross_entropy", "cross_entropy", "cross_entropy_bwd"},
    {"nll_loss", "cross_entropy", "cross_entropy_bwd"},
    {"layer_norm", "norm", "norm_bwd"},
    {"layernorm", "norm", "norm_bwd"},
    {"rms_norm", "norm", "norm_bwd"},
    {"rmsnorm", "norm", "norm_bwd"},
    {"ln_fwd", "norm", NULL},
    {"ln_bwd", "norm_bwd", NULL},
    {"rotary", "rope", NULL},
    {"rope", "rope", NULL},
    {"swiglu", "activation", "activation_bwd"},
    {"silu", "activation", "activation_bwd"},
    {"gelu", "activation", "activation_bwd"},
    {"softmax", "softmax", "softmax_bwd"},
    {"embedding", "embedding", "embedding_bwd"},
    {"adam", "optimizer", NULL},
    {"multi_tensor_apply", "optimizer", NULL},
    {"permute", "permute", NULL},
    {"quantize", "quantize", NULL},
    {"cast_transpose", "quantize", NULL},
    {"grouped_gemm", "grouped_gemm", NULL},
    {"gemm", "gemm", NULL},
    {"nvjet", "gemm", NULL},
    {"cutlass", "gemm", NULL},
    {"xmma", "gemm", NULL},
    {"elementwise", "elementwise", NULL},
};

static const struct row collectives[] = {
    {"allreduce", "all_reduce", NULL},
    {"reducescatter", "reduce_scatter", NULL},
    {"reduce_scatter", "reduce_scatter", NULL},
    {"allgather", "all_gather", NULL},
    {"all_gather", "all_gather", NULL},
    {"all_to_all", "all_to_all", NULL},
    {"alltoall", "all_to_all", NULL},
    {"broadcast", "broadcast", NULL},
    {"send", "send_recv", NULL},
    {"recv", "send_recv", NULL},
};

/* "EXPERT_DATA_PARALLEL_GROUP" is one of data parallelism: what is more special comes first. */
static const struct row groups[] = {
    {"data_parallel", "dp", NULL},
    {"tensor_model_parallel", "tp", NULL},
    {"expert_model_parallel", "ep", NULL},
    {"pipeline", "pp", NULL},
    {"context_parallel", "cp", NULL},
    {"mesh_tp", "tp", NULL},
    {"mesh_cp", "cp", NULL},
    {"mesh_ep", "ep", NULL},
    {"mesh_pp", "pp", NULL},
    {"mesh_dp", "dp", NULL},
    {"mesh_fsdp", "dp", NULL},
};

bool maq_kernel_waits(const struct maq_kernel_words *words)
{
    return maq_str_has(words->kernel, "nccl") || words->collective.len > 0;
}

void maq_kernel_name(char out[MAQ_KERNEL_NAME], const struct maq_kernel_words *words)
{
    if (!maq_kernel_waits(words)) {
        bool backward = maq_str_has(words->kernel, "bwd") || maq_str_has(words->kernel, "backward") ||
                        maq_str_has(words->kernel, "bprop");
        const char *name = lookup(operators, MAQ_COUNT(operators), words->kernel, backward);
        maq__snprintf(out, MAQ_KERNEL_NAME, "%s", name ? name : "other");
        return;
    }
    const char *name = lookup(collectives, MAQ_COUNT(collectives), words->collective, false),
               *group = lookup(groups, MAQ_COUNT(groups), words->group, false);
    name = name ? name : lookup(collectives, MAQ_COUNT(collectives), words->kernel, false);
    maq__snprintf(out, MAQ_KERNEL_NAME, "%s%s%s", name ? name : "other", name && group ? " " : "",
                  name && group ? group : "");
}
