/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - what the files of shim/core share and other rooms do not need.
 */
#ifndef MAQ_SHIM_CORE_H
#define MAQ_SHIM_CORE_H

#include "shim/vgpu.h"

/* Reads a card of `bytes` bytes of text into *out, over what *out holds; unknown keys and bad values are passed over. */
void vg_card_parse(struct vg_card *out, const char *text, size_t bytes);
/* Rank and paths: `rank` from the environment when the card has none, %r in paths. */
void vg_card_settle(struct vg_card *card, bool has_rank);

/* Releases the lock however often the caller holds it, and takes it as often again: for waiting. */
unsigned vg_lock_drop(void);
void vg_lock_again(unsigned depth);

/* Counts a question of this thread; whether it has done nothing but ask for long. */
bool vg_only_asks(void);
/* The host's time since the last record; takes it. */
int64_t vg_host_taken(void);
/* Threads (gettid) that drive, as many as are returned: the first 64 of the process that began. */
unsigned vg_drivers(const int **threads);
/* When the last wait but one of those that drive was over. */
int64_t vg_wait_before_last(void);
/* Of a thread (gettid) of this process: whether it runs, wants to, or waits for a disk; ns of processors that it has had. */
bool vg_thread_awake(int thread);
uint64_t vg_thread_ns(int thread);
/* Whether any but the calling one is awake. */
bool vg_others_awake(void);
/* The calling thread drives now: waits in real time until the one that drove last sleeps (threads.c). */
void vg_turn(void);
/* ns of the real clock, whatever the program is told; sleeps that long with the lock released. */
int64_t vg_real_now(void);
void vg_real_rest(int64_t ns);
/* Whether a thread that only watches is told of what ends at that time; with the lock held. */
bool vg_watcher_knows(int64_t end);

/* Whether records still have somewhere to go: false in a child that was forked, after the end, without a trace. */
bool vg_recording(void);
/* What has been recorded goes to the file. */
void vg_flush(void);

/* The same, if much has come together: where the host waits anyway. */
void vg_flush_if_late(void);
/* A device has had as much memory allocated at one time, for the last record. */
void vg_record_peak(uint64_t bytes);

#endif
