/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_measure.c - latency and bandwidth of one link: through libfabric as the plugin uses it, or,
 * where that does not open, through TCP, so that there is a figure for the cable at least.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mesh/base/clock.h>

#include "interrupt.h"
#include "peer_check.h"
#include "peer_fabric.h"
#include "progress.h"

#define RUN_MS 1000
#define ANSWER_MS 5000
/* Opening an endpoint takes 0.1 s; a slow machine with many cores, longer. */
#define OPEN_MS 20000
#define PING_MS 5000
/* Another node is measuring at the peer: its turn ends soon. */
#define BUSY_MS 60000
#define BUSY_AGAIN_MS 300
#define ECHOES 200
/*
 * What is worth a warning. RDMA fills a link; TCP takes what the processor gives, so that only
 * what no machine of today explains counts.
 */
#define RDMA_SHARE 0.80
#define TCP_SHARE 0.25
#define TCP_GBPS_MAX 10.0
#define SLOW_US 5000.0
/* With less of a processor than this the figures say more of the nodes than of the link. */
#define BUSY_SHARE 0.8
/* With less than this TCP says nothing of the link: the two ends hardly ever run together. */
#define BLIND_SHARE 0.3

static double gbps(uint64_t bytes, uint64_t ns)
{
	return ns ? 8.0 * (double)bytes / (double)ns : 0;
}

/* Sends a question without content of its own, and waits. */
static int ask(struct peer_link *link, struct mesh_check_frame *frame,
	       enum mesh_check_type question, enum mesh_check_type answer, uint32_t ms,
	       struct mesh_domain *domain, char *text)
{
	struct peer_stream *stream = &link->stream;
	int ret = peer_stream_send(stream, frame, question, ++stream->number);

	*text = '\0';
	if (ret)
		return ret;
	return peer_stream_await(stream, answer, stream->number, mesh_clock_ms() + ms, domain,
				 frame, text);
}

/* ---- libfabric ---------------------------------------------------------------------------- */

/* Opens both ends. @text says what went wrong, and where. */
static int fabric_open(struct peer_link *link, struct peer_fabric **fabric, char *text)
{
	uint64_t until_ms = mesh_clock_ms() + BUSY_MS;
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX] = "";
	int ret;

	ret = peer_fabric_open(link->nic, link->provider, fabric, why);
	if (ret) {
		snprintf(text, 2 * MESH_CHECK_TEXT_MAX, "%s", why);
		return ret;
	}
	do {
		memset(&frame, 0, sizeof(frame));
		peer_fabric_offer(*fabric, &frame.fabric);
		ret = ask(link, &frame, MESH_CHECK_FABRIC_OPEN, MESH_CHECK_FABRIC_READY, OPEN_MS,
			  peer_fabric_domain(*fabric), why);
		if (ret == -EBUSY) {
			progress_say(link->checker->progress, "another node is checking node %s",
				     link->peer->name);
			poll(NULL, 0, BUSY_AGAIN_MS);
		}
	} while (ret == -EBUSY && mesh_clock_ms() < until_ms && !interrupt_happened());
	if (!ret)
		ret = peer_fabric_meet(*fabric, &link->remote, &frame.fabric);
	if (ret)
		snprintf(text, 2 * MESH_CHECK_TEXT_MAX, "on node %s: %s", link->peer->name,
			 *why ? why : strerror(-ret));
	return ret;
}

static int fabric_forth(struct peer_link *link, struct peer_fabric *fabric)
{
	uint64_t bytes = 0, ns = 0;
	int ret;

	peer_fabric_write(fabric, RUN_MS);
	do {
		ret = peer_fabric_step(fabric, &bytes, &ns);
	} while (ret == -EAGAIN && !interrupt_happened());
	if (!ret)
		link->numbers.to_gbps = gbps(bytes, ns);
	return ret == -EAGAIN ? -EINTR : ret;
}

static int fabric_back(struct peer_link *link, struct peer_fabric *fabric)
{
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX];
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.fabric.ms = RUN_MS;
	ret = ask(link, &frame, MESH_CHECK_FABRIC_RUN, MESH_CHECK_FABRIC_RAN, RUN_MS + ANSWER_MS,
		  peer_fabric_domain(fabric), why);
	if (!ret)
		link->numbers.from_gbps = gbps(frame.fabric.bytes, frame.fabric.ns);
	if (!ret && frame.fabric.cpu_permille < 1000)
		link->numbers.cpu_there = frame.fabric.cpu_permille / 1000.0;
	link->numbers.cpu_here = peer_fabric_cpu_share(fabric);
	return ret;
}

