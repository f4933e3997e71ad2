/*
 * session_trace.h - a rank's trace, as far as running it needs: what it did in sum, and what it put into exchanges.
 *
 * Reads the file as it lies, whole, and trusts nothing of it; what a killed program leaves is read up to its last whole record.
 */
#ifndef MAQ_EMULATE_SESSION_TRACE_H
#define MAQ_EMULATE_SESSION_TRACE_H

#include "emulate/session_ask.h"

struct maq_rank_trace {
    const unsigned char *map; /* NULL: there is none */
    uint64_t bytes, at;
    struct maq_rec_head head;
    bool torn; /* it ended inside a record */
};

/* false: no such file, or none of a trace. */
bool maq_rank_trace_open(struct maq_rank_trace *t, const char *path);
void maq_rank_trace_close(struct maq_rank_trace *t);
/* The next record and its payload (rec->bytes bytes, NULL when it has none); false at the end. */
bool maq_rank_trace_next(struct maq_rank_trace *t, struct maq_rec *rec, const unsigned char **payload);

/* Adds up a trace: everything in *out that a trace tells. Launches are counted in the table of `asks` too. */
enum maq_status maq_rank_trace_sum(struct maq_session_rank *out, const char *path, struct maq_ask_service *asks,
                                   struct maq_diag *diag);

#endif
