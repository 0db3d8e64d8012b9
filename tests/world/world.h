/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - a deterministic simulation of nodes, cables and time in one program.
 *
 * Real: the plugin, loaded once for each simulated process as NCCL loads it, and the installed
 * libfabric. Simulated: the kernel below both. The program exports the C library's functions
 * (socket(), epoll_wait(), pthread_create(), clock_gettime(), ...), so that the dynamic linker
 * binds both libraries to these; node_system.c replaces what the plugin asks by netlink.
 *
 * One thread runs at a time. It is preempted only in calls of this kernel, and the seed draws
 * which thread is next. A call takes a fixed time; the clock skips to the next event when all
 * threads wait. A run is the same each time, and an hour of it takes minutes.
 *
 * files.c     descriptors, read(), write() and so on
 * sockets.c   socket calls; tcp.c and datagram.c are what they act on
 * events.c    epoll, poll, eventfd, socketpair
 * threads.c   threads, locks, the clock, events
 * net.c       nodes and cables
 * leftovers.c, statistics.c, said.c: what a process has left, counted and said at its end
 * play.c, rank.c: NCCL's part; cases.c, test_*.c: the faults
 */
#ifndef TESTS_WORLD_WORLD_H
#define TESTS_WORLD_WORLD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define WORLD_NODES_MAX 8
#define WORLD_NICS_MAX 8 /* of a node, lo not among them */
#define WORLD_CABLES_MAX 16
#define WORLD_FILES_MAX 4096 /* descriptors of a node */
#define WORLD_NEVER UINT64_MAX

#define WORLD_US 1000ull
#define WORLD_MS 1000000ull
#define WORLD_S 1000000000ull

struct world_file;

/* The end of a cable. */
struct world_nic {
	char name[16];
	unsigned int ifindex;
	struct in_addr addr; /* with a prefix of 24 bits */
	bool bare;	     /* the address has been removed */
	int cable;	     /* its number; -1: none, as of lo */
	int end;	     /* which end of the cable: 0 or 1 */
};

/* A node runs one process. */
struct world_node {
	int number;
	char name[16];
	uint64_t id;
	struct world_nic nics[WORLD_NICS_MAX];
	int num_nics;
	struct world_file *files[WORLD_FILES_MAX];
	int num_files;
	int limit_files; /* RLIMIT_NOFILE */
	int lives;   /* processes that it has had; the threads of earlier ones never run again */
	bool frozen; /* as by SIGSTOP: its threads do not run */
	uint16_t next_port;
	uint16_t closed_port; /* a firewall drops what comes for it from other nodes; 0: none */
};

enum world_cable_state {
	WORLD_CABLE_UP,
	WORLD_CABLE_DOWN,  /* no carrier at either end */
	WORLD_CABLE_HOLE,  /* a carrier, and nothing passes */
	WORLD_CABLE_SMALL, /* a carrier, and only small packets pass */
};

struct world_cable {
	struct world_nic *ends[2];
	struct world_node *nodes[2];
	enum world_cable_state state;
	uint64_t changes; /* of the state */
	uint64_t bytes;	  /* that NICs have sent over it */
	uint64_t mbps;
	uint64_t delay_ns;
	uint64_t free_ns[2]; /* when the queue of the NIC at this end is empty */
};

struct world {
	uint64_t now_ns;
	uint64_t random;
	struct world_node nodes[WORLD_NODES_MAX];
	int num_nodes;
	struct world_cable cables[WORLD_CABLES_MAX];
	int num_cables;
	bool trace;
	size_t socket_bytes; /* that a socket holds, of each direction */
};

extern struct world world;

/* ---- for test programs --------------------------------------------------------------------- */

/** Begins the simulation; the calling thread becomes part of it. @seed decides every draw. */
void world_start(uint64_t seed);

/** A node with a process of its own, and the interface lo. */
struct world_node *world_node_add(const char *name);

/** A cable, a subnet of its own, 10.N.0.0/24; both nodes get news. Returns its number N. */
int world_cable_add(struct world_node *a, struct world_node *b, uint64_t mbps, uint64_t delay_us);

/** Sets the state of a cable; both nodes get news of the carrier if it changes. */
void world_cable_set(int cable, enum world_cable_state state);

/** Resets all TCP connections over the cable at both ends, as a firewall's reload does. */
void world_cable_reset(int cable);

/** Removes the address of this end of a cable, or adds it again; the node gets news. */
void world_address_set(struct world_node *node, int cable, bool there);

/** Tells the process that files have changed in the folders that it watches. */
void world_folder_changed(struct world_node *node);

/** The process ends at once, as by SIGKILL: its kernel closes what it had. */
void world_kill(struct world_node *node);

/** Stops the process, or lets it go on: SIGSTOP, SIGCONT. */
void world_freeze(struct world_node *node, bool frozen);

/** @none: open() and so on fail with EMFILE in this process. */
void world_descriptors_limit(struct world_node *node, bool none);

/** The calling thread makes calls as this process from now on; NULL: as none. */
void world_act_for(struct world_node *node);

/** The process for which the calling thread acts, or NULL. */
struct world_node *world_acting(void);

/** Sleeps for @ns of simulated time. */
void world_pause(uint64_t ns);

/** Draws a number below @limit. */
uint64_t world_draw(uint64_t limit);

/** Prints a line with the time if WORLD_TRACE is set. */
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- between the files of this folder ------------------------------------------------------ */

/**
 * Waits until @ready(@arg) is true or @until_ns has come, and lets other threads run. Any thread
 * may call @ready; NULL: it is ready at once. Returns whether it was ready.
 */
bool world_wait(bool (*ready)(void *arg), void *arg, uint64_t until_ns);

/**
 * Begins a call of this kernel: takes CALL_NS, handles what is due, and sometimes lets another
 * thread run. What was looked up before it may be gone after it.
 */
void world_enter(void);

/** Calls @what(@arg, @number) at this time; any thread may be the one that calls it. */
void world_at(uint64_t ns, void (*what)(void *arg, uint64_t number), void *arg, uint64_t number);

/** How many threads the process has. */
int world_threads(const struct world_node *node);

/** Prints the reason to stderr and exits with status 1. */
void world_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