/* Returns 0, or what went wrong, with the step in @step. */
static int fabric_measure(struct peer_link *link, struct peer_fabric *fabric, const char **step)
{
	uint64_t half_ns = 0;
	int ret;

	*step = "messages do not come back";
	ret = peer_fabric_ping(fabric, PING_MS, &half_ns);
	if (ret)
		return ret;
	link->numbers.half_rtt_us = (double)half_ns / 1000;
	*step = "writes to it do not complete";
	ret = fabric_forth(link, fabric);
	if (ret)
		return ret;
	*step = "its writes to us do not complete";
	return fabric_back(link, fabric);
}

static void fabric_end(struct peer_link *link, struct peer_fabric *fabric)
{
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX];

	memset(&frame, 0, sizeof(frame));
	ask(link, &frame, MESH_CHECK_FABRIC_CLOSE, MESH_CHECK_FABRIC_RAN, ANSWER_MS,
	    peer_fabric_domain(fabric), why);
	peer_fabric_close(fabric);
}

/* ---- TCP ---------------------------------------------------------------------------------- */

static int number_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int tcp_latency(struct peer_link *link)
{
	struct peer_stream *stream = &link->stream;
	uint64_t times[ECHOES], started, byte = 0;
	char why[MESH_CHECK_TEXT_MAX];
	struct mesh_check_frame frame;
	int i, ret;

	for (i = 0; i < ECHOES; i++) {
		started = mesh_clock_ns();
		ret = peer_stream_send_opaque(stream, MESH_CHECK_ECHO, ++stream->number, &byte,
					      sizeof(byte));
		if (!ret)
			ret = peer_stream_await(stream, MESH_CHECK_ECHO, stream->number,
						mesh_clock_ms() + ANSWER_MS, NULL, &frame, why);
		if (ret)
			return ret;
		times[i] = mesh_clock_ns() - started;
	}
	qsort(times, ECHOES, sizeof(times[0]), number_order);
	link->numbers.half_rtt_us = (double)times[ECHOES / 10] / 2000;
	return 0;
}

/* Waits until the queue is empty. */
static int stream_drain(struct peer_stream *stream, uint64_t deadline_ms)
{
	struct pollfd poll_fd = {.fd = stream->fd, .events = POLLOUT};
	int ret;

	for (;;) {
		ret = peer_stream_flush(stream);
		if (ret || !stream->out_size)
			return ret;
		if (interrupt_happened())
			return -EINTR;
		if (mesh_clock_ms() >= deadline_ms)
			return -ETIMEDOUT;
		poll(&poll_fd, 1, 50);
	}
}

static int tcp_forth(struct peer_link *link)
{
	static const uint8_t zeros[MESH_CHECK_PAYLOAD_MAX];
	uint64_t until_ms = mesh_clock_ms() + RUN_MS, started = mesh_clock_ns();
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX];
	int ret = 0;

	while (!ret && mesh_clock_ms() < until_ms) {
		ret = stream_drain(&link->stream, until_ms + ANSWER_MS);
		if (!ret)
			ret = peer_stream_send_opaque(&link->stream, MESH_CHECK_BULK, 0, zeros,
						      sizeof(zeros));
	}
	memset(&frame, 0, sizeof(frame));
	if (!ret)
		ret = ask(link, &frame, MESH_CHECK_BULK_END, MESH_CHECK_BULK_END, ANSWER_MS, NULL,
			  why);
	if (!ret)
		link->numbers.to_gbps = gbps(frame.bulk.bytes, mesh_clock_ns() - started);
	return ret;
}

static int tcp_back(struct peer_link *link)
{
	struct peer_stream *stream = &link->stream;
	uint64_t bytes = 0, started = mesh_clock_ns(),
		 until_ms = mesh_clock_ms() + RUN_MS + ANSWER_MS;
	struct mesh_check_frame frame;
	struct pollfd poll_fd = {.fd = stream->fd, .events = POLLIN};
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.bulk.ms = RUN_MS;
	ret = peer_stream_send(stream, &frame, MESH_CHECK_BULK_ASK, ++stream->number);
	while (!ret || ret == -EAGAIN) {
		if (mesh_clock_ms() >= until_ms || interrupt_happened())
			return interrupt_happened() ? -EINTR : -ETIMEDOUT;
		ret = peer_stream_next(stream, &frame);
		if (ret == -EAGAIN)
			poll(&poll_fd, 1, 50);
		else if (!ret && frame.header.type == MESH_CHECK_BULK)
			bytes += frame.header.length;
		else if (!ret)
			break;
	}
	if (!ret)
		link->numbers.from_gbps = gbps(bytes, mesh_clock_ns() - started);
	return ret;
}

static int tcp_measure(struct peer_link *link)
{
	int ret = tcp_latency(link);

	if (!ret)
		ret = tcp_forth(link);
	if (!ret)
		ret = tcp_back(link);
	return ret;
}

