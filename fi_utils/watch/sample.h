/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - counters of NICs, RDMA ports and plugins at one moment, and rates between two. */
#ifndef MESH_FI_UTILS_WATCH_SAMPLE_H
#define MESH_FI_UTILS_WATCH_SAMPLE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "nic/nic.h"
#include "wire/stats.h"

/* ---- the counters of NICs, RDMA ports and plugins at one moment ------------------------------ */

/* hw_counters of one RDMA port that are kept; ConnectX-7 has about 40. */
#define WATCH_HW_COUNTERS 64
#define WATCH_HW_NAME_MAX 48

struct watch_hw_counter {
	char name[WATCH_HW_NAME_MAX];
	uint64_t value;
};

/* One NIC's counters, as the kernel has them. */
struct watch_nic {
	char netdev[IF_NAMESIZE];
	char rdma[MESH_RDMA_NAME_MAX]; /* "" where there is no RDMA device */
	int rdma_port;
	int speed_mbps;		       /* 0: unknown */
	bool up;		       /* false: it would carry the mesh if its link was up */
	bool netdev_known, rdma_known; /* the counters below could be read */
	uint64_t netdev_tx, netdev_rx; /* bytes */
	uint64_t netdev_errors;	       /* errors and drops, both directions */
	uint64_t rdma_tx, rdma_rx;     /* bytes */
	uint64_t rdma_errors;	       /* errors, discards */
	struct watch_hw_counter hw[WATCH_HW_COUNTERS];
	int num_hw;
};

/* The traffic of one process's plugin between two NICs in one direction. */
struct watch_link {
	struct mesh_stats_entry entry; /* counters: of open and closed paths together */
	uint32_t pid;
	uint32_t open_paths, down_paths; /* those that are open; and down, of these */
	uint32_t parked_paths;		 /* of the open ones: out of use, `fi_mesh drain` */
};

/* What one process relays from a node to another one, over the same two NICs. */
struct watch_circuit {
	/* Counters of open and closed ones together; memory, slots and used of the open ones. */
	struct mesh_stats_circuit circuit;
	uint32_t pid;
	uint32_t open;
};

struct watch_process {
	struct mesh_stats_header header;
	uint32_t uid;
	int num_open; /* paths */
};

struct watch_sample {
	uint64_t time_ns; /* mesh_clock_ns() */
	struct watch_nic *nics;
	int num_nics;
	struct watch_link *links;
	int num_links;
	struct watch_circuit *circuits;
	int num_circuits;
	struct watch_process *processes;
	int num_processes;
	int num_unread; /* pages that could not be read: another version, damaged */
	int error;	/* of the search for pages: negative errno; -ENOENT: there are none */
};

/* Whose processes are read. */
struct watch_filter {
	bool by_user;
	uint32_t uid; /* if by_user */
	uint32_t pid; /* 0: all */
};

/**
 * Reads all NICs, and the processes that @filter lets pass.
 *
 * Returns 0, then free @sample; -ENOMEM; another negative errno (reported).
 */
int watch_sample_read(const char *sysfs_root, const struct mesh_config *config,
		      const struct watch_filter *filter, struct watch_sample *sample);

void watch_sample_free(struct watch_sample *sample);

/**
 * True if @link has the counters of @entry of process @pid, or of an older entry of the same link.
 */
bool watch_link_is(const struct watch_link *link, const struct mesh_stats_entry *entry,
		   uint32_t pid);

/** The same for what a process relays. */
bool watch_circuit_is(const struct watch_circuit *circuit, const struct mesh_stats_circuit *entry,
		      uint32_t pid);

/* ---- the rates between two samples ----------------------------------------------------------- */

/* Bytes a second below which a NIC counts as idle: for example neighbour discovery. */
#define WATCH_IDLE_RATE 100000.0

/** What a NIC has moved since @before. */
enum watch_traffic {
	WATCH_UNKNOWN, /* no earlier sample, or no counters */
	WATCH_IDLE,
	WATCH_KERNEL, /* through the kernel's network stack: TCP */
	WATCH_RDMA,   /* past it */
	WATCH_BOTH,
};

enum watch_traffic watch_traffic(const struct watch_nic *nic, const struct watch_nic *before,
				 double seconds);

/** "RDMA", "kernel (TCP)", ...: never NULL. */
const char *watch_traffic_text(enum watch_traffic traffic);

/** The same NIC, link or circuit in another sample, or NULL. */
const struct watch_nic *watch_nic_find(const struct watch_sample *sample,
				       const struct watch_nic *nic);
const struct watch_link *watch_link_find(const struct watch_sample *sample,
					 const struct watch_link *link);
const struct watch_circuit *watch_circuit_find(const struct watch_sample *sample,
					       const struct watch_circuit *circuit);

/** Units a second between two readings; 0 if the counter went back: it was reset. */
double watch_rate(uint64_t now, uint64_t before, double seconds);

#define WATCH_RATE_TEXT_MAX 32

/** A rate of bytes as bits a second: "12.40 Gb/s". @text: WATCH_RATE_TEXT_MAX bytes; returned */
const char *watch_rate_text(double bytes, char *text);

/** Seconds between two samples. */
double watch_seconds(const struct watch_sample *now, const struct watch_sample *before);

#endif
