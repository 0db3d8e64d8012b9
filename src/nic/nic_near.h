/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic_near.h - which NICs of a node are near each other, and, on a switched fabric, the paths of
 * those that are near the NIC that NCCL chose.
 *
 * NCCL chooses a NIC near the GPU. Where all NICs of both nodes reach each other, it spreads its
 * connections over all of them itself; a comm that took all paths would only cross the CPUs' own
 * links, register each buffer on each NIC, and need a connection on each.
 */
#ifndef MESH_NIC_NIC_NEAR_H
#define MESH_NIC_NIC_NEAR_H

#include <stdint.h>

#include "nic/nic.h"
#include "nic/path_choice.h"

/* Why NICs are near each other. */
enum mesh_near_kind {
	MESH_NEAR_ALL,	  /* nothing separates them */
	MESH_NEAR_SWITCH, /* one PCIe switch */
	MESH_NEAR_NUMA,	  /* one NUMA node */
};

/**
 * Finds the NICs that are near NIC @dev, itself included: those behind the same PCIe switch, if
 * each NIC shares its switch with another; else those of the same NUMA node, if each NIC shares its
 * node with another; else all. So at least two, where there are two.
 *
 * @nics: of one node; @num: MESH_NICS_MAX at most
 * @dev: below @num
 * @kind: why; may be NULL
 *
 * Returns a bit mask of indices into @nics.
 */
uint32_t mesh_nics_near(const struct mesh_nic *const *nics, int num, int dev,
			enum mesh_near_kind *kind);

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
