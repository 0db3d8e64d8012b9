/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_choice.c - which local NIC reaches which NIC of the peer, and why: the heart of the plugin.
 */
#include <stdlib.h>
#include <string.h>

#include "nic/path_choice.h"
#include "nic/user_lists.h"

const char *mesh_path_reason_word(enum mesh_path_reason reason)
{
	static const char *const words[MESH_PATH_REASONS] = {
		[MESH_PATH_WHY_UNKNOWN] = "unknown",
		[MESH_PATH_WHY_SUBNET] = "subnet",
		[MESH_PATH_WHY_LINK_LOCAL] = "link-local",
		[MESH_PATH_WHY_ROUTE] = "route",
		[MESH_PATH_WHY_NCCL] = "nccl",
		[MESH_PATH_WHY_NCCL_HERE] = "nccl-here",
		[MESH_PATH_WHY_NCCL_THERE] = "nccl-there",
		[MESH_PATH_WHY_RAIL] = "rail",
		[MESH_PATH_WHY_NUMBER] = "number",
		[MESH_PATH_WHY_NEAR] = "near",
		[MESH_PATH_WHY_CABLE] = "cable",
		[MESH_PATH_WHY_SHARES] = "shares",
		[MESH_PATH_WHY_FAR] = "far",
		[MESH_PATH_WHY_FALLBACK] = "fallback",
		[MESH_PATH_WHY_RESERVE] = "reserve",
		[MESH_PATH_WHY_UNLIKELY] = "unlikely",
		[MESH_PATH_WHY_RELAY] = "relay",
	};

	return words[reason];
}

/* A candidate's score; each term outweighs all the terms after it. */
enum {
	SCORE_RDMA = 1 << 15,	     /* routed paths only; the provider has a reason of its own */
	SCORE_SAME_RAIL = 1 << 14,   /* routed paths only */
	SCORE_SAME_NUMBER = 1 << 13, /* the same */
	SCORE_ROUTABLE = 1 << 12,
	SCORE_LOCAL_HINT = 1 << 11,
	SCORE_REMOTE_HINT = 1 << 10,
	SCORE_SPREAD_MAX = (1 << 10) - 1, /* at least MESH_PATH_CANDIDATES_MAX */
};

_Static_assert(MESH_PATH_CANDIDATES_MAX <= SCORE_SPREAD_MAX, "the rotation fits below the hints");

struct scored_candidate {
	struct mesh_path_candidate candidate;
	int score; /* all different */
};

static int candidate_score(const struct mesh_endpoint_addr *local,
			   const struct mesh_endpoint_addr *remote,
			   const struct mesh_path_hints *hints,
			   const struct mesh_path_candidate *pair)
{
	const bool routed = pair->class == MESH_PATH_ROUTED;
	int ours = -1, theirs = -1, score = 0;

	if (routed && hints->rails) {
		ours = mesh_rail_of(hints->rails, &local->addr);
		theirs = mesh_rail_of(hints->rails, &remote->addr);
	}
	if (ours >= 0 && theirs >= 0)
		score += ours == theirs ? SCORE_SAME_RAIL : 0;
	else if (routed && hints->same_count && local->nic == remote->nic)
		score += SCORE_SAME_NUMBER;
	/* A routed pair with RDMA goes before relays, one without goes behind some of them. */
	if (routed && pair->provider == MESH_PROVIDER_VERBS_RXM)
		score += SCORE_RDMA;
	if (!mesh_addr_is_link_local(&local->addr))
		score += SCORE_ROUTABLE;
	if (local->nic == hints->local_nic)
		score += SCORE_LOCAL_HINT;
	if (remote->nic == hints->remote_nic)
		score += SCORE_REMOTE_HINT;
	return score;
}

/* The first term that speaks for a candidate of this score. */
static enum mesh_path_reason score_reason(int score, enum mesh_path_class class)
{
	if (score & SCORE_SAME_RAIL)
		return MESH_PATH_WHY_RAIL;
	if (score & SCORE_SAME_NUMBER)
		return MESH_PATH_WHY_NUMBER;
	if (!(score & SCORE_ROUTABLE))
		return MESH_PATH_WHY_LINK_LOCAL;
	if (score & SCORE_LOCAL_HINT)
		return score & SCORE_REMOTE_HINT ? MESH_PATH_WHY_NCCL : MESH_PATH_WHY_NCCL_HERE;
	if (score & SCORE_REMOTE_HINT)
		return MESH_PATH_WHY_NCCL_THERE;
	return class == MESH_PATH_ROUTED ? MESH_PATH_WHY_ROUTE : MESH_PATH_WHY_SUBNET;
}

