/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datagram.h - UDP sockets for questions and answers (wire/neighbour.h, wire/links.h). They see on
 * which NIC a datagram arrives, and drop what has passed a router.
 */
#ifndef MESH_NEIGHBOURS_DATAGRAM_H
#define MESH_NEIGHBOURS_DATAGRAM_H

#include <stdint.h>

#include "nic/addr.h"
#include "wire/links.h"

/* A datagram that has arrived. */
struct mesh_datagram {
	unsigned int ifindex;	     /* of the NIC that it came in on */
	struct mesh_addr from;	     /* with its scope */
	uint16_t port;		     /* host order */
	int error;		     /* 0, or what mesh_neighbour_decode() says of it */
	struct mesh_neighbour about; /* decoded; the frozen bytes alone after -EPROTONOSUPPORT */
	bool is_links;		     /* instead, it is about links: */
	union mesh_links links;
};

/**
 * Opens a non-blocking socket of @family on @port of all NICs; 0: any port. A forked child does not
 * keep it. Close it with mesh_descriptor_close().
 *
 * More sockets may have the port. Each gets what goes to the group; what goes to an address of ours
 * is for the one that was opened last.
 *
 * Returns the descriptor, or a negative errno.
 */
int mesh_datagram_open(enum mesh_family family, uint16_t port);

/**
 * The same for what goes to the group of all nodes alone, on one NIC.
 *
 * @ifindex: 0 with IPv4, where it means all NICs
 */
int mesh_datagram_group_open(enum mesh_family family, unsigned int ifindex, uint16_t port);

/** The group that all nodes of a link belong to: ff02::1 or 224.0.0.1. */
struct mesh_addr mesh_datagram_group(enum mesh_family family);

/**
 * Sends a finished datagram out of one NIC.
 *
 * @from: one of the NIC's addresses, of the socket's family
 * @to: a neighbour's address, or the group
 *
 * Returns 0 or a negative errno.
 */
int mesh_datagram_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
		       const struct mesh_addr *to, uint16_t port,
		       const struct mesh_neighbour *neighbour);

/** The same for a datagram about links. */
int mesh_datagram_links_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
			     const struct mesh_addr *to, uint16_t port,
			     const struct mesh_links_head *links);

/**
 * Takes one datagram from the socket.
 *
 * Returns 1 if it came from the link; 0 if it was dropped, because it has passed a router or is not
 * of this protocol; -EAGAIN if there is none.
 */
int mesh_datagram_receive(int fd, struct mesh_datagram *datagram);

#endif
