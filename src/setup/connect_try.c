/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_try.c - what a connection dials together: candidates whose NICs are all different, and
 * further lanes of these. Each of them that is up becomes a path of the comm.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "nic/addr.h"
#include "setup/connecting.h"
#include "system/tcp_look.h"

/* A shorter round trip is that of a cable, whose end answers late because it is busy. */
#define LONG_NS 1000000ull
/* If no NIC's speed is known: 10 Gbit/s. */
#define SPEED_GUESS_MBPS 10000
/* Bytes in a millisecond of one Mbit/s. */
#define MBPS_BYTES 125

static int paths_max(const struct mesh_connect *connect)
{
	const struct mesh_process *process = connect->net->process;

	/* Between two ranks of one node every path is the same memory. */
	if (connect->handle.node_id == process->node_id)
		return 1;
	return (int)process->config.max_paths;
}

/* Removes candidate @k: it cannot become a path. */
static void candidate_remove(struct mesh_connect *connect, int k)
{
	struct mesh_path_choice *choice = &connect->choice;

	choice->num_candidates--;
	memmove(&choice->candidates[k], &choice->candidates[k + 1],
		(size_t)(choice->num_candidates - k) * sizeof(choice->candidates[0]));
}

/*
 * True if neither NIC of the pair is in the try yet. Classes are not tried together: routed paths
 * carry data only if no direct one is up.
 */
static bool is_apart(const struct mesh_connect *connect, const struct mesh_path_candidate *pair)
{
	const struct mesh_path_candidate *other;
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		other = &connect->pairs[i];
		if (other->class != pair->class || other->local == pair->local ||
		    other->remote == pair->remote)
			return false;
	}
	return true;
}

/* Dials the pair over this lane. Returns 0, or what is said of mesh_dial.error. */
MESH_HOLDS(process)
static int pair_dial(struct mesh_connect *connect, struct mesh_path_candidate pair, int lane,
		     uint64_t now_ms)
{
	struct mesh_dial *dial = &connect->dials[connect->num_dials];
	struct mesh_process *process = connect->net->process;
	struct mesh_way way;
	int ret;

	if (!mesh_way_of_pair(process, &connect->handle, &pair, &way))
		return -ENODEV; /* no domain can serve it */
	way.index = mesh_process_lane_index(process, mesh_way_dev(&way), pair.provider, lane);
	ret = mesh_dial_begin(dial, process, &way, now_ms);
	if (!ret)
		connect->pairs[connect->num_dials++] = pair;
	return ret;
}

/*
 * Dials the candidates of a try, without those whose NIC has no carrier, or cannot be opened now.
 * Returns 0; -ENOLINK if there is one of these; -ENOMEM or -ENOSPC.
 */
MESH_HOLDS(process)
static int candidates_dial(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_path_choice *choice = &connect->choice;
	int i, ret, max = paths_max(connect), error = 0;

	for (i = 0; i < choice->num_candidates && connect->num_dials < max; i++) {
		if (!is_apart(connect, &choice->candidates[i]))
			continue;
		ret = pair_dial(connect, choice->candidates[i], 0, now_ms);
		if (ret == -ENETDOWN || ret == -ENODEV)
			error = -ENOLINK; /* its turn comes with a carrier, or memory */
		else if (ret)
			error = ret;
	}
	return error;
}

int mesh_connect_try_start(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret;

	mesh_process_assert_locked(connect->net->process);
	connect->num_dials = 0;
	ret = candidates_dial(connect, now_ms);
	if (connect->num_dials) {
		connect->try_ms = now_ms;
		connect->up_ms = 0;
		connect->lanes = connect->lanes_begun = 0;
		return 0;
	}
	if (!connect->choice.num_candidates)
		return -ENODEV;
	if (ret && ret != -ENOLINK)
		mesh_connect_log_full(connect, ret);
	return ret ? ret : -EAGAIN;
}

MESH_HOLDS(process)
static void dial_leave(struct mesh_connect *connect, int i)
{
	mesh_dial_end(&connect->dials[i]);
	connect->num_dials--;
	memmove(&connect->dials[i], &connect->dials[i + 1],
		(size_t)(connect->num_dials - i) * sizeof(connect->dials[0]));
	memmove(&connect->pairs[i], &connect->pairs[i + 1],
		(size_t)(connect->num_dials - i) * sizeof(connect->pairs[0]));
	connect->dials[connect->num_dials] = (struct mesh_dial){0}; /* its user has moved */
}

void mesh_connect_try_end(struct mesh_connect *connect)
{
	while (connect->num_dials)
		dial_leave(connect, connect->num_dials - 1);
}

