/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - running ranks of a real program, without its cluster and without a GPU.
 *
 *   maq_launch_run()       one rank, as if all others were there, or all ranks of a small job at once
 *   maq_launch_capture()   runs of single ranks (slices), until the program of every rank of the job is known (capture.h)
 *   maq_launch_emulate()   chosen ranks live among the replay of all others
 *
 * A program runs unmodified: the zero-GPU device replaces CUDA's libraries, a store of maquette's replaces the rendezvous of
 * torch.distributed, and environment variables replace mpirun, torchrun and Slurm. docs/capture.md is the user's page.
 *
 * All files of a run are in a private folder, which is removed at its end, however it ends; all processes that the program
 * started are ended too. Times are in ns, sizes in bytes, unless a name says otherwise.
 */
#ifndef MAQUETTE_LAUNCH_H
#define MAQUETTE_LAUNCH_H

#include <signal.h>

#include "maquette/capture.h"
#include "maquette/cost.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The program gets its own libraries: it uses no device. */
#define MAQ_LAUNCH_NO_LIBRARIES UINT32_MAX
/* The program's own CUDA runs on the GPU of this machine; only NCCL is replaced, and the peers are virtual. */
#define MAQ_LAUNCH_GPU (UINT32_MAX - 1)

/* Progress, reported a few times a second. */
struct maq_launch_progress {
    const char *phase; /* "rank 4095", "pass 1: rank 17", "verifying rank 203" */
    uint32_t done, of; /* slices; 0 of 0 = one program runs */
    double seconds;    /* since the beginning */
    double left_s;     /* about, of these slices: by what those before took; 0 = not known */
};

struct maq_launch_opts {
    uint32_t size;                /* set by MAQ_LAUNCH_OPTS_INIT */
    const char *const *arguments; /* the program and its arguments; NULL-terminated */
    uint32_t world;               /* ranks of the job; 0 = devices of the cluster */
    uint32_t rank;                /* the one that runs */
    uint32_t per_node;            /* ranks on a node; 0 = devices of a node of the cluster */
    const char *cluster;          /* as `--cluster` of a job; NULL = as many nodes of `device` as needed */
    const char *device;           /* name in the catalogue; NULL = h100-sxm */
    const char *measured;         /* file of measured kernels; NULL = none */
    const char *kernels;          /* table of kernel times, name,ns[,grid]; NULL = none */
    uint32_t
        libraries; /* 12 or 13: generation of the CUDA libraries; 0 = as the program asks for; MAQ_LAUNCH_NO_LIBRARIES, _GPU */
    const char *trace;  /* file, or folder where several ranks run, that keeps the traces; NULL = not kept */
    const char *values; /* values that the program reads back from the device; NULL = zeros */
    const char *tcp;    /* ports of the program's own rendezvous over TCP, "12345,29400"; NULL = none */
    const char
        *nccl_memory; /* device memory of communicators: file of a profile, "none"; NULL or "rule" = NCCL's rule */
    bool real_clock;  /* host clocks are real, not those of the device */
    bool all;         /* every rank at once, meeting each other */
    bool alone;       /* maq_launch_run(): no other rank runs first for what this one reads; it is guessed */
    const char
        *kept; /* maq_launch_run(): folder that keeps what ranks said that ran first; NULL = the user's cache, "none" */
    const char *memory;                /* of a device, with its unit: "80 GB"; NULL = as the catalogue says */
    double timeout_s;                  /* of wall time, for one program; 0 = none */
    double whole_s;                    /* of wall time, for all programs together; 0 = none */
    uint32_t jobs;                     /* slices at a time; 0 = 2 */
    const volatile sig_atomic_t *stop; /* not 0: end; it is the signal that the program gets. NULL = never */
    void (*progress)(void *context, const struct maq_launch_progress *at); /* NULL = not told */
    void *context;
    double
        stall_s; /* maq_launch_run(): a rank that does nothing for so long waits for ranks that find each other by themselves, and
                       all run at once; 0 = never */
};
#define MAQ_LAUNCH_OPTS_INIT                                                                                           \
    {                                                                                                                  \
        .size = sizeof(struct maq_launch_opts)                                                                         \
    }

