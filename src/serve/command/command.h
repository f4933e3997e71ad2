/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - an engine's options as a table, and the state of reading a command line by it.
 *
 *   vllm_options.c sglang_options.c trtllm_options.c   the tables
 *   options.c       looks a word up in one
 *   read.c          splits the words of a command line into options
 *   apply_option.c  what an option sets
 *   kv_offloading.c hicache.c  host memory for keys and values: vLLM's, SGLang's
 *   afd_config.c    attention and FFN on GPUs of their own, by vLLM's plugin
 *   compilation_config.c  which iterations are CUDA graphs, by vLLM's --compilation-config
 *   trtllm_config.c the file of TensorRT-LLM's --config
 *   speculation.c   what options of speculative decoding set
 *   checkpoint_name.c  what the name of a checkpoint says of its weights
 *   checkpoint_weights.c  what its config.json says of them
 */
#ifndef MAQ_SERVE_COMMAND_COMMAND_H
#define MAQ_SERVE_COMMAND_COMMAND_H

#include "base/arena.h"
#include "base/str.h"
#include "maquette/serve_command.h"

enum maq_command_takes {
    MAQ_TAKES_NONE,
    MAQ_TAKES_ONE,
    MAQ_TAKES_MAYBE, /* one or none */
    MAQ_TAKES_SOME,  /* one and more */
    MAQ_TAKES_SWITCH /* none, and has a form that switches it off: --no-x; --disable-x for --enable-x, and the other way round */
};

enum maq_command_effect {
    MAQ_COMMAND_PASSED,   /* changes nothing that is predicted */
    MAQ_COMMAND_SAID,     /* would change it, and is not modelled */
    MAQ_COMMAND_SAID_OFF, /* switched off it would */
    MAQ_COMMAND_MODEL,
    MAQ_COMMAND_TP,
    MAQ_COMMAND_PP,
    MAQ_COMMAND_DP,
    MAQ_COMMAND_DP_ATTENTION,       /* SGLang: the replicas that --dp-size says share the GPUs of TP, and the experts */
    MAQ_COMMAND_DP_ATTENTION_RANKS, /* SGLang: so many ranks do */
    MAQ_COMMAND_EXCHANGE,
    MAQ_COMMAND_MOE_BACKEND,
    MAQ_COMMAND_DEEPEP_MODE,
    MAQ_COMMAND_EP,
    MAQ_COMMAND_EP_ALL,
    MAQ_COMMAND_DTYPE,
    MAQ_COMMAND_QUANTIZATION,
    MAQ_COMMAND_KV_DTYPE,
    MAQ_COMMAND_LEN,
    MAQ_COMMAND_SEQS,
    MAQ_COMMAND_TOKENS,
    MAQ_COMMAND_CHUNK, /* SGLang: tokens of a piece of a prompt, -1: whole */
    MAQ_COMMAND_BLOCK,
    MAQ_COMMAND_BLOCKS,
    MAQ_COMMAND_POOL, /* SGLang: tokens of the cache */
    MAQ_COMMAND_UTILIZATION,
    MAQ_COMMAND_STATIC_SHARE,
    MAQ_COMMAND_FREE_SHARE,
    MAQ_COMMAND_LONG_PREFILL,
    MAQ_COMMAND_CACHING,
    MAQ_COMMAND_NO_CACHING,
    MAQ_COMMAND_CHUNKED,
    MAQ_COMMAND_EAGER,
    MAQ_COMMAND_ASYNC,
    MAQ_COMMAND_NO_ASYNC,
    MAQ_COMMAND_POLICY,
    MAQ_COMMAND_EVICTION,
    MAQ_COMMAND_CONSERVATIVENESS,
    MAQ_COMMAND_MAX_PREFILL,
    MAQ_COMMAND_PREFILL_REQUESTS,
    MAQ_COMMAND_RECV_INTERVAL,
    MAQ_COMMAND_RESERVED_DECODE,
    MAQ_COMMAND_GRAPH_TOKENS,
    MAQ_COMMAND_GRAPH_REQUESTS,
    MAQ_COMMAND_PREFILL_GRAPH_TOKENS,
    MAQ_COMMAND_NO_PREFILL_GRAPH,
    MAQ_COMMAND_MIXED,
    MAQ_COMMAND_BY_PRIORITY, /* SGLang: the highest first, or with the next the lowest; who runs gives way, or does not */
    MAQ_COMMAND_LOW_FIRST,
    MAQ_COMMAND_NO_PREEMPTION,
    MAQ_COMMAND_PREEMPTS_BY,
    MAQ_COMMAND_CONFIG,      /* TensorRT-LLM: a file that lies over the options */
    MAQ_COMMAND_SPEC_CONFIG, /* of speculative decoding: vLLM's object */
    MAQ_COMMAND_SPEC_METHOD,
    MAQ_COMMAND_SPEC_MODEL,
    MAQ_COMMAND_SPEC_TOKENS,   /* drafts behind each other */
    MAQ_COMMAND_SPEC_BRANCHES, /* SGLang: of a tree */
    MAQ_COMMAND_SPEC_VERIFIED, /* SGLang: tokens that are verified together */
    MAQ_COMMAND_LEVEL,         /* vLLM's -O */
    MAQ_COMMAND_KV_SIZE,       /* vLLM: host memory for keys and values, GiB */
    MAQ_COMMAND_KV_BACKEND,
    MAQ_COMMAND_KV_CONNECTOR, /* vLLM: an object of JSON */
    MAQ_COMMAND_HICACHE,      /* SGLang: host memory behind its tree */
    MAQ_COMMAND_HICACHE_RATIO,
    MAQ_COMMAND_HICACHE_SIZE, /* GB of each GPU */
    MAQ_COMMAND_HICACHE_SHARE,
    MAQ_COMMAND_HICACHE_WRITE,
    MAQ_COMMAND_HICACHE_IO,
    MAQ_COMMAND_HICACHE_LAYOUT,
    MAQ_COMMAND_HICACHE_MODE,
    MAQ_COMMAND_ADDITIONAL,  /* vLLM: an object of JSON for plugins */
    MAQ_COMMAND_DBO,         /* vLLM: two micro-batches */
    MAQ_COMMAND_COMPILATION, /* vLLM: an object of JSON about CUDA graphs and the compiler */
    MAQ_COMMAND_LORA,        /* adapters are served */
    MAQ_COMMAND_LORA_SLOTS,
    MAQ_COMMAND_LORA_RANK,
    MAQ_COMMAND_LORA_HOST
};