/* ---- what has become of them ---------------------------------------------------------------- */

/* What is to be expected of a dial. */
enum prospect {
	PROSPECT_UP,
	PROSPECT_PENDING,
	PROSPECT_SILENT,  /* nothing has answered there for long, in this try or an earlier one */
	PROSPECT_OVER,	  /* it cannot come up now, but a new dial of the same pair may later */
	PROSPECT_REFUSES, /* it refuses this connection */
	PROSPECT_DEAD_END,
	PROSPECTS
};

/* True if the peer's kernel sends the answers by another NIC: to try this pair again is no use. */
MESH_HOLDS(process)
static bool is_dead_end(const struct mesh_dial *dial)
{
	return dial->peer && dial->peer->refusal == MESH_REFUSAL_ROUTE;
}

/*
 * True if NIC @dev had no carrier when the kernel last said that a link has changed, or a try last
 * looked: nothing behind it is reached. Ranks of one node reach each other without.
 */
MESH_HOLDS(process)
static bool nic_is_away(const struct mesh_connect *connect, int dev)
{
	const struct mesh_process *process = connect->net->process;

	return process->nics_away & 1u << dev && connect->handle.node_id != process->node_id;
}

/*
 * Since when each attempt of any of the try's dials was refused because no process listens there;
 * 0 if one was not.
 */
MESH_HOLDS(process)
static uint64_t refused_since(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	uint64_t since = 0;
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		if (!peer || !peer->first_refused_ms)
			return 0;
		if (peer->first_refused_ms > since)
			since = peer->first_refused_ms;
	}
	return since;
}

/*
 * True if the peer refuses this connection. One with another version may be shared with a
 * connection to another listener of its process, which its HELLO names: this one is to be told.
 */
MESH_HOLDS(process)
static bool is_refusing(const struct mesh_connect *connect, const struct mesh_peer *peer)
{
	return mesh_peer_refuses(peer, connect->handle.cookie) &&
	       (!connect->handle.foreign || peer->listen_id == connect->handle.listen_id);
}

MESH_HOLDS(process)
static enum prospect prospect_of(const struct mesh_connect *connect, const struct mesh_dial *dial,
				 uint64_t now_ms)
{
	const struct mesh_peer *peer = dial->peer;

	if (is_dead_end(dial))
		return PROSPECT_DEAD_END;
	if (!peer)
		return PROSPECT_PENDING; /* our NIC is being opened */
	if (is_refusing(connect, peer))
		return PROSPECT_REFUSES;
	if (dial->state == MESH_DIAL_DEAD)
		return PROSPECT_OVER;
	if (dial->state == MESH_DIAL_UP)
		return PROSPECT_UP;
	if (nic_is_away(connect, peer->domain->dev))
		return PROSPECT_OVER;
	if (peer->silent_ms && mesh_clock_elapsed_ms(peer->silent_ms, now_ms) >= MESH_DIAL_MS)
		return PROSPECT_SILENT;
	return PROSPECT_PENDING;
}

/*
 * How long this dial is waited for before others are tried, or once one is up: longer if our NIC is
 * being opened, or the other process has accepted a TCP connection.
 */
MESH_HOLDS(process)
static uint64_t patience_ms(const struct mesh_dial *dial)
{
	const struct mesh_peer *peer = dial->peer;
	bool answered = peer ? peer->name[0] || peer->state == MESH_PEER_HELLO ||
					peer->state == MESH_PEER_GREETING
			     : dial->state == MESH_DIAL_OPENING;

	return answered ? MESH_DIAL_MS : MESH_SETTLE_MS;
}

/* What the verdict is made of. */
struct outlook {
	int num[PROSPECTS];   /* dials of this prospect */
	uint64_t patience_ms; /* for the one that is waited for longest */
	bool others;	      /* there are candidates outside this try */
	bool rivals;	      /* some of them have a carrier */
};

MESH_HOLDS(process)
static struct outlook outlook_of(struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_path_choice *choice = &connect->choice;
	const struct mesh_endpoint_addr *local;
	struct outlook outlook = {0};
	enum prospect prospect;
	int i, away = 0;

	for (i = connect->num_dials - 1; i >= 0; i--) {
		mesh_dial_look(&connect->dials[i], now_ms);
		/* Its NIC could not be opened, which says nothing about the others. */
		if (!connect->dials[i].peer && connect->dials[i].state == MESH_DIAL_DEAD)
			dial_leave(connect, i);
	}
	outlook.others = choice->num_candidates > connect->num_dials;
	/* Also those of this try whose carrier is lost: they are over, and the try soon is, too. */
	for (i = 0; i < choice->num_candidates; i++) {
		local = &connect->net->process->endpoints[choice->candidates[i].local];
		away += nic_is_away(connect, local->nic);
	}
	outlook.rivals = choice->num_candidates - connect->num_dials > away;
	for (i = 0; i < connect->num_dials; i++) {
		prospect = prospect_of(connect, &connect->dials[i], now_ms);
		outlook.num[prospect]++;
		if (prospect == PROSPECT_PENDING &&
		    patience_ms(&connect->dials[i]) > outlook.patience_ms)
			outlook.patience_ms = patience_ms(&connect->dials[i]);
	}
	return outlook;
}