/* An operator or collective that the program asked a price for; priced once. */
struct maq_asked {
    const char *name; /* of the operator or collective */
    bool collective;
    uint32_t ranks; /* of a collective */
    uint64_t bytes;
    uint64_t ns;
    uint64_t times;    /* number of requests, one for each process */
    uint64_t launches; /* launches in the traces */
    uint8_t provider;  /* enum maq_provider; NONE: a rule */
    bool modelled;     /* priced as a stream of bytes: the cost chain has no kind for it */
};

/* A rank that ran. */
struct maq_launch_rank {
    uint32_t rank;
    int32_t status; /* exit status; 128 + n = ended by signal n */
    bool records;   /* it used the device */
    bool ended;     /* its trace is complete; otherwise it was killed */
    uint64_t calls; /* records of its trace */
    uint64_t launches, collectives, messages, exchanges;
    uint32_t operators, communicators;
    uint64_t virtual_ns; /* of the program at its end; when it runs alone, peers are never late */
    uint64_t device_ns;  /* of launches, copies and communication, added up */
    uint64_t by_provider_ns
        [MAQ_PROVIDER_COUNT]; /* NONE: copies, fills, rules; `modelled` is in MAQ_PROVIDER_ANALYTICAL ... */
    uint64_t modelled_ns;     /* ... and here, the part of it without a model of the kernel */
    uint64_t peak_bytes;      /* of device memory */
    uint64_t trace_bytes;
    uint64_t host_peak_bytes; /* resident memory of its largest process */
    double host_cpu_s, wall_s;
    bool out_of_memory; /* an allocation on the device failed */
    const char *trace;  /* its file; NULL = not kept */
};

/* A slice of a capture: one rank, run once, or found not to need another run. */
struct maq_launch_slice {
    uint32_t rank, pass;
    const char *why; /* the reason for which it was chosen */
    int32_t status;
    bool changed; /* its trace differs from that of the pass before */
    bool resumed; /* it had been run before this capture was killed */
    bool repeats; /* it was not run: its inputs equal those of its last run */
    double wall_s;
};

/* What a capture found. */
struct maq_launch_capture {
    const char *path; /* of the .mqt file */
    uint32_t passes, n_slices;
    const struct maq_launch_slice *slice; /* in the order in which they were run */
    uint32_t n_probed, n_verified;
    uint32_t n_classes, n_comms, n_operators, n_unknown; /* of the captured job; n_unknown: ranks without a program */
    uint64_t contributions;                              /* to exchanges, that were recorded */
    bool stable;                                         /* nothing changed in the last pass */
};

/* A live rank of an emulation, compared with the capture. */
struct maq_launch_live {
    uint32_t rank;
    uint64_t virtual_ns;                      /* at its end, among replayed peers; 0 = not reported */
    uint64_t replayed_ns;                     /* its end in the replay of all ranks */
    uint64_t peak_bytes, captured_peak_bytes; /* of device memory */
    uint64_t records, captured_records;
    /* its program was compared with that of its class; not on a real GPU, where kernels have other names */
    bool compared;
    bool differs; /* its program is not that of its class */
};

/* A rank that ran before the one that was asked for. */
struct maq_launch_first {
    uint32_t rank;
    int32_t
        status; /* exit status of its program; 128 + number of a signal; 0 where it read guesses, of which it may have died */
};

