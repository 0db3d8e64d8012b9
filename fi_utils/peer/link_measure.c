/* SPDX-License-Identifier: Apache-2.0 */
/* link_measure.c - measures latency and bandwidth of one link, and judges them. */
#include <errno.h>
#include <math.h>

#include "common/finding.h"
#include "peer/checker.h"
#include "peer/figures.h"
#include "peer/measure.h"

/* The reason for a figure that the nodes' processors, and not the link, may have made. */
static void reason_say(const struct peer_link *link, enum check_verdict verdict,
		       struct check_result *result)
{
	if (peer_nodes_are_busy(peer_numbers_cpu_share(&link->numbers)))
		check_seen(result,
			   "both nodes should be idle: the measurement got %.0f %% of a processor "
			   "here and %.0f %% there",
			   100 * link->numbers.cpu_here, 100 * link->numbers.cpu_there);
	else if (verdict == CHECK_UNKNOWN)
		check_seen(
			result,
			"one TCP connection is limited by one processor and cannot measure so fast "
			"a link; both nodes should be idle");
}

static void latency_say(const struct peer_link *link, struct check_result *result)
{
	double us = link->numbers.half_rtt_us;
	enum check_verdict verdict =
		peer_latency_verdict(us, peer_numbers_cpu_share(&link->numbers));

	check_say(result, verdict, "latency %.1f us to node %s (half of a round trip, %s)", us,
		  link->peer->name, mesh_provider_id_text(link->provider));
	reason_say(link, verdict, result);
	if (verdict != CHECK_PASS)
		check_fix(
			result,
			"latency is high for a direct cable: look for load on both nodes, and for "
			"what lies between them");
}

/* Gbit/s that the NICs of both ends support; 0 if unknown. */
static double link_rate(const struct peer_link *link)
{
	double ours = link->nic->speed_mbps / 1000.0, theirs = link->theirs->speed_mbps / 1000.0;

	return ours <= 0 || theirs <= 0 ? fmax(ours, theirs) : fmin(ours, theirs);
}

static void bandwidth_say(const struct peer_link *link, struct check_result *result)
{
	const char *over = mesh_provider_id_text(link->provider);
	const struct peer_numbers *numbers = &link->numbers;
	bool rdma = link->provider == MESH_PROVIDER_VERBS_RXM;
	double rate = link_rate(link), least = fmin(numbers->to_gbps, numbers->from_gbps);
	enum check_verdict verdict =
		peer_bandwidth_verdict(least, rate, rdma, peer_numbers_cpu_share(&link->numbers));

	if (rate > 0)
		check_say(result, verdict,
			  "bandwidth %.2f Gbit/s to node %s, %.2f back: %.0f %% of the link's %.0f "
			  "Gbit/s (%s)",
			  numbers->to_gbps, link->peer->name, numbers->from_gbps,
			  100 * least / rate, rate, over);
	else
		check_say(result, CHECK_PASS,
			  "bandwidth %.2f Gbit/s to node %s, %.2f back; the link's rate is not "
			  "known (%s)",
			  numbers->to_gbps, link->peer->name, numbers->from_gbps, over);
	reason_say(link, verdict, result);
	if (peer_port_is_faulty(least, rate, rdma))
		check_fix(result,
			  "a fault of some cards: the port negotiates its rate and carries a tenth "
			  "(a power state). Shut node %s and this one down, disconnect their power "
			  "for a minute, and run this again",
			  link->peer->name);
	else if (verdict != CHECK_PASS)
		check_fix(result,
			  "look for a narrow PCIe slot or a slow port (`fi_mesh check` on both "
			  "nodes), load, and shaping (tc qdisc show dev %s)",
			  link->nic->netdev);
}

static void failure_say(const struct peer_link *link, const struct peer_measured *measured,
			int error, struct check_result *result)
{
	if (peer_measured_busy_say(measured, error, result))
		return;
	check_say(result, CHECK_FAIL,
		  "the plugin (%s) does not work between %s and %s of node %s: %s (%s)",
		  mesh_provider_id_text(link->provider), link->nic->netdev, link->theirs->netdev,
		  link->peer->name, measured->step, peer_measured_words(measured, error));
	check_fix(result,
		  link->provider == MESH_PROVIDER_VERBS_RXM
			  ? "`fi_mesh check` on both nodes; check RDMA without the plugin: "
			    "ib_write_bw -R between the two addresses; RoCE needs UDP port 4791"
			  : "`fi_mesh check` on both nodes; the plugin uses other TCP ports: trust "
			    "the mesh's interfaces in the firewalls of both nodes");
}

void peer_link_measure(struct peer_link *link, struct check_result *result)
{
	struct peer_measurement measurement = {
		.checker = link->checker,
		.peer = link->peer,
		.nic = link->nic->netdev,
		.stream = &link->stream,
		.measured.numbers = link->numbers,
	};
	int ret = peer_measure(&measurement);

	link->numbers = measurement.measured.numbers;
	if (!ret) {
		latency_say(link, result);
		bandwidth_say(link, result);
	} else if (ret != -EINTR) {
		failure_say(link, &measurement.measured, ret, result);
	}
}
