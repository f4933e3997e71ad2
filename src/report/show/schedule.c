/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - pipeline schedules: bubble, memory, what they need. */
#include "plan/schedule/schedule.h"
#include "base/check.h"
#include "report/show/show.h"

#define LABEL 14
#define LEGEND                                                                                                         \
    "p stages, m microbatches, v chunks per stage, g microbatches per group; F, B, W: forward, backward and "          \
    "weight-gradient time of a stage; f, b of a chunk"

static void json_schedule(struct maq_json map, const struct maq_schedule_info *info)
{
    maq_json_text(map, "name", info->name);
    maq_json_text(map, "bubble", info->bubble);
    maq_json_text(map, "microbatches_in_flight", info->memory);
    maq_json_text(map, "needs", info->needs);
    maq_json_text(map, "source", info->source);
}

static void text_schedule(struct maq_page *page, const struct maq_schedule_info *info)
{
    maq_page_putf(page, MAQ_INK_TITLE, "%s\n", info->name);
    maq_page_field(page, LABEL, "  bubble", info->bubble);
    maq_page_field(page, LABEL, "  in flight", info->memory);
    maq_page_field(page, LABEL, "  needs", info->needs);
    maq_page_field(page, LABEL, "  source", info->source);
    maq_buf_addc(&page->out, '\n');
}

enum maq_status maq_show_schedules(struct maq_show *s)
{
    const struct maq_schedule_info *info;
    struct maq_json list = s->json ? maq_json_list(*s->json, "schedules") : (struct maq_json){0};
    for (size_t i = 0; (info = maq_schedule_info(i)) != NULL; i++) {
        if (s->json)
            json_schedule(maq_json_item(list), info);
        else
            text_schedule(s->page, info);
    }
    if (s->page)
        maq_page_field(s->page, 0, "", LEGEND);
    return MAQ_OK;
}

enum maq_status maq_show_schedule(struct maq_show *s, size_t i)
{
    const struct maq_schedule_info *info = maq_schedule_info(i);
    MAQ_ASSERT(info);
    if (s->json) {
        json_schedule(*s->json, info);
        return MAQ_OK;
    }
    text_schedule(s->page, info);
    maq_page_field(s->page, 0, "", LEGEND);
    return MAQ_OK;
}
