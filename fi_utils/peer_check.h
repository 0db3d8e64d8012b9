/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_check.h - the parts of `fi_mesh check --peer`: what is known of a peer, and one section of
 * findings for each thing that is looked at.
 */
#ifndef MESH_FI_UTILS_PEER_CHECK_H
#define MESH_FI_UTILS_PEER_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <mesh/mesh/check_wire.h>

#include "nic/path_choice.h"

#include "check.h"
#include "peer_facing.h"
#include "peer_self.h"
#include "peer_stream.h"

/* Addresses that one call may name. */
#define PEER_ADDRS_MAX 64

struct peer_check_options {
	struct mesh_addr addrs[PEER_ADDRS_MAX];
	int num_addrs;
	uint16_t port;
	bool json, quiet;
};

/* What was measured on one link; negative: not measured. */
struct peer_numbers {
	double half_rtt_us;
	double to_gbps, from_gbps;
	double cpu_here, cpu_there; /* of one processor, for the measurement; 1: all of it */
	bool over_tcp;		    /* not through libfabric: it would not open */
	long to_mtu, from_mtu;	    /* bytes of the largest IP packet that arrived */
};

/* This side of a check. */
struct peer_checker {
	const struct peer_check_options *options;
	struct peer_self self;
	struct peer_facing facing[MESH_NICS_MAX]; /* beside self.table.nics */
	struct progress *progress;
};

/* One node that answered. */
struct peer {
	struct mesh_addr addr; /* under which it was asked */
	struct mesh_check_hello hello;
	char name[MESH_NODE_NAME_MAX + 8]; /* fit to be printed */
	struct mesh_path_choice choice;
};

/* One direct path to it. */
struct peer_link {
	const struct peer_checker *checker;
	const struct peer *peer;
	const struct mesh_nic *nic; /* ours */
	const struct mesh_check_nic *theirs;
	struct mesh_addr local, remote; /* their addresses */
	enum mesh_provider_id provider;
	struct peer_stream stream;
	struct mesh_check_facing facing; /* what the peer's NICs hear */
	struct peer_numbers numbers;
};

/**
 * Connects and says HELLO.
 *
 * @local: from which address; NULL leaves that to the kernel's routes
 * @text: MESH_CHECK_TEXT_MAX bytes; why it failed, in words
 *
 * Returns 0 or a negative errno; @stream is open on success only.
 */
int peer_dial(const struct peer_checker *checker, const struct mesh_addr *local,
	      const struct mesh_addr *remote, struct peer_stream *stream,
	      struct mesh_check_hello *hello, char *text);

/** Says why nobody answers at @addr, from what this node can see (peer_paths.c). */
void peer_explain(const struct peer_checker *checker, const struct mesh_addr *addr, int error,
		  const char *text, struct check_result *result);

/** Says which paths lead to the peer, which is the first choice, and why not the others. */
void peer_paths_check(const struct peer_checker *checker, struct peer *peer,
		      struct check_result *result);

/** One link: who is at both ends, frames of full size, latency, bandwidth (peer_link.c). */
void peer_link_check(struct peer_link *link, struct check_result *result);

/** Does a frame of full size pass in both directions (peer_mtu.c)? The stream is open. */
void peer_mtu_check(struct peer_link *link, struct check_result *result);

/** Latency and bandwidth (peer_measure.c). The stream is open. */
void peer_measure(struct peer_link *link, struct check_result *result);

/**
 * The same through TCP, into link->numbers (peer_tcp.c). The stream is open.
 *
 * Returns 0 or a negative errno.
 */
int peer_tcp_measure(struct peer_link *link);

/** True if the arguments of `fi_mesh check` ask for peers. */
bool peer_check_is_wanted(int argc, char **argv);

/** fi_mesh check --peer ADDR... [--port PORT] [--quiet] [--json] */
int peer_check_command(int argc, char **argv);

#endif
