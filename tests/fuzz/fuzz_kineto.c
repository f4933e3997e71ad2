/* fuzz_kineto.c - profiler traces from any bytes: what is read becomes a captured job, and that a graph with times. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "emulate/mqt.h"
#include "imports/kineto.h"
#include "maquette/capture_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct maq_capture *c, struct maq_diag *diag)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_import_job job;
    struct maq_kineto k;
    if (!diag || maq_import_begin(&job, diag) != MAQ_OK)
        return 0;
    enum maq_status status = maq_kineto_parse(&k, "t", data, size, job.arena, diag);
    if (status == MAQ_OK && k.rank < 64 && k.world <= 64) {
        job.world = k.world > 0 ? (uint32_t)k.world : 0;
        struct maq_import_rank *rank = maq_import_add_rank(&job, "t", k.rank > 0 ? (uint32_t)k.rank : 0);
        status = rank ? maq_kineto_records(&job, rank, &k) : MAQ_NO_MEMORY;
    }
    maq_kineto_fini(&k);
    struct maq_capture *c = NULL;
    if (status == MAQ_OK && job.n_ranks > 0 && maq_import_finish(&c, &job) == MAQ_OK) {
        struct maq_arena scratch; /* what is read has to be what may stand in a file */
        maq_arena_init(&scratch, 0);
        MAQ_ASSERT(maq_capture_fault(c, &scratch) == NULL);
        maq_arena_fini(&scratch);
        run(c, diag);
        maq_capture_free(c);
    } else {
        MAQ_ASSERT(status == MAQ_OK || maq_diag_errors(diag) > 0);
        if (job.arena)
            maq_import_drop(&job);
    }
    maq_diag_free(diag);
    return 0;
}
