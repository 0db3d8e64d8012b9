/* SPDX-License-Identifier: Apache-2.0 */
/* connect_withdraw.h - informs the listener of a connection that has ended. */
#ifndef MESH_SETUP_CONNECT_WITHDRAW_H
#define MESH_SETUP_CONNECT_WITHDRAW_H

#include "base/lock.h"
#include "setup/connecting.h"

/** Withdraws @comm; NULL: gives the whole connection up. process->lock held. */
MESH_HOLDS(process)
void mesh_connect_withdraw(const struct mesh_connect *connect, struct mesh_peer *peer,
			   const struct mesh_comm *comm);

/** Notifies the accept() on the other node over each connection that exists. */
MESH_HOLDS(process)
void mesh_connect_give_up(const struct mesh_connect *connect);

#endif
