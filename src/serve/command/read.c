/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - the words of a command line as options of an engine.
 *
 *   CUDA_VISIBLE_DEVICES=0,1 vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size=2 -q fp8
 *   |---- passed over ------|---------| the model                        | options, each by the engine's table
 *
 * What stands before the program is a launcher's, an interpreter's or the environment's. Values are taken as argparse and click take
 * them: `--x value`, `--x=value`; several values reach to the next option; a number may be negative. vLLM's members of a JSON value
 * (--compilation-config.mode 3) are that option.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "serve/codes.h"
#include "serve/command/command.h"

#define LINE_MOST ((size_t)1 << 20)

struct maq_span maq_command_span(const struct maq_command_reader *r, size_t word)
{
    return (struct maq_span){r->file, r->offset[word], (uint32_t)strlen(r->words[word])};
}

void maq_command_override(struct maq_command_reader *r, const char *flag, const char *path, const char *value)
{
    struct maq_serve_command *c = &r->loaded->read;
    size_t i = 0;
    while (i < c->n_overrides && strcmp(r->loaded->overrides[i].path, path) != 0)
        i++;
    MAQ_ASSERT(i < MAQ_COUNT(r->loaded->overrides));
    r->loaded->overrides[i] = (struct maq_override){flag, path, value};
    c->n_overrides = i == c->n_overrides ? i + 1 : c->n_overrides;
}

/* ---- the program ---- */

static bool ends(const char *word, const char *with)
{
    size_t n = strlen(word), m = strlen(with);
    return n >= m && strcmp(word + n - m, with) == 0 && (n == m || word[n - m - 1] == '/');
}

/* The first word behind the program; 0: no engine is started. */
static size_t program(const struct maq_command_engine **out, const char *const *words, size_t n)
{
    static const struct {
        enum maq_engine engine;
        const char *word, *then; /* then: the word behind it, NULL = any */
        bool may;                /* it may be left out */
    } programs[] = {
        {MAQ_ENGINE_VLLM, "vllm", "serve", false},
        {MAQ_ENGINE_VLLM, "vllm.entrypoints.openai.api_server", NULL, false},
        {MAQ_ENGINE_VLLM, "vllm.entrypoints.cli.main", "serve", false},
        {MAQ_ENGINE_VLLM, "vllm/entrypoints/openai/api_server.py", NULL, false},
        {MAQ_ENGINE_SGLANG, "sglang.launch_server", NULL, false},
        {MAQ_ENGINE_SGLANG, "sglang", "serve", false},
        {MAQ_ENGINE_TRTLLM, "trtllm-serve", "serve", true},
    };
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < MAQ_COUNT(programs); p++) {
            bool follows = programs[p].then && i + 1 < n && strcmp(words[i + 1], programs[p].then) == 0;
            if (!ends(words[i], programs[p].word) || (programs[p].then && !follows && !programs[p].may))
                continue;
            *out = maq_command_engine(programs[p].engine);
            return i + 1 + follows;
        }
    return 0;
}

/* ---- options ---- */

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

