/* SPDX-License-Identifier: Apache-2.0 */
/* framework.c - framework profiles: the list, and one of them with every fact it holds. */
#include "plan/framework.h"
#include "base/check.h"
#include "base/text.h"
#include "report/show/show.h"
#include "spec/catalogue.h"

#define LABEL 20

/* Without a job: conditions are listed, not decided. */
static enum maq_status load(struct maq_framework *out, struct maq_framework_plan *plan, struct maq_show *s,
                            const char *name)
{
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(name)};
    const struct maq_framework_facts nothing = {.arch = MAQ_ARCH_COUNT, .precision = MAQ_STR("unknown")};
    return maq_framework_load(out, plan, &node, &nothing, s->arena, s->diag);
}

enum maq_status maq_show_frameworks(struct maq_show *s)
{
    static const struct maq_table_column columns[] = {{"framework", false, false}, {"forward", true, false},
                                                      {"backward", true, false},   {"collective", true, false},
                                                      {"step", true, false},       {"title", false, true}};
    struct maq_table t;
    struct maq_framework_plan plan;
    enum maq_status status = MAQ_OK;
    const struct maq_catalogue_entry *e;
    struct maq_json list = s->json ? maq_json_list(*s->json, "frameworks") : (struct maq_json){0};
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (size_t i = 0; status == MAQ_OK && (e = maq_catalogue_at("frameworks", i)) != NULL; i++) {
        struct maq_framework f;
        char n[32];
        status = load(&f, &plan, s, e->name);
        if (status != MAQ_OK)
            break;
        if (s->json) {
            maq_json_framework(maq_json_item(list), &f);
            continue;
        }
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", f.name);
        maq_table_cell(&t, "%s", maq_format_time(n, f.host.forward_s));
        maq_table_cell(&t, "%s", maq_format_time(n, f.host.backward_s));
        maq_table_cell(&t, "%s", maq_format_time(n, f.host.collective_s));
        maq_table_cell(&t, "%s", maq_format_time(n, f.host.step_s));
        maq_table_cell(&t, "%s", f.title);
    }
    if (s->page)
        maq_table_print(s->page, &t, 0);
    maq_table_fini(&t);
    return status;
}

static void show_fields(struct maq_page *page, const struct maq_field *fields, const void *at, const char *head)
{
    char text[192], value[64];
    maq_page_putf(page, MAQ_INK_HEAD, "%s\n", head);
    for (; fields->type != MAQ_TYPE_END; fields++) {
        maq__snprintf(text, sizeof text, "%-10s %s", maq_field_format(value, fields, at), fields->doc);
        maq_page_field(page, LABEL, fields->key, text);
    }
}

static void show_plan(struct maq_page *page, const struct maq_framework_plan *plan)
{
    char value[64];
    maq_page_putf(page, MAQ_INK_HEAD, "plan settings where a job says nothing\n");
    for (size_t i = 0; maq_plan_fields[i].type != MAQ_TYPE_END; i++)
        if (plan->set[i])
            maq_page_putf(page, MAQ_INK_PLAIN, "%s = %s\n", maq_plan_fields[i].key,
                          maq_field_format(value, &maq_plan_fields[i], &plan->doc));
    for (uint32_t i = 0; i < plan->n_cases; i++)
        maq_page_field(page, 5, "when", plan->cases[i]);
}

enum maq_status maq_show_framework(struct maq_show *s, const char *name)
{
    struct maq_framework f;
    struct maq_framework_plan plan;
    char value[64];
    MAQ_TRY(load(&f, &plan, s, name));
    if (s->json) {
        maq_json_framework(*s->json, &f);
        struct maq_json map = maq_json_map(*s->json, "plan"), cases = maq_json_list(*s->json, "cases");
        for (size_t i = 0; maq_plan_fields[i].type != MAQ_TYPE_END; i++)
            if (plan.set[i])
                maq_json_text(map, maq_plan_fields[i].key, maq_field_format(value, &maq_plan_fields[i], &plan.doc));
        for (uint32_t i = 0; i < plan.n_cases; i++)
            maq_json_word(cases, plan.cases[i]);
        return MAQ_OK;
    }
    maq_page_putf(s->page, MAQ_INK_TITLE, "%s", f.name);
    maq_page_putf(s->page, MAQ_INK_PLAIN, "  %s\n\n", f.title);
    show_fields(s->page, maq_host_fields, &f.host, "host time per call, on the reference host");
    show_fields(s->page, maq_framework_fields, &f, "behaviour");
    show_plan(s->page, &plan);
    maq_page_field(s->page, LABEL, "source", f.source);
    return MAQ_OK;
}
