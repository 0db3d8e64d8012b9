/* SPDX-License-Identifier: Apache-2.0 */
/* relayed.c - measures latency and bandwidth over relays, by the plugin's own connections. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/output.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/figures.h"
#include "peer/relayed.h"
#include "peer/relayed_end.h"
#include "peer/stream.h"
#include "peer/wire.h"

/* For an answer to RUN: what is in flight then may be on a slow link. */
#define RAN_MS 12000
/* Both ends give up before this, with the reason (relayed_end.c). */
#define MEET_MS 25000
#define VIA_TEXT_MAX 256
#define WORDS_MAX 512

struct relayed {
	struct peer_checker *checker;
	const struct peer *peer;
	struct peer_stream stream;
	struct peer_relayed_end *end;
	uint8_t handle[MESH_HANDLE_BYTES]; /* of our listener */
	struct peer_numbers numbers;
	const char *step;      /* what fails if something does */
	char words[WORDS_MAX]; /* why, from here or there; "" */
	char via[VIA_TEXT_MAX];
	json_t *paths; /* of the connection to the peer */
};

/* ---- connecting --------------------------------------------------------------------------- */

/* What an ERROR of the peer says. Returns @ret. */
static int peer_failed(struct relayed *relayed, int ret, const char *text)
{
	if (*text)
		snprintf(relayed->words, sizeof(relayed->words), "on node %s: %s",
			 relayed->peer->name, text);
	return ret;
}

/* What the plugin's code here has logged. Returns @ret. */
static int guest_failed(struct relayed *relayed, int ret)
{
	peer_guest_words(relayed->words, sizeof(relayed->words));
	return ret;
}

static int end_open(struct relayed *relayed)
{
	struct peer_checker *checker = relayed->checker;
	int ret = 0;

	relayed->step = "this node does not join the mesh";
	if (!checker->guest)
		ret = peer_guest_open(relayed->peer->routes.job, &checker->guest);
	if (!ret)
		ret = peer_relayed_end_open(checker->guest, relayed->handle, &relayed->end);
	return ret ? guest_failed(relayed, ret) : 0;
}

/* The peer listens as well. Returns -EBUSY if it measures with another node all the time. */
static int peer_begin(struct relayed *relayed, struct mesh_check_frame *frame)
{
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	relayed->step = "it does not join the mesh";
	memset(frame, 0, sizeof(*frame));
	frame->relayed.job = relayed->peer->routes.job;
	ret = peer_ask_to_measure(relayed->checker, relayed->peer, &relayed->stream, frame,
				  MESH_CHECK_RELAYED_BEGIN, MESH_CHECK_RELAYED_READY, NULL, text);
	return ret ? peer_failed(relayed, ret, text) : 0;
}

static int end_poll(void *arg)
{
	int ret = peer_relayed_end_poll(arg);

	/* The plugin's own thread connects; only messages are polled for. */
	if (ret == -EAGAIN)
		interrupt_wait(-1, 0, mesh_clock_ms() + 1);
	return ret;
}

static int connections_await(struct relayed *relayed)
{
	uint64_t until_ms = mesh_clock_ms() + MEET_MS;
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	relayed->step = "no connection to it comes up";
	memset(&frame, 0, sizeof(frame));
	memcpy(frame.relayed.handle, relayed->handle, sizeof(frame.relayed.handle));
	ret = peer_stream_send(&relayed->stream, &frame, MESH_CHECK_RELAYED_MEET,
			       ++relayed->stream.number);
	if (ret)
		return ret;
	ret = peer_stream_await_polling(&relayed->stream, MESH_CHECK_RELAYED_MET,
					relayed->stream.number, until_ms, end_poll, relayed->end,
					&frame, text);
	while (!ret && (ret = end_poll(relayed->end)) == -EAGAIN && mesh_clock_ms() < until_ms)
		ret = interrupt_happened() ? -EINTR : 0;
	if (ret && *text)
		return peer_failed(relayed, ret, text);
	return ret ? guest_failed(relayed, ret) : 0;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static int back(struct relayed *relayed)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	relayed->step = "what it sends does not arrive here";
	memset(&frame, 0, sizeof(frame));
	frame.relayed.ms = relayed->checker->options->ms;
	ret = peer_stream_send(&relayed->stream, &frame, MESH_CHECK_RELAYED_RUN,
			       ++relayed->stream.number);
	if (!ret)
		ret = peer_stream_await_polling(&relayed->stream, MESH_CHECK_RELAYED_RAN,
						relayed->stream.number,
						mesh_clock_ms() + frame.relayed.ms + RAN_MS,
						end_poll, relayed->end, &frame, text);
	else
		*text = '\0';
	if (ret)
		return peer_failed(relayed, ret, text);
	relayed->numbers.from_gbps = peer_gbps(frame.relayed.bytes, frame.relayed.ns);
	if (frame.relayed.cpu_permille < 1000)
		relayed->numbers.cpu_there = frame.relayed.cpu_permille / 1000.0;
	return 0;
}

