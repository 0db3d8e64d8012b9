/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - the state of `fi_mesh serve`: sockets, neighbours, connections of checking nodes.
 * There is one thread with one poll(); every connection has a deadline, and its memory is bounded.
 */
#ifndef MESH_FI_UTILS_SERVE_CLIENT_H
#define MESH_FI_UTILS_SERVE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nic/addr.h"
#include "nic/nic.h"
#include "peer/self.h"
#include "peer/stream.h"
#include "wire/handle.h"
#include "wire/protocol.h"

struct mesh_net;
struct serve_http;
struct serve_neighbours;

/* Connections at once; more wait in the kernel. */
#define SERVE_CLIENTS_MAX 8
/* Addresses that --listen may add to those of the NICs. */
#define SERVE_LISTEN_MAX 8
#define SERVE_SOCKETS_MAX 64
/* A connection that sends nothing for this long, or does not read what it asked for, is closed. */
#define SERVE_IDLE_MS 15000
/* The first frame must arrive within this time. */
#define SERVE_HELLO_MS 5000
/* A complete check of one link takes much less. */
#define SERVE_CLIENT_MS 120000

struct serve_client {
	struct peer_stream stream; /* fd -1: this slot is free */
	struct mesh_addr local, remote;
	char node[MESH_NODE_NAME_MAX]; /* from its HELLO; "" before */
	uint64_t idle_until_ms, until_ms;
	bool noise; /* it has not sent HELLO */
	/* Datagrams of full size. */
	int udp_fd; /* -1: none */
	uint64_t token;
};

struct serve_socket {
	int fd;
	struct mesh_addr addr;
};

struct serve {
	struct peer_self self;
	uint16_t port;
	struct serve_socket sockets[SERVE_SOCKETS_MAX];
	int num_sockets;
	struct serve_neighbours *neighbours; /* owned; NULL: their questions are not answered */
	struct serve_http *http;	     /* owned; NULL: there is no page */
	struct mesh_net *relay;		     /* owned; NULL: it relays for none */
	bool nics_changed;		     /* since they were last read */
	pid_t child_pid;		     /* a child that measures; 0: none */
	struct serve_client clients[SERVE_CLIENTS_MAX];
	struct mesh_addr announced; /* of the last "node ... checks" line */
	uint64_t served, strangers; /* connections */
	bool paused;	   /* accepts nothing until the next tick: there was no file descriptor */
	bool pause_warned; /* since the last connection */
};

/** Takes an accepted socket into a free slot; closes it if there is no memory. */
void serve_client_open(struct serve *serve, int fd, const struct mesh_addr *local,
		       const struct mesh_addr *remote);

void serve_client_close(struct serve *serve, struct serve_client *client);

/** Reads, answers and measures as far as possible without waiting. */
void serve_client_advance(struct serve *serve, struct serve_client *client);

/** Closes the client if it has exceeded a time limit. */
void serve_client_tick(struct serve *serve, struct serve_client *client, uint64_t now_ms);

/** True while a child measures with a checking node; none is left as a zombie. */
bool serve_child_runs(struct serve *serve);

#endif
