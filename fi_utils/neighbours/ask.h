/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - asks on each mesh NIC of this node which node is there. */
#ifndef MESH_FI_UTILS_NEIGHBOURS_ASK_H
#define MESH_FI_UTILS_NEIGHBOURS_ASK_H

#include "neighbours/asking.h"
#include "peer/self.h"

/**
 * Asks, and waits for the answers for half a second at most; less if each NIC has one.
 *
 * @node: this node
 * @self, @asking: receive what was asked, and what was heard; @asking refers to @self. To be freed
 * with mesh_asking_finish() in any case
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno if no socket can be opened.
 */
int neighbours_ask(const struct peer_self *node, struct mesh_neighbour_self *self,
		   struct mesh_asking *asking);

#endif
