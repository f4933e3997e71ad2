/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - who may ask.
 *
 * A page on this machine is open to every other page in the same browser. What keeps them out, in the order of looking:
 *
 *   Host           a page of another name that was made to point to 127.0.0.1 (DNS rebinding) comes under its own name
 *   Origin         a page from elsewhere that sends requests here says where it is from; so does Sec-Fetch-Site
 *   Authorization  a token that only who started the program has seen. No cookie, which a browser would send by itself; a header that a page
 *                  from elsewhere could only send after asking (OPTIONS), which is refused
 *
 * Programs of other users on this machine can reach the port as well; the token keeps them out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/internal.h"

/* ---- texts ---- */

bool ui_is(struct maq_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static bool begins(struct maq_str text, const char *word)
{
    return text.len >= strlen(word) && memcmp(text.ptr, word, strlen(word)) == 0;
}

/* Names of headers, and the value of Content-Type, have no case. */
static bool is_in_any_case(struct maq_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.ptr, word, text.len) == 0;
}

uint64_t ui_number_behind(struct maq_str path, const char *prefix)
{
    size_t n = strlen(prefix);
    uint64_t number = 0;
    if (!begins(path, prefix) || path.len == n || path.len > n + 15 || path.ptr[n] == '0')
        return 0;
    for (size_t i = n; i < path.len; i++) {
        if (path.ptr[i] < '0' || path.ptr[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(path.ptr[i] - '0');
    }
    return number;
}

/* How long it takes does not tell how much of it is right. */
static bool is_secret(struct maq_str text, const char *secret)
{
    size_t n = strlen(secret);
    unsigned differs = text.len != n;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned)((unsigned char)secret[i] ^ (unsigned char)(i < text.len ? text.ptr[i] : 0));
    return differs == 0;
}

/* ---- responses ---- */

static void add_field(struct ui_response *out, const char *name, const char *value)
{
    if (out->n_fields < UI_FIELDS_MAX) {
        out->fields[out->n_fields].name = name;
        out->fields[out->n_fields].value = value;
        out->n_fields++;
    }
}

void ui_respond(struct ui_response *out, unsigned status, const char *type, char *body)
{
    *out = (struct ui_response){.status = body ? status : 500, .body = body, .len = body ? strlen(body) : 0};
    add_field(out, "Content-Type", type);
    add_field(out, "Cache-Control", "no-store");
    add_field(out, "X-Content-Type-Options", "nosniff");
    add_field(out, "Referrer-Policy", "no-referrer");
    add_field(out, "Cross-Origin-Resource-Policy", "same-origin");
    add_field(out, "Cross-Origin-Opener-Policy", "same-origin");
}

void ui_respond_json(struct ui_response *out, unsigned status, json_t *value)
{
    ui_respond(out, status, "application/json", value ? json_dumps(value, JSON_COMPACT) : NULL);
    json_decref(value);
}

void ui_refuse(struct ui_response *out, unsigned status, const char *message)
{
    ui_respond_json(out, status, json_pack("{s:s}", "message", message));
}

/* ---- the request ---- */

/* The value of a header that may be there once; *often has how many times it is. */
static struct maq_str header(const struct ui_request *request, const char *name, size_t *often)
{
    struct maq_str value = {NULL, 0};
    *often = 0;
    for (size_t i = 0; i < request->n_headers; i++)
        if (is_in_any_case(request->headers[i].name, name)) {
            value = request->headers[i].value;
            (*often)++;
        }
    return value;
}

static bool is_name_of(const struct ui *ui, struct maq_str host)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char whole[32];
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        (void)snprintf(whole, sizeof whole, "%s:%u", names[i], (unsigned)ui->port);
        if (ui_is(host, whole))
            return true;
    }
    return false;
}

/* The origin of a page that came from here under the same name. */
static bool is_origin(struct maq_str origin, struct maq_str host)
{
    static const char scheme[] = "http://";
    const size_t n = sizeof scheme - 1;
    return begins(origin, scheme) && origin.len - n == host.len && memcmp(origin.ptr + n, host.ptr, host.len) == 0;
}

/* What is wrong with where a request comes from; NULL: nothing. */
static const char *stranger(const struct ui *ui, const struct ui_request *request, bool data)
{
    size_t hosts, origins, sites;
    struct maq_str host = header(request, "Host", &hosts), origin = header(request, "Origin", &origins),
                   site = header(request, "Sec-Fetch-Site", &sites);
    if (hosts != 1 || !is_name_of(ui, host))
        return "this server answers as 127.0.0.1 and localhost with its port, and to no other name";
    if (origins > 1 || (origins == 1 && !is_origin(origin, host)))
        return "a page from elsewhere asks";
    if (data && (sites > 1 || (sites == 1 && !ui_is(site, "same-origin") && !ui_is(site, "none"))))
        return "a page from elsewhere asks";
    return NULL;
}

static bool has_token(const struct ui *ui, const struct ui_request *request)
{
    static const char scheme[] = "Bearer ";
    size_t often;
    struct maq_str value = header(request, "Authorization", &often);
    if (often != 1 || !begins(value, scheme))
        return false;
    return is_secret((struct maq_str){value.ptr + sizeof scheme - 1, value.len - (sizeof scheme - 1)}, ui->token);
}

static bool is_json(const struct ui_request *request)
{
    size_t often;
    struct maq_str type = header(request, "Content-Type", &often);
    const char *end = type.len > 0 ? memchr(type.ptr, ';', type.len) : NULL;
    if (end)
        type.len = (size_t)(end - type.ptr);
    return often == 1 && is_in_any_case(type, "application/json");
}

/* Addresses, and how each is asked. Nothing of an address is a file's name. */
static const struct {
    const char *path;
    bool numbered; /* a number stands behind it */
    const char *method;
} addresses[] = {
    {"/", false, "GET"},          {"/api/session", false, "GET"}, {"/api/answer", false, "POST"},
    {"/api/runs", false, "POST"}, {"/api/runs/", true, "GET"},    {"/api/runs/", true, "DELETE"},
    {"/api/diff", false, "POST"}, {"/api/job", false, "POST"},
};

bool ui_admit(struct ui *ui, struct ui_response *out, const struct ui_request *request, uint64_t length)
{
    bool known = false, method = false, data = begins(request->path, "/api/"), post = ui_is(request->method, "POST");
    const char *why = stranger(ui, request, data);
    for (size_t i = 0; i < CLI_COUNT(addresses); i++) {
        bool here = addresses[i].numbered ? ui_number_behind(request->path, addresses[i].path) > 0
                                          : ui_is(request->path, addresses[i].path);
        known |= here;
        method |= here && ui_is(request->method, addresses[i].method);
    }
    if (why)
        ui_refuse(out, 403, why);
    else if (data && !has_token(ui, request))
        ui_refuse(out, 401, "the token is missing or another server's: open the address that maquette ui printed");
    else if (!known)
        ui_refuse(out, 404, "there is nothing at this address");
    else if (!method)
        ui_refuse(out, 405, "this address is not asked in that way");
    else if (post && !is_json(request))
        ui_refuse(out, 415, "a question is JSON: Content-Type: application/json");
    else if (length > (post ? UI_BODY_MAX : 0))
        ui_refuse(out, 413, "the request is too large");
    else
        return true;
    return false;
}