/* The paths that the connection has, as text and for --json. */
static void paths_collect(struct relayed *relayed)
{
	int i;

	for (i = 0; i < peer_relayed_end_num_paths(relayed->end); i++) {
		const char *via = peer_relayed_end_via(relayed->end, i);
		json_t *names = json_array();
		char name[MESH_NODE_NAME_MAX];
		const char *at, *end;

		output_add(relayed->via, sizeof(relayed->via), "%svia=%s", i ? " and " : "", via);
		for (at = via; at; at = *end ? end + 1 : NULL) {
			end = strchrnul(at, ',');
			snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
			names = output_json_append(names, output_json_text(name));
		}
		relayed->paths = output_json_append(
			relayed->paths,
			json_pack("{s:o, s:o}", "nic",
				  output_json_text(peer_relayed_end_nic(relayed->end, i)), "via",
				  names));
	}
	output_clean(relayed->via);
}

static int figures_take(struct relayed *relayed)
{
	uint32_t ms = relayed->checker->options->ms;
	int ret;

	paths_collect(relayed);
	relayed->step = "messages do not come back";
	ret = peer_ping(peer_relayed_end_ping, relayed->end, ms, &relayed->numbers.half_rtt_us);
	if (!ret) {
		relayed->step = "what is sent to it does not arrive";
		peer_relayed_end_run(relayed->end, ms);
		ret = peer_send(peer_relayed_end_step, relayed->end, &relayed->numbers.to_gbps);
	}
	if (!ret)
		ret = back(relayed);
	relayed->numbers.cpu_here = peer_relayed_end_cpu_share(relayed->end);
	return ret && !*relayed->words ? guest_failed(relayed, ret) : ret;
}

/*
 * The peer's process ends with its connections, so it closes them last: then a relay has ended the
 * circuits of both, and misses nothing. After an error it ends by itself.
 */
static void relayed_end(struct relayed *relayed, int error)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];

	if (error)
		peer_stream_close(&relayed->stream);
	peer_relayed_end_close(relayed->end);
	memset(&frame, 0, sizeof(frame));
	if (!error)
		peer_stream_ask(&relayed->stream, &frame, MESH_CHECK_RELAYED_END,
				MESH_CHECK_RELAYED_RAN, PEER_ANSWER_MS, NULL, text);
	peer_stream_close(&relayed->stream);
}

static int relayed_measure(struct relayed *relayed)
{
	struct mesh_check_hello hello;
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	relayed->step = "it does not answer";
	ret = peer_dial(relayed->checker, NULL, &relayed->peer->addr, &relayed->stream, &hello,
			text);
	if (ret)
		return peer_failed(relayed, ret, text);
	ret = peer_begin(relayed, &frame);
	if (!ret)
		ret = end_open(relayed);
	if (!ret) {
		peer_relayed_end_meet(relayed->end, frame.relayed.handle);
		ret = connections_await(relayed);
	}
	if (!ret)
		ret = figures_take(relayed);
	relayed_end(relayed, ret);
	return ret;
}

/* ---- what it means ------------------------------------------------------------------------ */

static double cpu_share(const struct peer_numbers *numbers)
{
	return fmin(numbers->cpu_here, numbers->cpu_there);
}

/* A figure may be that of a processor at either end, or at a relay, which is not known here. */
static void busy_say(const struct relayed *relayed, struct check_result *result)
{
	check_seen(result,
		   "the measurement had %.0f %% of a processor here and %.0f %% there; what the "
		   "relays had is not known",
		   100 * relayed->numbers.cpu_here, 100 * relayed->numbers.cpu_there);
	check_fix(result, "run this again while all nodes of the route are idle, and check each "
			  "of its cables (`fi_mesh check --peer` of each relay)");
}

