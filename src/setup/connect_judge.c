/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_judge.c - what becomes of the dials that a connection makes together.
 *
 * Each dial has a prospect; the verdict follows from how many have which.
 */
#include <errno.h>

#include "base/clock.h"
#include "control/peer.h"
#include "nic/addr.h"
#include "setup/connect_judge.h"

/* What is to be expected of a dial. */
enum prospect {
	PROSPECT_UP,
	PROSPECT_HOPEFUL,
	PROSPECT_DOUBTFUL, /* little is to be expected */
	PROSPECT_SILENT,   /* nothing has answered there for long, in this try or an earlier one */
	PROSPECT_OVER,	   /* it cannot come up now, but a new dial of the same pair may later */
	PROSPECT_REFUSES,  /* it refuses this connection */
	PROSPECT_DEAD_END,
	PROSPECT_UNOPENED, /* our NIC cannot be opened for it */
	PROSPECTS
};

/* How long a dial is waited for. */
static const uint64_t patience_ms[PROSPECTS] = {
	[PROSPECT_HOPEFUL] = MESH_DIAL_MS,
	[PROSPECT_DOUBTFUL] = MESH_TRY_DOUBT_MS,
};

bool mesh_connect_is_dead_end(const struct mesh_dial *dial)
{
	if (dial->peer)
		return dial->peer->refusal == MESH_REFUSAL_ROUTE;
	return dial->error == -ENODEV && !mesh_domain_lane(dial->way.index);
}

bool mesh_connect_candidate_is_slow(const struct mesh_connect *connect, int k)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_path_candidate *pair = &connect->choice.candidates[k];
	int index = mesh_process_domain_index(process, process->endpoints[pair->local].nic,
					      pair->provider);

	return index >= 0 && process->dev_states[index] == MESH_DEV_OPENING &&
	       !process->opening_ms[index];
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

/* True if candidate @k cannot begin now: no reason to leave the candidates of this try. */
MESH_HOLDS(process)
static bool candidate_waits(const struct mesh_connect *connect, int k)
{
	int local = connect->choice.candidates[k].local;

	return mesh_connect_candidate_is_slow(connect, k) ||
	       nic_is_away(connect, connect->net->process->endpoints[local].nic);
}

uint64_t mesh_connect_refused_since(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	uint64_t since = 0;
	int i;

	mesh_process_assert_locked(connect->net->process);
	for (i = 0; i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		if (!peer || !peer->first_refused_ms)
			return 0;
		if (peer->first_refused_ms > since)
			since = peer->first_refused_ms;
	}
	return since;
}

/* Every link has link-local addresses, and most pairs of them share no link. */
MESH_HOLDS(process)
static bool is_a_guess(const struct mesh_connect *connect, const struct mesh_peer *peer)
{
	return peer->state == MESH_PEER_CONNECTING && !connect->choice.proven &&
	       mesh_addr_is_link_local(&peer->address.addr);
}

MESH_HOLDS(process)
static enum prospect prospect_of(const struct mesh_connect *connect, const struct mesh_dial *dial,
				 uint64_t now_ms)
{
	const struct mesh_peer *peer = dial->peer;

	if (mesh_connect_is_dead_end(dial))
		return peer ? PROSPECT_DEAD_END : PROSPECT_UNOPENED;
	if (!peer)
		return dial->state == MESH_DIAL_OPENING ? PROSPECT_HOPEFUL : PROSPECT_OVER;
	if (mesh_peer_refuses(peer, connect->handle.cookie))
		return PROSPECT_REFUSES;
	if (dial->state == MESH_DIAL_DEAD)
		return PROSPECT_OVER;
	if (dial->state == MESH_DIAL_UP)
		return PROSPECT_UP;
	if (nic_is_away(connect, peer->domain->dev))
		return PROSPECT_OVER;
	if (peer->silent_ms && mesh_clock_elapsed_ms(peer->silent_ms, now_ms) >= MESH_DIAL_MS)
		return PROSPECT_SILENT;
	if (peer->state == MESH_PEER_RETRY || is_a_guess(connect, peer))
		return PROSPECT_DOUBTFUL;
	return PROSPECT_HOPEFUL;
}

/* What the verdict is made of. */
struct outlook {
	int num[PROSPECTS]; /* dials of this prospect */
	uint64_t wait_ms;   /* for the one that is waited for longest */
	bool rivals;	    /* there are candidates outside this try that may begin now */
	bool others;	    /* the same, or such that wait for their NIC */
};

