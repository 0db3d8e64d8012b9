/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - this process's one view of the mesh: settings, NICs, domains, peers, listeners.
 *
 * Lock: node->lock covers everything here and in struct mesh_peer, mesh_listener, mesh_connect
 * that is not marked otherwise. It is the outermost lock; the data path never takes it.
 */
#ifndef MESH_TRANSPORT_NODE_H
#define MESH_TRANSPORT_NODE_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log_limit.h"
#include "fabric/domain.h"
#include "nic/nic.h"
#include "system/stats_file.h"
#include "transport/engine.h"
#include "wire/handle.h"
#include "wire/stats.h"

struct mesh_peer;
struct mesh_listener;
struct mesh_connect;
struct mesh_comm;
struct mesh_link;

/* One NIC's control listener. */
struct mesh_control {
	struct mesh_watch watch;
	struct mesh_node *node;
	int dev;
	uint64_t paused_until_ms; /* after accept() ran out of file descriptors; else 0 */
};

/* How far the domain of a NIC is. */
enum mesh_dev_state {
	MESH_DEV_CLOSED,
	MESH_DEV_OPENING, /* a thread of openings.c is at it */
	MESH_DEV_OPEN,
	MESH_DEV_FAILED, /* it has said why */
};

struct mesh_node {
	struct mesh_lock lock;
	/* Set once, then constant for the life of the process. */
	struct mesh_config config;
	struct mesh_nic_table table;
	int num_nics; /* NCCL's devices: table.nics[0 .. num_nics - 1], the first devs below */
	uint64_t node_id;
	uint64_t process_id;
	char name[MESH_NODE_NAME_MAX];

	int users; /* open mesh_nets; under net.c's own mutex */
	/* From the first listen or connect until the last mesh_net closes. */
	_Atomic(bool) started; /* set last: who sees it may poll the domains without the lock */
	struct mesh_engine engine;
	/* By dev. Domains may be read without the lock; NULL: not open. */
	_Atomic(int) num_devs;
	const struct mesh_nic *nics[MESH_NICS_MAX];
	enum mesh_provider_id providers[MESH_NICS_MAX];
	enum mesh_dev_state dev_states[MESH_NICS_MAX];
	struct mesh_domain *_Atomic domains[MESH_NICS_MAX];
	uint64_t opening_ms; /* since when domains are being opened */
	bool settled;	     /* that is over, or took too long: connections are made */
	/* Of the open domains, once that is settled; only grows while the node is started. */
	struct mesh_endpoint_addr endpoints[MESH_NICS_MAX];
	int num_endpoints;
	struct mesh_control controls[MESH_NICS_MAX]; /* by dev */
	uint16_t control_port;

	/* What strangers and a lack of file descriptors can cause for ever. */
	struct {
		struct mesh_log_limit accept_fails;
		struct mesh_log_limit no_descriptor; /* for a peer that greets */
		struct mesh_log_limit strangers;     /* ended before they were up */
		struct mesh_log_limit unaccepted; /* lost before NCCL accepted a comm of theirs */
		struct mesh_log_limit mtu;
	} limits;

	LIST_HEAD(, mesh_peer) peers;
	LIST_HEAD(, mesh_link) links; /* of the peers that are up */
	LIST_HEAD(, mesh_listener) listeners;
	LIST_HEAD(, mesh_connect) connects;
	LIST_HEAD(, mesh_comm) comms;
	uint32_t next_listen_id;
	uint64_t next_connect_id;
	uint64_t seen_polls[MESH_NICS_MAX]; /* by dev, at the engine's last look */
	uint64_t busy_ms;		    /* when it last saw that somebody else polls */
	bool was_awake;			    /* engine.awake, at the same look */
	/* For `fi_mesh watch`; counters is never NULL, and points into the page or to our own. */
	struct mesh_stats_file stats;
	struct mesh_process_counters *counters;
	struct mesh_process_counters own_counters;
};

/** One mesh_net_open(): NCCL's ctx. What belongs to it carries a pointer to it. */
struct mesh_net {
	struct mesh_node *node;
};

/**
 * Starts the engine and the opening of the domains, and listens on the control port, once. Does not
 * wait for the domains: mesh_openings_result(). node->lock held.
 *
 * Returns 0 or a negative errno (logged).
 */
int mesh_node_start(struct mesh_node *node);

/**
 * If no domain could be opened, tries all of them again: file descriptors may be free by now. For
 * listen: each one may have another result. node->lock held.
 *
 * Returns 0 or a negative errno (logged).
 */
int mesh_node_retry(struct mesh_node *node);

/**
 * Lists what other nodes are told of our NICs: the domains that are open or will be, which have
 * port 0 so far. node->lock held.
 *
 * @endpoints: room for MESH_NICS_MAX
 *
 * Returns how many.
 */
int mesh_node_offers(const struct mesh_node *node, struct mesh_endpoint_addr *endpoints);

/** Ends the engine and closes the domains, once nothing uses them. No lock held. */
void mesh_node_stop(struct mesh_node *node);

/** Polls each domain that nobody else is polling. No lock held, or node->lock. */
void mesh_node_poll(struct mesh_node *node);

/** Whatever is due by now: retries, deadlines, greetings. Called by the engine; node->lock held. */
void mesh_node_tick(struct mesh_node *node);

/** Milliseconds until the engine should call again, -1 for never. node->lock held. */
int mesh_node_timeout(struct mesh_node *node);

/** The domain that serves @endpoint, which is one of node->endpoints. */
static inline struct mesh_domain *mesh_node_domain(const struct mesh_node *node,
						   const struct mesh_endpoint_addr *endpoint)
{
	return node->domains[endpoint->nic];
}

/** Writes "10.1.0.1/24 (ab0), ..." of endpoints into @text of @size bytes; returns @text. */
const char *mesh_endpoints_text(const struct mesh_endpoint_addr *endpoints, int num_endpoints,
				const struct mesh_node *node, char *text, size_t size);

#endif