/* Options that are alike; a blank between two, a bar between the names of one: "tensor-parallel-size|-tp". */
struct maq_command_row {
    enum maq_command_takes takes;
    enum maq_command_effect effect;
    const char *names;
};

struct maq_command_engine {
    enum maq_engine engine;
    const char *name; /* "vllm serve" */
    bool prefixes;    /* a name may be cut short where one option alone begins so (argparse) */
    const struct maq_command_row *rows;
    size_t n_rows;
};
extern const struct maq_command_engine maq__command_vllm, maq__command_sglang, maq__command_trtllm;
const struct maq_command_engine *maq_command_engine(enum maq_engine engine);

/* A form in which an option may be written. */
struct maq_command_form {
    const struct maq_command_row *row;
    struct maq_str option; /* in row->names, with all its names */
    char text[80];         /* "--no-enable-prefix-caching" */
    bool off;
};
/* Every form of every option in turn, `at` begins as 0; false at the end. */
struct maq_command_cursor {
    size_t row, at, form;
};
bool maq_command_next(struct maq_command_form *out, const struct maq_command_engine *e, struct maq_command_cursor *c);
/* The form that a word is, or is the beginning of where no other option has one; false: none. */
bool maq_command_find(struct maq_command_form *out, const struct maq_command_engine *e, struct maq_str word);
/* The nearest form to a word; false: none is near. */
bool maq_command_nearest(struct maq_command_form *out, const struct maq_command_engine *e, struct maq_str word);

struct maq_loaded_command {
    struct maq_serve_command read; /* first member: what is handed out */
    struct maq_arena arena;
    struct maq_override overrides[3];
};

/* What is said of speculative decoding, 0 and NULL: nothing. */
struct maq_command_drafts {
    const char *method, *model;
    int64_t tokens, branches, verified, tp;
    char said[80]; /* the first option of it */
};

