/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_order.c - appends tasks to the order of a stage: a plain task, a backward that leaves its weight gradient for
 * later, an overlapped pair. See build.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "plan/schedule/build.h"

static void add(struct maq_orders *o, struct maq_order_step step)
{
    MAQ_ASSERT(o->n < o->capacity && step.position < o->n_positions && step.microbatch < o->microbatches);
    o->steps[o->n++] = step;
}

void maq__order_add(struct maq_orders *o, enum maq_task_kind kind, uint32_t position, uint32_t microbatch)
{
    add(o, (struct maq_order_step){.kind = (uint8_t)kind, .position = (uint16_t)position, .microbatch = microbatch});
}

void maq__order_add_split(struct maq_orders *o, uint32_t position, uint32_t microbatch)
{
    add(o, (struct maq_order_step){
               .kind = MAQ_TASK_B, .split = 1, .position = (uint16_t)position, .microbatch = microbatch});
}

void maq__order_add_pair(struct maq_orders *o, uint32_t f_position, uint32_t f_microbatch, uint32_t b_position,
                         uint32_t b_microbatch)
{
    MAQ_ASSERT(b_position < o->n_positions && b_microbatch < o->microbatches);
    add(o, (struct maq_order_step){.kind = MAQ_TASK_FB,
                                   .position = (uint16_t)f_position,
                                   .microbatch = f_microbatch,
                                   .b_position = (uint16_t)b_position,
                                   .b_microbatch = b_microbatch});
}

const char *maq__refused(char buf[160], const char *format, ...)
{
    if (!buf)
        return "";
    va_list args;
    va_start(args, format);
    vsnprintf(buf, 160, format, args);
    va_end(args);
    return buf;
}
