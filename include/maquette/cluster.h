/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - the machines: devices, nodes, links, and how a group of ranks lies on them.
 *
 * A cluster is a list of node groups (heterogeneous by construction) joined by one network. Ranks are numbered
 * through the groups in order, node by node, device by device.
 *
 * Levels of link, from near to far; each has a bandwidth per device and direction and a latency:
 *   domain   the scale-up domain: NVLink/NVSwitch, xGMI, or PCIe when there is none; may be a part of a node (a pair
 *            of PCIe cards under an NVLink bridge), a node, or span nodes (NVL72)
 *   host     PCIe between the domains of one node, where a node has several
 *   network  NICs: per-device rate = nic_bps * nics_per_node / devices_per_node, and no more than the device's own PCIe
 *   spine    above a leaf of `nodes_per_switch`, the per-device rate is divided by `oversubscription`
 *
 * A leaf is a run of `nodes_per_switch` nodes in rank order: one leaf switch, or with rail-optimised cabling one leaf
 * switch per rail, a rail group. A message stays below the spine when both ends are in the same leaf and, where rails
 * are used, on the same rail. PXN is assumed: a sender first moves its data over the scale-up domain to the device on
 * the receiver's rail, so that rails matter only where the domain is smaller than the node.
 *
 * SI base units: bytes, seconds, bytes/s (also for NICs: 400 Gb/s = 5e10), FLOP/s, Hz, W.
 */
#ifndef MAQUETTE_CLUSTER_H
#define MAQUETTE_CLUSTER_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types of tensors and of arithmetic. */
enum maq_dtype {
    MAQ_FP32,
    MAQ_TF32, /* arithmetic only: stored in 4 bytes */
    MAQ_FP16,
    MAQ_BF16,
    MAQ_FP8,
    MAQ_FP6,
    MAQ_FP4,
    MAQ_INT8,
    MAQ_DTYPE_COUNT
};
MAQ_API const char *maq_dtype_name(enum maq_dtype dtype);
MAQ_API double maq_dtype_bytes(enum maq_dtype dtype); /* 0.5 for FP4; scale factors not counted */

/* Microarchitecture: decides which kernels exist, never how fast they are. */
enum maq_device_arch {
    MAQ_ARCH_VOLTA,
    MAQ_ARCH_TURING,
    MAQ_ARCH_AMPERE,
    MAQ_ARCH_ADA,
    MAQ_ARCH_HOPPER,
    MAQ_ARCH_BLACKWELL,
    MAQ_ARCH_CDNA2,
    MAQ_ARCH_CDNA3,
    MAQ_ARCH_CDNA4,
    MAQ_ARCH_OTHER,
    MAQ_ARCH_COUNT
};

/*
 * Core of the CPU that feeds the devices. Decides how long the host takes per operator (docs/frameworks.md), and what of another
 * device's kernel table is a host's launches.
 */
enum maq_host_cpu {
    MAQ_HOST_CPU_USUAL, /* the one that a device of its generation is usually sold with */
    MAQ_HOST_CPU_HASWELL,
    MAQ_HOST_CPU_BROADWELL,
    MAQ_HOST_CPU_SKYLAKE,
    MAQ_HOST_CPU_CASCADE_LAKE,
    MAQ_HOST_CPU_ICE_LAKE,
    MAQ_HOST_CPU_SAPPHIRE_RAPIDS,
    MAQ_HOST_CPU_ZEN,
    MAQ_HOST_CPU_ZEN2,
    MAQ_HOST_CPU_ZEN3,
    MAQ_HOST_CPU_ZEN4,
    MAQ_HOST_CPU_ZEN5,
    MAQ_HOST_CPU_NEOVERSE_V2, /* Grace */
    MAQ_HOST_CPU_COUNT
};
MAQ_API const char *maq_host_cpu_name(enum maq_host_cpu cpu);

#define MAQ_MOST_PCI_IDS 4