/* For a link the limit is for one hop; what is above it says nothing of a cable. */
static void latency_say(const struct relayed *relayed, struct check_result *result)
{
	const struct peer_numbers *numbers = &relayed->numbers;
	double hop_us = numbers->half_rtt_us / (relayed->peer->routes.num_relays + 1);
	bool slow = peer_latency_verdict(hop_us, cpu_share(numbers)) != CHECK_PASS;

	check_say(result, slow ? CHECK_UNKNOWN : CHECK_PASS,
		  "latency %.1f us to node %s (half of a round trip of 8 bytes, %s)",
		  numbers->half_rtt_us, relayed->peer->name, relayed->via);
	if (slow)
		busy_say(relayed, result);
}

/* Only with RDMA on each hop do the cables decide alone. */
static void bandwidth_say(const struct relayed *relayed, struct check_result *result)
{
	const struct peer_numbers *numbers = &relayed->numbers;
	const struct peer_routes *routes = &relayed->peer->routes;
	double least = fmin(numbers->to_gbps, numbers->from_gbps);
	enum check_verdict verdict;

	if (routes->gbps <= 0) {
		check_say(result, CHECK_PASS,
			  "bandwidth %.2f Gbit/s to node %s, %.2f back; the rate of the route is "
			  "not known (%s)",
			  numbers->to_gbps, relayed->peer->name, numbers->from_gbps, relayed->via);
		return;
	}
	verdict = peer_bandwidth_verdict(least, routes->gbps, routes->rdma, cpu_share(numbers));
	if (verdict == CHECK_WARN && !routes->rdma)
		verdict = CHECK_UNKNOWN;
	check_say(result, verdict,
		  "bandwidth %.2f Gbit/s to node %s, %.2f back: %.0f %% of the %.0f Gbit/s of its "
		  "route%s (%s)",
		  numbers->to_gbps, relayed->peer->name, numbers->from_gbps,
		  100 * least / routes->gbps, routes->gbps, routes->num == 1 ? "" : "s",
		  relayed->via);
	if (verdict != CHECK_PASS)
		busy_say(relayed, result);
}

static void failure_say(const struct relayed *relayed, int error, struct check_result *result)
{
	const char *peer = relayed->peer->name;

	if (error == -EBUSY) {
		check_say(result, CHECK_UNKNOWN, "latency and bandwidth were not measured: %s",
			  *relayed->words ? relayed->words : "another node is measuring");
		check_fix(result, "run this again once the other check has ended");
		return;
	}
	check_say(result, CHECK_FAIL, "node %s is not reached over relays: %s (%s)", peer,
		  relayed->step, *relayed->words ? relayed->words : strerror(-error));
	check_seen(result, "the route: %s", relayed->peer->routes.text);
	check_fix(result,
		  "see that each relay of the route runs (a rank of the job, or `fi_mesh serve "
		  "--relay`), that NCCL_MESH_RELAY is not off there, here or on node %s, and that "
		  "no firewall is between; `fi_mesh check` and `fi_mesh check --peer` on the "
		  "relays check each hop",
		  peer);
}

json_t *peer_relayed_check(struct peer_checker *checker, const struct peer *peer,
			   struct check_result *result)
{
	struct relayed relayed = {
		.checker = checker,
		.peer = peer,
		.stream = {.fd = -1},
		.numbers = {-1, -1, -1, 1, 1, false, -1, -1},
		.paths = json_array(),
	};
	int ret = relayed_measure(&relayed);

	if (ret == -EINTR)
		check_say(result, CHECK_UNKNOWN, "interrupted before all of it was measured");
	else if (ret)
		failure_say(&relayed, ret, result);
	if (relayed.numbers.half_rtt_us >= 0)
		latency_say(&relayed, result);
	if (!ret)
		bandwidth_say(&relayed, result);
	return json_pack("{s:o, s:o, s:o, s:o}", "paths", relayed.paths, "half_rtt_us",
			 output_json_known(relayed.numbers.half_rtt_us), "to_gbps",
			 output_json_known(relayed.numbers.to_gbps), "from_gbps",
			 output_json_known(relayed.numbers.from_gbps));
}