/*
 * Once one is up, the others have a moment to follow, and longer if a NIC is being opened here or
 * there. What comes up later joins the comm then.
 */
MESH_HOLDS(process)
static bool is_ready(struct mesh_connect *connect, const struct outlook *outlook, uint64_t now_ms)
{
	if (!outlook->num[PROSPECT_UP])
		connect->up_ms = 0;
	else if (!connect->up_ms)
		connect->up_ms = now_ms;
	return connect->up_ms &&
	       (!outlook->num[PROSPECT_PENDING] || now_ms - connect->up_ms >= outlook->patience_ms);
}

MESH_HOLDS(process)
static bool is_refused(const struct mesh_connect *connect, const struct outlook *outlook,
		       uint64_t now_ms)
{
	int refuse = outlook->num[PROSPECT_REFUSES] + outlook->num[PROSPECT_DEAD_END];
	uint64_t since_ms = refused_since(connect);

	/* The candidates outside this try are tried first; they replace a dead end. */
	if (outlook->others &&
	    (outlook->num[PROSPECT_DEAD_END] || now_ms - connect->started_ms <= MESH_DIAL_MS))
		return false;
	if (refuse && refuse + outlook->num[PROSPECT_SILENT] == connect->num_dials)
		return true;
	if (!since_ms)
		return false;
	/* No process listens there, and tries before this one have found that, too. */
	if (connect->refused_ms)
		since_ms = connect->refused_ms;
	return mesh_clock_elapsed_ms(since_ms, now_ms) > MESH_DIAL_MS;
}

/* True if others are to be tried: what is over is replaced even if the rest is pending. */
static bool is_spent(const struct mesh_connect *connect, const struct outlook *outlook,
		     uint64_t now_ms)
{
	uint64_t age_ms = now_ms - connect->try_ms;

	if (outlook->num[PROSPECT_UP])
		return false;
	if (outlook->num[PROSPECT_DEAD_END] == connect->num_dials)
		return true;
	if (age_ms <= MESH_SETTLE_MS)
		return false;
	return outlook->num[PROSPECT_OVER] ||
	       (outlook->rivals
			? age_ms > outlook->patience_ms
			: !outlook->num[PROSPECT_PENDING] && !outlook->num[PROSPECT_SILENT]);
}

/* Judges the dials of the try, without further lanes. */
MESH_HOLDS(process)
static enum mesh_verdict dials_judge(struct mesh_connect *connect, uint64_t now_ms)
{
	struct outlook outlook = outlook_of(connect, now_ms);

	if (is_ready(connect, &outlook, now_ms))
		return MESH_VERDICT_READY;
	if (is_refused(connect, &outlook, now_ms))
		return MESH_VERDICT_REFUSED;
	return is_spent(connect, &outlook, now_ms) ? MESH_VERDICT_NEXT : MESH_VERDICT_WAIT;
}

bool mesh_connect_relays_are_due(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t wait_ms = MESH_SETTLE_MS;
	int i;

	mesh_process_assert_locked(connect->net->process);
	for (i = 0; i < connect->num_dials; i++) {
		if (connect->dials[i].state == MESH_DIAL_UP)
			return false;
		if (patience_ms(&connect->dials[i]) > wait_ms)
			wait_ms = patience_ms(&connect->dials[i]);
	}
	return mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= wait_ms;
}

const struct mesh_peer *mesh_connect_try_informative(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer, *informative = NULL;
	int i;

	if (connect->state == MESH_CONNECT_SENT)
		return connect->dials[connect->comm->num_paths - 1].peer;
	for (i = 0; i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		if (peer && peer->refusal)
			return peer;
		if (peer && (!informative || (peer->reason[0] && !informative->reason[0])))
			informative = peer;
	}
	return informative;
}

/* ---- the next ones --------------------------------------------------------------------------- */

static bool pairs_equal(struct mesh_path_candidate a, struct mesh_path_candidate b)
{
	return a.local == b.local && a.remote == b.remote && a.class == b.class;
}

