/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_toml.c - TOML 1.0 as a tree of nodes that know their place.
 *
 *   [parallelism]                       a table: a map of the root
 *   tensor_parallel_degree = 8          a key of it; values stay text, as those of YAML do (doc.h)
 *   quantize.linear.float8.emulate = 1  maps on the way
 *   [[stage]]                           an entry of a list of maps
 *
 * Distributions have no C library for TOML, and scalars need no types here, so that what is left is keys, tables and strings. A fault ends its
 * line; the next lines are read, so that all are reported. Dates and times are text like any scalar. A table may be opened once, and
 * a key given once.
 */
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/doc_internal.h"

#define MOST_NODES 20000u /* keys of a map are compared one by one */
#define MOST_FAULTS 20u

struct parser {
    const struct maq_doc_text *text;
    size_t at;
    struct maq_arena *arena;
    struct maq_diag *diag;
    enum maq_origin origin;
    uint32_t nodes, faults;
    enum maq_status status; /* not MAQ_OK: nothing more is read */
};

/* Of "a.b.c", each with its place. */
struct key {
    struct maq_str part[MAQ_DOC_DEPTH_MAX];
    struct maq_span at[MAQ_DOC_DEPTH_MAX];
    uint32_t n;
};

/* ---- text ---- */

static char look(const struct parser *p, size_t ahead)
{
    return p->at + ahead < p->text->len ? p->text->ptr[p->at + ahead] : '\0';
}

static bool ended(const struct parser *p)
{
    return p->at >= p->text->len;
}

static bool take_text(struct parser *p, const char *what)
{
    size_t n = strlen(what);
    bool is = p->text->len - p->at >= n && memcmp(p->text->ptr + p->at, what, n) == 0;
    p->at += is ? n : 0;
    return is;
}

static void skip_blanks(struct parser *p)
{
    while (look(p, 0) == ' ' || look(p, 0) == '\t')
        p->at++;
}

static void skip_line(struct parser *p)
{
    while (!ended(p) && look(p, 0) != '\n')
        p->at++;
}

/* Blanks, line ends and comments. */
static void skip_space(struct parser *p)
{
    for (;;) {
        skip_blanks(p);
        if (look(p, 0) == '#')
            skip_line(p);
        else if (look(p, 0) == '\n' || (look(p, 0) == '\r' && look(p, 1) == '\n'))
            p->at++;
        else
            return;
    }
}

/* False, always. */
static bool fault(struct parser *p, size_t first, const char *hint, const char *why)
{
    size_t end = p->at > first ? p->at : first + (first < p->text->len);
    maq_diag_add(p->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, maq__doc_text_span(p->text, first, end), hint, "%s", why);
    if (++p->faults >= MOST_FAULTS)
        p->status = MAQ_BAD_INPUT;
    return false;
}

static bool no_memory(struct parser *p)
{
    p->status = maq_no_memory(p->diag, NULL);
    return false;
}

/* ---- nodes ---- */

static struct maq_node *new_node(struct parser *p, enum maq_node_kind kind, struct maq_span at)
{
    struct maq_node *node = p->nodes < MOST_NODES ? MAQ_ARENA_NEW(p->arena, struct maq_node, 1) : NULL;
    if (!node && p->nodes >= MOST_NODES)
        p->status = maq_diag_fail(MAQ_LIMIT, p->diag, MAQ_CODE_TOO_MANY_NODES, at, NULL,
                                  "more than %u values in one document", MOST_NODES);
    else if (!node)
        no_memory(p);
    if (!node)
        return NULL;
    p->nodes++;
    node->kind = kind;
    node->origin = (uint8_t)p->origin;
    node->at = at;
    return node;
}

static void append(struct maq_node *parent, struct maq_node *child)
{
    struct maq_node **tail = &parent->first;
    while (*tail)
        tail = &(*tail)->next;
    *tail = child;
    parent->count++;
}

static bool twice(struct parser *p, const struct key *k, uint32_t i, const struct maq_node *there)
{
    char show[MAQ_SHOW_SIZE];
    maq_diag_add(p->diag, MAQ_ERROR, MAQ_CODE_DUPLICATE_KEY, k->at[i], "keep one of the two", "'%s' is given twice",
                 maq_str_show(show, k->part[i]));
    maq_diag_add(p->diag, MAQ_NOTE, MAQ_CODE_DUPLICATE_KEY, there->key_at, NULL, "first given here");
    if (++p->faults >= MOST_FAULTS)
        p->status = MAQ_BAD_INPUT;
    return false;
}

