/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pattern.h - which kernels a rule is about, as the lines of rules say it (value_rules.h, operator_rules.h): NAME[/PARAMETERS], a part of
 * a kernel's name, and how many parameters it has.
 */
#ifndef MAQ_SHIM_KERNEL_PATTERN_H
#define MAQ_SHIM_KERNEL_PATTERN_H

#include "shim/cuda/cuda.h"

/* The first member of every rule. */
struct vg_kernel_pattern {
    char *line;         /* the one allocation of its rule, which its texts are parts of */
    char *name;         /* a part of the kernel's */
    int64_t parameters; /* 0: any */
};

/* A line without its comment and the blanks at its end, to be cut into parts; owned by the caller. NULL: no memory. */
char *vg_rule_line(const char *line);
/* Reads NAME[/PARAMETERS], which is a part of the line; what is wrong, or NULL. */
const char *vg_kernel_pattern_read(struct vg_kernel_pattern *out, char *text);
bool vg_kernel_pattern_fits(const struct vg_kernel_pattern *p, const struct vg_kernel *kernel);

/* Kernels are few and launches many: those that no rule names are kept, by hash. Rules come before launches. */
enum { VG_UNNAMED_MOST = 1024 };
struct vg_unnamed {
    const char *at[VG_UNNAMED_MOST]; /* names, which are never freed */
};
/* Whether any of n rules of `bytes` bytes each names the kernel. */
bool vg_rules_name(const void *rules, uint32_t n, size_t bytes, struct vg_unnamed *none,
                   const struct vg_kernel *kernel);

#endif
