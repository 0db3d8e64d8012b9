/* SPDX-License-Identifier: Apache-2.0 */
/* path_choice.c - which of our NICs reaches which of the peer's. */
#include <stdbool.h>
#include <string.h>

#include <mesh/mesh/path_choice.h>

/* A candidate's worth; each term outweighs all that follow it. */
enum {
	SCORE_ROUTABLE = 1 << 12,
	SCORE_LOCAL_HINT = 1 << 11,
	SCORE_REMOTE_HINT = 1 << 10,
	SCORE_SPREAD_MAX = (1 << 10) - 1, /* at least MESH_PATH_CANDIDATES_MAX */
};

_Static_assert(MESH_PATH_CANDIDATES_MAX <= SCORE_SPREAD_MAX, "the rotation fits below the hints");

struct scored_candidate {
	struct mesh_path_candidate candidate;
	int score;
	bool chosen;
};

static int candidate_score(const struct mesh_endpoint_addr *local,
			   const struct mesh_endpoint_addr *remote,
			   const struct mesh_path_hints *hints)
{
	int score = 0;

	if (!mesh_addr_is_link_local(&local->addr))
		score += SCORE_ROUTABLE;
	if (local->nic == hints->local_nic)
		score += SCORE_LOCAL_HINT;
	if (remote->nic == hints->remote_nic)
		score += SCORE_REMOTE_HINT;
	return score;
}

/* Collects every pair that shares a link; returns how many. */
static int candidates_collect(const struct mesh_endpoint_addr *local, int num_local,
			      const struct mesh_endpoint_addr *remote, int num_remote,
			      const struct mesh_path_hints *hints, struct mesh_path_choice *choice,
			      struct scored_candidate *scored)
{
	int l, r, count = 0;

	for (l = 0; l < num_local; l++) {
		for (r = 0; r < num_remote; r++) {
			struct mesh_path_candidate pair = {(uint8_t)l, (uint8_t)r};

			if (!mesh_addr_same_subnet(&local[l].addr, &remote[r].addr))
				continue;
			if (mesh_addr_is_loopback(&local[l].addr) && !hints->same_node)
				continue;
			if (local[l].provider != remote[r].provider) {
				choice->provider_differs = true;
				choice->differing = pair;
				continue;
			}
			scored[count++] = (struct scored_candidate){
				.candidate = pair,
				.score = candidate_score(&local[l], &remote[r], hints),
			};
		}
	}
	return count;
}

/* The best candidate left whose NICs are both unused, or NULL. */
static struct scored_candidate *candidate_best(struct scored_candidate *scored, int count,
					       uint32_t used_local, uint32_t used_remote)
{
	struct scored_candidate *best = NULL;
	int i;

	for (i = 0; i < count; i++) {
		const struct mesh_path_candidate *pair = &scored[i].candidate;

		if (scored[i].chosen || used_local & 1u << pair->local ||
		    used_remote & 1u << pair->remote)
			continue;
		if (!best || scored[i].score > best->score)
			best = &scored[i];
	}
	return best;
}

void mesh_path_choose(const struct mesh_endpoint_addr *local, int num_local,
		      const struct mesh_endpoint_addr *remote, int num_remote,
		      const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	struct scored_candidate scored[MESH_PATH_CANDIDATES_MAX];
	uint32_t used_local = 0, used_remote = 0;
	struct scored_candidate *best;
	int i, count;

	memset(choice, 0, sizeof(*choice));
	count = candidates_collect(local, num_local, remote, num_remote, hints, choice, scored);
	for (i = 0; i < count; i++)
		scored[i].score += (int)((hints->spread + (uint32_t)i) % (uint32_t)count);

	/* Rounds: each takes pairs of unused NICs, as long as there are any, then starts afresh. */
	while (choice->num_candidates < count) {
		best = candidate_best(scored, count, used_local, used_remote);
		if (!best) {
			used_local = used_remote = 0;
			continue;
		}
		best->chosen = true;
		used_local |= 1u << best->candidate.local;
		used_remote |= 1u << best->candidate.remote;
		choice->candidates[choice->num_candidates++] = best->candidate;
	}
}
