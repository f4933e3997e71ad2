/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.h - how maquette says that something is wrong.
 *
 * The library never prints and never exits. A call that can fail returns an enum maq_status; what is wrong with
 * the user's input goes, with its place and a hint, into a struct maq_diag that the caller owns and prints.
 *
 *   bug in the program     MAQ_ASSERT -> the hook of maq_set_bug_hook()
 *   run-time failure       enum maq_status, one item written by the first that saw it
 *   bad input              items, as many as there are faults; the call returns MAQ_BAD_INPUT
 *
 * A span is a byte range of a source registered with maq_diag_add_source(); line and column are worked out only
 * when an item is printed. Source 0 is "no place".
 */
#ifndef MAQUETTE_DIAG_H
#define MAQUETTE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAQ_API __attribute__((visibility("default")))
#if defined(__GNUC__)
#define MAQ_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#else
#define MAQ_PRINTF(fmt_at, args_at)
#endif

/*           code         exit  text                                                                         */
#define MAQ_STATUS_LIST(X)                                                                                             \
    X(OK, 0, "done")                                                                                                   \
    X(NO, 1, "the answer is no")                                                                                       \
    X(USAGE, 2, "wrong usage")                                                                                         \
    X(BAD_INPUT, 3, "bad input")                                                                                       \
    X(IO, 4, "input or output failed")                                                                                 \
    X(LIMIT, 5, "a limit was reached")                                                                                 \
    X(NO_MEMORY, 5, "out of memory")                                                                                   \
    X(BUG, 70, "a bug in maquette")

enum maq_status {
#define MAQ_STATUS_ENUM(code, exit_code, text) MAQ_##code,
    MAQ_STATUS_LIST(MAQ_STATUS_ENUM)
#undef MAQ_STATUS_ENUM
};

/* Text and process exit code of a status; never fail. */
MAQ_API const char *maq_status_text(enum maq_status status);
MAQ_API int maq_status_exit_code(enum maq_status status);

/* A slice of bytes; not necessarily NUL-terminated. Borrowed unless said otherwise. */
struct maq_str {
    const char *ptr;
    size_t len;
};

/* A place in a source: bytes [off, off+len) of source `file`. file = 0: nowhere. */
struct maq_span {
    uint32_t file, off, len;
};

enum maq_severity { MAQ_ERROR, MAQ_WARNING, MAQ_NOTE };

/* One finding. `code` is stable and listed in docs/diagnostics.md. msg and hint live as long as the maq_diag. */
struct maq_diag_item {
    enum maq_severity severity;
    uint16_t code;
    struct maq_span at;
    struct maq_str msg, hint; /* hint.len = 0: none */
};

struct maq_diag; /* opaque: the findings of one run, in the order they were made, and the sources they point into */

/* Returned object is owned by the caller; NULL when out of memory. */
MAQ_API struct maq_diag *maq_diag_new(void);
MAQ_API void maq_diag_free(struct maq_diag *diag);

/* Copies name and text; returns the id to use in spans (0 when out of memory). */
MAQ_API uint32_t maq_diag_add_source(struct maq_diag *diag, const char *name, const char *text, size_t len);

/* Adds one item; `hint` may be NULL. diag may be NULL (the finding is dropped). */
MAQ_API void maq_diag_add(struct maq_diag *diag, enum maq_severity severity, uint16_t code, struct maq_span at,
                          const char *hint, const char *fmt, ...) MAQ_PRINTF(6, 7);

/* Adds an error and returns `status`: `return maq_diag_fail(MAQ_IO, diag, ...)`. */
MAQ_API enum maq_status maq_diag_fail(enum maq_status status, struct maq_diag *diag, uint16_t code, struct maq_span at,
                                      const char *hint, const char *fmt, ...) MAQ_PRINTF(6, 7);

#ifdef __clang_analyzer__ /* tells static analysis what the line above says: the status that comes back is the one given */
#define maq_diag_fail(status, ...) ((void)maq_diag_fail((status), __VA_ARGS__), (status))
#endif

/*
 * Readers of recorded data (tables of times, traces, measurements) mend what a recorder left behind that cannot be, count it and
 * add one warning for a file. Where findings are strict, the first of it is an error instead. Not strict at first.
 */
MAQ_API void maq_diag_set_strict(struct maq_diag *diag, bool strict);
MAQ_API bool maq_diag_strict(const struct maq_diag *diag); /* diag NULL: false */

MAQ_API size_t maq_diag_count(const struct maq_diag *diag);
MAQ_API size_t maq_diag_errors(const struct maq_diag *diag);
MAQ_API const struct maq_diag_item *maq_diag_at(const struct maq_diag *diag, size_t i);

/* Place of a span: file name (borrowed, never NULL), 1-based line and column in characters; 0 when nowhere. */
struct maq_place {
    const char *name;
    uint32_t line, column;
};
MAQ_API struct maq_place maq_diag_place(const struct maq_diag *diag, struct maq_span at);

/*
 * Formats all items as text for people: `file:line:col: error[MAQ1021]: ...`, the source line, a caret under the
 * whole span, the hint. At most `max_items` are shown (0 = 20), then "and N more". color: ANSI colours.
 * The returned NUL-terminated string is owned by the caller (free()); NULL when out of memory.
 */
MAQ_API char *maq_diag_format(const struct maq_diag *diag, size_t max_items, bool color);

/* Called on a failed MAQ_ASSERT with the expression and its place; must not return. Default: abort(). */
typedef void maq_bug_hook(const char *what, const char *file, int line);
MAQ_API void maq_set_bug_hook(maq_bug_hook *hook);

#ifdef __cplusplus
}
#endif
#endif
