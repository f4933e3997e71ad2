/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_nccl.c - NCCL's calls on the zero-GPU device: one rank of 8,192 alone, ranks that meet, what is carried out,
 * what is refused. Programs are this executable again under a run card.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "nccl_calls.h"
#include "shim/cuda/cuda.h"
#include "shim_ranks.h"

#define WORLD 8192
#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #condition);                                            \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OK(call) REQUIRE((call) == VG_NCCL_SUCCESS)

static int32_t *memory(size_t bytes)
{
    return vg_mem_alloc(bytes, MAQ_REC_MANAGED, NULL);
}

static void settle(struct vg_stream *s)
{
    int64_t end;
    REQUIRE(vg_stream_end(s, &end));
}

/* --- programs --------------------------------------------------------------------------------------------------------- */

struct said {
    uint64_t lineage, half;
    uint32_t n, me, listed, half_n, half_me;
    uint32_t members[8];
};

/* Any rank: the id comes from rank 0, the communicator is split into groups of eight. */
static int start(void)
{
    const struct vg_card *card = vg_card();
    struct vg_nccl_id id;
    struct vg_comm *world, *group;
    memset(&id, 0x5a, sizeof id); /* what a stack holds */
    if (card->rank == 0)
        OK(ncclGetUniqueId(&id));
    REQUIRE(vg_exchange_from(1, card->world, card->rank, 0, &id, sizeof id));
    OK(ncclCommInitRank(&world, (int)card->world, id, (int)card->rank));
    OK(ncclCommSplit(world, (int)(card->rank / 8), (int)(card->rank % 8), &group, NULL));
    int count, me;
    OK(ncclCommCount(world, &count));
    OK(ncclCommUserRank(world, &me));
    struct said said = {.lineage = world->lineage,
                        .half = group->lineage,
                        .n = (uint32_t)count,
                        .me = (uint32_t)me,
                        .listed = world->members ? world->members[card->world - 1] : 0,
                        .half_n = group->n,
                        .half_me = group->me};
    for (uint32_t i = 0; i < 8 && i < group->n; i++)
        said.members[i] = group->members ? group->members[i] : MAQ_REC_NONE;
    ranks_say(&said, sizeof said);
    OK(ncclCommDestroy(world));
    REQUIRE(ncclCommCount(world, &count) == VG_NCCL_INVALID_ARGUMENT);
#ifndef __SANITIZE_ADDRESS__
    struct rusage used;
    REQUIRE(getrusage(RUSAGE_SELF, &used) == 0 && used.ru_maxrss < 32 * 1024); /* KiB, of 8,192 ranks */
#endif
    return 0;
}

/* Two communicators of eight, of which nobody else has said anything: what is supposed of their members. */
static int places(void)
{
    struct vg_nccl_id id;
    struct vg_comm *data, *model;
    uint32_t rank = vg_card()->rank;
    memset(&id, 1, sizeof id);
    memcpy(&id, MAQ_MADE_UP_MAGIC, 8);
    OK(ncclCommInitRank(&data, 8, id, (int)(rank / 2 % 8)));
    memset(id.bytes + 8, 2, 8);
    OK(ncclCommInitRank(&model, 8, id, (int)(rank % 2 + 2 * (rank / 16))));
    struct said said = {.n = data->n, .me = data->me, .listed = data->supposed && model->supposed};
    for (uint32_t i = 0; i < 4; i++) {
        said.members[i] = data->members ? data->members[i + 4] : MAQ_REC_NONE;
        said.members[4 + i] = model->members ? model->members[i] : MAQ_REC_NONE;
    }
    said.half_n = vg_comm_place(data).leaves_node;
    ranks_say(&said, sizeof said);
    return 0;
}

