/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cli_ui.c - any request to the handler of `maquette ui`: its first line, its headers, a blank line, its body.
 *
 * Besides crashes, this looks for broken promises: a response without a status or a body, data for a stranger, the token in a response, a call
 * with words that are not of the three commands or that write a file. Commands themselves are not called here: other targets read their input.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/handler.h"
#include "command_words.h"

#define TOKEN "token-of-the-fuzzer"
#define HEADERS 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

/* In place of a command: what may be asked of one? */
static enum maq_status look(struct cli_called **out, const char *const *words, size_t n_words,
                            const struct cli_call_opts *opts, struct maq_diag *diag)
{
    static const char *const never[] = {"--html",         "--output",      "--json",    "--trace",
                                        "--write",        "--per-request", "--profile", "--predict",
                                        "--parallelizer", "--measured",    "--requests"};
    *out = NULL;
    require(n_words > 0 &&
            (strcmp(words[0], "train") == 0 || strcmp(words[0], "plan") == 0 || strcmp(words[0], "serve") == 0));
    for (size_t i = 1; i < n_words; i++) {
        require(begins(words[i], "--") ? words[i][2] != '\0' : i == 1 && strcmp(words[i], "-") == 0);
        for (size_t k = 0; k < sizeof never / sizeof never[0]; k++) {
            size_t n = strlen(never[k]);
            require(strncmp(words[i], never[k], n) != 0 || (words[i][n] != '\0' && words[i][n] != '='));
        }
    }
    require(opts->document != NULL);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, 0, (struct maq_span){0}, NULL, "not computed here");
}

/* What stands before `end`, and behind it the rest. */
static struct maq_str cut_line(struct maq_str *rest, char end)
{
    const char *at = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;
    struct maq_str line = {rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len};
    rest->ptr += line.len + (at ? 1 : 0);
    rest->len -= line.len + (at ? 1 : 0);
    return line;
}

static bool holds(const struct ui_response *out, const char *text)
{
    return out->len > 0 && memmem(out->body, out->len, text, strlen(text)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ui_header headers[HEADERS];
    struct maq_str rest = {(const char *)data, size}, line = cut_line(&rest, '\n');
    struct ui_request request = {.method = cut_line(&line, ' '), .path = line, .headers = headers};
    struct ui *ui = ui_new(&(const struct ui_opts){.port = 80, .token = TOKEN, .call = look, .open = look});
    struct ui_response out = {.status = 0};
    if (!ui)
        return 0;
    for (line = cut_line(&rest, '\n'); line.len > 0 && request.n_headers < HEADERS; line = cut_line(&rest, '\n')) {
        struct maq_str name = cut_line(&line, ':');
        if (line.len > 0 && line.ptr[0] == ' ')
            line = (struct maq_str){line.ptr + 1, line.len - 1};
        headers[request.n_headers++] = (struct ui_header){name, line};
    }
    request.body = rest;
    ui_handle(ui, &out, &request);
    require(out.status >= 200 && out.status < 600 && out.body && out.n_fields > 0);
    require(!holds(&out, TOKEN));
    if (out.status < 300 && request.path.len > 1) /* data: the request has said all that is asked for */
        require(memmem(data, size, TOKEN, strlen(TOKEN)) != NULL);
    free(out.body);
    ui_free(ui);
    return 0;
}