struct maq_command_reader {
    const struct maq_command_engine *engine;
    struct maq_loaded_command *loaded;
    struct maq_diag *diag;
    uint32_t file;
    const uint32_t *offset; /* [words] where each begins in the source */
    const char *const *words;
    enum maq_status status;
    struct maq_buf said; /* options that are not modelled */
    const char *model;
    size_t model_at;
    bool quantized; /* what weights are is said */
    int32_t block;
    int64_t pool;
    int32_t tp, dp, shared; /* as they are said; 0 = not. shared: SGLang's ranks of attention */
    bool shares;            /* what dp says is ranks of attention */
    int deepep_mode;        /* enum maq_serve_exchange */
    struct maq_command_drafts drafts;
    double offload_bytes;    /* of --kv-offloading-size */
    int32_t offload_tokens;  /* of a chunk */
    bool foreign_offload;    /* it is another program's */
    int32_t attention_ranks; /* that --additional-config says; 0 = not */
    bool dbo;
    bool low_first; /* SGLang: of priorities, the lowest first */
    bool hicache;
    bool keeps_out; /* TensorRT-LLM: nothing comes back from the host, so that nothing goes there */
    struct maq_tier_options hicache_said; /* of host memory, in SGLang's words */
    const char *config; /* a file of further options; NULL = none. config_at: the word that names it */
    size_t config_at;
    char config_option[80];
};

/* An option as it stands: words[at], its values behind it (in `value`, where it is behind '='). */
struct maq_command_argument {
    struct maq_command_form form;
    struct maq_str member; /* "method" of --speculative-config.method; empty: the whole */
    size_t at;
    const char *value; /* NULL: none; the first of several */
    size_t value_at;   /* the word that has it */
};

/* What it sets. apply_option.c */
void maq_command_set(struct maq_command_reader *r, const struct maq_command_argument *a);
/* "--x takes WHY, not 'y'". */
void maq_command_bad(struct maq_command_reader *r, const struct maq_command_argument *a, const char *hint,
                     const char *why);
bool maq_command_number(struct maq_command_reader *r, const struct maq_command_argument *a, int64_t *out, int64_t least,
                        int64_t most);
/* Options of speculative decoding; false: it is none. What they come to. speculation.c */
bool maq_command_set_drafts(struct maq_command_reader *r, const struct maq_command_argument *a);
void maq_command_conclude_drafts(struct maq_command_reader *r);
/* Host memory for keys and values; false: it is none of that. What it comes to. kv_offloading.c */
bool maq_command_set_offload(struct maq_command_reader *r, const struct maq_command_argument *a);
void maq_command_conclude_offload(struct maq_command_reader *r);
/* The same in SGLang's words. hicache.c */
bool maq_command_set_hicache(struct maq_command_reader *r, const struct maq_command_argument *a);
void maq_command_conclude_hicache(struct maq_command_reader *r);
/* Attention and FFN on GPUs of their own; false: it is none of that. What it comes to. afd_config.c */
bool maq_command_set_afd(struct maq_command_reader *r, const struct maq_command_argument *a);
void maq_command_conclude_afd(struct maq_command_reader *r);
/* --compilation-config; false: it is another option. compilation_config.c */
bool maq_command_set_compilation(struct maq_command_reader *r, const struct maq_command_argument *a);
/* What words of an option say; `word` NULL ends them. The one that stands there; -1: none, and that is said. apply_option.c */
struct maq_command_meaning {
    const char *word;
    int is;
};
int maq_command_meaning(struct maq_command_reader *r, const struct maq_command_argument *a,
                        const struct maq_command_meaning *words, const char *what);
/* An option with its value is among those that are not modelled. apply_option.c */
void maq_command_say(struct maq_command_reader *r, const struct maq_command_argument *a);
/* So is a member of its object. apply_option.c */
void maq_command_say_member(struct maq_command_reader *r, const struct maq_command_argument *a, const char *member);
/* Reads r->config. trtllm_config.c */
void maq_command_read_config(struct maq_command_reader *r);
/* What the ranks that were said come to, once all is read. apply_option.c */
void maq_command_conclude_ranks(struct maq_command_reader *r);
/* What the name of the model says, where nothing else does. checkpoint_name.c */
void maq_command_checkpoint(struct maq_command_reader *r);

struct maq_span maq_command_span(const struct maq_command_reader *r, size_t word);
void maq_command_override(struct maq_command_reader *r, const char *flag, const char *path, const char *value);

#endif
