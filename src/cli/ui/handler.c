/* SPDX-License-Identifier: Apache-2.0 */
/* handler.c - from a request to its response. See handler.h. */
#include "cli/ui/handler.h"

#include <stdlib.h>
#include <string.h>

#include "cli/ui/internal.h"

struct ui *ui_new(const struct ui_opts *opts)
{
    struct ui *ui = calloc(1, sizeof *ui);
    if (!ui)
        return NULL;
    ui->port = opts->port;
    ui->call = opts->call ? opts->call : cli_call;
    ui->open = opts->open ? opts->open : cli_call_open;
    ui->token = strdup(opts->token);
    ui->file = opts->file ? strdup(opts->file) : NULL;
    ui->document = opts->document ? strdup(opts->document) : NULL;
    ui->runs = ui_runs_new();
    if (ui->token && ui->runs && (!opts->file || ui->file) && (!opts->document || ui->document) &&
        ui_page_policy(ui->policy, sizeof ui->policy))
        return ui;
    ui_free(ui);
    return NULL;
}

void ui_free(struct ui *ui)
{
    if (!ui)
        return;
    ui_runs_free(ui->runs);
    free(ui->token);
    free(ui->file);
    free(ui->document);
    free(ui);
}

void ui_set_port(struct ui *ui, uint16_t port)
{
    ui->port = port;
}

static void page(struct ui *ui, struct ui_response *out)
{
    ui_respond(out, 200, "text/html; charset=utf-8", ui_page());
    out->fields[out->n_fields].name = "Content-Security-Policy";
    out->fields[out->n_fields++].value = ui->policy;
    out->fields[out->n_fields].name = "X-Frame-Options";
    out->fields[out->n_fields++].value = "DENY";
}

/* What is done with a question. */
enum asked { ANSWER, RUN, JOB_FILE };

static void answer(struct ui *ui, struct ui_response *out, const struct ui_command *q)
{
    ui_respond(out, 200, "application/json", ui_answer(ui, q, &(const struct cli_call_opts){.columns = 0}));
}

static void question(struct ui *ui, struct ui_response *out, struct maq_str body, enum asked asked)
{
    struct ui_command q;
    char why[256];
    if (!ui_command_read(&q, body, why)) {
        ui_refuse(out, 400, why);
        return;
    }
    if (asked == JOB_FILE)
        ui_job_file(out, ui, &q);
    else if (ui_takes_long(q.command) != (asked == RUN))
        ui_refuse(out, 400,
                  asked == RUN ? "train is answered at once: /api/answer" : "plan and serve run aside: /api/runs");
    else if (asked == RUN)
        ui_run_begin(ui, out, &q);
    else
        answer(ui, out, &q);
    ui_command_free(&q);
}

void ui_handle(struct ui *ui, struct ui_response *out, const struct ui_request *request)
{
    const struct maq_str path = request->path;
    if (!ui_admit(ui, out, request, request->body.len))
        return;
    if (ui_is(path, "/"))
        page(ui, out);
    else if (ui_is(path, "/api/session"))
        ui_respond_json(out, 200, ui_session(ui));
    else if (ui_is(path, "/api/answer"))
        question(ui, out, request->body, ANSWER);
    else if (ui_is(path, "/api/runs"))
        question(ui, out, request->body, RUN);
    else if (ui_is(path, "/api/job"))
        question(ui, out, request->body, JOB_FILE);
    else if (ui_is(path, "/api/diff"))
        ui_diff(out, request->body);
    else if (ui_is(request->method, "DELETE"))
        ui_run_stop(ui, out, ui_number_behind(path, "/api/runs/"));
    else
        ui_run_look(ui, out, ui_number_behind(path, "/api/runs/"));
}