/* Every collective over four ranks, integers and floating point, against what it must give; p[] are sums of what was before. */
static int payloads(void)
{
    const int n = 4, me = (int)vg_card()->rank;
    struct vg_nccl_id id = {{0}};
    struct vg_comm *c;
    if (me == 0)
        OK(ncclGetUniqueId(&id));
    REQUIRE(vg_exchange_from(1, 4, (uint32_t)me, 0, &id, sizeof id));
    OK(ncclCommInitRank(&c, n, id, me));
    struct vg_stream *s = vg_stream_new(1, 0);
    int32_t *in = memory(64), *out = memory(64);
    float *real = (float *)memory(64);
    for (int i = 0; i < n; i++)
        in[i] = 10 * me + i;
    OK(ncclAllReduce(in, out, 4, MAQ_REC_I32, VG_NCCL_SUM, c, s));
    settle(s);
    for (int i = 0; i < n; i++)
        REQUIRE(out[i] == 60 + 4 * i);
    OK(ncclAllReduce(out, out, 4, MAQ_REC_I32, VG_NCCL_MAX, c, s)); /* in place, behind another one */
    OK(ncclAllReduce(out, out, 4, MAQ_REC_I32, VG_NCCL_SUM, c, s));
    settle(s);
    REQUIRE(out[1] == 4 * 64);
    real[0] = 0.5f * (float)me;
    OK(ncclAllReduce(real, real, 1, MAQ_REC_F32, VG_NCCL_AVG, c, s));
    settle(s);
    REQUIRE(real[0] == 0.75f);
    OK(ncclAllGather(in, out, 1, MAQ_REC_I32, c, s));
    settle(s);
    REQUIRE(out[0] == 0 && out[3] == 30);
    OK(ncclReduceScatter(in, out, 1, MAQ_REC_I32, VG_NCCL_SUM, c, s));
    settle(s);
    REQUIRE(out[0] == 60 + 4 * me);
    OK(ncclAlltoAll(in, out, 1, MAQ_REC_I32, c, s));
    settle(s);
    REQUIRE(out[2] == 20 + me);
    out[0] = me;
    OK(ncclBcast(out, 1, MAQ_REC_I32, 2, c, s));
    settle(s);
    REQUIRE(out[0] == 2);
    out[0] = -1;
    OK(ncclReduce(in, out, 1, MAQ_REC_I32, VG_NCCL_MIN, 3, c, s));
    OK(ncclGather(in, out + 1, 1, MAQ_REC_I32, 3, c, s));
    settle(s);
    REQUIRE(me == 3 ? out[0] == 0 && out[4] == 30 : out[0] == -1);
    OK(ncclScatter(in, out, 1, MAQ_REC_I32, 1, c, s));
    settle(s);
    REQUIRE(out[0] == 10 + me);
    OK(ncclGroupStart());
    OK(ncclRecv(out, 2, MAQ_REC_I32, (me + 3) % 4, c, s));
    OK(ncclSend(in, 2, MAQ_REC_I32, (me + 1) % 4, c, s));
    OK(ncclGroupEnd());
    settle(s);
    REQUIRE(out[1] == 10 * ((me + 3) % 4) + 1);
    return 0;
}

#define LONGEST                                                                                                        \
    (200 << 10) /* of the objects; a copy to the device that is kept, more than a collective of numbers carries */

/* The byte at `at` of member `me`'s object. */
static unsigned char letter(int me, size_t at)
{
    return (unsigned char)(1 + 40 * me + (int)(at % 37));
}

static size_t length_of(int me)
{
    return LONGEST - 1000 * (size_t)((me + 2) % 4);
}

/* Objects in device memory as PyTorch gathers them: each member's is copied there, and behind it is room up to the longest. */
static int objects(void)
{
    const int n = 4, me = (int)vg_card()->rank;
    struct vg_nccl_id id = {{0}};
    struct vg_comm *c;
    static unsigned char own[LONGEST], read[LONGEST];
    if (me == 0)
        OK(ncclGetUniqueId(&id));
    REQUIRE(vg_exchange_from(1, 4, (uint32_t)me, 0, &id, sizeof id));
    OK(ncclCommInitRank(&c, n, id, me));
    char *area = vg_mem_alloc(20 << 20, MAQ_REC_DEVICE, NULL), *in = area + 512, *out = area + (4 << 20);
    for (size_t i = 0; i < length_of(me); i++)
        own[i] = letter(me, i);
    REQUIRE(vg_copy(in, own, length_of(me), VG_COPY_H2D, NULL, true) == VG_OK);
    OK(ncclAllGather(in, out, LONGEST, MAQ_REC_U8, c, NULL));
    bool same = true; /* required once nobody waits any more */
    for (int k = 0; k < n; k++) {
        same = same && vg_copy(read, out + (size_t)k * LONGEST, LONGEST, VG_COPY_D2H, NULL, true) == VG_OK;
        for (size_t i = 0; i < LONGEST; i++)
            same = same && read[i] == (i < length_of(k) ? letter(k, i) : 0);
    }
    /* what a kernel has written is none, and of that size it does not move */
    vg_mem_written(in, LONGEST);
    OK(ncclAllGather(in, out, LONGEST, MAQ_REC_U8, c, NULL));
    REQUIRE(vg_copy(read, out, 16, VG_COPY_D2H, NULL, true) == VG_OK && read[0] == 0);
    REQUIRE(same);
    return 0;
}