/* Removes the candidate of dial @i. Returns false if it is no longer there. */
static bool dialled_remove(struct mesh_connect *connect, int i)
{
	int k = 0, num = connect->choice.num_candidates;

	while (k < num && !pairs_equal(connect->choice.candidates[k], connect->pairs[i]))
		k++;
	if (k < num)
		candidate_remove(connect, k);
	return k < num;
}

/* Each candidate gets a try before one gets another. */
static void untried_first(struct mesh_connect *connect)
{
	struct mesh_path_choice *choice = &connect->choice;
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (dialled_remove(connect, i))
			choice->candidates[choice->num_candidates++] = connect->pairs[i];
	}
}

MESH_HOLDS(process)
static void dead_ends_forget(struct mesh_connect *connect)
{
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (is_dead_end(&connect->dials[i]))
			(void)!dialled_remove(connect, i);
	}
}

int mesh_connect_try_next(struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t refused_ms = refused_since(connect);

	dead_ends_forget(connect);
	if (!refused_ms)
		connect->refused_ms = 0;
	else if (!connect->refused_ms)
		connect->refused_ms = refused_ms;
	untried_first(connect);
	mesh_connect_try_end(connect);
	return mesh_connect_try_start(connect, now_ms);
}

/* ---- several TCP connections for a long line ------------------------------------------------ */

/*
 * One TCP connection moves its buffer in each round trip, and libfabric has one for each pair of
 * endpoints. So two NICs that a long line joins have several endpoints each: lane N of the one NIC
 * is connected with lane N of the other. Each lane is a path of its own, with a peer, a link and a
 * pace of its own. Further lanes are added once the first ones are up, because only then the round
 * trip is known. All pairs of NICs of a connection have as many: a cable counts once, however many
 * lanes it has.
 */

/* Keeps what is up and not much slower than the fastest. Returns true if a lane was just late. */
MESH_HOLDS(process)
static bool try_settle(struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	int fastest = 0, i, speed;
	bool late = false;

	for (i = connect->num_dials - 1; i >= 0; i--) {
		if (connect->dials[i].state == MESH_DIAL_UP)
			continue;
		peer = connect->dials[i].peer;
		late |= connect->dials[i].state == MESH_DIAL_TRYING && !peer->first_refused_ms;
		/* The pair works without a further lane. */
		if (peer && mesh_peer_refuses(peer, connect->handle.cookie) &&
		    !mesh_domain_lane(connect->dials[i].way.index))
			(void)!dialled_remove(connect, i);
		dial_leave(connect, i);
	}
	for (i = 0; i < connect->num_dials; i++) {
		speed = mesh_peer_speed_mbps(connect->dials[i].peer);
		if (speed > fastest)
			fastest = speed;
	}
	for (i = connect->num_dials - 1; i >= 0; i--) {
		speed = mesh_peer_speed_mbps(connect->dials[i].peer);
		if (speed && speed < fastest / MESH_PATH_SPEED_RATIO_MAX)
			dial_leave(connect, i);
	}
	return late;
}

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

/* True if the last lane that has begun came up. */
MESH_HOLDS(process)
static bool lane_is_up(const struct mesh_connect *connect)
{
	int i = 0;

	while (i < connect->num_dials &&
	       mesh_domain_lane(connect->dials[i].way.index) != connect->lanes_begun)
		i++;
	return i < connect->num_dials;
}

/*
 * Dials the next lane, once the last one is up, or had its time: so two nodes whose ports have room
 * for some lanes only open the same ones. Returns true if it did.
 */
MESH_HOLDS(process)
static bool lane_begin(struct mesh_connect *connect, bool late, uint64_t now_ms)
{
	int i, lane = connect->lanes_begun + 1, num = connect->num_dials;

	if (lane >= connect->lanes || (!late && !lane_is_up(connect)))
		return false;
	for (i = 0; i < num; i++) {
		if (is_line(connect, i) && connect->num_dials < MESH_PATHS_MAX)
			(void)!pair_dial(connect, connect->pairs[i], lane, now_ms);
	}
	connect->lanes_begun = lane;
	connect->try_ms = now_ms;
	connect->up_ms = 0;
	return true;
}

enum mesh_verdict mesh_connect_judge(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict = dials_judge(connect, now_ms);
	bool late;

	mesh_process_assert_locked(connect->net->process);
	if (verdict != MESH_VERDICT_READY)
		return verdict;
	late = try_settle(connect);
	if (!connect->lanes)
		connect->lanes = lanes_choose(connect);
	return lane_begin(connect, late, now_ms) ? MESH_VERDICT_WAIT : verdict;
}
