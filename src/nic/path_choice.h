/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_choice.h - which local NIC reaches which NIC of the peer, and why: the heart of the plugin.
 */
#ifndef MESH_NIC_PATH_CHOICE_H
#define MESH_NIC_PATH_CHOICE_H

#include <stdbool.h>

#include "nic/addr.h"

struct mesh_rails;

/* The strongest thing that decided about a candidate's place. */
enum mesh_path_reason {
	MESH_PATH_WHY_UNKNOWN, /* the other node chose it, or it joined later */
	MESH_PATH_WHY_SUBNET,
	MESH_PATH_WHY_LINK_LOCAL,
	MESH_PATH_WHY_ROUTE,
	MESH_PATH_WHY_NCCL,	  /* NCCL chose both NICs */
	MESH_PATH_WHY_NCCL_HERE,  /* NCCL chose ours */
	MESH_PATH_WHY_NCCL_THERE, /* NCCL chose the listener's */
	MESH_PATH_WHY_RAIL,
	MESH_PATH_WHY_NUMBER,
	MESH_PATH_WHY_NEAR,
	MESH_PATH_WHY_CABLE,
	/* Why it comes after others. */
	MESH_PATH_WHY_SHARES, /* a better pair has one of its NICs */
	MESH_PATH_WHY_FAR,
	MESH_PATH_WHY_FALLBACK,
	MESH_PATH_WHY_RESERVE,
	MESH_PATH_WHY_UNLIKELY,
	MESH_PATH_WHY_RELAY, /* no pair of NICs reaches the node */
	MESH_PATH_REASONS
};

/** One word for logs and JSON: "subnet", "rail", ... Stable. Never NULL. */
const char *mesh_path_reason_word(enum mesh_path_reason reason);

#define MESH_PATH_CANDIDATES_MAX (MESH_NICS_MAX * MESH_NICS_MAX)
/* Each pair once more with tcp. */
#define MESH_PATH_CHOICE_MAX (2 * MESH_PATH_CANDIDATES_MAX)

/* Candidates of one class are tried together; a class with a lower number is tried first. */
enum mesh_path_class {
	MESH_PATH_DIRECT,	   /* two NICs on one subnet */
	MESH_PATH_FAR,		   /* the same, far from NCCL's NICs (mesh_path_near_first()) */
	MESH_PATH_FALLBACK,	   /* the same with tcp, where both have a better provider */
	MESH_PATH_ROUTED,	   /* the kernel has a route from our NIC to the peer's */
	MESH_PATH_FAR_ROUTED,	   /* the same, far from NCCL's NICs */
	MESH_PATH_FALLBACK_ROUTED, /* the same with tcp, where both have a better provider */
	MESH_PATH_RESERVE,	   /* two NICs on one subnet, of which one is a reserve */
	MESH_PATH_RESERVE_ROUTED,  /* the same with a route of the kernel */
	MESH_PATH_UNLIKELY,	   /* on one subnet, but neighbours contradict it */
};

static inline bool mesh_path_class_is_routed(enum mesh_path_class class)
{
	return class == MESH_PATH_ROUTED || class == MESH_PATH_FAR_ROUTED ||
	       class == MESH_PATH_FALLBACK_ROUTED || class == MESH_PATH_RESERVE_ROUTED;
}

/*
 * Two NICs, and the best provider that both have. Indices into the arrays. Each attempt to connect
 * has room for MESH_PATH_CHOICE_MAX of them, so they are small.
 */
struct mesh_path_candidate {
	uint8_t local;
	uint8_t remote;
	enum mesh_provider_id provider : 4;
	enum mesh_path_class class : 4;
	enum mesh_path_reason reason : 8; /* of its place in the choice */
};
_Static_assert(sizeof(struct mesh_path_candidate) == 4, "attempts to connect have many");

/* What guides the choice where several paths exist. */
struct mesh_path_hints {
	int local_nic;	 /* NCCL's dev on this side */
	int remote_nic;	 /* NCCL's dev on the listening side */
	uint32_t spread; /* any number: equal choices keep their order, rotated by it */
	bool same_node;	 /* both processes are on one node: loopback addresses may be used */
	bool fallback;	 /* the setting allows tcp where a better provider does not get through */
	bool same_count; /* both nodes have as many NICs: on routed paths, rails that correspond */
	const struct mesh_rails *rails; /* which NICs form rails, on routed paths; NULL: unknown */
};

struct mesh_path_choice {
	int num_candidates;
	/* The direct ones first, each kind with the best first. */
	struct mesh_path_candidate candidates[MESH_PATH_CHOICE_MAX];
	bool proven; /* some direct ones are more than guesses (mesh_path_order()) */
	/*
	 * For the message if there is no candidate: a pair that only differs in its provider. That
	 * is MESH_PROVIDER_NONE if there is none.
	 */
	struct mesh_path_candidate differing;
};