/* A kernel that adds to a number behind the message that brings it, which is late: the sum is that of what comes. */
static int behind_a_message(void)
{
    const int me = (int)vg_card()->rank;
    struct vg_nccl_id id = {{0}};
    struct vg_comm *c;
    int64_t *x = vg_mem_alloc(4096, MAQ_REC_DEVICE, NULL), number = 21, sum = 0, function[2] = {100, 3};
    if (me == 0)
        OK(ncclGetUniqueId(&id));
    REQUIRE(vg_exchange_from(1, 2, (uint32_t)me, 0, &id, sizeof id));
    OK(ncclCommInitRank(&c, 2, id, me));
    if (me == 0) {
        const struct timespec pause = {0, 200000000};
        REQUIRE(vg_copy(x, &number, sizeof number, VG_COPY_H2D, NULL, true) == VG_OK);
        nanosleep(&pause, NULL);
        OK(ncclSend(x, 1, MAQ_REC_I64, 1, c, NULL));
        return 0;
    }
    int32_t elements = 1;
    void *place[2] = {x + 64, x}, *args[3] = {&elements, function, place};
    struct vg_param param[3] = {{0, 4}, {8, 16}, {24, 16}};
    char name[] = "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_21CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2EELb0E"
                  "EEviT0_T1_";
    struct vg_kernel add = {.magic = VG_KERNEL_MAGIC, .name = name};
    add.code = (struct vg_code){.n_params = 3, .param = param, .found = true};
    struct vg_launch l = {.kernel = &add, .grid = {1, 1, 1}, .block = {32, 1, 1}, .args = args};
    number = 0; /* what is known of the place before */
    REQUIRE(vg_copy(x, &number, sizeof number, VG_COPY_H2D, NULL, true) == VG_OK);
    OK(ncclRecv(x, 1, MAQ_REC_I64, 0, c, NULL));
    REQUIRE(vg_launch(&l, NULL) == VG_OK);
    REQUIRE(vg_copy(&sum, x + 64, sizeof sum, VG_COPY_D2H, NULL, true) == VG_OK);
    REQUIRE(sum == 21 + 3 * 100);
    return 0;
}

/* Rank 1 of 4 alone: its own, as often as it takes. The communicator has its name from the first of its roots. */
static int own_payloads(void)
{
    struct vg_nccl_id ids[2] = {{{0}}, {{0}}};
    struct vg_comm *c, *d;
    OK(ncclGetUniqueId(&ids[0]));
    OK(ncclCommInitRank(&d, 4, ids[0], 1));
    OK(ncclCommInitRankScalable(&c, 4, 1, 2, ids, NULL));
    REQUIRE(c->lineage == d->lineage);
    struct vg_stream *s = vg_stream_new(1, 0);
    int32_t *in = memory(64), *out = memory(64);
    for (int i = 0; i < 4; i++)
        in[i] = 3 + i;
    OK(ncclAllReduce(in, out, 2, MAQ_REC_I32, VG_NCCL_SUM, c, s));
    REQUIRE(out[0] == 12 && out[1] == 16);
    OK(ncclAllReduce(in, out, 2, MAQ_REC_I32, VG_NCCL_PROD, c, s));
    REQUIRE(out[0] == 81 && out[1] == 256);
    OK(ncclAllReduce(in, out, 2, MAQ_REC_I32, VG_NCCL_AVG, c, s));
    REQUIRE(out[0] == 3);
    OK(ncclAlltoAll(in, out, 1, MAQ_REC_I32, c, s));
    REQUIRE(out[0] == 3 && out[3] == 6);
    OK(ncclAllGather(in, out, 1, MAQ_REC_I32, c, s));
    REQUIRE(out[0] == 3 && out[3] == 3);
    OK(ncclAllGather(in + 1, in, 1, MAQ_REC_I32, c, s)); /* in place: others keep what is there */
    REQUIRE(in[0] == 3 && in[1] == 4 && in[3] == 6);
    OK(ncclReduceScatter(in, out, 1, MAQ_REC_I32, VG_NCCL_SUM, c, s));
    REQUIRE(out[0] == 16);
    out[0] = 77;
    OK(ncclBroadcast(in, out, 1, MAQ_REC_I32, 0, c, s)); /* nobody recorded it */
    REQUIRE(out[0] == 77);
    int64_t *length = (int64_t *)(void *)memory(64);
    for (int64_t i = 0; i < 3; i++) { /* what lay there before is no length of an object */
        const int64_t before[] = {4096, -1, INT64_C(3) << 30};
        *length = before[i];
        OK(ncclBroadcast(length, length, 1, MAQ_REC_I64, 0, c, s));
        REQUIRE(*length == (i == 0 ? 4096 : 0));
    }
    return 0;
}

