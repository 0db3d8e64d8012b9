/* SPDX-License-Identifier: Apache-2.0 */
/* asking_fixture.h - NICs and what they have heard, without a network. */
#ifndef TESTS_UNIT_ASKING_FIXTURE_H
#define TESTS_UNIT_ASKING_FIXTURE_H

#include "neighbours/asking.h"

#define ASKING_OWN_ID 1
#define ASKING_THEIR_ID 2

/** Node a, whose NICs are ab0 (10.1.0.1/24) and ab1 (10.2.0.1/24): 100 Gb/s, MTU 9000. */
void asking_fixture_open(struct mesh_asking *asking, struct mesh_neighbour_self *self);

/** A NIC has heard another one, of node a or b; the caller may change what it says. */
struct mesh_heard *asking_heard_add(struct mesh_asking *asking, int index, uint64_t node_id,
				    const char *netdev, const char *addr);

/** Sets the ports of the two NICs; 0: not known. */
void asking_ports_set(struct mesh_asking *asking, uint64_t first, uint64_t second);

#endif
