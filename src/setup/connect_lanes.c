/* SPDX-License-Identifier: Apache-2.0 */
/* connect_lanes.c - adds paths between the same two NICs where a line is long. */
#include <string.h>

#include "base/log.h"
#include "setup/connect_lanes.h"
#include "setup/connect_log.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/openings.h"
#include "system/round_trip.h"
#include "system/tcp_window.h"

/* A shorter round trip is that of a cable, whose end answers late because it is busy. */
#define LONG_NS 1000000ull
/* If no NIC's speed is known: 10 Gbit/s. */
#define SPEED_GUESS_MBPS 10000
/* Bytes in a millisecond of one Mbit/s. */
#define MBPS_BYTES 125

int mesh_lanes_count(uint64_t round_trip_ns, int speed_mbps, uint64_t window_bytes)
{
	uint64_t mbps = speed_mbps > 0 ? (uint64_t)speed_mbps : SPEED_GUESS_MBPS, bytes;

	if (round_trip_ns < LONG_NS || !window_bytes)
		return 1;
	bytes = mbps * MBPS_BYTES * (round_trip_ns / 1000) / 1000;
	if (bytes > MESH_LANES_MAX * window_bytes)
		return MESH_LANES_MAX;
	return bytes > window_bytes ? (int)((bytes + window_bytes - 1) / window_bytes) : 1;
}

static bool is_other_site(const struct mesh_process *process, const struct mesh_peer *peer)
{
	return *peer->site && *process->config.site &&
	       strncmp(peer->site, process->config.site, sizeof(peer->site) - 1);
}

/* True for a pair of NICs that may have several lanes. On RDMA one connection fills any line. */
MESH_HOLDS(process)
static bool is_line(const struct mesh_connect *connect, int i)
{
	const struct mesh_peer *peer = connect->peers[i];

	return connect->pairs[i].provider == MESH_PROVIDER_TCP && peer->state == MESH_PEER_UP &&
	       (peer->routed || is_other_site(peer->process, peer));
}

/* What one pair needs. The window is read here, because few connections have such a line. */
MESH_HOLDS(process)
static int lanes_need(const struct mesh_peer *peer)
{
	int fixed = (int)peer->process->config.lanes;

	if (fixed)
		return fixed;
	return mesh_lanes_count(mesh_socket_round_trip_ns(peer->watch.fd),
				mesh_peer_speed_mbps(peer), mesh_tcp_window_bytes(""));
}

/*
 * How many lanes each pair of the try has: what the longest one needs, as far as there is room for
 * the cables as well that may join the comm later.
 */
MESH_HOLDS(process)
static int lanes_choose(const struct mesh_connect *connect)
{
	int pairs = connect->num_peers + connect->num_missed;
	int most = (int)connect->net->process->config.max_paths / pairs;
	int i, need, lanes = 1;

	for (i = 0; i < connect->num_peers; i++) {
		need = is_line(connect, i) ? lanes_need(connect->peers[i]) : 1;
		if (need > lanes)
			lanes = need;
	}
	if (lanes > most)
		lanes = most;
	return lanes > 1 ? lanes : 1;
}

/* The state of this lane's domains. */
struct lane {
	bool first;   /* no connection has needed one of them before */
	bool opening; /* one is being opened */
	bool open;    /* all are */
};

/* @start: opens those that are not open */
MESH_HOLDS(process)
static struct lane lane_look(struct mesh_connect *connect, int number, bool start)
{
	struct mesh_process *process = connect->net->process;
	bool again = number > connect->lanes_asked;
	struct lane lane = {.open = true};
	int i, index;

	for (i = 0; i < connect->num_peers; i++) {
		if (!is_line(connect, i))
			continue;
		index = mesh_process_lane_index(process, connect->peers[i]->dev, MESH_PROVIDER_TCP,
						number);
		lane.first |= index >= 0 && process->dev_states[index] == MESH_DEV_CLOSED;
		if (start && index >= 0 && !process->domains[index])
			lane.opening |= mesh_opening_need(process, index, again);
		lane.open &= index >= 0 && process->domains[index];
	}
	if (start && again)
		connect->lanes_asked = number;
	return lane;
}

/*
 * Opens the domains of one lane after the other, until one cannot be opened: so two nodes whose
 * ports have room for some lanes only open the same ones. Returns true while one is being opened.
 *
 * @first: set if no connection has needed any before
 */
MESH_HOLDS(process)
static bool lanes_open(struct mesh_connect *connect, bool *first)
{
	struct lane lane = {.open = true};
	int number;

	*first = false;
	for (number = 1; number < connect->lanes && lane.open; number++) {
		lane = lane_look(connect, number, true);
		*first |= number == 1 && lane.first;
	}
	return lane.opening;
}

/* The peers of those that are open on all NICs, so that all pairs have as many. */
MESH_HOLDS(process)
static void lanes_enter(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;
	int i, number, index, num = connect->num_peers;

	for (number = 1; number < connect->lanes; number++) {
		if (!lane_look(connect, number, false).open)
			continue;
		for (i = 0; i < num; i++) {
			index = mesh_process_lane_index(process, connect->peers[i]->dev,
							MESH_PROVIDER_TCP, number);
			if (is_line(connect, i))
				mesh_connect_try_lane(connect, i, process->domains[index]);
		}
	}
}

MESH_HOLDS(process)
static void lanes_log(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer = connect->peers[0];
	char text[MESH_PEER_TEXT_MAX];

	mesh_info("the line to %s%s%s has a round trip of %.1f ms, and a connection of TCP moves "
		  "%llu KiB in one: %d connections for each pair of NICs (NCCL_MESH_LANES)",
		  mesh_peer_text(peer, text), *peer->site ? " in site " : "", peer->site,
		  (double)mesh_socket_round_trip_ns(peer->watch.fd) / 1e6,
		  (unsigned long long)mesh_tcp_window_bytes("") >> 10, connect->lanes);
}

/* Returns true while the lanes' domains are being opened, and when their peers have begun. */
MESH_HOLDS(process)
static bool lanes_begin(struct mesh_connect *connect, uint64_t now_ms)
{
	bool first, opening;

	if (!connect->lanes) {
		mesh_connect_try_settle(connect);
		mesh_connect_log_no_rdma(connect);
		connect->lanes = lanes_choose(connect);
	}
	if (connect->lanes == 1)
		return false;
	opening = lanes_open(connect, &first);
	if (first)
		lanes_log(connect);
	if (opening)
		return true;
	connect->lanes_begun = true;
	connect->try_ms = now_ms;
	connect->up_ms = 0;
	lanes_enter(connect);
	return true;
}

enum mesh_verdict mesh_connect_lanes_judge(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict = mesh_connect_judge(connect, now_ms);

	mesh_process_assert_locked(connect->net->process);
	if (verdict == MESH_VERDICT_READY && !connect->lanes &&
	    mesh_connect_awaits_rdma(connect, now_ms))
		return MESH_VERDICT_WAIT;
	if (!connect->lanes_begun)
		return verdict == MESH_VERDICT_READY && lanes_begin(connect, now_ms)
			       ? MESH_VERDICT_WAIT
			       : verdict;
	/* What is up now is enough: another try would lose the lanes that are. */
	if (verdict != MESH_VERDICT_WAIT && mesh_connect_is_up(connect))
		verdict = MESH_VERDICT_READY;
	return verdict;
}
