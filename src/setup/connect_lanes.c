/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_lanes.c - several TCP connections for a long line.
 *
 * One TCP connection moves its buffer in each round trip, and libfabric has one for each pair of
 * endpoints. So two NICs that a long line joins have several endpoints each: lane N of the one NIC
 * is connected with lane N of the other. Each lane is a path of its own, with a peer, a link and a
 * pace of its own. Further lanes are added once the first ones are up, because only then the round
 * trip is known. All pairs of NICs of a connection have as many: a cable counts once, however many
 * lanes it has.
 */
#include <string.h>

#include "base/log.h"
#include "setup/connecting.h"
#include "system/tcp_look.h"

/* A shorter round trip is that of a cable, whose end answers late because it is busy. */
#define LONG_NS 1000000ull
/* If no NIC's speed is known: 10 Gbit/s. */
#define SPEED_GUESS_MBPS 10000
/* Bytes in a millisecond of one Mbit/s. */
#define MBPS_BYTES 125

/*
 * How many TCP connections keep a line busy. @speed_mbps: of the slower NIC; @window_bytes: what
 * one connection has in flight at most. 0 is unknown: of the time or the window, one is enough.
 */
static int lanes_count(uint64_t round_trip_ns, int speed_mbps, uint64_t window_bytes)
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
	const struct mesh_dial *dial = &connect->dials[i];

	return connect->pairs[i].provider == MESH_PROVIDER_TCP && dial->state == MESH_DIAL_UP &&
	       !mesh_domain_lane(dial->way.index) &&
	       (dial->way.routed || is_other_site(dial->process, dial->peer));
}

/* What one pair needs. The window is read here, because few connections have such a line. */
MESH_HOLDS(process)
static int lanes_need(const struct mesh_peer *peer)
{
	int fixed = (int)peer->process->config.lanes;

	if (fixed)
		return fixed;
	return lanes_count(mesh_socket_round_trip_ns(peer->watch.fd), mesh_peer_speed_mbps(peer),
			   mesh_tcp_window_bytes(""));
}

/* True if there are links that may give the comm a path later. */
static bool may_grow(const struct mesh_connect *connect)
{
	const struct mesh_path_choice *choice = &connect->choice;

	return choice->candidates[0].class == MESH_PATH_DIRECT &&
	       mesh_path_ways(choice->candidates, choice->num_candidates) > connect->num_dials;
}

/*
 * How many lanes each pair of the try has: what the longest one needs, as far as there is room for
 * the cables as well that may join the comm later.
 */
MESH_HOLDS(process)
static int lanes_choose(const struct mesh_connect *connect)
{
	int most = (int)connect->net->process->config.max_paths;
	int i, need, lanes = 1;

	for (i = 0; i < connect->num_dials; i++) {
		need = is_line(connect, i) ? lanes_need(connect->dials[i].peer) : 1;
		if (need > lanes)
			lanes = need;
	}
	if (most > MESH_PATHS_MAX - MESH_LATE_PATHS && may_grow(connect))
		most = MESH_PATHS_MAX - MESH_LATE_PATHS;
	most /= connect->num_dials;
	if (lanes > most)
		lanes = most;
	return lanes > 1 ? lanes : 1;
}

MESH_HOLDS(process)
static void lanes_log(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer = connect->dials[0].peer;
	char text[MESH_PEER_TEXT_MAX];

	mesh_info("the line to %s%s%s has a round trip of %.1f ms, and a connection of TCP moves "
		  "%llu KiB in one: %d connections for each pair of NICs",
		  mesh_peer_text(peer, text), *peer->site ? " in site " : "", peer->site,
		  (double)mesh_socket_round_trip_ns(peer->watch.fd) / 1e6,
		  (unsigned long long)mesh_tcp_window_bytes("") >> 10, connect->lanes);
}

/* The index of the domain of our NIC of dial @i for this lane. */
MESH_HOLDS(process)
static int lane_index(const struct mesh_connect *connect, int i, int lane)
{
	return mesh_process_lane_index(connect->net->process, mesh_way_dev(&connect->dials[i].way),
				       MESH_PROVIDER_TCP, lane);
}

/* True if the domains of the last lane that has begun are open. */
MESH_HOLDS(process)
static bool lane_is_open(const struct mesh_connect *connect)
{
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (is_line(connect, i) &&
		    !connect->net->process->domains[lane_index(connect, i, connect->lanes_begun)])
			return false;
	}
	return true;
}

/*
 * Dials the next lane, once the domains of the last one are open: so two nodes whose ports have
 * room for some lanes only open the same ones. Returns true if it did.
 */
MESH_HOLDS(process)
static bool lane_begin(struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_process *process = connect->net->process;
	int i, lane = connect->lanes_begun + 1, num = connect->num_dials;
	bool first = false;

	if (lane >= connect->lanes || (connect->lanes_begun && !lane_is_open(connect)))
		return false;
	for (i = 0; i < num; i++) {
		if (!is_line(connect, i))
			continue;
		first |= process->dev_states[lane_index(connect, i, lane)] == MESH_DEV_CLOSED;
		mesh_connect_try_lane(connect, i, lane, now_ms);
	}
	if (first && lane == 1)
		lanes_log(connect);
	connect->lanes_begun = lane;
	connect->try_ms = now_ms;
	connect->up_ms = 0;
	return true;
}

enum mesh_verdict mesh_connect_lanes_judge(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict = mesh_connect_judge(connect, now_ms);

	mesh_process_assert_locked(connect->net->process);
	if (verdict == MESH_VERDICT_READY && !connect->lanes) {
		mesh_connect_try_settle(connect);
		connect->lanes = lanes_choose(connect);
	}
	if (lane_begin(connect, now_ms))
		return MESH_VERDICT_WAIT;
	return verdict;
}