/* Values that say nothing: what an option has without being said. */
static bool neutral(const char *value)
{
    static const char *const words[] = {"0",     "1",        "none",     "null",    "None", "auto",
                                        "False", "balanced", "generate", "default", "vllm", "pytorch"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

static void say(struct maq_command_reader *r, const struct maq_command_argument *a)
{
    bool off = a->form.row->effect == MAQ_COMMAND_SAID_OFF;
    if (a->form.off != off || (a->value && a->form.row->takes == MAQ_TAKES_ONE && neutral(a->value)))
        return;
    maq_buf_addf(&r->said, "%s%s", r->said.len > 0 ? ", " : "", a->form.text);
}

/* What one server of a pool is told is what maquette's own options say of both pools. */
static const char *hint_of(const char *said)
{
    static const char *const words[] = {"disaggregation-mode", "kv-transfer-config", "server_role"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (strstr(said, words[i]))
            return "pools of prefill and decode: --prefill-replicas and --kv-transfer in front of the command line";
    return NULL;
}

static void unknown(struct maq_command_reader *r, size_t at, struct maq_str name)
{
    struct maq_command_form near;
    char hint[160] = "";
    if (maq_command_nearest(&near, r->engine, name))
        maq__snprintf(hint, sizeof hint, "did you mean '%s'?", near.text);
    r->status =
        maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_COMMAND_OPTION,
                      (struct maq_span){r->file, r->offset[at], (uint32_t)name.len}, hint[0] ? hint : NULL,
                      "%s has no option '%.*s'", r->engine->name, (int)(name.len < 80 ? name.len : 80), name.ptr);
}

static void bad_value(struct maq_command_reader *r, size_t at, const char *hint, const char *name, const char *why)
{
    r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_COMMAND_VALUE, maq_command_span(r, at), hint, "%s %s",
                              name, why);
}

/* "-O3" and "-O=3", which vLLM splits before it parses. */
static bool level(struct maq_command_reader *r, struct maq_command_argument *a, const char *word)
{
    if (r->engine->engine != MAQ_ENGINE_VLLM || strncmp(word, "-O", 2) != 0 || word[2] == '\0')
        return false;
    a->value = word + 2 + (word[2] == '=');
    return maq_command_find(&a->form, r->engine, MAQ_STR("-O"));
}

/* The option at words[at] with its values; the first word behind them is returned. */
static size_t option(struct maq_command_reader *r, size_t at, size_t n)
{
    const char *word = r->words[at];
    struct maq_command_argument a = {.at = at, .value_at = at};
    struct maq_str name, value = maq_str_split(maq_str_of(word), '=', &name), base = name, member = {NULL, 0};
    bool glued = level(r, &a, word);
    if (r->engine->engine == MAQ_ENGINE_VLLM && memchr(name.ptr, '.', name.len))
        member = maq_str_split(name, '.', &base);
    if (!glued && !maq_command_find(&a.form, r->engine, base)) {
        unknown(r, at, base);
        for (at++; at < n && !is_option(r->words[at]);) /* what may be its values */
            at++;
        return at;
    }
    if (!glued && value.ptr)
        a.value = value.ptr;
    a.member = member;
    enum maq_command_takes takes = a.form.row->takes;
    size_t next = at + 1;
    if (takes == MAQ_TAKES_NONE || takes == MAQ_TAKES_SWITCH) {
        if (a.value) {
            bad_value(r, at, NULL, a.form.text, "takes no value");
            return next;
        }
    } else if (!a.value) {
        size_t most = takes == MAQ_TAKES_SOME ? n : at + 2 < n ? at + 2 : n;
        a.value_at = next;
        while (next < most && !is_option(r->words[next]))
            next++;
        a.value = next > at + 1 ? r->words[at + 1] : NULL;
        if (!a.value && takes != MAQ_TAKES_MAYBE) {
            bad_value(r, at, NULL, a.form.text, "needs a value");
            return next;
        }
    }
    if (a.form.row->effect == MAQ_COMMAND_SAID || a.form.row->effect == MAQ_COMMAND_SAID_OFF)
        say(r, &a);
    else if (a.form.row->effect != MAQ_COMMAND_PASSED)
        maq_command_set(r, &a);
    return next;
}

static void read_words(struct maq_command_reader *r, size_t first, size_t n)
{
    for (size_t i = first; i < n && r->status != MAQ_NO_MEMORY;) {
        if (is_option(r->words[i])) {
            i = option(r, i, n);
        } else if (!r->model && r->engine->engine != MAQ_ENGINE_SGLANG) {
            r->model = r->words[i];
            r->model_at = i++;
        } else {
            r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_COMMAND_OPTION, maq_command_span(r, i), NULL,
                                      "'%.80s' is no option%s", r->words[i],
                                      r->model ? ", and the model was named before" : "");
            i++;
        }
    }
}