/* A loop that looks for errors between two questions waits for its stream, and comes out when that ends. */
static int asks(void)
{
    struct vg_nccl_id id;
    struct vg_comm *c;
    int error;
    OK(ncclGetUniqueId(&id));
    OK(ncclCommInitRank(&c, 2, id, 0));
    struct vg_stream *s = vg_stream_new(1, 0);
    float *x = vg_mem_alloc(64 << 20, MAQ_REC_DEVICE, NULL);
    OK(ncclAllReduce(x, x, 12345678, MAQ_REC_F32, VG_NCCL_SUM, c, s)); /* of no whole number of microseconds */
    int64_t began = vg_now(), end;
    while (vg_stream_ask(s) == 0)
        OK(ncclCommGetAsyncError(c, &error));
    REQUIRE(vg_stream_end(s, &end) && end > began && vg_now() == end);
    return 0;
}

/* Two ranks, and a third that never comes; whoever stands behind them says stop. */
static int left_alone(void)
{
    struct vg_nccl_id id;
    struct vg_comm *c;
    int me = (int)vg_card()->rank, error;
    if (me == 0)
        OK(ncclGetUniqueId(&id));
    REQUIRE(vg_exchange_from(1, 2, (uint32_t)me, 0, &id, sizeof id));
    OK(ncclCommInitRank(&c, 2, id, me));
    struct vg_stream *s = vg_stream_new(1, 0);
    void *big = vg_mem_alloc(8 << 20, MAQ_REC_DEVICE, NULL);
    if (me == 1)
        return 0; /* has gone without a word */
    OK(ncclAllReduce(big, big, 1 << 20, MAQ_REC_F32, VG_NCCL_SUM, c, s));
    OK(ncclCommGetAsyncError(c, &error));
    REQUIRE(error == VG_NCCL_SUCCESS);
    ranks_say("x", 1);
    int64_t end;
    REQUIRE(!vg_stream_end(s, &end));
    OK(ncclCommGetAsyncError(c, &error));
    REQUIRE(error == VG_NCCL_REMOTE_ERROR);
    REQUIRE(ncclAllReduce(big, big, 1, MAQ_REC_F32, VG_NCCL_SUM, c, s) == VG_NCCL_REMOTE_ERROR);
    REQUIRE(ncclGetLastError(c)[0] != '\0');
    return 0;
}

/* --- one of 8,192 ------------------------------------------------------------------------------------------------------- */

static struct said said_by(const struct ranks *r, uint32_t rank)
{
    size_t bytes;
    struct said said;
    unsigned char *data = ranks_file(r, "said", rank, &bytes);
    assert_int_equal(bytes, sizeof said);
    memcpy(&said, data, sizeof said);
    free(data);
    return said;
}

static void test_one_of_many(void **state)
{
    (void)state;
    struct ranks r = ranks_new(WORLD, 8, false, NULL);
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "start", (uint32_t[]){0, 4095, 8191}, 3));
    struct said a = said_by(&r, 0), b = said_by(&r, 4095), c = said_by(&r, 8191);
    assert_true(a.lineage == b.lineage && b.lineage == c.lineage); /* though two of them had no id */
    assert_int_equal(b.n, WORLD);
    assert_int_equal(b.me, 4095);
    assert_int_equal(b.listed, 8191);
    /* of the others' colors nothing is known: 511 is taken for the first member, (4095 - 511) / 7 ranks before each next */
    assert_int_equal(b.half_n, WORLD / 512);
    ranks_free(&r);
}

