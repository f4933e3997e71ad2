/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - what passes between maquette and a program that runs under it.
 *
 * maquette starts the program with MAQUETTE_RUN set to the path of a small file, the *run card*: lines `key value`, keys
 * below. Everything else is reached through paths in it:
 *
 *   trace    the file that the rank's records go to (record.h)
 *   ask      a stream socket (AF_UNIX): "how long does this take?", answered by the cost chain. Each distinct question
 *            once; without one, or with nobody behind it, a fixed rule answers (ns = 2000 + bytes / 1 TB/s)
 *   peers    contributions that other ranks made to exchanges, recorded in their slices
 *   meet     a shared segment in which ranks that run at the same time meet: other live ranks, or the replay that
 *            stands in for thousands
 *
 *   card key      value                              card key      value
 *   world         ranks of the job                   device        name, for the program to read
 *   rank          this rank                          memory        bytes of the device
 *   per_node      ranks on a node                    sms           multiprocessors
 *   local         this rank's device on its node     capability    90 = 9.0
 *   call_ns       host time of a runtime call        clock_khz     of the SMs
 *   launch_ns     host time of a launch              memory_khz, bus_bits, l2, power_w
 *   mode          alone | meet                       copy_bps      host to device, bytes/s
 *   hbm_bps       device memory, bytes/s             values        zero | file of an oracle
 *   clock         virtual | real (boot/clock.c)      tcp           ports of a rendezvous, 12345,29400 (boot/tcp.c)
 *   waits         file of waits, on a real GPU       inputs        file of what a slice was given
 *
 *   nccl_memory   rule | file of a profile: device memory of communicators is counted
 *   forks         1: a fork server (src/launch/fork_server), which ends with MAQ_UNFIT_STATUS where it uses the device. Once MAQUETTE_RUN
 *                 names another card that one holds: the process was forked to be a rank
 *   program       name of the program (record.h) where the process has another command line
 *   stops         1: the program ends, with MAQ_STOPPED_STATUS, where it reads what another rank was to say that has not been run
 *
 * A card of a program with several ranks (torchrun's workers, mpirun) leaves `rank` out: RANK,
 * OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID of the process says it, and `%r` in paths is replaced by it.
 */
#ifndef MAQ_SHIM_LINK_H
#define MAQ_SHIM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/record.h"

#define MAQ_RUN_CARD "MAQUETTE_RUN"

/* --- questions ------------------------------------------------------------------------------------------------------ */

/* One question, one answer, in turn. An operator's name (op.name_bytes) follows its question, the members of a
 * communicator (comm.n_members global ranks) follow a collective's. */
/* The last one is none: a program that ends says its virtual time (`bytes`), and waits until that is heard. */
enum maq_ask_kind { MAQ_ASK_OP = 1, MAQ_ASK_COLL = 2, MAQ_ASK_END = 3 };
struct maq_ask {
    uint32_t kind;
    uint32_t coll;  /* enum maq_rec_coll */
    uint64_t bytes; /* as in a record */
    union {
        struct maq_rec_op op;
        struct maq_rec_comm comm;
    };
};
struct maq_answer {
    uint64_t ns;
};

/* --- contributions -------------------------------------------------------------------------------------------------- */

/*
 * An exchange: n members each put in some bytes and get everybody's. A broadcast of an id, MPI_Allgather, the colors of
 * a split, a small collective over host-visible memory: all are exchanges. `channel` names it on every member alike
 * (communicator and call), `seq` counts on the channel.
 *
 * The file of contributions: a head, n_entries entries in order of (channel, seq, rank), then the bytes.
 */
/* A value of the store that maquette made up for a key that nobody set begins with these eight bytes; the rest follows from the key. */
#define MAQ_MADE_UP_MAGIC "maqmade\n"
#define MAQ_PEERS_MAGIC "maqpeers"
struct maq_peers_head {
    char magic[8];
    uint64_t n_entries;
};
struct maq_peers_entry {
    uint64_t channel;
    uint32_t seq, rank; /* rank in the exchange */
    uint64_t at;        /* offset in the file */
    uint64_t bytes;
};

/* An entry without bytes for every rank that ran and has no more to say (seq 0), that waits itself for what somebody says (seq 1), or that said
 * only what it could say by then (seq 2). */
#define MAQ_PEERS_RAN (UINT64_MAX - 1)
/* An entry without bytes: ranks wait for each other by means of their own, and run at once. */
#define MAQ_PEERS_TOGETHER (UINT64_MAX - 3)
#define MAQ_STOPPED_STATUS 86
#define MAQ_UNFIT_STATUS 87

/*
 * What a slice was given: with `inputs` in the card it appends to that file an entry for everything that it looked up in the
 * contributions, so that maquette can tell whether other contributions would have given it something else. The first entry is a HEAD;
 * where there is none, nothing is known. An EXCHANGE is followed by n words, one for each place: the hash of what it got there,
 * with the lowest bit set where a member had said it and clear where it was guessed. `steady` says what contributions do that are what
 * was guessed.
 *
 * A small collective or message reads a part of each contribution: READS is followed by n words, where that part begins and how long it
 * is, and then runs of places (the first, and the hash of what each of them gave, as above), up to the place `root`.
 *
 * TAINTED_READ: the program read what another rank was to say, and nobody has said it.
 *
 * Where ranks have said nothing, another one's words are taken for theirs. `steady` of READS says whether these are bytes, which may be an object,
 * and not numbers; of a LOOKUP that found nothing, whether another one's words were taken.
 */
enum maq_input_kind {
    MAQ_INPUT_HEAD = 1,
    MAQ_INPUT_EXCHANGE, /* rank: the own place; result: bytes of a contribution; root: who alone spoke, MAQ_REC_NONE = all */
    MAQ_INPUT_LOOKUP, /* of (channel, seq, rank); result: its hash, 0 = there was none */
    MAQ_INPUT_READS,  /* of the first on a channel; rank: the own place; result: bytes of a contribution */
    MAQ_INPUT_KEY,  /* of the store; channel: hash of the key; result: hash of the value that it was given, 0 = none */
    MAQ_INPUT_KEYS, /* all keys were listed */
    MAQ_INPUT_TAINTED_READ /* rank: of the job, MAQ_REC_NONE = not known; root: its place among n; seq: enum maq_rec_coll, MAQ_REC_NONE = a
                        message; result: which call of that kind; steady: 1 = the program ended there */
};
enum maq_input_steady {
    MAQ_INPUT_LOOSE,  /* other guesses may change */
    MAQ_INPUT_STEADY, /* they stay; that all have spoken makes a difference */
    MAQ_INPUT_SETTLED /* nothing changes */
};
struct maq_input {
    uint64_t channel, result;
    uint32_t seq, rank, n, root;
    uint16_t kind, steady;
    uint32_t zero;
};
static_assert(sizeof(struct maq_input) == 40, "entries of the file are packed");
static inline uint64_t maq_input_hash(const void *data, uint64_t bytes, bool said)
{
    return (maq_rec_hash(data, bytes, 0) & ~(uint64_t)1) | (said ? 1 : 0);
}

/* --- peers of gloo ---------------------------------------------------------------------------------------------------- */

/*
 * gloo's ranks find each other's TCP addresses in the store. That of a rank which is not there is one that no host has, in
 * 0.0.0.0/8; it says who is meant, in the 16 bytes of a struct sockaddr_in, which gloo hands on as they are:
 *
 *   family (2)   port (2): MAQ_GLOO_PORT   address (4): 0, then rank + 1 (3)   n (3), name of the group (5)
 *
 * rank: in the group; n: ranks of the group, 0 = not known; numbers big-endian but for the family. Such an address is less than any real
 * one, which is why gloo lets the rank that is there connect. What gloo says when it has connected, a number by which the
 * other side knows the pair, is made the rank's own number in the group.
 */
#define MAQ_GLOO_PORT 0x6d71u
struct maq_gloo_peer {
    uint64_t group; /* 40 bits */
    uint32_t rank, n;
};
static inline uint64_t maq_gloo_number(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}
/* address: the bytes of a struct sockaddr_in behind its family. */
static inline void maq_gloo_address(unsigned char address[14], const struct maq_gloo_peer *peer)
{
    uint64_t word[] = {MAQ_GLOO_PORT, peer->rank + 1, peer->n, peer->group};
    static const unsigned char end[] = {2, 6, 9, 14};
    for (unsigned i = 0, at = 0; i < 4; at = end[i++])
        for (unsigned byte = end[i]; byte > at; word[i] >>= 8)
            address[--byte] = (unsigned char)word[i];
}
/* false: the address is a real one. */
static inline bool maq_gloo_peer_of(struct maq_gloo_peer *out, const unsigned char address[14])
{
    uint64_t rank = maq_gloo_number(address + 2, 4);
    if (maq_gloo_number(address, 2) != MAQ_GLOO_PORT || rank == 0 || rank > 0xffffffu)
        return false;
    *out = (struct maq_gloo_peer){maq_gloo_number(address + 9, 5), (uint32_t)rank - 1,
                                  (uint32_t)maq_gloo_number(address + 6, 3)};
    return true;
}
/*
 * Where communicators lie, as far as maquette knows it from ranks that ran: entries of the same file on channel MAQ_PEERS_PATTERNS, each a
 * struct maq_pattern, with seq = size of the communicator, rank = (how many of that size a process had before) << 8 | a number from 0 on.
 *
 * Member i of a communicator is base + sum over levels j of digit_j(i) * stride_j, digit_j(i) = i / (n_0 ... n_(j-1)) mod
 * n_j. Seen from a rank, either its digits follow from its number, digit_j = rank / stride_j mod n_j; or its position is the
 * same on all ranks of the class (`fixed`): a pipeline stage is first in its pair with the next stage wherever it is.
 */
#define MAQ_PEERS_PATTERNS (UINT64_MAX - 2)
#define MAQ_PATTERN_LEVELS 4u
struct maq_pattern {
    uint32_t size, n_levels;
    uint32_t n[MAQ_PATTERN_LEVELS], stride[MAQ_PATTERN_LEVELS];
    uint32_t fixed;
    uint32_t position; /* where it is fixed */
};
/* Base of the rank's communicator and its position in it; false where the rank cannot be in one like that. */
static inline bool maq_pattern_at(const struct maq_pattern *p, uint32_t rank, uint32_t world, uint32_t *base,
                                  uint32_t *position)
{
    uint64_t offset = 0, at = 0, times = 1, span = 0;
    for (uint32_t j = 0; j < p->n_levels; j++) {
        uint32_t digit = p->fixed ? (uint32_t)(p->position / times % p->n[j]) : rank / p->stride[j] % p->n[j];
        offset += (uint64_t)digit * p->stride[j];
        at += digit * times;
        times *= p->n[j];
        span += (uint64_t)(p->n[j] - 1) * p->stride[j];
    }
    if (offset > rank || rank - offset + span >= world)
        return false;
    *base = rank - (uint32_t)offset;
    *position = (uint32_t)at;
    return true;
}
static inline uint32_t maq_pattern_member(const struct maq_pattern *p, uint32_t base, uint32_t i)
{
    for (uint32_t j = 0; j < p->n_levels; j++) {
        base += i % p->n[j] * p->stride[j];
        i /= p->n[j];
    }
    return base;
}

/* --- device memory of communicators --------------------------------------------------------------------------------- */

/*
 * A profile: what NCCL was seen to take on a device, in lines of text, of which the first that fits counts. `#` begins a comment.
 *
 *     init        8     node     203423744        when a communicator of 8 ranks on one node begins
 *     collective  1024  across   335544320        at its first collective; `across`: it leaves the node
 *     send        any   node     67108864         at the first message to each peer, by where that peer is;
 *     recv        any   across   33554432         of peers across, at the first
 */
enum maq_comm_memory {
    MAQ_COMM_MEMORY_NONE,
    MAQ_COMM_MEMORY_INIT,
    MAQ_COMM_MEMORY_COLLECTIVE,
    MAQ_COMM_MEMORY_SEND,
    MAQ_COMM_MEMORY_RECV
};
struct maq_comm_memory_row {
    enum maq_comm_memory what;
    uint32_t ranks; /* 0 = any */
    bool in_node;
    uint64_t bytes;
};
/* The next word of a line, which moves behind it; its length, 0 at the end or at a comment. */
static inline size_t maq_comm_memory_word(const char **word, const char **line)
{
    *word = *line + strspn(*line, " \t");
    size_t n = strcspn(*word, " \t\r\n#");
    *line = *word + n;
    return n;
}
static inline bool maq_comm_memory_is(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}
/* A whole number up to `most`. */
static inline bool maq_comm_memory_number(uint64_t *out, const char *word, size_t n, uint64_t most)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        if (word[i] < '0' || word[i] > '9' || *out > most / 10)
            return false;
        *out = *out * 10 + (uint64_t)(word[i] - '0');
    }
    return n > 0 && *out <= most;
}
/* 1: a row; 0: a line that says nothing; -1: what is no row. */
static inline int maq_comm_memory_read(struct maq_comm_memory_row *out, const char *line)
{
    static const char *const names[] = {"init", "collective", "send", "recv"};
    struct maq_comm_memory_row row = {.ranks = 0};
    const char *word;
    uint64_t ranks = 0;
    size_t n = maq_comm_memory_word(&word, &line);
    if (n == 0)
        return 0;
    for (unsigned i = 0; i < 4 && !row.what; i++)
        if (maq_comm_memory_is(word, n, names[i]))
            row.what = (enum maq_comm_memory)(i + 1);
    n = maq_comm_memory_word(&word, &line);
    if (!row.what ||
        (!maq_comm_memory_is(word, n, "any") && (!maq_comm_memory_number(&ranks, word, n, UINT32_MAX) || !ranks)))
        return -1;
    row.ranks = (uint32_t)ranks;
    n = maq_comm_memory_word(&word, &line);
    row.in_node = maq_comm_memory_is(word, n, "node");
    if (!row.in_node && !maq_comm_memory_is(word, n, "across"))
        return -1;
    n = maq_comm_memory_word(&word, &line);
    if (!maq_comm_memory_number(&row.bytes, word, n, (uint64_t)1 << 60) || maq_comm_memory_word(&word, &line) > 0)
        return -1;
    *out = row;
    return 1;
}

