/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_serve_command.c - any words as the command line of a serving engine, and any text as bounds on latencies.
 *
 * Words stand between blanks and line ends. Besides crashes, this looks for broken promises: a failure without a diagnostic, a finding
 * whose place is outside of its source, a setting without a path or a value, a number outside of its range, a bound that is none.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "command_words.h"
#include "maquette/serve_command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_command(const struct maq_serve_command *c)
{
    const struct maq_serve_options *o = &c->options;
    for (size_t i = 0; i < c->n_overrides; i++)
        require(c->overrides[i].path && c->overrides[i].value && c->overrides[i].flag);
    require(o->engine < MAQ_ENGINE_COUNT && o->weights < MAQ_WEIGHTS_COUNT && o->expert_weights < MAQ_WEIGHTS_COUNT);
    require(o->ep >= 0 && o->max_num_seqs >= 0 && o->max_num_batched_tokens >= 0 && o->max_model_len >= 0);
    require(o->block_size >= 0 && o->blocks >= 0 && o->long_prefill_token_threshold >= 0);
    require(o->gpu_memory_utilization >= 0 && o->gpu_memory_utilization <= 1);
    require(o->static_memory_share >= 0 && o->static_memory_share <= 1);
    require(o->free_memory_share >= 0 && o->free_memory_share <= 1);
}

static void read_bounds(const char *text, struct maq_diag *diag)
{
    struct maq_slo slo;
    size_t before = maq_diag_count(diag);
    enum maq_status status = maq_slo_read(&slo, text, diag);
    require((status == MAQ_OK) == (maq_diag_count(diag) == before));
    require((status == MAQ_OK) == (slo.n > 0) && slo.n <= MAQ_SLO_MOST);
    for (uint32_t i = 0; i < slo.n; i++)
        require(slo.at[i].metric < MAQ_SLO_METRIC_COUNT && slo.at[i].statistic < MAQ_SLO_STATISTIC_COUNT &&
                slo.at[i].limit.most_s > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[WORDS];
    struct maq_serve_command *c;
    char *text = malloc(size + 1), *shown;
    struct maq_diag *diag = maq_diag_new();
    if (text && diag) {
        memcpy(text, data, size);
        text[size] = '\0';
        read_bounds(text, diag);
        size_t n = cut(words, text), before = maq_diag_count(diag);
        enum maq_status status = maq_serve_command_read(&c, words, n, diag);
        require(status == MAQ_OK || maq_diag_count(diag) > before);
        if (status == MAQ_OK) {
            check_command(c);
            maq_serve_command_free(c);
        }
        shown = maq_diag_format(diag, 0, false);
        require(shown != NULL);
        free(shown);
    }
    maq_diag_free(diag);
    free(text);
    return 0;
}
