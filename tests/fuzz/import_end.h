/* SPDX-License-Identifier: Apache-2.0 */
/* import_end.h - the end of every fuzzed import: what was read has to be what may stand in a file, and becomes a graph with times. */
#ifndef MAQ_TESTS_FUZZ_IMPORT_END_H
#define MAQ_TESTS_FUZZ_IMPORT_END_H

#include <stdlib.h>

#include "base/check.h"
#include "capture/import/readers.h"
#include "capture/import/traced_job.h"
#include "capture/mqt/mqt.h"
#include "maquette/capture_graph.h"

static inline void fuzz_graph(const struct maq_capture *c, struct maq_diag *diag)
{
    struct maq_captured_graph g;
    if (maq_capture_graph(&g, c, diag) != MAQ_OK) {
        MAQ_ASSERT(maq_diag_errors(diag) > 0);
        return;
    }
    double end, *finish = malloc((g.timed.graph.n_nodes + (size_t)1) * sizeof *finish);
    struct maq_graph_times t;
    uint32_t class_id;
    if (finish) {
        maq_engine_static(&end, finish, &g.timed.graph, 1, g.timed.dur_ns);
        MAQ_ASSERT(maq_graph_times(&t, &class_id, &g.timed, finish) != MAQ_OK || t.makespan_ns <= end);
    }
    free(finish);
    maq_captured_graph_free(&g);
}

/* `status` of reading it. Takes the job. */
static inline void fuzz_import_end(struct maq_import_job *job, enum maq_status status, struct maq_diag *diag)
{
    struct maq_capture *c = NULL;
    if (status == MAQ_OK && job->n_ranks > 0 && maq_import_finish(&c, job) == MAQ_OK) {
        struct maq_arena scratch;
        maq_arena_init(&scratch, 0);
        MAQ_ASSERT(maq_capture_fault(c, &scratch) == NULL);
        maq_arena_fini(&scratch);
        fuzz_graph(c, diag);
        maq_capture_free(c);
        return;
    }
    MAQ_ASSERT(status == MAQ_OK || maq_diag_errors(diag) > 0);
    if (job->arena)
        maq_import_drop(job);
}

#endif
