/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phrase.h - does a note say so?
 *
 * Notes are prose ("CPU activation offload of 40 layers"), patterns are phrases ("offload of # layer*"). A pattern is
 *
 *     alternatives joined by '|', each of them terms joined by '&', each of them found somewhere in the text;
 *     '!' before a term: it must not be there
 *
 * and inside a term: letters match without case; a blank matches a run of blanks; '#' matches a number and captures it; a term
 * that starts (ends) with a letter or digit starts (ends) at the border of a word, unless it starts (ends) with '*'.
 * A term that starts with '^' must stand at the beginning of the text; "^" alone and "$": the text is empty.
 */
#ifndef MAQ_VALIDATE_PHRASE_H
#define MAQ_VALIDATE_PHRASE_H

#include "maquette/diag.h"

#define MAQ_PHRASE_NUMBERS 4

/* What matched: the captured numbers of all terms, in order, and the bytes of the last term. */
struct maq_phrase_match {
    uint32_t n;
    double number[MAQ_PHRASE_NUMBERS];
    struct maq_str at;
};

bool maq__phrase_in(struct maq_str text, const char *pattern, struct maq_phrase_match *match); /* match may be NULL */

/* ASCII letters and digits only, lower case: how names of models are compared. Returns buf. */
const char *maq__plain_name(char *buf, size_t size, struct maq_str name);

#endif
