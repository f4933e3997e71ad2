/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the words for providers, libraries and collectives in documents and reports; those of operators are in op.c. */
#include "maquette/cost.h"

static const char *const provider_names[] = {
    [MAQ_PROVIDER_NONE] = "none",
    [MAQ_PROVIDER_ANALYTICAL] = "analytical",
    [MAQ_PROVIDER_FITTED] = "fitted",
    [MAQ_PROVIDER_MEASURED] = "measured",
};

const char *maq_provider_name(enum maq_provider provider)
{
    return (unsigned)provider < MAQ_PROVIDER_COUNT ? provider_names[provider] : "unknown";
}

static const char *const library_names[] = {
    [MAQ_LIBRARY_TRAINING] = "training",
    [MAQ_LIBRARY_TRTLLM] = "trtllm",
    [MAQ_LIBRARY_VLLM] = "vllm",
    [MAQ_LIBRARY_SGLANG] = "sglang",
};

const char *maq_library_name(enum maq_library library)
{
    return (unsigned)library < MAQ_LIBRARY_COUNT ? library_names[library] : "unknown";
}

static const char *const coll_names[] = {
    [MAQ_COLL_ALL_REDUCE] = "all_reduce",         [MAQ_COLL_ALL_GATHER] = "all_gather",
    [MAQ_COLL_REDUCE_SCATTER] = "reduce_scatter", [MAQ_COLL_ALL_TO_ALL] = "all_to_all",
    [MAQ_COLL_BROADCAST] = "broadcast",           [MAQ_COLL_SEND_RECV] = "send_recv",
    [MAQ_COLL_DISPATCH] = "expert_dispatch",      [MAQ_COLL_COMBINE] = "expert_combine",
};

const char *maq_coll_kind_name(enum maq_coll_kind kind)
{
    return (unsigned)kind < MAQ_COLL_KIND_COUNT ? coll_names[kind] : "unknown";
}