/* What others said, as `maquette capture` collects it from their slices: the first record of each channel. */
static void collect(const struct ranks *r, const uint32_t *ranks, uint32_t n)
{
    struct maq_peers_entry entries[64];
    unsigned char bytes[8192];
    uint64_t n_entries = 0, used = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t size;
        unsigned char *trace = ranks_file(r, "trace", ranks[i], &size);
        for (size_t at = sizeof(struct maq_rec_head); at + sizeof(struct maq_rec) <= size;) {
            struct maq_rec rec;
            memcpy(&rec, trace + at, sizeof rec);
            at += sizeof rec;
            bool payload = rec.kind == MAQ_REC_BOOT || rec.kind == MAQ_REC_DEF_COMM || rec.kind == MAQ_REC_DEF_OP;
            if (rec.kind == MAQ_REC_BOOT && rec.bytes) {
                memcpy(bytes + used, trace + at, rec.bytes);
                entries[n_entries++] = (struct maq_peers_entry){rec.ns, 0, rec.arg, used, rec.bytes};
                used += rec.bytes;
            }
            at += payload ? maq_rec_padded(rec.bytes) : 0;
        }
        free(trace);
    }
    for (uint64_t i = 1; i < n_entries; i++) /* by channel and rank */
        for (uint64_t k = i; k > 0; k--) {
            struct maq_peers_entry x = entries[k - 1], y = entries[k];
            if (x.channel < y.channel || (x.channel == y.channel && x.rank < y.rank))
                break;
            entries[k - 1] = y;
            entries[k] = x;
        }
    struct maq_peers_head head = {.n_entries = n_entries};
    memcpy(head.magic, MAQ_PEERS_MAGIC, 8);
    for (uint64_t i = 0; i < n_entries; i++)
        entries[i].at += sizeof head + n_entries * sizeof *entries;
    FILE *f = fopen(in_folder(r, "peers"), "wb");
    fwrite(&head, sizeof head, 1, f);
    fwrite(entries, sizeof *entries, n_entries, f);
    fwrite(bytes, 1, used, f);
    fclose(f);
}

/* The second slice of a rank knows what a few others said in theirs: patterns give the rest. */
static void test_second_pass(void **state)
{
    (void)state;
    struct ranks r = ranks_new(WORLD, 8, false, NULL);
    ranks_card(&r, NULL);
    static const uint32_t probes[] = {0, 7, 8, 4095, 8184};
    assert_true(ranks_run(&r, "start", probes, 5));
    collect(&r, probes, 5);
    FILE *card = fopen(in_folder(&r, "card"), "a");
    fprintf(card, "peers %s/peers\n", r.folder);
    fclose(card);
    assert_true(ranks_run(&r, "start", (uint32_t[]){4095, 4090}, 2));
    for (uint32_t rank = 4090; rank <= 4095; rank += 5) {
        struct said s = said_by(&r, rank);
        assert_int_equal(s.half_n, 8);
        assert_int_equal(s.half_me, rank % 8);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(s.members[i], 4088 + i);
    }
    assert_true(said_by(&r, 4095).half == said_by(&r, 4090).half);
    ranks_free(&r);
}

static void tell_patterns(const struct ranks *r, const struct maq_pattern *patterns, const uint32_t *nth, uint32_t n)
{
    struct maq_peers_head head = {.n_entries = n};
    FILE *f = fopen(in_folder(r, "peers"), "wb");
    memcpy(head.magic, MAQ_PEERS_MAGIC, 8);
    fwrite(&head, sizeof head, 1, f);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number = i > 0 && nth[i] == nth[i - 1];
        struct maq_peers_entry e = {MAQ_PEERS_PATTERNS, 8, nth[i] << 8 | number,
                                    sizeof head + n * sizeof e + i * sizeof *patterns, sizeof *patterns};
        fwrite(&e, sizeof e, 1, f);
    }
    fwrite(patterns, sizeof *patterns, n, f);
    fclose(f);
    FILE *card = fopen(in_folder(r, "card"), "a");
    fprintf(card, "peers %s/peers\n", r->folder);
    fclose(card);
}

