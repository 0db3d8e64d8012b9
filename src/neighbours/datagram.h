/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datagram.h - questions and answers (wire/neighbour.h): what this process says of itself and its
 * NICs, and the UDP sockets. These see on which NIC a datagram arrives, and drop what has passed a
 * router.
 */
#ifndef MESH_NEIGHBOURS_DATAGRAM_H
#define MESH_NEIGHBOURS_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "control/engine.h"
#include "nic/nic.h"
#include "wire/neighbour.h"

/* One of our NICs. */
struct mesh_neighbour_link {
	unsigned int ifindex;
	struct mesh_addr ask_from;   /* IPv6 link-local, or IPv4 where it has none; else NONE */
	struct mesh_neighbour about; /* all but type, job and processes; token: below */
};

/**
 * The port of the NIC: the same for all NICs of one; 0: not known. Each datagram has a token of its
 * own, so this has its place in what the processes of a node send each other.
 */
static inline uint64_t mesh_neighbour_link_port(const struct mesh_neighbour_link *link)
{
	return link->about.token;
}

struct mesh_neighbour_self {
	uint64_t node_id;
	char node[MESH_NODE_NAME_MAX];
	char site[MESH_SITE_NAME_MAX]; /* "" where none is set */
	uint64_t job;		       /* mesh_job_key() */
	struct mesh_neighbour_process process;
};

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

/** Takes over the site's name from the settings, as far as it has room. */
void mesh_neighbour_site_set(struct mesh_neighbour_self *self, const char *setting);

/** A number for each site's name, the same on all nodes; 0 for "". */
uint32_t mesh_neighbour_site_number(const char *site);

/**
 * Describes a NIC.
 *
 * @index: of the NIC in the node's stable order
 * @providers: bit N: enum mesh_provider_id N
 */
void mesh_neighbour_link_describe(const struct mesh_neighbour_self *self,
				  const struct mesh_nic *nic, int index, uint8_t providers,
				  struct mesh_neighbour_link *link);

/**
 * Opens a non-blocking socket of @family on @port of all NICs; 0: any port. A forked child does not
 * keep it. Close it with mesh_descriptor_close(). The next process may open the port before this
 * one has ended.
 *
 * Returns the descriptor, or a negative errno.
 */
int mesh_datagram_open(enum mesh_family family, uint16_t port);

/** Opens one as watch->fd, and has @engine watch it, unless that is NULL. 0 or a negative errno. */
int mesh_datagram_watch(struct mesh_engine *engine, struct mesh_watch *watch,
			enum mesh_family family, uint16_t port);

/** The group that all nodes of a link belong to: ff02::1 or 224.0.0.1. */
struct mesh_addr mesh_datagram_group(enum mesh_family family);

/**
 * Sends a finished datagram of @size bytes out of one NIC.
 *
 * @from: one of the NIC's addresses, of the socket's family
 * @to: a neighbour's address, or the group
 *
 * Returns 0 or a negative errno.
 */
int mesh_datagram_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
		       const struct mesh_addr *to, uint16_t port, const void *datagram,
		       size_t size);

/**
 * Takes one datagram from the socket.
 *
 * Returns 1 if it came from the link; 0 if it was dropped, because it has passed a router or is not
 * of this protocol; -EAGAIN if there is none.
 */
int mesh_datagram_receive(int fd, struct mesh_datagram *datagram);

#endif
