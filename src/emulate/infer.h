/* infer.h - ranks that did not run: what infer.c (which class) and infer_fill.c (which communicators) share. */
#ifndef MAQ_EMULATE_INFER_H
#define MAQ_EMULATE_INFER_H

#include "emulate/infer_pattern.h"

#define MAQ_DIGITS 12u

struct maq_infer {
    struct maq_capture *capture;
    struct maq_arena scratch;
    uint32_t n_ran, *ran;         /* ranks that ran */
    struct maq_pattern **pattern; /* [n_classes][n_comms of it] */
    uint32_t n_digits, unit[MAQ_DIGITS], size[MAQ_DIGITS];
    uint32_t matters;           /* bits of digits */
    uint32_t *known, *assigned; /* class by the digits that matter */
};

bool maq_infer_digits(struct maq_infer *f);
uint32_t maq_infer_class(const struct maq_infer *f, uint32_t rank);
/* Puts all ranks into the capture. MAQ_NO: what ranks that ran say of their communicators contradicts it. */
enum maq_status maq_infer_fill(struct maq_infer *f, uint32_t *probe, struct maq_diag *diag);

#endif
