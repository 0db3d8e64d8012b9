/* SPDX-License-Identifier: Apache-2.0 */
/* relayed.c - measures latency and bandwidth over relays, and judges them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/finding.h"
#include "common/json.h"
#include "common/output.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/figures.h"
#include "peer/measure.h"

#define VIA_TEXT_MAX 256

/* "via=b and via=d". @text: VIA_TEXT_MAX bytes; returned. */
static const char *via_text(const struct peer_measured *measured, char *text)
{
	int i;

	*text = '\0';
	for (i = 0; i < measured->num_paths; i++)
		output_add(text, VIA_TEXT_MAX, "%svia=%s", i ? " and " : "",
			   measured->paths[i].via);
	return output_clean(text);
}

static json_t *paths_json(const struct peer_measured *measured)
{
	char name[MESH_NODE_NAME_MAX];
	json_t *paths = json_array(), *names;
	const char *at, *end;
	int i;

	for (i = 0; i < measured->num_paths; i++) {
		names = json_array();
		for (at = measured->paths[i].via; at; at = *end ? end + 1 : NULL) {
			end = strchrnul(at, ',');
			snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
			names = output_json_append(names, output_json_text(name));
		}
		paths = output_json_append(
			paths, json_pack("{s:o, s:o}", "nic",
					 output_json_text(measured->paths[i].nic), "via", names));
	}
	return paths;
}

/* A figure may be that of a processor at either end, or at a relay, which is not known here. */
static void busy_say(const struct peer_measurement *measurement, struct check_result *result)
{
	check_seen(
		result,
		"the measurement got %.0f %% of a processor here and %.0f %% there; the share on "
		"the relays is not known",
		100 * measurement->measured.numbers.cpu_here,
		100 * measurement->measured.numbers.cpu_there);
	check_fix(result, "run this again while all nodes of the route are idle, and check each "
			  "of its cables (`fi_mesh check --peer` of each relay)");
}

/* For a link the limit is for one hop; what is above it says nothing of a cable. */
static void latency_say(const struct peer_measurement *measurement, struct check_result *result)
{
	const struct peer_numbers *numbers = &measurement->measured.numbers;
	char via[VIA_TEXT_MAX];
	double hop_us = numbers->half_rtt_us / (measurement->peer->routes.num_relays + 1);
	bool slow = peer_latency_verdict(hop_us, peer_numbers_cpu_share(numbers)) != CHECK_PASS;

	check_say(result, slow ? CHECK_UNKNOWN : CHECK_PASS,
		  "latency %.1f us to node %s (half of a round trip of 8 bytes, %s)",
		  numbers->half_rtt_us, measurement->peer->name,
		  via_text(&measurement->measured, via));
	if (slow)
		busy_say(measurement, result);
}

/* Only with RDMA on each hop do the cables decide alone. */
static void bandwidth_say(const struct peer_measurement *measurement, struct check_result *result)
{
	const struct peer_numbers *numbers = &measurement->measured.numbers;
	const struct peer_routes *routes = &measurement->peer->routes;
	double least = fmin(numbers->to_gbps, numbers->from_gbps);
	char via[VIA_TEXT_MAX];
	enum check_verdict verdict;

	if (routes->gbps <= 0) {
		check_say(result, CHECK_PASS,
			  "bandwidth %.2f Gbit/s to node %s, %.2f back; the rate of the route is "
			  "not known (%s)",
			  numbers->to_gbps, measurement->peer->name, numbers->from_gbps,
			  via_text(&measurement->measured, via));
		return;
	}
	verdict = peer_bandwidth_verdict(least, routes->gbps, routes->rdma,
					 peer_numbers_cpu_share(numbers));
	if (verdict == CHECK_WARN && !routes->rdma)
		verdict = CHECK_UNKNOWN;
	check_say(result, verdict,
		  "bandwidth %.2f Gbit/s to node %s, %.2f back: %.0f %% of the %.0f Gbit/s of its "
		  "route%s (%s)",
		  numbers->to_gbps, measurement->peer->name, numbers->from_gbps,
		  100 * least / routes->gbps, routes->gbps, routes->num == 1 ? "" : "s",
		  via_text(&measurement->measured, via));
	if (verdict != CHECK_PASS)
		busy_say(measurement, result);
}

static void failure_say(const struct peer_measurement *measurement, int error,
			struct check_result *result)
{
	const struct peer_measured *measured = &measurement->measured;
	const char *peer = measurement->peer->name;

	if (peer_measured_busy_say(measured, error, result))
		return;
	check_say(result, CHECK_FAIL, "node %s cannot be reached over relays: %s (%s)", peer,
		  measured->step, peer_measured_words(measured, error));
	check_seen(result, "the route: %s", measurement->peer->routes.text);
	check_fix(
		result,
		"check that each relay of the route runs (a rank of the job, or `fi_mesh serve "
		"--relay`), that NCCL_MESH_RELAY is not off there, here or on node %s, and that no "
		"firewall blocks them; `fi_mesh check` and `fi_mesh check --peer` on the "
		"relays check each hop",
		peer);
}

static int relayed_measure(struct peer_measurement *measurement)
{
	const struct peer *peer = measurement->peer;
	char text[MESH_CHECK_TEXT_MAX];
	struct mesh_check_hello hello;
	int ret;

	snprintf(measurement->measured.step, sizeof(measurement->measured.step),
		 "it does not answer");
	ret = peer_dial(measurement->checker, NULL, &peer->addr, measurement->stream, &hello, text);
	if (ret)
		snprintf(measurement->measured.words, sizeof(measurement->measured.words),
			 "on node %s: %s", peer->name, text);
	return ret ? ret : peer_measure(measurement);
}

json_t *peer_relayed_check(const struct peer_checker *checker, const struct peer *peer,
			   struct check_result *result)
{
	struct peer_stream stream = {.fd = -1};
	struct peer_measurement measurement = {
		.checker = checker,
		.peer = peer,
		.stream = &stream,
		.measured.numbers = {-1, -1, -1, 1, 1, -1, -1},
	};
	const struct peer_numbers *numbers = &measurement.measured.numbers;
	int ret = relayed_measure(&measurement);

	if (ret == -EINTR)
		check_say(result, CHECK_UNKNOWN, "interrupted before all of it was measured");
	else if (ret)
		failure_say(&measurement, ret, result);
	if (numbers->half_rtt_us >= 0)
		latency_say(&measurement, result);
	if (!ret)
		bandwidth_say(&measurement, result);
	return json_pack("{s:o, s:o, s:o, s:o}", "paths", paths_json(&measurement.measured),
			 "half_rtt_us", output_json_known(numbers->half_rtt_us), "to_gbps",
			 output_json_known(numbers->to_gbps), "from_gbps",
			 output_json_known(numbers->from_gbps));
}
