/* SPDX-License-Identifier: Apache-2.0 */
/* path_choice.h - which local NIC reaches which NIC of the peer: the heart of the plugin. */
#ifndef MESH_NIC_PATH_CHOICE_H
#define MESH_NIC_PATH_CHOICE_H

#include <stdbool.h>

#include "nic/endpoint_addr.h"
#include "nic/path_reason.h"
#include "nic/rails.h"

#define MESH_PATH_CANDIDATES_MAX (MESH_NICS_MAX * MESH_NICS_MAX)
/* Each pair once more with tcp. */
#define MESH_PATH_CHOICE_MAX (2 * MESH_PATH_CANDIDATES_MAX)

/* Candidates of one class are tried together; a class with a lower number is tried first. */
enum mesh_path_class {
	MESH_PATH_DIRECT,	   /* two NICs on one subnet */
	MESH_PATH_FAR,		   /* the same, far from NCCL's NICs (nic_near.h) */
	MESH_PATH_FALLBACK,	   /* the same with tcp, where both have a better provider */
	MESH_PATH_ROUTED,	   /* the kernel has a route from our NIC to the peer's */
	MESH_PATH_FAR_ROUTED,	   /* the same, far from NCCL's NICs */
	MESH_PATH_FALLBACK_ROUTED, /* the same with tcp, where both have a better provider */
	MESH_PATH_RESERVE,	   /* two NICs on one subnet, of which one is a reserve */
	MESH_PATH_RESERVE_ROUTED,  /* the same with a route of the kernel */
	MESH_PATH_UNLIKELY,	   /* on one subnet, but neighbours contradict it (path_proof.h) */
};

static inline bool mesh_path_class_is_routed(enum mesh_path_class class)
{
	return class == MESH_PATH_ROUTED || class == MESH_PATH_FAR_ROUTED ||
	       class == MESH_PATH_FALLBACK_ROUTED || class == MESH_PATH_RESERVE_ROUTED;
}

static inline bool mesh_path_class_is_fallback(enum mesh_path_class class)
{
	return class == MESH_PATH_FALLBACK || class == MESH_PATH_FALLBACK_ROUTED;
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
	bool proven; /* some direct ones are more than guesses (path_proof.h) */
	/* For the message if there is no candidate: a pair that only differs in its provider. */
	bool provider_differs;
	struct mesh_path_candidate differing;
};

/**
 * Finds all direct paths between @local and @remote, best first.
 *
 * A path exists if each address lies in the other's subnet by their real prefix lengths.
 * Order: in rounds. Each round has as many paths as possible without a NIC in common, so that the
 * first k candidates use k different cables. Within a round: routable addresses before link-local
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

/** True if one of these NICs has RDMA. */
bool mesh_endpoints_have_rdma(const struct mesh_endpoint_addr *endpoints, int num);

/**
 * True if all of these are routed, and known to be without RDMA: relays with RDMA on each hop go
 * before them (mesh_route_precedes_tcp()). False for none.
 */
bool mesh_paths_yield(const struct mesh_path_candidate *pairs, int num);

/**
 * Why @pair has its provider.
 *
 * @ours, @theirs: the best one of each NIC
 * @setting: NCCL_MESH_PROVIDER names one
 */
enum mesh_provider_reason mesh_path_provider_reason(enum mesh_provider_id ours,
						    enum mesh_provider_id theirs,
						    const struct mesh_path_candidate *pair,
						    bool setting);

#endif