/* --- meetings ------------------------------------------------------------------------------------------------------- */

/*
 * The segment: a head, then n_slots slots, then an area for small payloads. A collective is one slot, named by
 * (lineage, number of the collective on that communicator); a message is one, named by (mix(lineage, src << 32 | dst),
 * number of the message between the two). A name goes to slot mix(a, b) mod n_slots, or the next free one after it.
 * Whoever comes first claims the slot by setting `state` from 0 to 1, writes the name, sets 2.
 *
 * Everybody who takes part adds his virtual time of arrival: at[0] is the latest of a collective's members; of a message
 * at[0] is the sender's, at[1] the receiver's. came[] counts them. It is done when came[0] + came[1] == need, and then
 * `bell` of the head is rung (futex, all). ns is the duration, the largest that any member gave.
 *
 *   collective   end = at[0] + ns for all
 *   message      bytes <= MAQ_EAGER_BYTES: sender ends at[0] + the ns that he gave (he does not wait to hear the
 *                receiver's), receiver max(at[0], at[1]) + ns
 *                larger: both end max(at[0], at[1]) + ns
 *   group        its parts arrive when the group's kernel starts; the kernel ends when the last part does, where
 *                collectives on one communicator follow each other and messages are side by side
 *
 * `left` counts those who have read the result; the last of them (left == need) frees the slot: state 3, a grave, which a
 * search goes past and a claim may take. shm.h has all of this as calls, and a lock for claims.
 */