struct maq_launch {
    const char *device; /* title in the catalogue */
    uint32_t world, per_node;
    uint32_t n_ranks;
    const struct maq_launch_rank *rank;
    uint32_t n_asked;
    const struct maq_asked *asked;
    uint64_t store_requests; /* at the rendezvous store */
    uint32_t invented;       /* keys of it that no rank set */
    uint32_t n_first;        /* of maq_launch_run(): ranks that ran before, for what the rank reads */
    const struct maq_launch_first *first;
    uint32_t n_kept;                    /* ranks of an earlier run whose words were there */
    int32_t status;                     /* of the program: the first that is not 0 */
    struct maq_launch_capture capture;  /* of maq_launch_capture() */
    const struct maq_launch_live *live; /* [n_ranks] of maq_launch_emulate(); NULL otherwise */
    uint64_t peers;                     /* ranks that were replayed */
    void *owner;                        /* internal */
};

/*
 * Runs the program as one rank, or as all of them. The program's exit status is part of the result and not an error; errors are a
 * program that cannot be started, a time-out (MAQ_LIMIT, with a result), and an end on request. *out is owned by the caller:
 * maq_launch_free().
 */
MAQ_API enum maq_status maq_launch_run(struct maq_launch **out, const struct maq_launch_opts *opts,
                                       struct maq_diag *diag);

struct maq_launch_capture_opts {
    uint32_t size; /* set by MAQ_LAUNCH_CAPTURE_OPTS_INIT */
    struct maq_launch_opts
        run; /* rank, all and trace are ignored; timeout_s, of a slice, is 600 where it is 0; whole_s is of all */
    const char *path;        /* of the .mqt file; PATH.slices/ holds finished slices, PATH.peers what ranks exchange */
    uint32_t tp, cp, ep, pp; /* hints: sizes of the axes; 0 = unknown */
    uint32_t slices; /* most ranks that are probed at first: all of a smaller world; 0 = 24, and all of up to 8 */
    uint32_t verify; /* ranks that are checked at the end; 0 = none */
    bool keep;       /* PATH.slices/ stays, with the traces of all slices */
    bool every_pass; /* also run slices again whose inputs have not changed */
    bool
        no_fork_server; /* every slice starts its program by itself; else a Python program starts once, and slices are forked off
                            where ranks begin to differ */
};
#define MAQ_LAUNCH_CAPTURE_OPTS_INIT                                                                                   \
    {                                                                                                                  \
        .size = sizeof(struct maq_launch_capture_opts), .run = MAQ_LAUNCH_OPTS_INIT                                    \
    }
/*
 * Runs slice after slice, each with the contributions of the others to exchanges as recorded so far, until nothing changes; infers
 * the ranks that did not run; writes the job. After it was killed, it continues with the finished slices. MAQ_NO: verification
 * found a rank whose program is not that of its class.
 */
MAQ_API enum maq_status maq_launch_capture(struct maq_launch **out, const struct maq_launch_capture_opts *opts,
                                           struct maq_diag *diag);

struct maq_launch_emulate_opts {
    uint32_t size;              /* set by MAQ_LAUNCH_EMULATE_OPTS_INIT */
    struct maq_launch_opts run; /* world and per_node are the captured job's; rank and all are ignored */
    const char *path;           /* of the .mqt file; PATH.peers is next to it */
    const uint32_t *rank;       /* the live ranks */
    uint32_t n_ranks;
    const char *const *slow; /* edits of the replayed ranks: maq_edit_slow() of maquette/replay.h */
    uint32_t n_slow;
};
#define MAQ_LAUNCH_EMULATE_OPTS_INIT                                                                                   \
    {                                                                                                                  \
        .size = sizeof(struct maq_launch_emulate_opts), .run = MAQ_LAUNCH_OPTS_INIT                                    \
    }
/* Runs the program as some ranks of a captured job, while all others are replayed and meet them in virtual time. */
MAQ_API enum maq_status maq_launch_emulate(struct maq_launch **out, const struct maq_launch_emulate_opts *opts,
                                           struct maq_diag *diag);

MAQ_API void maq_launch_free(struct maq_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
