/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the words of serving. */
#include "maquette/serve.h"

const char *maq_engine_name(enum maq_engine engine)
{
    static const char *const names[MAQ_ENGINE_COUNT] = {"vllm", "sglang", "trtllm"};
    return (unsigned)engine < MAQ_ENGINE_COUNT ? names[engine] : "unknown";
}

const char *maq_front_end_name(enum maq_front_end front_end)
{
    static const char *const names[] = {"own", "dynamo", "none"};
    return (unsigned)front_end < sizeof names / sizeof *names ? names[front_end] : "unknown";
}

const char *maq_tier_name(enum maq_tier_kind tier)
{
    static const char *const names[MAQ_TIER_COUNT] = {
#define NAME(id, name, what) [MAQ_TIER_##id] = name,
        MAQ_TIER_LIST(NAME)
#undef NAME
    };
    return (unsigned)tier < MAQ_TIER_COUNT ? names[tier] : "unknown";
}

const char *maq_tier_policy_name(enum maq_tier_policy policy)
{
    static const char *const names[MAQ_TIER_POLICIES] = {"lru", "arc"};
    return (unsigned)policy < MAQ_TIER_POLICIES ? names[policy] : "unknown";
}

const char *maq_hicache_policy_name(enum maq_hicache_policy policy)
{
    static const char *const names[MAQ_HICACHE_POLICIES] = {"write_through", "write_through_selective", "write_back"};
    return (unsigned)policy < MAQ_HICACHE_POLICIES ? names[policy] : "unknown";
}

const char *maq_weights_name(enum maq_weights weights)
{
    static const char *const names[MAQ_WEIGHTS_COUNT] = {
#define NAME(id, name, what) [MAQ_WEIGHTS_##id] = name,
        MAQ_WEIGHTS_LIST(NAME)
#undef NAME
    };
    return (unsigned)weights < MAQ_WEIGHTS_COUNT ? names[weights] : "unknown";
}

const char *maq_moe_backend_name(enum maq_moe_backend backend)
{
    static const char *const names[MAQ_MOE_BACKEND_COUNT] = {
#define NAME(id, name, what) [MAQ_MOE_BACKEND_##id] = name,
        MAQ_MOE_BACKEND_LIST(NAME)
#undef NAME
    };
    return (unsigned)backend < MAQ_MOE_BACKEND_COUNT ? names[backend] : "unknown";
}

const char *maq_serve_exchange_name(enum maq_serve_exchange exchange)
{
    static const char *const names[MAQ_EXCHANGE_COUNT] = {
#define NAME(id, name, what) [MAQ_EXCHANGE_##id] = name,
        MAQ_SERVE_EXCHANGE_LIST(NAME)
#undef NAME
    };
    return (unsigned)exchange < MAQ_EXCHANGE_COUNT ? names[exchange] : "unknown";
}

const char *maq_afd_exchange_name(enum maq_afd_exchange exchange)
{
    static const char *const names[MAQ_AFD_EXCHANGE_COUNT] = {
#define NAME(id, name, what) [MAQ_AFD_##id] = name,
        MAQ_AFD_EXCHANGE_LIST(NAME)
#undef NAME
    };
    return (unsigned)exchange < MAQ_AFD_EXCHANGE_COUNT ? names[exchange] : "unknown";
}

const char *maq_serve_part_name(enum maq_serve_part part)
{
    static const char *const names[MAQ_SERVE_PART_COUNT] = {
#define NAME(id, name, what) [MAQ_SERVE_##id] = name,
        MAQ_SERVE_PART_LIST(NAME)
#undef NAME
    };
    return (unsigned)part < MAQ_SERVE_PART_COUNT ? names[part] : "unknown";
}

const char *maq_serve_memory_name(enum maq_serve_memory kind)
{
    static const char *const names[MAQ_SERVE_MEM_COUNT] = {
        [MAQ_SERVE_MEM_WEIGHTS] = "weights",         [MAQ_SERVE_MEM_LORA] = "adapters",
        [MAQ_SERVE_MEM_ACTIVATIONS] = "activations", [MAQ_SERVE_MEM_GRAPHS] = "graphs",
        [MAQ_SERVE_MEM_CONTEXT] = "context",         [MAQ_SERVE_MEM_KV] = "kv_cache"};
    return (unsigned)kind < MAQ_SERVE_MEM_COUNT ? names[kind] : "unknown";
}

const char *maq_role_name(enum maq_role role)
{
    static const char *const names[MAQ_ROLE_COUNT] = {"both", "prefill", "decode"};
    return (unsigned)role < MAQ_ROLE_COUNT ? names[role] : "unknown";
}

const char *maq_handover_part_name(enum maq_handover_part part)
{
    static const char *const names[MAQ_HANDOVER_PART_COUNT] = {
#define NAME(id, name, what) [MAQ_HANDOVER_##id] = name,
        MAQ_HANDOVER_PART_LIST(NAME)
#undef NAME
    };
    return (unsigned)part < MAQ_HANDOVER_PART_COUNT ? names[part] : "unknown";
}
