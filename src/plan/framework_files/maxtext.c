/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maxtext.c - MaxText's YAML: what a run changes of base.yml.
 *
 * Names, defaults and meanings are those of configs/base.yml and types.py at e591f30 (August 2026); keys that are a plan's are read by the
 * table of its words (plan/words/maxtext.c). What the table has not:
 *
 *   - An axis of -1 is what the others leave: of the ici_ axes of the devices of a scale-up domain, of the dcn_ ones of the domains. So the
 *     cluster has to be known: it is the flag's, or the job's.
 *   - A step has per_device_batch_size x devices x gradient_accumulation_steps sequences.
 *   - model_name is a model that the catalogue has under a like name.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cluster/cluster_load.h"
#include "model/load.h"
#include "plan/framework_files/reader.h"
#include "plan/words/words.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("model_name"),
    MAQ_FILE_REFUSE_BUT("base_config", "base.yml", "another use than training from base.yml"),
    MAQ_FILE_REFUSE("base_emb_dim", "sizes of its own; --model says them"),
    MAQ_FILE_REFUSE("base_num_decoder_layers", "sizes of its own; --model says them"),
    MAQ_FILE_REFUSE("base_mlp_dim", "sizes of its own; --model says them"),
    MAQ_FILE_REFUSE("base_num_query_heads", "sizes of its own; --model says them"),
    MAQ_FILE_REFUSE("base_num_kv_heads", "sizes of its own; --model says them"),
    MAQ_FILE_REFUSE("override_model_config", "sizes of its own; --model says them"),
    MAQ_FILE_REFUSE_BUT("decoder_layer_input", "device", "checkpoints in host memory"),
    MAQ_FILE_REFUSE("optimizer_memory_host_offload", "the optimizer in host memory"),
    MAQ_FILE_REFUSE("parameter_memory_host_offload", "parameters in host memory"),
    MAQ_FILE_REFUSE("use_dpo", "training with preferences"),
    MAQ_FILE_MAP("use_iota_embed", "framework.embeds_by_product", "true=true|false=false"),
    MAQ_FILE_IDLE("async_checkpointing"),
    MAQ_FILE_IDLE("base_output_directory"),
    MAQ_FILE_IDLE("checkpoint_*"),
    MAQ_FILE_IDLE("compile_topology*"),
    MAQ_FILE_IDLE("dataset_*"),
    MAQ_FILE_IDLE("enable_checkpointing"),
    MAQ_FILE_IDLE("enable_goodput_recording"),
    MAQ_FILE_IDLE("gcs_metrics"),
    MAQ_FILE_IDLE("hardware"),
    MAQ_FILE_IDLE("learning_rate*"),
    MAQ_FILE_IDLE("logits_dot_in_fp32"),
    MAQ_FILE_IDLE("max_segments_per_seq"),
    MAQ_FILE_IDLE("metrics_file"),
    MAQ_FILE_IDLE("monitor_*"),
    MAQ_FILE_IDLE("profiler*"),
    MAQ_FILE_IDLE("reuse_example_batch"),
    MAQ_FILE_IDLE("run_name"),
    MAQ_FILE_IDLE("save_config_to_gcs"),
    MAQ_FILE_IDLE("skip_first_n_steps_for_profiler"),
    MAQ_FILE_IDLE("steps"),
    MAQ_FILE_IDLE("tokenizer_*"),
    MAQ_FILE_END};

static bool knows(const char *key)
{
    for (const struct maq_word *row = maq_words_maxtext.words; row->word || row->path; row++)
        if (row->word && strcmp(row->word, key) == 0)
            return true;
    return false;
}

/* ---- the model ---- */

/* How MaxText's names begin where the catalogue's begin otherwise; what follows is the same. */
static void set_model(struct maq_file_reader *r)
{
    static const struct {
        const char *theirs, *ours;
    } begins[] = {
        {"llama2-", "llama-2-"},           {"llama3-", "llama-3-"},           {"llama3.1-", "llama-3.1-"},
        {"llama3.3-", "llama-3.3-"},       {"gemma2-", "gemma-2-"},           {"gemma3-", "gemma-3-"},
        {"deepseek3-671b", "deepseek-v3"}, {"deepseek2-236b", "deepseek-v2"}, {"deepseek2-16b", "deepseek-v2-lite"}};
    const struct maq_node *n = maq_file_get(r, "model_name");
    if (!n || n->kind != MAQ_NODE_SCALAR)
        return;
    const char *name = maq_arena_strdup(&r->job->arena, n->text);
    for (size_t i = 0; name && i < MAQ_COUNT(begins); i++)
        if (maq_str_starts(n->text, begins[i].theirs)) {
            name = maq_arena_printf(&r->job->arena, "%s%s", begins[i].ours, name + strlen(begins[i].theirs));
            break;
        }
    maq_file_set(r, n, "model", name);
}

/* ---- axes ---- */

static const char *const axes[] = {"data", "pipeline", "fsdp", "context", "expert", "tensor_sequence", "tensor"};

/* ici_fsdp and dcn_data are -1 unless something else is said. */
static int64_t axis(const struct maq_file_reader *r, const char *where, size_t i, bool rest_is_fsdp)
{
    char key[64];
    maq__snprintf(key, sizeof key, "%s_%s_parallelism", where, axes[i]);
    return maq_file_number(r, key, strcmp(axes[i], rest_is_fsdp ? "fsdp" : "data") == 0 ? -1 : 1);
}

