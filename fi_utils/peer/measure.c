/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - measures latency and bandwidth of one link, through libfabric as the plugin uses it.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/fabric.h"
#include "peer/figures.h"
#include "peer/measure.h"
#include "peer/stream.h"
#include "peer/wire.h"

/* ---- TCP -------------------------------------------------------------------------------- */

/* A peer_ping_once. */
static int echo_once(void *end, uint32_t seq, uint64_t deadline_ms)
{
	struct peer_stream *stream = end;
	char why[MESH_CHECK_TEXT_MAX];
	struct mesh_check_frame frame;
	int ret = peer_stream_send_opaque(stream, MESH_CHECK_ECHO, ++stream->number, &seq,
					  sizeof(seq));

	return ret ? ret
		   : peer_stream_await(stream, MESH_CHECK_ECHO, stream->number, deadline_ms, NULL,
				       &frame, why);
}

/* Waits until the queue is empty. */
static int stream_drain(struct peer_stream *stream, uint64_t deadline_ms)
{
	int ret = peer_stream_flush(stream);

	while (!ret && stream->out_size) {
		ret = interrupt_wait(stream->fd, POLLOUT, deadline_ms);
		if (!ret)
			ret = peer_stream_flush(stream);
	}
	return ret;
}

static int bandwidth_forth(struct peer_link *link)
{
	static const uint8_t zeros[MESH_CHECK_PAYLOAD_MAX];
	uint64_t until_ms = mesh_clock_ms() + link->checker->options->ms, started = mesh_clock_ns();
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX];
	int ret = 0;

	while (!ret && mesh_clock_ms() < until_ms) {
		ret = stream_drain(&link->stream, until_ms + PEER_ANSWER_MS);
		if (!ret)
			ret = peer_stream_send_opaque(&link->stream, MESH_CHECK_BULK, 0, zeros,
						      sizeof(zeros));
	}
	memset(&frame, 0, sizeof(frame));
	if (!ret)
		ret = peer_stream_ask(&link->stream, &frame, MESH_CHECK_BULK_END,
				      MESH_CHECK_BULK_END, PEER_ANSWER_MS, NULL, why);
	if (!ret)
		link->numbers.to_gbps = peer_gbps(frame.bulk.bytes, mesh_clock_ns() - started);
	return ret;
}

/* Counts the bytes up to BULK_END. */
static int bulk_receive(struct peer_stream *stream, uint64_t deadline_ms, uint64_t *bytes)
{
	struct mesh_check_frame frame;
	int ret = 0;

	*bytes = 0;
	while (!ret && mesh_clock_ms() < deadline_ms) {
		ret = peer_stream_next(stream, &frame);
		if (ret == -EAGAIN)
			ret = interrupt_wait(stream->fd, POLLIN, deadline_ms);
		else if (!ret && frame.header.type == MESH_CHECK_BULK_END)
			return 0;
		else if (!ret && frame.header.type == MESH_CHECK_BULK)
			*bytes += frame.header.length;
		else if (!ret)
			ret = -EPROTO;
	}
	return ret ? ret : -ETIMEDOUT;
}

static int bandwidth_back(struct peer_link *link)
{
	uint64_t bytes, started = mesh_clock_ns();
	struct mesh_check_frame frame;
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.bulk.ms = link->checker->options->ms;
	ret = peer_stream_send(&link->stream, &frame, MESH_CHECK_BULK_ASK, ++link->stream.number);
	if (!ret)
		ret = bulk_receive(&link->stream, mesh_clock_ms() + frame.bulk.ms + PEER_ANSWER_MS,
				   &bytes);
	if (!ret)
		link->numbers.from_gbps = peer_gbps(bytes, mesh_clock_ns() - started);
	return ret;
}

/*
 * Measures through TCP, into link->numbers. The stream is open.
 *
 * Returns 0 or a negative errno.
 */
static int tcp_measure(struct peer_link *link)
{
	int ret = peer_ping(echo_once, &link->stream, link->checker->options->ms,
			    &link->numbers.half_rtt_us);

	if (!ret)
		ret = bandwidth_forth(link);
	if (!ret)
		ret = bandwidth_back(link);
	return ret;
}

/* ---- libfabric ---------------------------------------------------------------------------- */

/* Opens both ends. @text receives what failed, and at which end. */
static int fabric_open(struct peer_link *link, struct peer_fabric **fabric, char *text)
{
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX] = "";
	int ret;

	ret = peer_fabric_open(link->nic, link->provider, fabric, why);
	if (ret) {
		snprintf(text, 2 * MESH_CHECK_TEXT_MAX, "%s", why);
		return ret;
	}
	memset(&frame, 0, sizeof(frame));
	peer_fabric_offer(*fabric, &frame.fabric);
	ret = peer_ask_to_measure(link->checker, link->peer, &link->stream, &frame,
				  MESH_CHECK_FABRIC_OPEN, MESH_CHECK_FABRIC_READY,
				  peer_fabric_domain(*fabric), why);
	if (!ret)
		ret = peer_fabric_meet(*fabric, &link->remote, &frame.fabric);
	if (ret)
		snprintf(text, 2 * MESH_CHECK_TEXT_MAX, "on node %s: %s", link->peer->name,
			 *why ? why : strerror(-ret));
	return ret;
}

