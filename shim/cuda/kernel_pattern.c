/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pattern.c - reads which kernels a rule is about, and finds those that no rule is about.
 */
#include "shim/cuda/kernel_pattern.h"

#include <stdlib.h>
#include <string.h>

char *vg_rule_line(const char *line)
{
    size_t n = strcspn(line, "#\r\n");
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    return strndup(line, n);
}

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

bool vg_rules_name(const void *rules, uint32_t n, size_t bytes, struct vg_unnamed *none, const struct vg_kernel *kernel)
{
    const char **slot = &none->at[maq_rec_mix((uintptr_t)kernel->name, 0) % VG_UNNAMED_MOST];
    if (*slot == kernel->name)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct vg_kernel_pattern *p = (const void *)((const char *)rules + i * bytes);
        if (strstr(kernel->name, p->name) != NULL)
            return true;
    }
    *slot = kernel->name;
    return false;
}
