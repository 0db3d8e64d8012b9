/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checker.h - the state of `fi_mesh check --peer`: this node, a peer, and a link between them; and
 * its parts.
 */
#ifndef MESH_FI_UTILS_PEER_CHECKER_H
#define MESH_FI_UTILS_PEER_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/finding.h"
#include "neighbours/asking.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "nic/path_choice.h"
#include "peer/self.h"
#include "peer/stream.h"
#include "peer/wire.h"
#include "wire/handle.h"
#include "wire/protocol.h"

/* A host name (RFC 1035) fits. */
#define PEER_TARGET_TEXT_MAX 256
/* Addresses of one name that are tried. */
#define PEER_TARGET_ADDRS_MAX 8

struct peer_target {
	char text[PEER_TARGET_TEXT_MAX]; /* as the user named it */
	struct mesh_addr addrs[PEER_TARGET_ADDRS_MAX];
	int num_addrs; /* 0: a name that was not resolved yet */
};

/**
 * Reads "10.1.0.1", "fd00::1", "fe80::1%eth0", "fe80::1%3" or what may be a host name.
 *
 * @why: what is wrong, for a message; written on an error only
 *
 * Returns 0 or -EINVAL.
 */
int peer_target_parse(const char *text, struct peer_target *target, const char **why);

/**
 * Finds the addresses of a name: that of the neighbour which calls itself so, or else what the
 * resolver says. Does nothing for an address. May wait for the resolver.
 *
 * @asking: what the neighbours have answered
 * @why: what the resolver says; written on an error only
 *
 * Returns 0 or -ENOENT.
 */
int peer_target_resolve(struct peer_target *target, const struct mesh_asking *asking,
			const char **why);

/* Nodes that one call may name. */
#define PEER_TARGETS_MAX 64

/* Room for the hops of a route as text. */
#define PEER_ROUTE_TEXT_MAX 1024

struct peer_check_options {
	struct peer_target targets[PEER_TARGETS_MAX];
	int num_targets;
	uint16_t port;
	uint32_t ms; /* of each measurement: latency, and each direction's bandwidth */
	bool json, quiet;
};

/* What was measured on one link; negative: not measured. */
struct peer_numbers {
	double half_rtt_us;
	double to_gbps, from_gbps;
	double cpu_here,
		cpu_there;     /* share of one processor that the measurement had; 1: all of it */
	long to_mtu, from_mtu; /* bytes of the largest IP packet that arrived */
};

/* The routes over relays to a peer that a connection uses together. */
struct peer_routes {
	int num;	/* on each of their nodes something relays; 0: there is none */
	int num_relays; /* on each */
	bool rdma;	/* on each hop */
	double gbps;	/* of the narrowest hop of each, together; 0: unknown */
	/*
	 * The job for which the relays are asked: this environment's, else that of a rank on the
	 * first node; 0: what relays there relays for all.
	 */
	uint64_t job;
	char text[PEER_ROUTE_TEXT_MAX]; /* the first one's hops */
};

/* This side of a check. */
struct peer_checker {
	const struct peer_check_options *options;
	struct peer_self self;
	struct mesh_neighbour_self about;
	struct mesh_asking asking; /* what the neighbours have answered */
	struct progress *progress;
};

/* One node that answered. */
struct peer {
	struct mesh_addr addr; /* under which it was asked */
	struct mesh_check_hello hello;
	char name[MESH_NODE_NAME_MAX + 8]; /* fit to be printed */
	struct mesh_path_choice choice;
	struct peer_routes routes;
	json_t *relays; /* routes over relays, for --json; owned, or NULL: not looked for */
};

/* One direct path to it. */
struct peer_link {
	const struct peer_checker *checker;
	const struct peer *peer;
	const struct mesh_nic *nic; /* ours */
	const struct mesh_check_nic *theirs;
	struct mesh_addr local, remote; /* their addresses */
	enum mesh_provider_id provider;
	bool routed; /* there are routers between the two: no cable joins them */
	struct peer_stream stream;
	struct peer_numbers numbers;
};

/** The cable of one of our NICs. Returns its index in checker->asking, or -1: it asked nobody. */
int peer_cable_find(const struct peer_checker *checker, const struct mesh_nic *nic,
		    struct mesh_asked_cable *cable);

/** That node's NIC @netdev (NULL: the one that belongs to ours) on the cable, or NULL. */
const struct mesh_heard *peer_cable_heard(const struct peer_checker *checker,
					  const struct mesh_nic *nic, uint64_t node_id,
					  const char *netdev);

/** Any NIC at the other end, if possible the one that belongs to ours; NULL: nobody answers. */
const struct mesh_heard *peer_cable_far(const struct peer_checker *checker,
					const struct mesh_nic *nic);

/** Checks one link: both ends, frames of full size, latency, bandwidth. */
void peer_link_check(struct peer_link *link, struct check_result *result);

/**
 * Reports which paths reach the peer, which of them is used first, and why other NICs have none.
 */
void peer_paths_check(const struct peer_checker *checker, struct peer *peer,
		      struct check_result *result);

/** The same paths for --json: {"paths": [...]}; NULL if memory is short. */
json_t *peer_paths_json(const struct peer_checker *checker, const struct peer *peer);

/**
 * Searches the mesh for routes to the peer, and reports each with the cables of its hops, and what
 * relays on its nodes. peer->relays receives the same for --json, and
 * peer->routes what is needed to measure over them.
 *
 * @replace: only routes for which connections leave routed tcp, the path of the two nodes
 *
 * Returns false if it has reported nothing: no route is known.
 */
bool peer_relays_check(const struct peer_checker *checker, struct peer *peer, bool replace,
		       struct check_result *result);

/**
 * Measures to a peer that peer->routes reach, with connections of the plugin over relays, and
 * judges the figures.
 *
 * Returns the figures for --json; NULL if memory is short.
 */
json_t *peer_relayed_check(const struct peer_checker *checker, const struct peer *peer,
			   struct check_result *result);

#endif
