/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - the answer to a question: the command is called, and what it gives is put together for the page.
 *
 *   {"exit_status": 0, "status": "done", "command_line": "maquette train job.yaml --tp 4", "page": "<!DOCTYPE html>...",
 *    "settings": {"plan.tensor_model_parallel_size": ["4", "--tensor-model-parallel-size"]},
 *    "diagnostics": [{"severity": "error", "code": "MAQ1026", "file": "job", "line": 3, "column": 7, "message": "...", "hint": null}]}
 *
 * `page` is what --html writes, but for the script, and carries the document of --json. Where the job is wrong there are findings alone, those of the schema
 * maquette.error.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/ui/internal.h"
#include "maquette/report_diff.h"

/* What is said of a call, as `--json` says it. */
static void put_findings(json_t *answer, enum maq_status status, struct maq_diag *diag)
{
    char *text;
    if (maq_report_error_json(&text, status, diag) != MAQ_OK)
        return;
    json_t *error = json_loads(text, 0, NULL), *list = json_object_get(error, "diagnostics");
    json_object_set(answer, "diagnostics", list ? list : json_null());
    json_decref(error);
    free(text);
}

/* A page without the script that all pages have: the reader has it, and sets it in where the page is saved. */
static json_t *without_script(char *page)
{
    const char *script = maq_report_html_assets().script;
    const size_t n = strlen(script);
    char *at = strstr(page, script);
    if (at)
        memmove(at, at + n, strlen(at + n) + 1);
    return json_string(page);
}

static json_t *text_of(const char *begin, const char *end)
{
    while (begin < end && *begin == ' ')
        begin++;
    while (end > begin && end[-1] == ' ')
        end--;
    return json_stringn(begin, (size_t)(end - begin));
}

/* A line of maq_job_explain(), "plan.key = value  (origin)". */
static void put_setting(json_t *settings, const char *line, const char *end)
{
    const char *equals = memchr(line, '=', (size_t)(end - line)), *open = equals;
    for (const char *at = equals; at && at < end; at++)
        open = *at == '(' ? at : open;
    if (!equals || open == equals || end[-1] != ')')
        return;
    json_t *name = text_of(line, equals);
    if (name)
        json_object_set_new(settings, json_string_value(name),
                            json_pack("[o,o]", text_of(equals + 1, open), text_of(open + 1, end - 1)));
    json_decref(name);
}

static void put_settings(json_t *answer, const struct maq_loaded_job *job)
{
    char *lines = maq_job_explain(job);
    json_t *settings = json_object();
    for (const char *line = lines; line && *line;) {
        const char *end = strchrnul(line, '\n');
        put_setting(settings, line, end);
        line = *end ? end + 1 : end;
    }
    json_object_set_new(answer, "settings", settings);
    free(lines);
}

char *ui_answer(const struct ui *ui, const struct ui_command *q, const struct cli_call_opts *opts)
{
    struct cli_call_opts own = *opts;
    struct cli_called *called = NULL;
    struct maq_diag *diag = maq_diag_new();
    char *line = ui_command_line(q, ui->file ? ui->file : "job.yaml"), *text = NULL;
    json_t *answer = json_object();
    own.document = q->document ? q->document : "";
    own.page = true;
    own.unicode = true;
    if (diag && line && answer) {
        enum maq_status status = ui->call(&called, q->words, q->n_words, &own, diag);
        json_object_set_new(answer, "exit_status", json_integer(maq_status_exit_code(status)));
        json_object_set_new(answer, "status", json_string(maq_status_text(status)));
        json_object_set_new(answer, "command_line", json_string(line));
        if (called && called->page)
            json_object_set_new(answer, "page", without_script(called->page));
        if (called && called->job)
            put_settings(answer, called->job);
        put_findings(answer, status, diag);
        text = json_dumps(answer, JSON_COMPACT);
    }
    json_decref(answer);
    cli_called_free(called);
    maq_diag_free(diag);
    free(line);
    return text;
}

void ui_job_file(struct ui_response *out, const struct ui *ui, const struct ui_command *q)
{
    const struct cli_call_opts opts = {.document = q->document ? q->document : ""};
    struct cli_called *called = NULL;
    struct maq_diag *diag = maq_diag_new();
    json_t *answer = json_object();
    char *text = NULL;
    enum maq_status status = diag ? ui->open(&called, q->words, q->n_words, &opts, diag) : MAQ_NO_MEMORY;
    if (status == MAQ_OK)
        text = maq_job_write(called->job, &maq_job_get(called->job)->plan);
    if (text)
        json_object_set_new(answer, "job_file", json_string(text));
    put_findings(answer, status, diag);
    ui_respond_json(out, 200, answer);
    free(text);
    cli_called_free(called);
    maq_diag_free(diag);
}

void ui_diff(struct ui_response *out, struct maq_str body)
{
    const char *before, *after;
    size_t before_len, after_len;
    struct maq_diff *diff = NULL;
    struct maq_diag *diag = maq_diag_new();
    char *page = NULL;
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, JSON_REJECT_DUPLICATES, NULL), *answer = NULL;
    if (!root || json_unpack_ex(root, NULL, JSON_STRICT, "{s:s%, s:s%}", "before", &before, &before_len, "after",
                                &after, &after_len) != 0) {
        ui_refuse(out, 400, "two documents are compared: `before` and `after`, as texts");
    } else if (!diag || !(answer = json_object())) {
        ui_refuse(out, 500, "out of memory");
    } else {
        enum maq_status status = maq_diff_parse(&diff, "before", (struct maq_str){before, before_len}, "now",
                                                (struct maq_str){after, after_len}, diag);
        if (status == MAQ_OK)
            status = maq_report_diff_html(&page, diff, NULL, diag);
        if (status == MAQ_OK)
            json_object_set_new(answer, "page", without_script(page));
        put_findings(answer, status, diag);
        ui_respond_json(out, 200, answer);
        answer = NULL;
    }
    free(page);
    maq_diff_free(diff);
    maq_diag_free(diag);
    json_decref(answer);
    json_decref(root);
}