/* ---- the whole ---- */

/* The words as one line, where faults have their place. */
static bool register_line(struct maq_command_reader *r, const char *const *words, size_t n)
{
    struct maq_buf line;
    uint32_t *offset = MAQ_ARENA_NEW(&r->loaded->arena, uint32_t, n + 1);
    maq_buf_init(&line, LINE_MOST);
    for (size_t i = 0; offset && i < n; i++) {
        maq_buf_adds(&line, i > 0 ? " " : "");
        offset[i] = (uint32_t)line.len;
        maq_buf_adds(&line, words[i]);
    }
    r->offset = offset;
    r->words = words;
    bool ok = offset && !line.failed;
    if (ok && r->diag) {
        r->file = maq_diag_add_source(r->diag, "--", line.ptr ? line.ptr : "", line.len);
        ok = r->file != 0;
    }
    maq_buf_fini(&line);
    return ok;
}

static void conclude(struct maq_command_reader *r)
{
    struct maq_serve_options *o = &r->loaded->read.options;
    if (r->config)
        maq_command_read_config(r);
    if (r->model)
        maq_command_checkpoint(r);
    maq_command_conclude_ranks(r);
    maq_command_conclude_drafts(r);
    maq_command_conclude_offload(r);
    maq_command_conclude_hicache(r);
    maq_command_conclude_afd(r);
    if (r->keeps_out)
        o->tiers.host_rank_bytes = 0;
    o->sglang.high_first = o->sglang.high_first && !r->low_first;
    if (r->pool > 0) /* tokens, in blocks of the engine's own size where none is said (engine/defaults.c) */
        o->blocks = r->pool / (r->block > 0 ? r->block : r->engine->engine == MAQ_ENGINE_TRTLLM ? 32 : 1);
    o->block_size = r->block;
    if (r->said.failed)
        r->status = maq_no_memory(r->diag, "options");
    else if (r->said.len > 0 && r->status == MAQ_OK)
        maq_diag_add(r->diag, MAQ_WARNING, MAQ_CODE_COMMAND_SAID, (struct maq_span){0}, hint_of(r->said.ptr),
                     "options of %s that change what is predicted and are not modelled: %s", r->engine->name,
                     r->said.ptr);
}

static struct maq_loaded_command *new_box(void)
{
    struct maq_loaded_command *loaded = maq__calloc(sizeof *loaded);
    if (!loaded)
        return NULL;
    maq_arena_init(&loaded->arena, 0);
    loaded->read.overrides = loaded->overrides;
    return loaded;
}

enum maq_status maq_serve_command_read(struct maq_serve_command **out, const char *const *words, size_t n_words,
                                       struct maq_diag *diag)
{
    struct maq_command_reader r = {.loaded = new_box(), .diag = diag};
    if (!r.loaded || !register_line(&r, words, n_words)) {
        maq_serve_command_free(r.loaded ? &r.loaded->read : NULL);
        return maq_no_memory(diag, "a command line");
    }
    maq_buf_init(&r.said, LINE_MOST);
    size_t first = program(&r.engine, words, n_words);
    if (first > 0) {
        r.loaded->read.options.engine = r.engine->engine;
        read_words(&r, first, n_words);
        conclude(&r);
    } else {
        r.status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_COMMAND_ENGINE, (struct maq_span){0},
                                 "vllm serve MODEL ..., python -m sglang.launch_server ..., or trtllm-serve MODEL ...",
                                 "what stands behind `--` starts no serving engine");
    }
    maq_buf_fini(&r.said);
    if (r.status != MAQ_OK)
        maq_serve_command_free(&r.loaded->read);
    else
        *out = &r.loaded->read;
    return r.status;
}

void maq_serve_command_free(struct maq_serve_command *command)
{
    if (!command)
        return;
    struct maq_loaded_command *loaded = (struct maq_loaded_command *)command;
    maq_arena_fini(&loaded->arena);
    free(loaded);
}