/* Members of which only size and place are known lie along the strides that others were seen to have; damaged patterns are none. */
static void test_expert_spread(void **state)
{
    static const struct maq_pattern in_stage = {.size = 8, .n_levels = 1, .n = {8}, .stride = {2}},
                                    over_stages = {.size = 8, .n_levels = 2, .n = {2, 4}, .stride = {1, 16}},
                                    other = {.size = 8, .n_levels = 1, .n = {8}, .stride = {1}},
                                    damaged = {.size = 8, .n_levels = 3, .n = {8, 0, 1}, .stride = {0, 0, 2}};
    const struct {
        struct maq_pattern pattern[3];
        uint32_t nth[3], n, data, model; /* the fifth member of the one, the second of the other */
    } cases[] = {
        {{in_stage, over_stages}, {0, 1}, 2, 24, 7},
        {{damaged, in_stage, other}, {0, 0, 1}, 3, 24, MAQ_REC_NONE}, /* the other is not where this rank is */
        {{over_stages, in_stage}, {0, 1}, 2, MAQ_REC_NONE, MAQ_REC_NONE},
        {{in_stage}, {0}, 0, MAQ_REC_NONE, MAQ_REC_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ranks r = ranks_new(64, 4, false, NULL);
        ranks_card(&r, NULL);
        tell_patterns(&r, cases[i].pattern, cases[i].nth, cases[i].n);
        assert_true(ranks_run(&r, "places", (uint32_t[]){22}, 1));
        struct said said =
            said_by(&r, 22); /* of the data group 16, 18, ... 30 and of the model group 6, 7, 22, 23, 38, ... */
        assert_true(said.n == 8 && said.me == 3 && said.listed);
        assert_int_equal(said.members[0], cases[i].data);
        assert_int_equal(said.members[5], cases[i].model);
        assert_true(said.half_n == 1);
        ranks_free(&r);
    }
}

/* --- ranks that meet ---------------------------------------------------------------------------------------------------- */

static void test_payloads(void **state)
{
    (void)state;
    struct ranks r = ranks_new(4, 4, true, NULL);
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "payloads", NULL, 4));
    ranks_free(&r);
}

static void test_objects(void **state)
{
    (void)state;
    struct ranks r = ranks_new(4, 4, true, NULL);
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "objects", NULL, 4));
    ranks_free(&r);
}

static void test_behind_a_message(void **state)
{
    (void)state;
    struct ranks r = ranks_new(2, 2, true, NULL);
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "behind_a_message", NULL, 2));
    ranks_free(&r);
}

static void test_own_payloads(void **state)
{
    (void)state;
    struct ranks r = ranks_new(4, 4, false, NULL);
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "own_payloads", (uint32_t[]){1}, 1));
    ranks_free(&r);
}

static void test_asks(void **state)
{
    (void)state;
    struct ranks r = ranks_new(2, 2, false, "call_ns 1000\n");
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "asks", (uint32_t[]){0}, 1));
    ranks_free(&r);
}

/* Two ranks of 8,192 live; all others are guessed and not waited for. */
static void test_live(void **state)
{
    (void)state;
    struct ranks r = ranks_new(WORLD, 8, true, NULL);
    static const uint32_t live[] = {0, 4095};
    ranks_card(&r, &(struct maq_shm_opts){.world = WORLD, .live = live, .n_live = 2});
    assert_true(ranks_run(&r, "start", live, 2));
    struct said a = said_by(&r, 0), b = said_by(&r, 4095);
    assert_true(a.lineage == b.lineage);
    assert_int_equal(b.listed, 8191);
    ranks_free(&r);
}

static void test_left_alone(void **state)
{
    (void)state;
    struct ranks r = ranks_new(2, 2, true, NULL);
    ranks_card(&r, NULL);
    pid_t waits = ranks_start(&r, "left_alone", 0), leaves = ranks_start(&r, "left_alone", 1);
    assert_true(ranks_wait(leaves));
    size_t bytes = 0;
    for (int i = 0; i < 1000 && !bytes; i++) {
        usleep(10000);
        free(ranks_file(&r, "said", 0, &bytes));
    }
    struct maq_shm m;
    assert_int_equal(maq_shm_open(&m, in_folder(&r, "meet")), 0);
    maq_shm_stop(&m);
    maq_shm_close(&m);
    assert_true(ranks_wait(waits));
    ranks_free(&r);
}

/* --- in this process, without a card -------------------------------------------------------------------------------------- */

