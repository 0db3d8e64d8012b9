/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - computes latency and bandwidth from a measurement, and judges them. */
#ifndef MESH_FI_UTILS_PEER_FIGURES_H
#define MESH_FI_UTILS_PEER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/finding.h"

/** Gbit/s; 0 for no time at all. */
double peer_gbps(uint64_t bytes, uint64_t ns);

/**
 * Half of the round trip at the tenth percentile, which shows the link and not the load.
 *
 * @times: @num of them, at least one; they are sorted
 */
uint64_t peer_half_rtt(uint64_t *times, int num);

/* Since when a measurement runs, and what processor time its thread has had before. */
struct peer_since {
	uint64_t wall_ns, cpu_ns;
};

struct peer_since peer_since_now(void);

/**
 * The share of a processor that this thread has had since then, 0 to 1. It does not sleep, so less
 * than 1 means that the processor was shared with others.
 */
double peer_cpu_share(const struct peer_since *since);

/**
 * True if the figures depend on the nodes more than on the link.
 *
 * @cpu_share: of a processor that the measurement had, at the end that had less; 0 to 1
 */
bool peer_nodes_are_busy(double cpu_share);

/** CHECK_WARN for what is no quiet cable's, CHECK_UNKNOWN on busy nodes, else CHECK_PASS. */
enum check_verdict peer_latency_verdict(double half_rtt_us, double cpu_share);

/**
 * @gbps: of the slower direction
 * @rate_gbps: of the link; 0: unknown
 *
 * Returns CHECK_PASS, CHECK_WARN, or CHECK_UNKNOWN: too slow, but the nodes may be the cause; or
 * TCP with so little of a fast link's rate that it says nothing of the link.
 */
enum check_verdict peer_bandwidth_verdict(double gbps, double rate_gbps, bool rdma,
					  double cpu_share);

/**
 * True if a fast port carries so little over RDMA that the fault of some cards is likely: the port
 * negotiates its rate and carries a tenth of it until its power was off.
 *
 * @gbps: of the slower direction
 * @rate_gbps: of the link; 0: unknown
 */
bool peer_port_is_faulty(double gbps, double rate_gbps, bool rdma);

#endif
