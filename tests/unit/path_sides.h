/* SPDX-License-Identifier: Apache-2.0 */
/* path_sides.h - the NICs of two nodes, and the paths between them, as texts. */
#ifndef MESH_TESTS_PATH_SIDES_H
#define MESH_TESTS_PATH_SIDES_H

#include "nic/path_choice.h"

/* One of the two nodes. */
struct path_side {
	struct mesh_endpoint_addr nics[MESH_NICS_MAX];
	int num;
};

#define PATH_SIDE_FIRST 3 /* the number of a side's first NIC: it is not its place */

/**
 * A node whose NICs have these addresses, separated by blanks. Behind an address stands what the
 * NIC has: '+' RDMA and tcp, '!' only RDMA, '~' tcp;ofi_rxm; nothing: tcp.
 */
struct path_side path_side(const char *addrs);

extern struct mesh_path_choice chosen;
extern int paths_asked; /* calls of the two functions below since paths_choose() */

/** Routes of the kernel: from each NIC to each NIC, or between those of one number. */
bool paths_lead_all(const struct mesh_endpoint_addr *local, const struct mesh_endpoint_addr *remote,
		    const void *arg);
bool paths_lead_rails(const struct mesh_endpoint_addr *local,
		      const struct mesh_endpoint_addr *remote, const void *arg);

/** Chooses; @leads: NULL: direct paths only. Returns how many there are. */
int paths_choose(const struct path_side *local, const struct path_side *remote,
		 mesh_path_leads *leads, const struct mesh_path_hints *hints);

/**
 * Fails the test unless these are the first @num paths, in their order; -1: all. "0-1" is one from
 * our first NIC to their second; '+' in place of '-' with RDMA, '~' with tcp;ofi_rxm. Behind it
 * stand its classes: r routed, f fallback, d far (distant), s reserve (spare), u unlikely.
 */
void paths_are(const char *wanted, int num);

/** The same with the word of each one's reason: "0-1:subnet". */
void path_reasons_are(const char *wanted, int num);

#endif
