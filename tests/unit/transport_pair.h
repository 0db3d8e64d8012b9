/* SPDX-License-Identifier: Apache-2.0 */
/* transport_pair.h - both ends of a connection in one process, over the loopback interface. */
#ifndef TRANSPORT_PAIR_H
#define TRANSPORT_PAIR_H

#include "setup/net.h"

#include "unit.h"

/* Whatever takes longer than this has failed. */
#define LIMIT_MS 20000

struct pair {
	struct mesh_net *net;
	struct mesh_comm *send;
	struct mesh_comm *receive;
};

struct transfer {
	struct mesh_registration *from, *to;
	struct mesh_request *send, *receive;
	uint8_t *source, *target;
};

/** Bytes that depend on the seed and on their place. */
void pattern_fill(uint8_t *data, size_t size, uint32_t seed);

/** A net, and a comm from itself to itself; and their end. */
void pair_open(struct pair *pair);
void pair_close(struct pair *pair);

/** Another comm of a net that is open. */
void pair_connect(struct pair *pair);

/** Tests the request until it is done, and checks the size. */
void request_finish(struct mesh_request *request, size_t expected);

/** Memory for one message, registered at both ends; and its end. */
void transfer_open(struct pair *pair, struct transfer *transfer, size_t size, size_t room);
void transfer_close(struct pair *pair, struct transfer *transfer);

/** One checked message; @late: the receive is posted after the send. */
void message_move(struct pair *pair, size_t size, size_t room, bool late);

#endif