/* Gives @pair the best provider that both NICs have. Returns false if there is none. */
static bool provider_find(const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote, struct mesh_path_candidate *pair)
{
	pair->provider = MESH_PROVIDER_TCP;
	if (local->provider == remote->provider)
		pair->provider = local->provider; /* NONE in plans, which know no providers */
	else if (!(local->also_tcp && remote->provider == MESH_PROVIDER_TCP) &&
		 !(remote->also_tcp && local->provider == MESH_PROVIDER_TCP))
		return false;
	return true;
}

/* True if the two share a link; notes in @choice a pair that lacks only a common provider. */
static bool is_direct(const struct mesh_endpoint_addr *local,
		      const struct mesh_endpoint_addr *remote, const struct mesh_path_hints *hints,
		      struct mesh_path_choice *choice, struct mesh_path_candidate *pair)
{
	if (!mesh_addr_same_subnet(&local->addr, &remote->addr) ||
	    (mesh_addr_is_loopback(&local->addr) && !hints->same_node))
		return false;
	if (provider_find(local, remote, pair))
		return true;
	choice->differing = *pair;
	return false;
}

/* What asks the kernel, for mesh_path_choose_routed(). */
struct router {
	mesh_path_leads *leads;
	const void *arg;
};

/* True for addresses that routers forward. */
static bool is_forwarded(const struct mesh_addr *addr)
{
	return addr->family != MESH_FAMILY_NONE && !mesh_addr_is_link_local(addr) &&
	       !mesh_addr_is_loopback(addr);
}

static bool is_routed(const struct mesh_endpoint_addr *local,
		      const struct mesh_endpoint_addr *remote, const struct router *router,
		      struct mesh_path_candidate *pair)
{
	return provider_find(local, remote, pair) && local->addr.family == remote->addr.family &&
	       is_forwarded(&local->addr) && is_forwarded(&remote->addr) &&
	       !mesh_addr_same_subnet(&local->addr, &remote->addr) &&
	       router->leads(local, remote, router->arg);
}

/*
 * Moves to the choice the best pair, and each next one without a NIC in common with these. @first:
 * no pair has been chosen before, so that none of these shares a NIC with a better one. Returns how
 * many are left.
 */
static int round_choose(struct scored_candidate *scored, int count, bool first,
			struct mesh_path_choice *choice)
{
	struct mesh_path_candidate *pair;
	uint32_t locals = 0, remotes = 0;
	int i, left = 0;

	for (i = 0; i < count; i++) {
		pair = &scored[i].candidate;
		if (locals & 1u << pair->local || remotes & 1u << pair->remote) {
			scored[left++] = scored[i];
			continue;
		}
		locals |= 1u << pair->local;
		remotes |= 1u << pair->remote;
		pair->reason = first ? score_reason(scored[i].score, pair->class)
				     : MESH_PATH_WHY_SHARES;
		choice->candidates[choice->num_candidates++] = *pair;
	}
	return left;
}

static int best_first(const void *left, const void *right)
{
	const struct scored_candidate *a = left, *b = right;

	return (a->score < b->score) - (a->score > b->score);
}

/* Adds all candidates to the choice, in rounds. */
static void rounds_choose(struct scored_candidate *scored, int count,
			  const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	int i, left = count;

	for (i = 0; i < count; i++)
		scored[i].score +=
			(int)((hints->spread + (uint32_t)(count - 1 - i)) % (uint32_t)count);
	qsort(scored, (size_t)count, sizeof(*scored), best_first);
	while (left)
		left = round_choose(scored, left, left == count, choice);
}

/* Each pair from @begin on that uses something better could use tcp: as one of @class. */
static void fallbacks_add(const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote, int begin,
			  enum mesh_path_class class, struct mesh_path_choice *choice)
{
	struct mesh_path_candidate pair;
	int i, num = choice->num_candidates;

	for (i = begin; i < num; i++) {
		pair = choice->candidates[i];
		if (pair.provider == MESH_PROVIDER_TCP || !local[pair.local].also_tcp ||
		    !remote[pair.remote].also_tcp)
			continue;
		pair.provider = MESH_PROVIDER_TCP;
		pair.class = class;
		pair.reason = MESH_PATH_WHY_FALLBACK;
		choice->candidates[choice->num_candidates++] = pair;
	}
}

/*
 * Adds every pair that the kernel's routes connect; without @router, every pair that shares a link.
 */
