/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pattern.h - which kernels a rule is about, as the lines of rules say it (value_rules.h, operator_rules.h): NAME[/PARAMETERS], a part of
 * a kernel's name, and how many parameters it has; and tables of such rules.
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

/* Reads NAME[/PARAMETERS], which is a part of the line; what is wrong, or NULL. */
const char *vg_kernel_pattern_read(struct vg_kernel_pattern *out, char *text);
bool vg_kernel_pattern_fits(const struct vg_kernel_pattern *p, const struct vg_kernel *kernel);

/* Rules of one kind. */
struct vg_rules {
    void *at;
    uint32_t n, room;
    size_t bytes; /* of a rule */
    /* Cuts a rule, zero but for its line, from that line, which has no comment and no blanks at its end; what is wrong, or NULL. */
    const char *(*cut)(void *rule, char *line);
};
/* Adds the rule of a line; false: it is none. `*why` then says what is wrong with it, and is constant. */
bool vg_rules_take(struct vg_rules *rules, const char *line, const char **why);

/* Kernels are few and launches many: those that no rule names are kept, by hash. Rules come before launches. */
enum { VG_UNNAMED_MOST = 1024 };
struct vg_unnamed {
    const char *at[VG_UNNAMED_MOST]; /* names, which are never freed */
};
/* Whether any of them names the kernel. */
bool vg_rules_name(const struct vg_rules *rules, struct vg_unnamed *none, const struct vg_kernel *kernel);

#endif
