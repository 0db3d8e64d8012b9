/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facing.h - finds the node that a cable leads to. The question goes to all nodes of the link
 * (ff02::1), from the NIC's IPv6 link-local address. This works without any other address, with a
 * wrong subnet, and if cables are in the wrong ports.
 */
#ifndef MESH_FI_UTILS_PEER_FACING_H
#define MESH_FI_UTILS_PEER_FACING_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "nic/nic.h"
#include "peer/wire.h"

/* Neighbours kept for one NIC: a cable has one, a switch more. */
#define PEER_FACING_MAX 8

/* What one NIC has heard. */
struct peer_facing {
	bool asked; /* the question could be sent */
	int error;  /* why not: negative errno; -EADDRNOTAVAIL without a link-local address */
	struct mesh_check_cable heard[PEER_FACING_MAX];
	struct mesh_addr from[PEER_FACING_MAX]; /* the link-local address of each, with its zone */
	int num_heard;
};

/**
 * A socket that receives the questions of @nic's link, or a negative errno. It receives only what
 * arrives for ff02::1 on this interface.
 */
int peer_facing_listen(const struct mesh_nic *nic, uint16_t port);

/**
 * Answers the questions that have arrived at such a socket.
 *
 * @heard: called for each question, with the sender
 */
void peer_facing_answer(int fd, const struct mesh_nic *nic, uint64_t node_id, const char *node,
			void (*heard)(void *arg, const struct mesh_check_cable *cable,
				      const struct mesh_addr *from),
			void *arg);

/**
 * Asks on all NICs at once and waits for the answers, at most @ms; ends earlier once each NIC has
 * one.
 *
 * @facing: num_nics of them
 */
void peer_facing_ask(const struct mesh_nic *nics, int num_nics, uint16_t port, uint64_t node_id,
		     const char *node, uint32_t ms, struct peer_facing *facing);

/** The NIC @netdev (NULL: any) of that node, as it was heard; NULL: it was not. */
const struct mesh_check_cable *peer_facing_find(const struct peer_facing *facing, uint64_t node_id,
						const char *netdev);

/** Enters @cable, heard from the address @from, once for each node and NIC of it. */
void peer_facing_enter(struct peer_facing *facing, const struct mesh_check_cable *cable,
		       const struct mesh_addr *from);

#endif
