/* result.h - the result of a session while it is made. */
#ifndef MAQ_LAUNCH_RESULT_H
#define MAQ_LAUNCH_RESULT_H

#include "launch/workspace.h"

struct maq_session_box {
    struct maq_session session;
    struct maq_arena arena;
    struct maq_session_rank *rank;
};

/* A result of n ranks, not yet filled in: maq_session_free(). */
enum maq_status maq_session_begin(struct maq_session_box **out, struct maq_room *room, uint32_t n,
                                  struct maq_diag *diag);
/* Takes over what was asked, and the status of the whole. */
enum maq_status maq_session_end(struct maq_session_box *box, const struct maq_room *room);

#endif