/* Lines of all axes of one kind, the one of -1 with what is left of `all`. */
static void add_axes(struct maq_file_reader *r, struct maq_buf *lines, const char *where, int64_t all)
{
    const bool inside = strcmp(where, "ici") == 0;
    int64_t product = 1;
    for (size_t i = 0; i < MAQ_COUNT(axes); i++) {
        const int64_t n = axis(r, where, i, inside);
        product *= n > 0 && n < 1 << 20 && product < 1 << 30 ? n : 1;
    }
    for (size_t i = 0; i < MAQ_COUNT(axes); i++) {
        const int64_t n = axis(r, where, i, inside);
        maq_buf_addf(lines, "%s_%s_parallelism=%lld\n", where, axes[i],
                     (long long)(n > 0                          ? n
                                 : product > 0 && all > product ? all / product
                                                                : 1));
    }
}

/* ---- words ---- */

static bool is_axis(const char *word)
{
    return strncmp(word, "ici_", 4) == 0 || strncmp(word, "dcn_", 4) == 0;
}

static void add_words(struct maq_file_reader *r, struct maq_buf *lines)
{
    for (const struct maq_word *row = maq_words_maxtext.words; row->word || row->path; row++) {
        const struct maq_node *n = row->word && !is_axis(row->word) ? maq_file_get(r, row->word) : NULL;
        if (!n || n->kind != MAQ_NODE_SCALAR || n->text.len == 0)
            continue;
        if (maq_str_ieq(n->text, "true") || maq_str_ieq(n->text, "false"))
            maq_buf_addf(lines, "%s=%s\n", row->word, maq_str_ieq(n->text, "true") ? "True" : "False");
        else
            maq_buf_addf(lines, "%s=%.*s\n", row->word, (int)n->text.len, n->text.ptr);
    }
}

/* The flag's cluster, or that of the job whose file this is; false, with a fault: there is none. */
static bool load_cluster(struct maq_cluster *out, struct maq_file_reader *r)
{
    struct maq_node flag = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(r->cluster)};
    struct maq_node *own = r->job->root ? maq_node_peek(r->job->root, "cluster") : NULL, *n = r->cluster ? &flag : own;
    if (!n)
        maq_file_fault(r, NULL, "--cluster 'h100-sxm:8 x 4, rail 400G'",
                       "axes of -1 are what the cluster leaves: it has to be said");
    else if (maq_cluster_load(out, n, &r->job->arena, r->diag) != MAQ_OK)
        r->status = MAQ_BAD_INPUT;
    else
        return true;
    return false;
}

static void check_policies(struct maq_file_reader *r)
{
    static const char *const recipes[] = {"", "te_fp8_delayedscaling", "te_fp8_currentscaling", "te_mxfp8", "te_nvfp4"};
    const struct maq_node *remat = maq_file_get(r, "remat_policy"), *narrow = maq_file_get(r, "quantization");
    bool known = !narrow;
    if (remat && !maq_str_is(remat->text, "full"))
        maq_file_fault(r, remat, "full is; plan.recompute_granularity says others", "remat_policy %.*s is not modelled",
                       (int)(remat->text.len < 60 ? remat->text.len : 60), remat->text.ptr);
    for (size_t i = 0; narrow && i < MAQ_COUNT(recipes); i++)
        known |= maq_str_is(narrow->text, recipes[i]);
    if (!known)
        maq_file_fault(r, narrow, "te_fp8_delayedscaling, te_fp8_currentscaling, te_mxfp8 and te_nvfp4 are",
                       "the quantization %.*s is not modelled", (int)(narrow->text.len < 60 ? narrow->text.len : 60),
                       narrow->text.ptr);
}

static void set_batch(struct maq_file_reader *r, int64_t devices)
{
    const struct maq_node *n = maq_file_get(r, "per_device_batch_size");
    double each = 12;
    const bool fine = !n || (maq_str_to_double(&each, n->text) && each > 0 && each < 1e6);
    const int64_t all = llround(each * (double)devices * (double)maq_file_number(r, "gradient_accumulation_steps", 1));
    if (fine && all >= 1)
        maq_file_set_number(r, n, "workload.global_batch_size", all);
    else
        maq_file_fault(r, n, NULL, "per_device_batch_size is no number of sequences of %lld devices",
                       (long long)devices);
}

static void conclude(struct maq_file_reader *r)
{
    struct maq_job about = {0};
    struct maq_words_reader words = {.vocabulary = &maq_words_maxtext, .about = &about, .arena = &r->job->arena};
    struct maq_buf lines;
    int64_t hidden, layers = 0;
    maq_file_framework(r, "maxtext");
    set_model(r);
    check_policies(r);
    if (!load_cluster(&about.cluster, r))
        return;
    (void)maq_file_model_shape(r, &hidden, &layers);
    about.model.num_layers = (uint32_t)layers;
    const int64_t domain = about.cluster.groups[0].domain_devices, devices = about.cluster.devices;
    maq_buf_init(&lines, 65536);
    add_axes(r, &lines, "ici", domain < devices ? domain : devices);
    add_axes(r, &lines, "dcn", domain < devices ? devices / domain : 1);
    add_words(r, &lines);
    if (maq_file_set_lines(r, &words, &lines))
        set_batch(r, devices);
}

const struct maq_file_form maq_file_maxtext = {
    .title = "MaxText's configuration",
    .told_by = "base_config|per_device_batch_size,max_target_length|model_name,per_device_batch_size",
    .keys = keys,
    .knows = knows,
    .conclude = conclude,
};