struct maq_device {
    const char *name;   /* catalogue name, "h100-sxm" */
    const char *title;  /* "NVIDIA H100 SXM5 80GB" */
    const char *source; /* of the figures */
    /* Which of them nobody has read there, by the keys of the file: "power, peak.fp4"; NULL = none. */
    const char *unverified;
    int arch; /* enum maq_device_arch */
    /* Dense matrix peak; 0 = the type has no matrix unit here, or no rate could be established. */
    double peak_flops[MAQ_DTYPE_COUNT];
    /* Best sustained matrix rate measured under the power limit; 0 = not known. */
    double sustained_flops[MAQ_DTYPE_COUNT];
    /* The device whose rates those are, by SMs and power; NULL = its own, as far as they are known. */
    const char *sustained_from;
    double vector_flops; /* FP32 outside the matrix units */
    double mem_bytes; /* what a program can allocate: the total that CUDA or HIP reports, a little under nvidia-smi's */
    double mem_bps;
    bool inline_ecc;         /* GDDR6 with ECC on: its bits lie among the data, a byte of 16, and are read with them */
    double l2_bytes, l2_bps; /* last-level on-chip cache; 0 = unknown */
    int32_t sms;             /* SMs or compute units */
    double clock_hz;         /* boost; some peaks are stated at a lower clock */
    int32_t exponentials;    /* of 4 bytes, an SM each clock; 0 = the usual 16 */
    double tdp_w;
    double launch_s;   /* host cost of one kernel launch */
    double domain_bps; /* scale-up link, per direction */
    double domain_latency_s;
    int32_t domain_links;   /* NVLinks of a device, each domain_bps / domain_links; 0 = another link */
    int32_t domain_devices; /* scale-up domain it is sold in (8, 72; 2 for NVL bridges); PCIe alone: the node */
    bool domain_multicast;  /* switch can reduce and multicast (NVLS) */
    /* PCIe: the rate of each of n devices that send falls with n/2 to this power; 0 = each keeps it, < 0 = not known. */
    double domain_contention;
    double host_bps;          /* PCIe or C2C to the CPU, per direction, line rate after its coding */
    double pcie_bps;          /* the device's own PCIe link, where its NICs hang on that; 0 = host_bps */
    int32_t host_devices;     /* devices behind one link to the host: the uplink of a PCIe switch */
    double host_mem_bps;      /* memory of the host of a usual node, peak of its channels; 0 = by its core */
    int host_cpu;             /* enum maq_host_cpu; never USUAL in a device that was loaded */
    double host_clock_hz;     /* what its busy cores reach */
    double usd_per_hour;      /* 0 = unknown */
    int32_t devices_per_node; /* as it is usually sold; a domain larger than this spans nodes */
    const char *fabric;       /* catalogue name of the network it is usually sold with; NULL = none */
    uint32_t pci_ids
        [MAQ_MOST_PCI_IDS]; /* as the driver's list of devices has them, 0 = no more; a base's are not taken over */
    double nics_per_device; /* ports of that network; 0 = as many as the fabric usually has */
    /* In a node group, what each of its devices gets of what they share, all at once; 0 elsewhere. */
    double host_copy_bps;   /* to or from the host: its link, its part of an uplink and of the host's memory */
    double host_stream_bps; /* its part of what the host's memory streams */
    double nvme_read_bps, nvme_write_bps; /* its part of the node's NVMe; 0 = not known */
};

struct maq_cluster;
/* What all devices of a cluster cost, USD an hour; 0: the price of some is not known. */
MAQ_API double maq_cluster_usd_per_hour(const struct maq_cluster *cluster);

/*
 * Speed of one thread of the device's host over the reference, Zen 2 at 3.4 GHz, on which the host times of framework
 * profiles are stated. An estimate from clock and instructions per cycle.
 */
MAQ_API double maq_device_host_speed(const struct maq_device *device);

/* The library and protocol that NCCL reaches a network through. */
enum maq_transport {
    MAQ_TRANSPORT_VERBS,   /* InfiniBand and RoCE */
    MAQ_TRANSPORT_EFA,     /* AWS: libfabric over SRD */
    MAQ_TRANSPORT_CXI,     /* Slingshot: libfabric over CXI, messages matched by the NIC */
    MAQ_TRANSPORT_CXI_SW,  /* the same, matched by the host (FI_CXI_RX_MATCH_MODE=software) */
    MAQ_TRANSPORT_SOCKETS, /* TCP */
    MAQ_TRANSPORT_ENA,     /* AWS without EFA: TCP, of which NCCL opens sixteen sockets to a peer there */
    MAQ_TRANSPORT_COUNT
};
MAQ_API const char *maq_transport_name(enum maq_transport transport);

/* An inter-node network as the user names it: "ib-ndr", "roce-400", "efa-v2", "slingshot-11", ... */
struct maq_fabric {
    const char *name, *title, *source;
    const char *unverified;    /* as a device's */
    double nic_bps;            /* one port, per direction, line rate */
    double latency_s;          /* one message between two nodes, software included */
    double efficiency;         /* achievable share of the line rate for large messages (protocol headers, encoding) */
    bool in_network_reduction; /* SHARP and the like */
    double nics_per_device;    /* as usually sold: 1; 4 for EFA on p5; 0.5 where two devices share a port */
    int transport;             /* enum maq_transport */
};

struct maq_node_group {
    const char *name; /* NULL: goes by its device */
    struct maq_device device;
    int32_t nodes;
    int32_t devices_per_node;
    int32_t domain_devices; /* devices per scale-up domain: a divisor or a multiple of devices_per_node (NVL72 = 72) */
    double domain_bps;      /* per device and direction */
    double domain_latency_s;
    double domain_contention; /* as a device's */
    bool domain_multicast;
    int32_t nics_per_node;
    struct maq_fabric fabric;
    double host_mem_bytes; /* of a node's host; 0 = not known */
    bool rail_optimized;   /* device i of every node hangs on rail i: same-rail traffic stays on leaf switches */
    uint32_t first_rank;   /* filled by the loader */
};