/**
 * Finds all direct paths between @local and @remote, best first.
 *
 * A path exists if each address lies in the other's subnet by their real prefix lengths.
 * Order: in rounds. The paths of a round have no NIC in common, so that the first k candidates use
 * k different cables. Within a round: routable addresses before link-local
 * ones (every link has the same fe80::/64), then the NICs that NCCL chose, then @hints->spread.
 */
void mesh_path_choose(const struct mesh_endpoint_addr *local, int num_local,
		      const struct mesh_endpoint_addr *remote, int num_remote,
		      const struct mesh_path_hints *hints, struct mesh_path_choice *choice);

/** True if a packet from @local to @remote leaves by the NIC of @local. */
typedef bool mesh_path_leads(const struct mesh_endpoint_addr *local,
			     const struct mesh_endpoint_addr *remote, const void *arg);

/**
 * Adds the routed paths to a choice of mesh_path_choose(): the pairs without a common subnet for
 * which @leads is true. None between processes of one node.
 *
 * Order: in rounds, as the direct ones. Within a round: pairs with RDMA, then pairs of NICs of one
 * rail (@hints->rails), then those with the same number, if @hints->same_count and their rails are
 * unknown, then the NICs that NCCL chose, then @hints->spread.
 */
void mesh_path_choose_routed(const struct mesh_endpoint_addr *local, int num_local,
			     const struct mesh_endpoint_addr *remote, int num_remote,
			     const struct mesh_path_hints *hints, mesh_path_leads *leads,
			     const void *arg, struct mesh_path_choice *choice);

/** How many candidates at the beginning have no NIC in common: the first round of a class. */
int mesh_path_ways(const struct mesh_path_candidate *pairs, int num);

/** True if one of these NICs has RDMA. */
bool mesh_endpoints_have_rdma(const struct mesh_endpoint_addr *endpoints, int num);

/*
 * What neighbours have answered orders the candidates of a connection. It only decides which are
 * tried first: an answer may be false, and an old one wrong.
 */

/* What is known of a candidate's link. */
enum mesh_path_proof {
	MESH_PROOF_NONE,  /* no node has answered on our NIC */
	MESH_PROOF_THERE, /* the candidate's remote NIC has answered on our NIC */
	MESH_PROOF_OTHER, /* other nodes have answered there, and the listener's has not */
};

/** True if one of the candidates joins link-local addresses: any two NICs have these in common. */
bool mesh_path_is_guess(const struct mesh_endpoint_addr *local,
			const struct mesh_path_choice *choice);

/**
 * Moves the unlikely candidates to a class of their own, which is tried last: those where other
 * nodes have answered, and, if any candidate is likely, link-local ones without an answer. Likely
 * are addresses of one subnet, and link-local ones whose remote NIC has answered. The order stays
 * as it was, but for NICs that share a wire: the first of ours goes with the first of theirs.
 *
 * @local, @remote: what the candidates are indices into
 * @proofs: beside the candidates
 */
void mesh_path_order(const struct mesh_endpoint_addr *local,
		     const struct mesh_endpoint_addr *remote, const enum mesh_path_proof *proofs,
		     struct mesh_path_choice *choice);

/*
 * NCCL chooses a NIC near the GPU. Where all NICs of both nodes reach each other, it spreads its
 * connections over all of them itself; a comm that took all paths would only cross the CPUs' own
 * links, register each buffer on each NIC, and need a connection on each.
 */

/** When the paths near NCCL's NICs come first. */
struct mesh_near_rule {
	uint32_t local, remote; /* bit masks of NIC numbers: near NCCL's NIC on either side */
	int num_nics;		/* NCCL's devices here */
	bool always;		/* a setting: also where nothing shows a switch */
};

/**
 * Moves candidates with an end that is not near NCCL's NIC behind the others of their class, into a
 * class of their own, which is tried only if none of the near ones comes up. This applies to the
 * first class of @choice, if it is that of direct or of routed paths, and
 *  - one of the near pairs has NCCL's NICs at both ends,
 *  - as many pairs without a common NIC exist as NCCL has NICs, so that NCCL uses all of them, and
 *  - NCCL's NIC reaches more than one NIC of the peer, or the paths are routed: a switch or router
 *    is between. Parallel cables stay one comm's: NCCL may have fewer channels than cables.
 *
 * @local, @remote: what the candidates are indices into
 * @hints: NCCL's NICs
 *
 * Returns true if it applies, and some candidate was moved.
 */
bool mesh_path_near_first(const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote,
			  const struct mesh_path_hints *hints, const struct mesh_near_rule *rule,
			  struct mesh_path_choice *choice);

#endif
