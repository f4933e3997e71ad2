/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - where the device waits for the host.
 *
 * The host issues operators one after another and runs ahead of the device, which executes them in order. Over the entries of
 * a pass (layers, embedding, output), with h the time at which the host has issued everything so far and d the time at which
 * the device has executed it:
 *
 *   h += issue            d = max(d + run, h)
 *
 * A layer that makes the host wait for a value of the device (the number of tokens per expert) has a part before and a part
 * after: at the read both clocks meet, and the host starts again without a lead.
 *
 *   t = max(d + run before, h + issue before) + read      h = t + issue after      d = max(t + run after, h)
 *
 * The device's wait over a pass is d - sum(run), a gap at the end of the pass. The lead that the host has at the end
 * of one pass, d - h, shortens the gap of the next, as far as the launch queue holds it; it is lost where the host
 * waits for the device: at the end of the step, at pipeline transfers that synchronise, and between passes where the
 * framework times them. A forward pass follows a backward one and the reverse (1F1B, gradient accumulation); the
 * first forward pass of a step has no lead, and its larger gap is spread over the microbatches, so that all passes of
 * a kind take equally long.
 *
 * With blocking launches nothing overlaps: the gap is the whole host time, and collectives inside a layer wait for each other
 * and for compute. (Data-parallel collectives still overlap with the passes here.)
 *
 * Only the CPU's speed depends on the hardware (src/cluster/host_cpu.c).
 */
#include "train/step/host.h"

#include <math.h>

#include "train/step/blueprint.h"

/*
 * Kernels in flight before a launch blocks: "1024" in NVIDIA's forums and in the traces of PyTorch; CUDA does not document it.
 */
#define QUEUE_LAUNCHES 1024.0

double maq_host_step_ns(const struct maq_job *job, const struct maq_device *device)
{
    return job->framework.step_synchronizes ? job->framework.host.step_s * 1e9 / maq_device_host_speed(device) : 0;
}