static void candidates_add(const struct mesh_endpoint_addr *local, int num_local,
			   const struct mesh_endpoint_addr *remote, int num_remote,
			   const struct mesh_path_hints *hints, const struct router *router,
			   struct mesh_path_choice *choice)
{
	struct scored_candidate scored[MESH_PATH_CANDIDATES_MAX];
	int i, count = 0, begin = choice->num_candidates;

	for (i = 0; i < num_local * num_remote; i++) {
		const struct mesh_endpoint_addr *ours = &local[i / num_remote];
		const struct mesh_endpoint_addr *theirs = &remote[i % num_remote];
		struct scored_candidate *next = &scored[count];

		next->candidate = (struct mesh_path_candidate){
			.local = (uint8_t)(ours - local),
			.remote = (uint8_t)(theirs - remote),
			.class = router ? MESH_PATH_ROUTED : MESH_PATH_DIRECT,
		};
		if (router ? !is_routed(ours, theirs, router, &next->candidate)
			   : !is_direct(ours, theirs, hints, choice, &next->candidate))
			continue;
		next->score = candidate_score(ours, theirs, hints, &next->candidate);
		count++;
	}
	rounds_choose(scored, count, hints, choice);
	if (hints->fallback)
		fallbacks_add(local, remote, begin,
			      router ? MESH_PATH_FALLBACK_ROUTED : MESH_PATH_FALLBACK, choice);
}

void mesh_path_choose(const struct mesh_endpoint_addr *local, int num_local,
		      const struct mesh_endpoint_addr *remote, int num_remote,
		      const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	memset(choice, 0, sizeof(*choice));
	candidates_add(local, num_local, remote, num_remote, hints, NULL, choice);
}

void mesh_path_choose_routed(const struct mesh_endpoint_addr *local, int num_local,
			     const struct mesh_endpoint_addr *remote, int num_remote,
			     const struct mesh_path_hints *hints, mesh_path_leads *leads,
			     const void *arg, struct mesh_path_choice *choice)
{
	const struct router router = {leads, arg};

	if (!hints->same_node)
		candidates_add(local, num_local, remote, num_remote, hints, &router, choice);
}

int mesh_path_ways(const struct mesh_path_candidate *pairs, int num)
{
	uint32_t locals = 0, remotes = 0;
	int i;

	for (i = 0; i < num; i++) {
		if (locals & 1u << pairs[i].local || remotes & 1u << pairs[i].remote)
			break;
		locals |= 1u << pairs[i].local;
		remotes |= 1u << pairs[i].remote;
	}
	return i;
}

bool mesh_endpoints_have_rdma(const struct mesh_endpoint_addr *endpoints, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		if (endpoints[i].provider == MESH_PROVIDER_VERBS_RXM)
			return true;
	}
	return false;
}

/* The ends of all candidates, and what is known of them. */
struct ordering {
	const struct mesh_endpoint_addr *local, *remote;
	const enum mesh_path_proof *proofs;
	const struct mesh_path_choice *choice;
};

static bool is_link_local(const struct mesh_endpoint_addr *local,
			  const struct mesh_path_candidate *pair)
{
	return mesh_addr_is_link_local(&local[pair->local].addr);
}

bool mesh_path_is_guess(const struct mesh_endpoint_addr *local,
			const struct mesh_path_choice *choice)
{
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		if (is_link_local(local, &choice->candidates[i]))
			return true;
	}
	return false;
}

static bool is_likely(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index];

	if (ordering->proofs[index] == MESH_PROOF_NONE)
		return !is_link_local(ordering->local, pair); /* the subnet is what joins them */
	return ordering->proofs[index] == MESH_PROOF_THERE;
}

static enum mesh_path_class class_of(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index];

	if (is_likely(ordering, index))
		return pair->class;
	if (ordering->choice->proven || ordering->proofs[index] == MESH_PROOF_OTHER)
		return MESH_PATH_UNLIKELY;
	return pair->class;
}

/* What an answer adds to the reason for a candidate's place. */
static enum mesh_path_reason reason_of(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index];

	if (class_of(ordering, index) == MESH_PATH_UNLIKELY)
		return MESH_PATH_WHY_UNLIKELY;
	if (pair->reason == MESH_PATH_WHY_LINK_LOCAL && ordering->proofs[index] == MESH_PROOF_THERE)
		return MESH_PATH_WHY_CABLE;
	return pair->reason;
}

/*
 * Two halves of one port hear both halves of the other port. True if as many of our NICs before
 * this one share its wire as of theirs before the other.
 */
