/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pattern.c - reads which kernels a rule is about, adds rules to a table, and finds the kernels that no rule is about.
 */
#include "shim/cuda/kernel_pattern.h"
#include "shim/grow.h"

#include <stdlib.h>
#include <string.h>

const char *vg_kernel_pattern_read(struct vg_kernel_pattern *out, char *text)
{
    char *slash = strrchr(text, '/'), *end;
    out->name = text;
    if (slash == NULL)
        return NULL;
    out->parameters = strtoll(slash + 1, &end, 10);
    if (out->parameters <= 0 || *end != '\0')
        return "behind the / of a kernel's name stands how many parameters it has";
    *slash = '\0';
    return NULL;
}

bool vg_kernel_pattern_fits(const struct vg_kernel_pattern *p, const struct vg_kernel *kernel)
{
    return strstr(kernel->name, p->name) != NULL &&
           (p->parameters == 0 || p->parameters == (int64_t)kernel->code.n_params);
}

/* A copy of a line without its comment and the blanks at its end; NULL: no memory. */
static char *copy_line(const char *line)
{
    size_t n = strcspn(line, "#\r\n");
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    return strndup(line, n);
}

static struct vg_kernel_pattern *rule_at(const struct vg_rules *rules, uint32_t i)
{
    return (void *)((char *)rules->at + i * rules->bytes);
}

bool vg_rules_take(struct vg_rules *rules, const char *line, const char **why)
{
    void *bigger = vg_grown(rules->at, rules->n, &rules->room, 16, rules->bytes);
    char *own = bigger != NULL ? copy_line(line) : NULL;
    *why = "out of memory";
    if (bigger != NULL)
        rules->at = bigger;
    if (own == NULL)
        return false;
    struct vg_kernel_pattern *rule = rule_at(rules, rules->n);
    memset(rule, 0, rules->bytes);
    rule->line = own;
    *why = rules->cut(rule, own);
    if (*why != NULL) {
        free(own);
        return false;
    }
    rules->n++;
    return true;
}

bool vg_rules_name(const struct vg_rules *rules, struct vg_unnamed *none, const struct vg_kernel *kernel)
{
    const char **slot = &none->at[maq_rec_mix((uintptr_t)kernel->name, 0) % VG_UNNAMED_MOST];
    if (*slot == kernel->name)
        return false;
    for (uint32_t i = 0; i < rules->n; i++)
        if (strstr(kernel->name, rule_at(rules, i)->name) != NULL)
            return true;
    *slot = kernel->name;
    return false;
}