static void test_several_devices(void **state)
{
    (void)state;
    struct vg_comm *c[8], *d[8];
    struct vg_nccl_id id;
    assert_int_equal(ncclCommInitAll(c, 8, NULL), VG_NCCL_SUCCESS);
    assert_int_equal(ncclGetUniqueId(&id), VG_NCCL_SUCCESS);
    assert_int_equal(ncclGroupStart(), VG_NCCL_SUCCESS);
    for (int i = 0; i < 8; i++)
        assert_int_equal(ncclCommInitRank(&d[i], 8, id, i), VG_NCCL_SUCCESS);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, MAQ_REC_F32, VG_NCCL_SUM, d[0], NULL), VG_NCCL_INVALID_USAGE);
    assert_int_equal(ncclGroupEnd(), VG_NCCL_INVALID_USAGE); /* the group remembers */
    assert_null(d[0]);
    assert_int_equal(ncclGroupStart(), VG_NCCL_SUCCESS);
    for (int i = 0; i < 8; i++)
        assert_int_equal(ncclCommInitRank(&d[i], 8, id, i), VG_NCCL_SUCCESS);
    assert_int_equal(ncclGroupEnd(), VG_NCCL_SUCCESS);
    assert_int_equal(ncclGroupEnd(), VG_NCCL_INVALID_USAGE);
    int device, rank;
    assert_int_equal(ncclCommCuDevice(c[5], &device), VG_NCCL_SUCCESS);
    assert_int_equal(device, 5);
    assert_int_equal(ncclCommUserRank(d[6], &rank), VG_NCCL_SUCCESS);
    assert_int_equal(rank, 6);
    assert_true(c[0]->lineage == c[7]->lineage && c[0]->lineage != d[0]->lineage && d[0]->lineage == d[7]->lineage);
}

/* Ids that the store of maquette made up name a communicator by their bytes, in whatever order they come; other bytes do not. */
static void test_made_up_ids(void **state)
{
    struct vg_nccl_id a, b, junk;
    struct vg_comm *c[5];
    memset(&a, 1, sizeof a);
    memset(&b, 2, sizeof b);
    memset(&junk, 3, sizeof junk);
    memcpy(&a, MAQ_MADE_UP_MAGIC, 8);
    memcpy(&b, MAQ_MADE_UP_MAGIC, 8);
    const struct vg_nccl_id id[5] = {a, b, a, junk, junk};
    for (int i = 0; i < 5; i++)
        assert_int_equal(ncclCommInitRank(&c[i], 1, id[i], 0), VG_NCCL_SUCCESS);
    assert_true(c[0]->lineage == c[2]->lineage && c[0]->lineage != c[1]->lineage);
    assert_true(c[3]->lineage != c[4]->lineage && c[3]->lineage != c[0]->lineage);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ncclCommDestroy(c[i]), VG_NCCL_SUCCESS);
    (void)state;
}

/* A copy of what no pattern is looked for in stays what it is, whoever speaks; one of words may become a pattern. */
static void test_steady_copies(void **state)
{
    unsigned char all[4 * 46] = {0};
    const unsigned char have[4] = {1, 0, 0, 0};
    memcpy(all, "a pickled object", 16);
    assert_true(vg_assumed_contributions(all, have, 4, 0, NULL, 46, false));
    assert_memory_equal(all + 46, all, 46);
    assert_false(vg_assumed_contributions(all, have, 4, 0, NULL, 44, false));
    (void)state;
}

