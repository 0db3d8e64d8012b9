/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - what `fi_mesh watch` knows at one moment, and the ways to show it. */
#ifndef MESH_FI_UTILS_WATCH_H
#define MESH_FI_UTILS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/config.h"
#include "nic/nic.h"
#include "wire/stats.h"

/* hw_counters of one RDMA port that are kept; ConnectX-7 has about 40. */
#define WATCH_HW_COUNTERS 64
#define WATCH_HW_NAME_MAX 48
/* Bytes a second below which a NIC counts as idle: neighbour discovery and the like. */
#define WATCH_IDLE_RATE 100000.0

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
	bool netdev_known, rdma_known; /* the counters below could be read */
	uint64_t netdev_tx, netdev_rx; /* bytes */
	uint64_t netdev_errors;	       /* errors and drops, both directions */
	uint64_t rdma_tx, rdma_rx;     /* bytes */
	uint64_t rdma_errors;	       /* errors, discards */
	struct watch_hw_counter hw[WATCH_HW_COUNTERS];
	int num_hw;
};

/* What one process's plugin moves between two NICs in one direction. */
struct watch_link {
	struct mesh_stats_entry entry; /* counters: of open and closed paths together */
	uint32_t pid;
	uint32_t open_paths;
};

struct watch_process {
	struct mesh_stats_header header;
	int num_open; /* paths */
};

struct watch_sample {
	uint64_t time_ns; /* mesh_clock_ns() */
	struct watch_nic *nics;
	int num_nics;
	struct watch_link *links;
	int num_links;
	struct watch_process *processes;
	int num_processes;
	int num_unread; /* pages that could not be read: another version, damaged */
	int error; /* no page could be looked for: negative errno; -ENOENT: nobody has made one */
};

/** Reads everything. Returns 0, then free @sample; -ENOMEM; another negative errno (reported). */
int watch_sample_read(const char *sysfs_root, const struct mesh_config *config,
		      struct watch_sample *sample);

void watch_sample_free(struct watch_sample *sample);

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

/** The same NIC, link in another sample, or NULL. */
const struct watch_nic *watch_nic_find(const struct watch_sample *sample,
				       const struct watch_nic *nic);
const struct watch_link *watch_link_find(const struct watch_sample *sample,
					 const struct watch_link *link);

/** Units a second between two readings; 0 if the counter went back: it was reset. */
double watch_rate(uint64_t now, uint64_t before, double seconds);

/** Seconds between two samples. */
double watch_seconds(const struct watch_sample *now, const struct watch_sample *before);

/** Tables for people. */
void watch_print(FILE *file, const struct watch_sample *now, const struct watch_sample *before);

/** One line of JSON. Returns 0 or -1 (reported). */
int watch_print_json(FILE *file, const struct watch_sample *now, const struct watch_sample *before);

/** The Prometheus text format, version 0.0.4. */
void watch_print_prometheus(FILE *file, const struct watch_sample *sample);

#endif