static bool is_in_order(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index], *other;
	const struct mesh_endpoint_addr *local = ordering->local, *remote = ordering->remote;
	int i, ours = 0, theirs = 0;

	if (ordering->proofs[index] != MESH_PROOF_THERE || !is_link_local(local, pair))
		return true;
	for (i = 0; i < ordering->choice->num_candidates; i++) {
		other = &ordering->choice->candidates[i];
		if (ordering->proofs[i] != MESH_PROOF_THERE || other->class != pair->class)
			continue;
		ours += other->remote == pair->remote &&
			local[other->local].nic < local[pair->local].nic;
		theirs += other->local == pair->local &&
			  remote[other->remote].nic < remote[pair->remote].nic;
	}
	return ours == theirs;
}

void mesh_path_order(const struct mesh_endpoint_addr *local,
		     const struct mesh_endpoint_addr *remote, const enum mesh_path_proof *proofs,
		     struct mesh_path_choice *choice)
{
	const struct ordering ordering = {local, remote, proofs, choice};
	struct mesh_path_choice ordered;
	int keys[MESH_PATH_CHOICE_MAX], i, key, num = 0;

	choice->proven = false;
	for (i = 0; i < choice->num_candidates; i++) {
		if (choice->candidates[i].class <= MESH_PATH_FAR)
			choice->proven |= is_likely(&ordering, i);
	}
	ordered = *choice;
	for (i = 0; i < choice->num_candidates; i++)
		keys[i] = 2 * (int)class_of(&ordering, i) + !is_in_order(&ordering, i);
	for (key = 0; key <= 2 * MESH_PATH_UNLIKELY + 1; key++) {
		for (i = 0; i < choice->num_candidates; i++) {
			if (keys[i] != key)
				continue;
			ordered.candidates[num] = choice->candidates[i];
			ordered.candidates[num].reason = reason_of(&ordering, i);
			ordered.candidates[num++].class = (enum mesh_path_class)(key / 2);
		}
	}
	*choice = ordered;
}

/* ---- near NCCL's NICs ------------------------------------------------------------------------ */

/* The candidates of one class, the first in the choice, and their ends. */
struct near_view {
	const struct mesh_endpoint_addr *local, *remote;
	const struct mesh_path_hints *hints;
	const struct mesh_near_rule *rule;
	const struct mesh_path_candidate *pairs;
	int num;
};

static bool is_near_pair(const struct near_view *view, const struct mesh_path_candidate *pair)
{
	return view->rule->local & 1u << view->local[pair->local].nic &&
	       view->rule->remote & 1u << view->remote[pair->remote].nic;
}

static bool rule_applies(const struct near_view *view)
{
	const struct mesh_path_hints *hints = view->hints;
	int i, reached = 0;
	bool named = false;

	for (i = 0; i < view->num; i++) {
		if (view->local[view->pairs[i].local].nic != hints->local_nic)
			continue;
		reached++;
		named |= view->remote[view->pairs[i].remote].nic == hints->remote_nic &&
			 is_near_pair(view, &view->pairs[i]);
	}
	return named && mesh_path_ways(view->pairs, view->num) >= view->rule->num_nics &&
	       (view->rule->always || reached > 1 ||
		mesh_path_class_is_routed(view->pairs[0].class));
}

bool mesh_path_near_first(const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote,
			  const struct mesh_path_hints *hints, const struct mesh_near_rule *rule,
			  struct mesh_path_choice *choice)
{
	struct near_view view = {local, remote, hints, rule, choice->candidates, 0};
	struct mesh_path_candidate far[MESH_PATH_CANDIDATES_MAX];
	enum mesh_path_class class = choice->candidates[0].class;
	int i, near = 0, num_far = 0;

	while (view.num < choice->num_candidates && choice->candidates[view.num].class == class)
		view.num++;
	if ((class != MESH_PATH_DIRECT && class != MESH_PATH_ROUTED) || !rule_applies(&view))
		return false;
	for (i = 0; i < view.num; i++) {
		if (is_near_pair(&view, &choice->candidates[i])) {
			choice->candidates[near++] = choice->candidates[i];
			continue;
		}
		far[num_far] = choice->candidates[i];
		far[num_far].reason = MESH_PATH_WHY_FAR;
		far[num_far++].class = class == MESH_PATH_DIRECT ? MESH_PATH_FAR
								 : MESH_PATH_FAR_ROUTED;
	}
	for (i = 0; i < near && num_far; i++) {
		if (choice->candidates[i].reason != MESH_PATH_WHY_NCCL &&
		    choice->candidates[i].reason != MESH_PATH_WHY_SHARES)
			choice->candidates[i].reason = MESH_PATH_WHY_NEAR;
	}
	memcpy(&choice->candidates[near], far, (size_t)num_far * sizeof(far[0]));
	return num_far;
}
