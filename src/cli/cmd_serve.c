/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - `maquette serve`: a deployment under a serving engine, from requests to latencies. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/serve/options.h"

static enum maq_status write_requests(struct cli *cli, const struct maq_serve_result *r, const struct maq_requests *q)
{
    char *text;
    if (!cli->values[SERVE_PER_REQUEST])
        return MAQ_OK;
    enum maq_status status = maq_report_serve_csv(&text, r, q, cli->diag);
    return status == MAQ_OK ? cli_write(cli, text, cli->values[SERVE_PER_REQUEST]) : status;
}

static enum maq_status one_batch(struct cli *cli, const struct maq_job *job, const struct serve_given *given)
{
    struct maq_serve_result *plan;
    struct maq_serve_batch batch;
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[SERVE_OUTPUT] != NULL);
    char *text;
    enum maq_status status = maq_serve_plan(&plan, job, &given->options, cli->diag);
    if (status != MAQ_OK)
        return status;
    status =
        maq_serve_static(&batch, job, &given->options, given->batch, given->spec.prompt, given->spec.output, cli->diag);
    if (status == MAQ_OK)
        status = cli->values[SERVE_JSON]
                     ? maq_report_serve_batch_json(&text, plan, &batch, given->batch, given->spec.prompt,
                                                   given->spec.output, cli->diag)
                     : maq_report_serve_batch_text(&text, plan, &batch, given->batch, given->spec.prompt,
                                                   given->spec.output, &opts, cli->diag);
    if (status == MAQ_OK)
        status = cli_write(cli, text, cli->values[SERVE_OUTPUT]);
    if (status == MAQ_OK && !plan->fits)
        status = MAQ_NO;
    maq_serve_free(plan);
    return status;
}

static enum maq_status with_requests(struct cli *cli, const struct maq_job *job, const struct serve_given *given)
{
    struct maq_request_set *set = NULL;
    struct maq_serve_result *r;
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[SERVE_OUTPUT] != NULL);
    char *text;
    enum maq_status status = given->requests
                                 ? maq_requests_read(&set, given->requests, given->speed, given->spec.n, cli->diag)
                                 : maq_requests_generate(&set, &given->spec, cli->diag);
    if (status != MAQ_OK)
        return status;
    const char *trace = cli->values[SERVE_TRACE];
    status = trace ? maq_trace_serve(trace, &r, job, &given->options, maq_requests_get(set), cli->diag)
                   : maq_serve_run(&r, job, &given->options, maq_requests_get(set), cli->diag);
    if (status == MAQ_OK) {
        if (r->fits)
            maq_slo_judge(&r->slo, &given->slo, r, maq_requests_get(set));
        status = cli->values[SERVE_JSON] ? maq_report_serve_json(&text, r, &opts, cli->diag)
                                         : maq_report_serve_text(&text, r, &opts, cli->diag);
        if (status == MAQ_OK)
            status = cli_write(cli, text, cli->values[SERVE_OUTPUT]);
        if (status == MAQ_OK && r->fits)
            status = write_requests(cli, r, maq_requests_get(set));
        if (status == MAQ_OK && (!r->fits || !r->slo.all_met))
            status = MAQ_NO;
        maq_serve_free(r);
    }
    maq_requests_free(set);
    return status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_loaded_job *box;
    struct serve_given given;
    enum maq_status status = cli_serve_job(&box, cli);
    if (status != MAQ_OK)
        return status;
    status = cli_serve_options(&given, cli, maq_job_get(box));
    if (status == MAQ_OK)
        status =
            given.batch > 0 ? one_batch(cli, maq_job_get(box), &given) : with_requests(cli, maq_job_get(box), &given);
    maq_job_free(box);
    return status;
}

const struct cli_command cli_serve = {
    .name = "serve",
    .args = "[JOB.yaml] [OPTION...] [-- vllm serve MODEL ARGUMENT...]",
    .summary = "predict a serving deployment: latencies, throughput, memory, where the time goes",
    .about = "Predicts what becomes of requests to one deployment of a model under a serving engine: requests come at "
             "a rate, at a "
             "concurrency, or out of a file; the engine's scheduler decides each iteration as the real one does. "
             "Latencies are "
             "those of vLLM's benchmark client. With --batch one batch of equal requests is timed alone. Behind `--` "
             "may stand the command line of vLLM, SGLang or "
             "TensorRT-LLM, as it is; options win. Exit status 1 "
             "when the "
             "deployment does not fit in memory, or a bound of --slo is missed.\n",
    .examples =
        "  maquette serve --model llama-3.1-70b --cluster 'h200:8' --tp 4 --isl 3000 --osl 500 --rate 8 --duration "
        "10m\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --concurrency 64 --isl 1024 --osl 1024\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --rate 20 --slo 'ttft_p95<500ms, tpot_p95<40ms'\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --requests azure.csv --per-request out.csv\n"
        "  maquette serve --model llama-3.1-8b --cluster h100-sxm:8 --batch 32 --isl 2048 --osl 256\n"
        "  maquette serve --cluster h100-sxm:8 --rate 4 -- vllm serve meta-llama/Llama-3.1-70B-Instruct "
        "--tensor-parallel-size 4\n",
    .options = cli_serve_table,
    .n_options = SERVE_COUNT,
    .max_args = 1,
    .engine = true,
    .run = run,
};
