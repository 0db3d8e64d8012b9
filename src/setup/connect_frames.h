/* SPDX-License-Identifier: Apache-2.0 */
/* connect_frames.h - asks the listener for a path, or informs it that a connection has ended. */
#ifndef MESH_SETUP_CONNECT_FRAMES_H
#define MESH_SETUP_CONNECT_FRAMES_H

#include "base/lock.h"
#include "setup/connecting.h"

/** Asks for the latest path of the connection's comm. */
MESH_HOLDS(process)
void mesh_connect_request(struct mesh_connect *connect);

/** Withdraws @comm; NULL: gives the whole connection up. process->lock held. */
MESH_HOLDS(process)
void mesh_connect_withdraw(const struct mesh_connect *connect, struct mesh_peer *peer,
			   const struct mesh_comm *comm);

/** Notifies the accept() on the other node over each connection that exists. */
MESH_HOLDS(process)
void mesh_connect_give_up(const struct mesh_connect *connect);

#endif
