/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - readers of kernel records that variation is learnt from: a profiler's trace, and the file of `maquette
 * profile`.
 */
#ifndef MAQ_RISK_FIT_RECORDS_H
#define MAQ_RISK_FIT_RECORDS_H

#include "base/arena.h"
#include "maquette/risk.h"

enum maq_record_kind { MAQ_RECORD_TABLE, MAQ_RECORD_TRACE, MAQ_RECORD_KERNELS };
/* The kind of a file, by its first bytes, and by its name where it cannot be read. */
enum maq_record_kind maq_record_kind(const char *path);

/*
 * The JSON that PyTorch's profiler writes (plain or gzip), as a stream: durations of kernels, and of the steps that it marked
 * (ProfilerStep#N), in their order. Everything in `arena`. profiler_trace.c
 */
enum maq_status maq_trace_read(struct maq_risk_record *out, double **steps_s, uint32_t *n_steps, const char *path,
                               struct maq_arena *arena, struct maq_diag *diag);
/* The SQLite file of `maquette profile`. measured_kernels.c */
enum maq_status maq_profile_read(struct maq_risk_record *out, const char *path, struct maq_arena *arena,
                                 struct maq_diag *diag);

#endif