/* ---- what it means ------------------------------------------------------------------------ */

/* The processor is what TCP needs: the share that the needier end had. */
static double cpu_share(const struct peer_link *link)
{
	const struct peer_numbers *numbers = &link->numbers;

	return numbers->cpu_here < numbers->cpu_there ? numbers->cpu_here : numbers->cpu_there;
}

/* Beside a figure that the nodes' load has made. */
static void load_say(const struct peer_link *link, struct check_result *result)
{
	if (cpu_share(link) < BUSY_SHARE)
		check_seen(result,
			   "both nodes should be idle: the measurement had %.0f %% of a processor "
			   "here and %.0f %% there",
			   100 * link->numbers.cpu_here, 100 * link->numbers.cpu_there);
}

static void latency_say(const struct peer_link *link, const char *over, struct check_result *result)
{
	double us = link->numbers.half_rtt_us;
	bool slow = us > SLOW_US && cpu_share(link) >= BUSY_SHARE;

	check_say(result, slow ? CHECK_WARN : CHECK_PASS,
		  "latency %.1f us to node %s (half of a round trip, %s)", us, link->peer->name,
		  over);
	load_say(link, result);
	if (slow)
		check_fix(result,
			  "that is no quiet cable: look for load on both nodes, and for what "
			  "lies between them");
}

/* Gbit/s that both ends' NICs can do; 0 where it is not known. */
static double link_rate(const struct peer_link *link)
{
	double ours = link->nic->speed_mbps / 1000.0, theirs = link->theirs->speed_mbps / 1000.0;

	if (ours <= 0 || theirs <= 0)
		return ours > theirs ? ours : theirs;
	return ours < theirs ? ours : theirs;
}

static void bandwidth_say(const struct peer_link *link, const char *over,
			  struct check_result *result)
{
	const struct peer_numbers *numbers = &link->numbers;
	double rate = link_rate(link), wanted, least;
	enum check_verdict verdict = CHECK_PASS;
	bool rdma = link->provider == MESH_PROVIDER_VERBS_RXM && !numbers->over_tcp, slow;

	least = numbers->to_gbps < numbers->from_gbps ? numbers->to_gbps : numbers->from_gbps;
	wanted = rdma ? RDMA_SHARE * rate
		      : TCP_SHARE * (rate < TCP_GBPS_MAX ? rate : TCP_GBPS_MAX) * cpu_share(link);
	slow = rate > 0 && least < wanted;
	if (slow)
		verdict = !rdma && cpu_share(link) < BLIND_SHARE ? CHECK_UNKNOWN : CHECK_WARN;
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
	load_say(link, result);
	if (slow)
		check_fix(result,
			  "look for a narrow PCIe slot or a slow port (`fi_mesh check` on both "
			  "nodes), load, and shaping (tc qdisc show dev %s)",
			  link->nic->netdev);
}

static void fabric_fail_say(struct peer_link *link, int error, const char *step,
			    struct check_result *result)
{
	check_say(result, CHECK_FAIL,
		  "libfabric (%s) does not work between %s and %s of node %s: "
		  "%s (%s)",
		  mesh_provider_id_text(link->provider), link->nic->netdev, link->theirs->netdev,
		  link->peer->name, step, strerror(-error));
	check_fix(
		result,
		link->provider == MESH_PROVIDER_VERBS_RXM
			? "see that RDMA works alone: ib_write_bw -R between the two addresses; "
			  "RoCE needs UDP port 4791"
			: "the provider uses TCP ports of its own: trust the mesh's interfaces in "
			  "the firewalls of both nodes");
}

void peer_measure(struct peer_link *link, struct check_result *result)
{
	const char *provider = mesh_provider_id_text(link->provider), *step = NULL;
	char text[2 * MESH_CHECK_TEXT_MAX] = "";
	struct peer_fabric *fabric = NULL;
	int ret = fabric_open(link, &fabric, text);

	if (!ret) {
		ret = fabric_measure(link, fabric, &step);
		fabric_end(link, fabric);
		if (ret && ret != -EINTR)
			fabric_fail_say(link, ret, step, result);
	} else {
		peer_fabric_close(fabric);
		check_say(result, CHECK_FAIL, "libfabric (%s) does not open: %s", provider, text);
		check_fix(result, "`fi_mesh nics` and `fi_mesh check` on both nodes");
	}
	if (ret == -EINTR)
		return;
	link->numbers.over_tcp = ret != 0;
	if (ret && tcp_measure(link)) {
		check_say(result, CHECK_UNKNOWN, "TCP was not measured: the connection ended");
		return;
	}
	latency_say(link, ret ? "TCP" : provider, result);
	bandwidth_say(link, ret ? "TCP without libfabric" : provider, result);
}