#define MAQ_SHM_MAGIC "maqmeet\n"
#define MAQ_EAGER_BYTES (4u << 20) /* NCCL's FIFO: 8 slots of 512 KiB */
struct maq_shm_head {
    char magic[8];
    uint32_t version, world;
    uint64_t n_slots, data_at, data_bytes;
    uint64_t data_used; /* _Atomic */
    uint32_t stop;      /* _Atomic: not 0 = everybody gives up; peers have failed */
    uint32_t bell;      /* _Atomic: futex, counts up */
    uint64_t live_at;   /* offset of `world` bits: ranks that run; 0 = all of them do */
    uint32_t owner;     /* process that stands behind it; 0 = nobody */
    uint32_t lock;      /* _Atomic: futex. Claims, frees and the payload area are under it: shm.h */
};
struct maq_shm_slot {
    uint32_t state; /* _Atomic: 0 free, 1 being claimed, 2 in use, 3 a grave */
    uint32_t need;
    uint64_t a, b;                /* the name */
    uint32_t came[2], left, zero; /* _Atomic */
    int64_t at[2], ns;            /* _Atomic */
    uint64_t bytes; /* of one contribution; data is need * bytes at `data` of the area, UINT64_MAX = none */
    uint64_t data;
};

/* --- waits ------------------------------------------------------------------------------------------------------------ */

/*
 * On a real GPU the peers are a table (card key `waits`): what each group of a rank's calls on each communicator was in the
 * replay of the whole job, in their order. A head, n_comms communicators in order of lineage, then the entries of all of them.
 * Behind the last entry the table goes on at `loop`, each turn `period_ns` later; loop = n: at the last entry.
 */
#define MAQ_WAITS_MAGIC "maqwaits"
struct maq_waits_head {
    char magic[8];
    uint32_t n_comms, world, rank, zero;
};
struct maq_waits_comm {
    uint64_t lineage;
    uint32_t n, loop;
    int64_t period_ns;
    uint64_t at; /* offset of its entries in the file */
};
struct maq_wait_entry {
    int64_t own_ns, peers_ns; /* arrival of this rank, and of the last of the others, since the replay's begin */
    int64_t ns;               /* from there to the end */
};

#endif