static struct maq_node *put(struct parser *p, struct maq_node *map, enum maq_node_kind kind, const struct key *k,
                            uint32_t i)
{
    struct maq_node *node = new_node(p, kind, k->at[i]);
    if (node) {
        node->key = k->part[i];
        node->key_at = k->at[i];
        append(map, node);
    }
    return node;
}

/* The map under part i of a key, made where there is none; of a list of maps the last. `quoted` of a map: it may not be gone on with. */
static struct maq_node *enter(struct parser *p, struct maq_node *map, const struct key *k, uint32_t i)
{
    struct maq_node *node = maq__node_find(map, k->part[i]);
    if (!node)
        return put(p, map, MAQ_NODE_MAP, k, i);
    if (node->kind == MAQ_NODE_SEQ && !node->quoted) {
        node = node->first;
        while (node->next)
            node = node->next;
    }
    if (node->kind == MAQ_NODE_MAP && !node->quoted)
        return node;
    twice(p, k, i, node->key_at.file ? node : map);
    return NULL;
}

/* ---- strings and keys ---- */

static void add_code_point(struct maq_buf *b, uint32_t c)
{
    if (c < 0x80) {
        maq_buf_addc(b, (char)c);
    } else if (c < 0x800) {
        maq_buf_addc(b, (char)(0xC0 | c >> 6));
        maq_buf_addc(b, (char)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        maq_buf_addc(b, (char)(0xE0 | c >> 12));
        maq_buf_addc(b, (char)(0x80 | (c >> 6 & 63)));
        maq_buf_addc(b, (char)(0x80 | (c & 63)));
    } else {
        maq_buf_addc(b, (char)(0xF0 | c >> 18));
        maq_buf_addc(b, (char)(0x80 | (c >> 12 & 63)));
        maq_buf_addc(b, (char)(0x80 | (c >> 6 & 63)));
        maq_buf_addc(b, (char)(0x80 | (c & 63)));
    }
}

/* Behind \u or \U: so many hexadecimal digits. */
static bool unicode_escape(struct parser *p, struct maq_buf *b, uint32_t digits)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t c = 0;
    for (uint32_t i = 0; i < digits; i++, p->at++) {
        char letter = maq_char_lower(look(p, 0));
        const char *digit = letter ? strchr(hex, letter) : NULL;
        if (!digit)
            return false;
        c = c * 16 + (uint32_t)(digit - hex);
    }
    if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return false;
    add_code_point(b, c);
    return true;
}

static bool escape(struct parser *p, struct maq_buf *b, bool lines)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    char c = look(p, 0);
    const char *simple = c ? strchr(from, c) : NULL;
    p->at++;
    if (simple)
        maq_buf_addc(b, to[simple - from]);
    else if (c == 'u' || c == 'U')
        return unicode_escape(p, b, c == 'u' ? 4 : 8);
    else if (!lines || (c != '\n' && c != '\r' && c != ' ' && c != '\t'))
        return false;
    else
        while (look(p, 0) == ' ' || look(p, 0) == '\t' || look(p, 0) == '\n' || look(p, 0) == '\r')
            p->at++;
    return true;
}