/* Also those of this try whose carrier is lost: they are over, and the try soon is, too. */
MESH_HOLDS(process)
static int waiting_count(const struct mesh_connect *connect)
{
	int k, num = 0;

	for (k = 0; k < connect->choice.num_candidates; k++)
		num += candidate_waits(connect, k);
	return num;
}

MESH_HOLDS(process)
static struct outlook outlook_of(const struct mesh_connect *connect, uint64_t now_ms)
{
	int outside = connect->choice.num_candidates - connect->num_dials;
	struct outlook outlook = {.others = outside > 0};
	enum prospect prospect;
	int i;

	outlook.rivals = outlook.others && outside > waiting_count(connect);
	for (i = 0; i < connect->num_dials; i++) {
		prospect = prospect_of(connect, &connect->dials[i], now_ms);
		outlook.num[prospect]++;
		if (patience_ms[prospect] > outlook.wait_ms)
			outlook.wait_ms = patience_ms[prospect];
	}
	return outlook;
}

/* Also learns since when one is up. */
MESH_HOLDS(process)
static bool is_ready(struct mesh_connect *connect, const struct outlook *outlook, uint64_t now_ms)
{
	if (!outlook->num[PROSPECT_UP])
		connect->up_ms = 0;
	else if (!connect->up_ms)
		connect->up_ms = now_ms;
	return connect->up_ms && now_ms - connect->up_ms >= outlook->wait_ms;
}

MESH_HOLDS(process)
static bool is_refused(const struct mesh_connect *connect, const struct outlook *outlook,
		       uint64_t now_ms)
{
	int refuse = outlook->num[PROSPECT_REFUSES] + outlook->num[PROSPECT_DEAD_END];
	uint64_t since_ms = mesh_connect_refused_since(connect);

	/* The candidates outside this try are tried first; they replace a dead end. */
	if (outlook->others && outlook->num[PROSPECT_DEAD_END])
		return false;
	if (outlook->rivals && now_ms - connect->started_ms <= MESH_DIAL_MS)
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

/* True if none is worth waiting for. Once one is up, the try becomes ready. */
static bool is_hopeless(const struct outlook *outlook, uint64_t age_ms)
{
	if (outlook->num[PROSPECT_UP])
		return false;
	if (outlook->rivals)
		return age_ms > outlook->wait_ms;
	return !outlook->num[PROSPECT_HOPEFUL] && !outlook->num[PROSPECT_DOUBTFUL] &&
	       !outlook->num[PROSPECT_SILENT];
}

MESH_HOLDS(process)
static bool is_spent(const struct mesh_connect *connect, const struct outlook *outlook,
		     uint64_t now_ms)
{
	uint64_t age_ms = now_ms - connect->try_ms;

	if (outlook->num[PROSPECT_DEAD_END] + outlook->num[PROSPECT_UNOPENED] == connect->num_dials)
		return true;
	/* One that is over is replaced even if the others are still waited for. */
	return age_ms > MESH_TRY_DOUBT_MS &&
	       (outlook->num[PROSPECT_OVER] || outlook->num[PROSPECT_UNOPENED] ||
		is_hopeless(outlook, age_ms));
}

/* The time of a try begins when all of its domains are open. */
MESH_HOLDS(process)
static void dials_look(struct mesh_connect *connect, uint64_t now_ms)
{
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (connect->dials[i].state == MESH_DIAL_OPENING) {
			connect->try_ms = now_ms;
			connect->up_ms = 0;
		}
		mesh_dial_look(&connect->dials[i], now_ms);
	}
}

enum mesh_verdict mesh_connect_judge(struct mesh_connect *connect, uint64_t now_ms)
{
	struct outlook outlook;

	mesh_process_assert_locked(connect->net->process);
	dials_look(connect, now_ms);
	outlook = outlook_of(connect, now_ms);
	if (is_ready(connect, &outlook, now_ms))
		return MESH_VERDICT_READY;
	if (is_refused(connect, &outlook, now_ms))
		return MESH_VERDICT_REFUSED;
	return is_spent(connect, &outlook, now_ms) ? MESH_VERDICT_NEXT : MESH_VERDICT_WAIT;
}

bool mesh_connect_is_up(const struct mesh_connect *connect)
{
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (connect->dials[i].state == MESH_DIAL_UP)
			return true;
	}
	return false;
}