static void test_refusals(void **state)
{
    (void)state;
    struct vg_comm *c, *none = (struct vg_comm *)1;
    struct vg_nccl_id id = {{0}};
    int op, version;
    void *handle;
    char buffer[64];
    assert_int_equal(ncclCommInitRank(&c, 0, id, 0), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclCommInitRank(&c, 4, id, 4), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclCommInitRankConfig(&c, 1, id, 0, &(struct vg_nccl_config){.size = 8}),
                     VG_NCCL_INVALID_ARGUMENT);
    struct vg_nccl_config config = {.size = sizeof config, .magic = VG_NCCL_CONFIG_MAGIC, .blocking = 0};
    assert_int_equal(ncclCommInitRankConfig(&c, 1, id, 0, &config), VG_NCCL_SUCCESS);
    assert_int_equal(ncclCommInitRankScalable(&c, 1, 0, 2, (struct vg_nccl_id[2]){{{0}}}, NULL),
                     VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclCommInitRankScalable(&c, 4, 1, 2, (struct vg_nccl_id[2]){{{0}}}, NULL), VG_NCCL_SUCCESS);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, 12, VG_NCCL_SUM, c, NULL), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, MAQ_REC_F32, 5, c, NULL), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, MAQ_REC_F32, 0, NULL, NULL), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, MAQ_REC_F32, 0, c, buffer), VG_NCCL_CUDA_ERROR);
    assert_int_equal(ncclBcast(NULL, 1, MAQ_REC_F32, 4, c, NULL), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclSend(NULL, 1, MAQ_REC_F32, -1, c, NULL), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclRedOpCreatePreMulSum(&op, buffer, MAQ_REC_F32, VG_NCCL_SCALAR_HOST, c), VG_NCCL_SUCCESS);
    assert_int_equal(op, VG_NCCL_OPS);
    assert_int_equal(pncclAllReduce(NULL, NULL, 1, MAQ_REC_F32, op, c, NULL), VG_NCCL_SUCCESS);
    assert_int_equal(ncclRedOpDestroy(op, c), VG_NCCL_SUCCESS);
    assert_int_equal(ncclRedOpDestroy(VG_NCCL_SUM, c), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclCommRegister(c, buffer, 64, &handle), VG_NCCL_SUCCESS);
    assert_int_equal(ncclCommDeregister(c, handle), VG_NCCL_SUCCESS);
    assert_int_equal(ncclCommWindowRegister(c, buffer, 64, &handle, 1), VG_NCCL_SUCCESS);
    assert_int_equal(ncclCommWindowDeregister(c, handle), VG_NCCL_SUCCESS);
    assert_int_equal(ncclMemAlloc(&handle, 1 << 20), VG_NCCL_SUCCESS);
    assert_int_equal(ncclMemFree(handle), VG_NCCL_SUCCESS);
    assert_int_equal(ncclMemFree(buffer), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclGetVersion(&version), VG_NCCL_SUCCESS);
    assert_int_equal(version, VG_NCCL_VERSION);
    assert_string_equal(ncclGetErrorString(VG_NCCL_REMOTE_ERROR), "a peer failed");
    assert_string_equal(ncclGetErrorString(99), "unknown result code");
    assert_int_equal(ncclCommSplit(c, -2, 0, &none, NULL), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclCommSplit(c, VG_NCCL_NO_COLOR, 0, &none, NULL), VG_NCCL_SUCCESS);
    assert_null(none);
    assert_int_equal(ncclCommShrink(c, (int[]){0, 3}, 2, &none, NULL, 0), VG_NCCL_SUCCESS);
    assert_int_equal(none->n, 2);
    assert_int_equal(none->me, 0);
    assert_int_equal(ncclCommRevoke(c, 0), VG_NCCL_SUCCESS);
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, MAQ_REC_F32, 0, c, NULL), VG_NCCL_INVALID_USAGE);
    assert_int_equal(ncclCommAbort(c), VG_NCCL_SUCCESS);
    assert_int_equal(ncclCommAbort(c), VG_NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclCommDestroy(NULL), VG_NCCL_SUCCESS);
}

/* A group is simulated: collectives of one communicator follow each other, and nothing is launched. */
static void test_simulated(void **state)
{
    (void)state;
    struct vg_comm *c;
    assert_int_equal(ncclCommInitAll(&c, 1, NULL), VG_NCCL_SUCCESS);
    struct vg_nccl_sim_info info = {.size = sizeof info, .magic = VG_NCCL_SIM_MAGIC, .estimated_us = -1};
    uint64_t before = c->colls;
    assert_int_equal(ncclGroupStart(), VG_NCCL_SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ncclAllReduce(NULL, NULL, 1000000, MAQ_REC_I8, VG_NCCL_SUM, c, NULL), VG_NCCL_SUCCESS);
    assert_int_equal(ncclGroupSimulateEnd(&info), VG_NCCL_SUCCESS);
    assert_true(info.estimated_us == 9.0f);
    assert_int_equal(c->colls, before);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } programs[] = {{"start", start},
                    {"places", places},
                    {"payloads", payloads},
                    {"objects", objects},
                    {"own_payloads", own_payloads},
                    {"left_alone", left_alone},
                    {"behind_a_message", behind_a_message},
                    {"asks", asks}};
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0) {
            vg_drive();
            return programs[i].run();
        }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_of_many),
        cmocka_unit_test(test_second_pass),
        cmocka_unit_test(test_payloads),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_own_payloads),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_several_devices),
        cmocka_unit_test(test_made_up_ids),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_expert_spread),
        cmocka_unit_test(test_behind_a_message),
        cmocka_unit_test(test_steady_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