/* Algorithms that NCCL may use for an all-reduce: NCCL_ALGO. */
enum maq_nccl_algo {
    MAQ_NCCL_ALGO_AUTO, /* whatever is fastest */
    MAQ_NCCL_ALGO_RING, /* rings alone: `ring`, `^tree,collnet` */
    MAQ_NCCL_ALGO_COUNT
};
MAQ_API const char *maq_nccl_algo_name(enum maq_nccl_algo algo);

/* The name that reports and links call it by. */
MAQ_API const char *maq_node_group_name(const struct maq_node_group *group);

/* What joins nodes of two groups where their ports do not tell: less bandwidth, more latency. 0 = as the ports say. */
struct maq_group_link {
    uint16_t a, b;    /* node groups */
    double bps;       /* of all devices of a node together, per direction */
    double flow_bps;  /* of one device at most */
    double latency_s; /* of one message */
};

struct maq_cluster {
    const char *name;
    uint32_t n_groups;
    struct maq_node_group *groups;
    int32_t nodes_per_switch; /* leaf (or rail-group) size in nodes; 0 = one non-blocking network */
    double oversubscription;  /* >= 1: uplink rate is 1/this of downlink rate */
    int nccl_algo;            /* enum maq_nccl_algo */
    uint32_t devices;         /* total */
    uint32_t n_links;         /* between node groups */
    const struct maq_group_link *links;
};

/* The line that words say which people use for a cluster: 'h100-sxm:8 x 8' of "64 h100", 'a100-80gb:8 x 2' of "2 nodes of 8 a100". false:
 * they say none, or it does not fit into out. */
MAQ_API bool maq_cluster_in_words(char *out, size_t size, const char *words);

/* Whether all node groups have the same nodes, and nothing but their ports joins them: they are one group, written as several. */
MAQ_API bool maq_cluster_one_kind(const struct maq_cluster *cluster);

/*
 * How a process group lies on a cluster: `size` members in `domains` scale-up domains, `per_domain` of them in
 * each, and `per_node` in each node that it touches. Where the members do not divide evenly, per_domain and
 * per_node are those of the fullest domain and node; so size == per_domain * domains exactly when the group is
 * even.
 *
 *   domains == 1       only the scale-up link is used
 *   per_node == size   inside one node: host links between its domains, no network
 *   crosses_switch     it uses the network and its members are in more than one leaf; or the cabling is rail-optimised,
 *                      a domain is smaller than a node, and members in different nodes sit in different places of
 *                      their nodes, which PXN cannot bring onto one rail. Never set when nodes_per_switch is 0.
 */
struct maq_placement {
    uint32_t size, per_domain, domains, per_node;
    bool crosses_switch;
    uint8_t
        link; /* of maq_cluster, between node groups, the slowest that it crosses, plus 1; 0 = none. Placements compare byte for byte */
    uint16_t group; /* node group whose links apply (the slowest one it touches on the farthest level it uses) */
};

/* The node group that holds a rank. rank must be < cluster->devices. */
MAQ_API const struct maq_node_group *maq_cluster_group_of(const struct maq_cluster *cluster, uint32_t rank);

/* Network bandwidth of one device, per direction, all devices of the node sending: line rate times efficiency. */
MAQ_API double maq_node_group_network_bps(const struct maq_node_group *group);

/* Whether the devices of a scale-up domain reach one another over PCIe: the "link" is that to the host, and no C2C. */
MAQ_API bool maq_node_group_domain_is_pcie(const struct maq_node_group *group);

/*
 * Placement of the group {first + i * stride, i < size}, ranks numbered as above. size >= 1 and the last member
 * must be inside the cluster. Arithmetic, without a walk over the members: tens of nanoseconds.
 */
MAQ_API struct maq_placement maq_cluster_place(const struct maq_cluster *cluster, uint32_t first, uint32_t size,
                                               uint32_t stride);

/* Bandwidth per member and direction, and latency of one message. */
struct maq_link {
    double bps, latency_s;
};

/*
 * The links that a placed group uses; all zero where it does not use one. `near` joins members of a domain: line rate of
 * the scale-up link. `host` joins domains of one node: line rate of the link to the host. `far` joins nodes, or domains
 * that are a node or more: the network, with efficiency, shared ports and oversubscription applied.
 */
struct maq_links {
    struct maq_link near, host, far;
};

/*
 * Links of a placement. `sharers` groups (1 = this one alone) lie alike on the same nodes and send at the same
 * time: the ports of a node serve per_node * sharers devices, but no device drives more than its own (at least
 * one), nor more than its PCIe link holds.
 */
MAQ_API struct maq_links maq_cluster_links(const struct maq_cluster *cluster, const struct maq_placement *at,
                                           uint32_t sharers);

#ifdef __cplusplus
}
#endif
#endif
