/* SPDX-License-Identifier: Apache-2.0 */
/* test_train_schedules.c - skeletons that threads share: built once, given to all, and what is refused is refused to each.
 * maq-test: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/schedules.h"

#define THREADS 4
#define ROUNDS 50

static const struct maq_schedule_spec good[] = {
    {MAQ_SCHEDULE_1F1B, 4, 1, 64, 4, 0},
    {MAQ_SCHEDULE_INTERLEAVED, 4, 2, 64, 4, 0},
    {MAQ_SCHEDULE_1F1B, 8, 1, 128, 8, 0},
};
/* Virtual stages need microbatches in whole groups of stages. */
static const struct maq_schedule_spec bad = {MAQ_SCHEDULE_INTERLEAVED, 4, 2, 63, 4, 0};

struct asker {
    struct maq_schedules *store;
    const struct maq_shared_schedule *held[3];
    uint32_t refusals, wrong;
    pthread_t thread;
};

static void *ask(void *context)
{
    struct asker *a = context;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct maq_diag *diag = maq_diag_new();
        const struct maq_shared_schedule *none = NULL, *again;
        for (uint32_t i = 0; i < 3; i++) {
            const struct maq_shared_schedule **held = &a->held[(i + round) % 3];
            if (maq_schedules_take(&again, a->store, &good[(i + round) % 3], diag) != MAQ_OK ||
                (*held && again != *held))
                a->wrong++;
            else if (*held)
                maq_schedules_give(a->store, again);
            else
                *held = again;
        }
        a->refusals +=
            maq_schedules_take(&none, a->store, &bad, diag) == MAQ_BAD_INPUT && !none && maq_diag_count(diag) == 1;
        maq_diag_free(diag);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct maq_schedules *store = maq_schedules_new();
    struct asker askers[THREADS] = {0};
    for (uint32_t i = 0; i < THREADS; i++) {
        askers[i].store = maq_schedules_share(store);
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(askers[i].thread, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(askers[i].wrong, 0);
        assert_int_equal(askers[i].refusals, ROUNDS);
        for (uint32_t k = 0; k < 3; k++) {
            assert_ptr_equal(askers[i].held[k], askers[0].held[k]);
            assert_int_equal(askers[i].held[k]->schedule.microbatches, good[k].microbatches);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        for (uint32_t k = 0; k < 3; k++)
            maq_schedules_give(store, askers[i].held[k]);
        maq_schedules_free(store);
    }
    maq_schedules_free(store);
}

/* What was made stays for the next who asks, also when a pipeline of 2 million tasks came between. */
static void test_what_stays(void **state)
{
    (void)state;
    struct maq_schedules *store = maq_schedules_new();
    const struct maq_schedule_spec large = {MAQ_SCHEDULE_1F1B, 16, 1, 62500, 16, 0};
    const struct maq_shared_schedule *first, *second;
    assert_int_equal(maq_schedules_take(&first, store, &good[0], NULL), MAQ_OK);
    maq_schedules_give(store, first);
    assert_int_equal(maq_schedules_take(&second, store, &good[0], NULL), MAQ_OK);
    assert_ptr_equal(second, first);
    assert_int_equal(maq_schedules_take(&first, store, &large, NULL), MAQ_OK);
    maq_schedules_give(store, first);
    maq_schedules_give(store, second);
    assert_int_equal(maq_schedules_take(&first, store, &good[0], NULL), MAQ_OK);
    assert_ptr_equal(second, first);
    maq_schedules_give(store, first);
    maq_schedules_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