static int fabric_back(struct peer_link *link, struct peer_fabric *fabric)
{
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX];
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.fabric.ms = link->checker->options->ms;
	ret = peer_stream_ask(&link->stream, &frame, MESH_CHECK_FABRIC_RUN, MESH_CHECK_FABRIC_RAN,
			      link->checker->options->ms + PEER_ANSWER_MS,
			      peer_fabric_domain(fabric), why);
	if (!ret)
		link->numbers.from_gbps = peer_gbps(frame.fabric.bytes, frame.fabric.ns);
	if (!ret && frame.fabric.cpu_permille < 1000)
		link->numbers.cpu_there = frame.fabric.cpu_permille / 1000.0;
	link->numbers.cpu_here = peer_fabric_cpu_share(fabric);
	return ret;
}

/* Returns 0, or a negative errno, with the step that failed in @step. */
static int fabric_measure(struct peer_link *link, struct peer_fabric *fabric, const char **step)
{
	uint32_t ms = link->checker->options->ms;
	int ret;

	*step = "messages do not come back";
	ret = peer_ping(peer_fabric_ping, fabric, ms, &link->numbers.half_rtt_us);
	if (ret)
		return ret;
	*step = "writes to it do not complete";
	peer_fabric_write(fabric, ms);
	ret = peer_send(peer_fabric_step, fabric, &link->numbers.to_gbps);
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
	peer_stream_ask(&link->stream, &frame, MESH_CHECK_FABRIC_CLOSE, MESH_CHECK_FABRIC_RAN,
			PEER_ANSWER_MS, peer_fabric_domain(fabric), why);
	peer_fabric_close(fabric);
}

/* ---- what it means ------------------------------------------------------------------------ */

/* TCP needs the processor: the smaller share of the two ends. */
static double cpu_share(const struct peer_link *link)
{
	return fmin(link->numbers.cpu_here, link->numbers.cpu_there);
}

/* The reason for a figure that the nodes' processors, and not the link, may have made. */
static void reason_say(const struct peer_link *link, enum check_verdict verdict,
		       struct check_result *result)
{
	if (peer_nodes_are_busy(cpu_share(link)))
		check_seen(result,
			   "both nodes should be idle: the measurement had %.0f %% of a processor "
			   "here and %.0f %% there",
			   100 * link->numbers.cpu_here, 100 * link->numbers.cpu_there);
	else if (verdict == CHECK_UNKNOWN)
		check_seen(result, "one TCP connection takes what a processor gives, which says "
				   "nothing of so fast a link; both nodes should be idle");
}

static void latency_say(const struct peer_link *link, const char *over, struct check_result *result)
{
	double us = link->numbers.half_rtt_us;
	enum check_verdict verdict = peer_latency_verdict(us, cpu_share(link));

	check_say(result, verdict, "latency %.1f us to node %s (half of a round trip, %s)", us,
		  link->peer->name, over);
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

static void bandwidth_say(const struct peer_link *link, const char *over,
			  struct check_result *result)
{
	const struct peer_numbers *numbers = &link->numbers;
	bool rdma = link->provider == MESH_PROVIDER_VERBS_RXM && !numbers->over_tcp;
	double rate = link_rate(link), least = fmin(numbers->to_gbps, numbers->from_gbps);
	enum check_verdict verdict = peer_bandwidth_verdict(least, rate, rdma, cpu_share(link));

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
			? "check RDMA without the plugin: ib_write_bw -R between the two "
			  "addresses; RoCE needs UDP port 4791"
			: "the provider uses TCP ports of its own: trust the mesh's interfaces in "
			  "the firewalls of both nodes");
}

static void fabric_shut_say(const struct peer_link *link, int error, const char *text,
			    struct check_result *result)
{
	if (error == -EBUSY) {
		check_say(result, CHECK_UNKNOWN, "latency and bandwidth were not measured: %s",
			  text);
		check_fix(result, "run this again once the other check has ended");
		return;
	}
	check_say(result, CHECK_FAIL, "libfabric (%s) does not open: %s",
		  mesh_provider_id_text(link->provider), text);
	check_fix(result, "`fi_mesh nics` and `fi_mesh check` on both nodes");
}

/* Returns 0 or a negative errno, which is reported, except -EINTR. */
static int fabric_try(struct peer_link *link, struct check_result *result)
{
	char text[2 * MESH_CHECK_TEXT_MAX] = "";
	struct peer_fabric *fabric = NULL;
	const char *step = NULL;
	int ret = fabric_open(link, &fabric, text);

	if (ret) {
		peer_fabric_close(fabric);
		if (ret != -EINTR)
			fabric_shut_say(link, ret, text, result);
		return ret;
	}
	ret = fabric_measure(link, fabric, &step);
	fabric_end(link, fabric);
	if (ret && ret != -EINTR)
		fabric_fail_say(link, ret, step, result);
	return ret;
}

void peer_measure(struct peer_link *link, struct check_result *result)
{
	const char *provider = mesh_provider_id_text(link->provider);
	int ret = fabric_try(link, result);

	if (!ret) {
		latency_say(link, provider, result);
		bandwidth_say(link, provider, result);
		return;
	}
	if (ret == -EINTR || ret == -EBUSY)
		return;
	link->numbers.over_tcp = true;
	ret = tcp_measure(link);
	if (!ret) {
		latency_say(link, "TCP", result);
		bandwidth_say(link, "TCP without libfabric", result);
	} else if (ret != -EINTR) {
		check_say(result, CHECK_UNKNOWN, "TCP was not measured: %s", strerror(-ret));
	}
}
