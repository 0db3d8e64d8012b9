/* SPDX-License-Identifier: Apache-2.0 */
/* rails.h - which NICs of two nodes belong together on a routed fabric: NCCL_MESH_RAILS. */
#ifndef MESH_NIC_RAILS_H
#define MESH_NIC_RAILS_H

#include "nic/addr.h"

#define MESH_RAIL_SUBNETS_MAX 64

/* The subnets of all rails. */
struct mesh_rails {
	int num_subnets;
	struct {
		struct mesh_addr subnet;
		int rail; /* from 0 on */
	} subnets[MESH_RAIL_SUBNETS_MAX];
};

/**
 * Reads "10.1.0.0/16+10.65.0.0/16,10.2.0.0/16": a comma list of rails, each of which is a list of
 * subnets. Blanks around them are skipped; an empty text is no rail.
 *
 * Returns 0 or -EINVAL (logged); @rails is written on success only.
 */
int mesh_rails_parse(const char *text, struct mesh_rails *rails);

/** The rail in whose subnets the address lies, by the longest prefix; -1: in none. */
int mesh_rail_of(const struct mesh_rails *rails, const struct mesh_addr *addr);

#endif