/* A string of any of the four kinds; *out is its text. */
static bool read_string(struct parser *p, struct maq_str *out)
{
    const size_t first = p->at;
    const char quote = look(p, 0), three[4] = {quote, quote, quote, '\0'};
    const bool lines = take_text(p, three), literal = quote == '\'';
    struct maq_buf b;
    bool ok = true, closed = false;
    p->at += !lines;
    if (lines && !take_text(p, "\r\n"))
        take_text(p, "\n");
    maq_buf_init(&b, MAQ_DOC_BYTES_MAX);
    while (ok && !closed && !ended(p)) {
        if (look(p, 0) == '\n' && !lines)
            break;
        closed = lines ? take_text(p, three) : look(p, 0) == quote;
        if (closed) {
            p->at += !lines;
            for (int more = 0; lines && more < 2 && look(p, 0) == quote; more++, p->at++)
                maq_buf_addc(&b, quote); /* up to two stand before the end */
        } else if (look(p, 0) == '\\' && !literal) {
            p->at++;
            ok = escape(p, &b, lines);
        } else {
            maq_buf_addc(&b, look(p, 0));
            p->at++;
        }
    }
    char *copy = b.failed ? NULL : maq_arena_strdup(p->arena, (struct maq_str){b.ptr ? b.ptr : "", b.len});
    *out = (struct maq_str){copy, b.len};
    maq_buf_fini(&b);
    if (!copy)
        return no_memory(p);
    return ok && closed ? true
                        : fault(p, first, ok ? NULL : "known are \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX",
                                ok ? "the string does not end" : "there is an unknown escape in the string");
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool read_key(struct parser *p, struct key *k)
{
    for (k->n = 0;;) {
        skip_blanks(p);
        const size_t first = p->at;
        struct maq_str part;
        if (k->n == MAQ_DOC_DEPTH_MAX / 2)
            return fault(p, first, NULL, "the key has too many parts");
        if (look(p, 0) == '"' || look(p, 0) == '\'') {
            if (!read_string(p, &part))
                return false;
        } else {
            while (is_bare(look(p, 0)))
                p->at++;
            if (p->at == first)
                return fault(p, first, "write it as key = value", "there is no key");
            char *copy = maq_arena_strdup(p->arena, (struct maq_str){p->text->ptr + first, p->at - first});
            if (!copy)
                return no_memory(p);
            part = (struct maq_str){copy, p->at - first};
        }
        k->part[k->n] = part;
        k->at[k->n++] = maq__doc_text_span(p->text, first, p->at);
        skip_blanks(p);
        if (!take_text(p, "."))
            return true;
    }
}

/* ---- values ---- */

static struct maq_node *read_value(struct parser *p, uint32_t depth);

static bool set_key(struct parser *p, struct maq_node *map, uint32_t depth)
{
    struct key k = {.n = 0};
    if (!read_key(p, &k))
        return false;
    if (look(p, 0) != '=')
        return fault(p, p->at, "write it as key = value", "there is no '=' behind the key");
    p->at++;
    for (uint32_t i = 0; i + 1 < k.n && map; i++)
        map = enter(p, map, &k, i);
    struct maq_node *value = map ? read_value(p, depth + k.n) : NULL;
    const struct maq_node *there = value ? maq__node_find(map, k.part[k.n - 1]) : NULL;
    if (!value)
        return false;
    if (there)
        return twice(p, &k, k.n - 1, there);
    value->key = k.part[k.n - 1];
    value->key_at = k.at[k.n - 1];
    append(map, value);
    return true;
}

/* `{a = 1, b = 2}` */
static bool read_inline_map(struct parser *p, struct maq_node *map, uint32_t depth)
{
    skip_blanks(p);
    while (look(p, 0) != '}') {
        if (!set_key(p, map, depth))
            return false;
        skip_blanks(p);
        if (!take_text(p, ",") && look(p, 0) != '}')
            return fault(p, p->at, NULL, "there is neither ',' nor '}' behind a value");
        skip_blanks(p);
    }
    p->at++;
    return true;
}

static bool read_list(struct parser *p, struct maq_node *list, uint32_t depth)
{
    struct maq_node **tail = &list->first;
    skip_space(p);
    while (look(p, 0) != ']') {
        struct maq_node *value = read_value(p, depth);
        if (!value)
            return false;
        *tail = value;
        tail = &value->next;
        list->count++;
        skip_space(p);
        if (!take_text(p, ",") && look(p, 0) != ']')
            return fault(p, p->at, NULL, "there is neither ',' nor ']' behind a value");
        skip_space(p);
    }
    p->at++;
    return true;
}

/* A number, a date, or one of the words that stand without quotes; a date and its time may have one blank between them. */
static bool is_value(struct maq_str text)
{
    static const char *const words[] = {"true", "false", "inf", "nan"};
    const size_t sign = text.ptr[0] == '+' || text.ptr[0] == '-';
    const struct maq_str rest = {text.ptr + sign, text.len - sign};
    for (size_t i = sign ? 2 : 0; i < MAQ_COUNT(words); i++)
        if (maq_str_is(rest, words[i]))
            return true;
    if (rest.len == 0 || rest.ptr[0] < '0' || rest.ptr[0] > '9')
        return false;
    for (size_t i = 0; i < rest.len; i++)
        if (!is_bare(rest.ptr[i]) && !strchr("+.: ", rest.ptr[i]))
            return false;
    return true;
}

static bool read_scalar(struct parser *p, struct maq_node *node)
{
    const size_t first = p->at;
    while (!ended(p) && !strchr(",]}#\r\n", look(p, 0)))
        p->at++;
    while (p->at > first && (p->text->ptr[p->at - 1] == ' ' || p->text->ptr[p->at - 1] == '\t'))
        p->at--;
    if (p->at == first)
        return fault(p, first, NULL, "there is no value");
    if (!is_value((struct maq_str){p->text->ptr + first, p->at - first}))
        return fault(p, first, "texts need quotes", "this is no value of TOML");
    node->text = (struct maq_str){maq_arena_strdup(p->arena, (struct maq_str){p->text->ptr + first, p->at - first}),
                                  p->at - first};
    return node->text.ptr ? true : no_memory(p);
}

static struct maq_node *read_value(struct parser *p, uint32_t depth)
{
    skip_blanks(p);
    const size_t first = p->at;
    const char c = look(p, 0);
    if (depth >= MAQ_DOC_DEPTH_MAX) {
        fault(p, first, NULL, "nested too deeply");
        return NULL;
    }
    struct maq_node *node = new_node(p,
                                     c == '{'   ? MAQ_NODE_MAP
                                     : c == '[' ? MAQ_NODE_SEQ
                                                : MAQ_NODE_SCALAR,
                                     maq__doc_text_span(p->text, first, first));
    if (!node)
        return NULL;
    bool ok;
    if (c == '{' || c == '[') {
        p->at++;
        ok = c == '{' ? read_inline_map(p, node, depth + 1) : read_list(p, node, depth + 1);
        node->quoted = true;
    } else if (c == '"' || c == '\'') {
        ok = read_string(p, &node->text);
        node->quoted = true;
    } else {
        ok = read_scalar(p, node);
    }
    node->at = maq__doc_text_span(p->text, first, p->at);
    return ok ? node : NULL;
}

/* ---- lines ---- */

/* `[a.b]` or `[[a.b]]`; the map that the next keys go into, NULL after a fault. A map opened here is marked by `used`. */
static struct maq_node *read_header(struct parser *p, struct maq_node *root)
{
    const bool entry = take_text(p, "[[");
    struct maq_node *map = root;
    struct key k = {.n = 0};
    p->at += !entry;
    if (!read_key(p, &k))
        return NULL;
    if (!take_text(p, entry ? "]]" : "]")) {
        fault(p, p->at, NULL, entry ? "there is no ']]' behind the name" : "there is no ']' behind the name");
        return NULL;
    }
    for (uint32_t i = 0; i + 1 < k.n && map; i++)
        map = enter(p, map, &k, i);
    if (!map)
        return NULL;
    if (!entry) {
        struct maq_node *table = enter(p, map, &k, k.n - 1);
        if (table && table->used)
            twice(p, &k, k.n - 1, table);
        bool fine = table && !table->used;
        if (fine)
            table->used = true;
        return fine ? table : NULL;
    }
    struct maq_node *list = maq__node_find(map, k.part[k.n - 1]);
    if (list && (list->kind != MAQ_NODE_SEQ || list->quoted)) {
        twice(p, &k, k.n - 1, list);
        return NULL;
    }
    list = list ? list : put(p, map, MAQ_NODE_SEQ, &k, k.n - 1);
    struct maq_node *table = list ? new_node(p, MAQ_NODE_MAP, k.at[k.n - 1]) : NULL;
    if (table)
        append(list, table);
    return table;
}

/* Nothing but a comment may stand behind. */
static bool line_ends(struct parser *p)
{
    skip_blanks(p);
    if (look(p, 0) == '#')
        skip_line(p);
    const bool ok = ended(p) || look(p, 0) == '\n' || (look(p, 0) == '\r' && look(p, 1) == '\n');
    if (!ok)
        fault(p, p->at, "write one key on a line", "there is more behind the value");
    return ok;
}

/* What the marks of the parser were stands for something else in a finished document. */
static void clear_marks(struct maq_node *node)
{
    if (node->kind != MAQ_NODE_SCALAR)
        node->quoted = node->used = false;
    for (struct maq_node *n = node->first; n; n = n->next)
        clear_marks(n);
}

enum maq_status maq__doc_build_toml(struct maq_node **root, struct maq_arena *arena, const struct maq_doc_text *text,
                                    enum maq_origin origin, struct maq_diag *diag)
{
    struct parser p = {.text = text, .arena = arena, .diag = diag, .origin = origin};
    struct maq_node *map = NULL, nowhere = {.kind = MAQ_NODE_MAP};
    *root = new_node(&p, MAQ_NODE_MAP, maq__doc_text_span(text, 0, text->len));
    map = *root;
    for (skip_space(&p); !ended(&p) && p.status == MAQ_OK && *root; skip_space(&p)) {
        bool ok;
        if (look(&p, 0) == '[') {
            map = read_header(&p, *root);
            ok = map != NULL;
            map = map ? map : &nowhere; /* the keys below are read for their own faults */
        } else {
            ok = set_key(&p, map, 1);
        }
        if (!ok || !line_ends(&p))
            skip_line(&p);
    }
    if (*root)
        clear_marks(*root);
    return p.status != MAQ_OK ? p.status : p.faults ? MAQ_BAD_INPUT : MAQ_OK;
}