/* Both clocks over a pass that starts with neither ahead. */
struct clocks {
    double host, device, run; /* run: device time without waiting for the host */
    double launches;
    bool reads; /* the host waited for the device on the way */
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* One segment that reads a value. */
static void advance_reading(struct clocks *c, const struct maq_segment *g)
{
    double t = later(c->device + g->run_before_ns, c->host + g->issue_before_ns) + g->read_ns;
    c->host = t + g->issue_ns;
    c->device = later(t + g->dur_ns - g->run_before_ns, c->host);
    c->reads = true;
}

/* The same segment n times. Without reads the host's clock is linear, so that it holds the device up at the first or at the
 * last of them if at any. */
static void advance(struct clocks *c, const struct maq_segment *g, uint32_t n)
{
    c->run += n * g->dur_ns;
    c->launches += n * g->launches;
    if (g->reads) {
        for (uint32_t i = 0; i < n; i++)
            advance_reading(c, g);
        return;
    }
    double first = c->host + g->issue_ns, last = c->host + n * g->issue_ns;
    c->device = later(later(c->device + g->dur_ns, first) + (n - 1) * g->dur_ns, last);
    c->host = last;
}

/* Collectives that data parallelism adds to the pass. DistributedDataParallel's hooks are C++: a launch without a module around it. */
static double sync_issue_ns(const struct maq_blueprint *bp, const struct maq_program *program, bool backward,
                            bool reduces, const struct maq_host_rates *rates)
{
    bool gathers = backward ? bp->gather_backward : bp->gather_every_pass;
    double collective_ns = rates->collective_ns;
    if (bp->ddp)
        return backward && reduces ? program->ddp_launches * rates->kernel_ns : 0;
    return program->n_buckets * ((gathers ? 1 : 0) + (backward && reduces ? 1 : 0)) * collective_ns;
}

/* Transfers that overlap are not batched, and only batches are followed by a synchronisation. */
static bool stops_at_transfers(const struct maq_job *job)
{
    return job->plan.pp > 1 && job->framework.p2p_synchronizes && job->plan.overlap_p2p != MAQ_ON;
}

/* Equal entries from the i-th of a pass on. */
static uint32_t alike(const struct maq_program *program, uint32_t i, bool backward)
{
    const struct maq_entry *e = &program->entries[backward ? program->n_entries - 1 - i : i];
    uint32_t n = 1;
    for (; i + n < program->n_entries; n++) {
        const struct maq_entry *next = backward ? e - n : e + n;
        if (next->block != e->block || next->redo != e->redo)
            break;
    }
    return n;
}

static struct clocks run_pass(const struct maq_blueprint *bp, const struct maq_program *program, enum maq_pass pass,
                              bool reduces, const struct maq_host_rates *rates)
{
    struct clocks c = {.host = rates->pass_ns};
    bool backward = pass != MAQ_PASS_FORWARD;
    c.host += sync_issue_ns(bp, program, backward, reduces, rates);
    if (bp->job->plan.pp > 1 && !stops_at_transfers(bp->job))
        c.host += rates->p2p_ns;
    for (uint32_t i = 0, n; i < program->n_entries; i += n) {
        const struct maq_entry *e = &program->entries[backward ? program->n_entries - 1 - i : i];
        const struct maq_block *b = bp->blocks[e->block];
        n = alike(program, i, backward);
        advance(&c,
                pass == MAQ_PASS_FORWARD           ? b->forward[e->redo]
                : pass == MAQ_PASS_BACKWARD_WEIGHT ? b->weight
                                                   : b->backward[e->redo],
                n);
    }
    c.device = later(c.device, c.host);
    return c;
}

/* How far the host is ahead when the pass ends on the device. */
static double lead_of(const struct clocks *c)
{
    double lead = c->device - c->host, queued = c->launches > 0 ? c->device * QUEUE_LAUNCHES / c->launches : lead;
    return lead < queued ? lead : queued;
}

/* The gap of a pass that the host enters with a lead; a read inside the pass takes the lead away. */
static double gap_of(const struct clocks *c, double lead)
{
    return later(0, c->device - c->run - (c->reads ? 0 : lead));
}

/* A pass that waits for data-parallel communication gives the host that time too. */
static double beyond(double run_ns, double gap_ns, double pass_ns)
{
    return nearbyint(later(0, run_ns + gap_ns - pass_ns));
}

void maq_host_gaps(const struct maq_blueprint *bp, struct maq_program *program, bool reduces)
{
    const struct maq_job *job = bp->job;
    const struct maq_host_rates rates = bp->lower.host;
    bool split = bp->schedule->split_backward, stops = stops_at_transfers(job);
    enum maq_pass backward = split ? MAQ_PASS_BACKWARD_INPUT : MAQ_PASS_BACKWARD;
    struct clocks f = run_pass(bp, program, MAQ_PASS_FORWARD, reduces, &rates),
                  b = run_pass(bp, program, backward, reduces, &rates), w = {0};
    if (split)
        w = run_pass(bp, program, MAQ_PASS_BACKWARD_WEIGHT, reduces, &rates);

    double forward = gap_of(&f, 0), back = gap_of(&b, 0), weight = gap_of(&w, 0), n = job->microbatches;
    if (job->framework.launches_block) {
        forward = f.host;
        back = b.host;
        weight = w.host;
    } else if (!stops && !split && !job->framework.pass_synchronizes) {
        forward = (gap_of(&f, 0) + (n - 1) * gap_of(&f, lead_of(&b))) / n;
        back = gap_of(&b, lead_of(&f));
    }
    double transfer = stops ? nearbyint(rates.p2p_ns) : 0;
    program->forward_gap_ns = transfer + beyond(f.run, forward, program->forward_ns);
    program->backward_gap_ns = transfer + beyond(b.run, back, program->backward_ns);
    program->weight_gap_ns = split ? beyond(w.run, weight, program->weight_ns) : 0;
    /* gaps that the communication of their own pass hides count too: with less of them it begins earlier */
    program->wait_ns = nearbyint((bp->gather_first || bp->gather_every_pass ? forward : 0) + back + weight);
}
