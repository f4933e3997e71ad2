/*
 * order.h - stages in the order that plays fastest.
 *
 * By the closed form a step is a sum over stages: two stages on one kind of device may change places and it stays what it is, or nearly.
 * Played it does not. Stages take devices in their order, which decides what transfers leave a node and whether a stage of several
 * devices lies in two; and uneven stages wait for one another. So plans that differ in nothing but the order of their stages are settled
 * by playing them.
 */
#ifndef MAQ_MIXED_SEARCH_ORDER_H
#define MAQ_MIXED_SEARCH_ORDER_H

#include "mixed_search/run.h"

/*
 * Lets two stages change places while that plays faster, and leaves `c` and `played` as the fastest that was seen. `table` is that of
 * `wave`; `c` is one of its compositions. false when out of memory.
 */
bool maq_mixed_order(struct maq_composition *c, struct maq_chain_played *played, struct maq_mixed_run *run,
                     const struct maq_chain_wave *wave, const struct maq_stage_table *table);

#endif
