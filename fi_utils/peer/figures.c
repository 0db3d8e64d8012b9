/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - takes the figures of a measurement, latency and bandwidth, and judges them. */
#include <stdlib.h>

#include "base/clock.h"

#include "common/finding.h"
#include "peer/figures.h"

/* NVIDIA/dgx-spark-playbooks 102 and 108: 200 Gb/s negotiated, 8 to 25 Gb/s carried. */
#define FAST_GBPS 100
#define FAULT_SHARE 0.15
/*
 * Limits for a warning. RDMA fills a link; TCP depends on the processor, so its limits are those
 * that no machine of today should miss.
 */
#define RDMA_SHARE 0.80
#define TCP_SHARE 0.25
#define TCP_GBPS_MAX 10.0
/* With less than this of a fast link's rate TCP says nothing of the link. */
#define TCP_SHARE_KNOWN 0.10
#define SLOW_US 5000.0
/*
 * With a smaller share of a processor than this, the figures depend on the nodes more than on the
 * link.
 */
#define BUSY_SHARE 0.8
/*
 * With less than this, TCP cannot measure the link: the two ends hardly ever run at the same time.
 */
#define BLIND_SHARE 0.3

double peer_gbps(uint64_t bytes, uint64_t ns)
{
	return ns ? 8.0 * (double)bytes / (double)ns : 0;
}

static int number_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t peer_half_rtt(uint64_t *times, int num)
{
	qsort(times, (size_t)num, sizeof(*times), number_order);
	return times[num / 10] / 2;
}

struct peer_since peer_since_now(void)
{
	return (struct peer_since){mesh_clock_ns(), mesh_clock_read_ns(CLOCK_THREAD_CPUTIME_ID)};
}

double peer_cpu_share(const struct peer_since *since)
{
	struct peer_since now = peer_since_now();

	return now.wall_ns == since->wall_ns ? 1
					     : (double)(now.cpu_ns - since->cpu_ns) /
						       (double)(now.wall_ns - since->wall_ns);
}

bool peer_nodes_are_busy(double cpu_share)
{
	return cpu_share < BUSY_SHARE;
}

enum check_verdict peer_latency_verdict(double half_rtt_us, double cpu_share)
{
	if (half_rtt_us <= SLOW_US)
		return CHECK_PASS;
	return peer_nodes_are_busy(cpu_share) ? CHECK_UNKNOWN : CHECK_WARN;
}

enum check_verdict peer_bandwidth_verdict(double gbps, double rate_gbps, bool rdma,
					  double cpu_share)
{
	double tcp_rate = rate_gbps < TCP_GBPS_MAX ? rate_gbps : TCP_GBPS_MAX;

	if (rdma)
		return gbps >= RDMA_SHARE * rate_gbps ? CHECK_PASS : CHECK_WARN;
	if (gbps < TCP_SHARE * tcp_rate * cpu_share && cpu_share >= BLIND_SHARE)
		return CHECK_WARN;
	if (gbps < TCP_SHARE * tcp_rate || gbps < TCP_SHARE_KNOWN * rate_gbps)
		return CHECK_UNKNOWN;
	return CHECK_PASS;
}

bool peer_port_is_faulty(double gbps, double rate_gbps, bool rdma)
{
	return rdma && rate_gbps >= FAST_GBPS && gbps < FAULT_SHARE * rate_gbps;
}
