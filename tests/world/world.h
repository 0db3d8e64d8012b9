/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - nodes, cables and time, all in one program: the plugin as NCCL loads it, once for each
 * process, over libfabric as it is installed, and below both a kernel that this folder plays. One
 * thread runs at a time, which one is drawn by a seed, and the clock moves only when all of them
 * wait: a run is the same each time, an hour of it takes seconds, and a loss can come at any step.
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
	int cable;	     /* -1: none, as of lo */
	int end;	     /* of the cable: 0 or 1 */
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
	uint64_t mbps;
	uint64_t delay_ns;
	uint64_t free_ns[2]; /* when what was sent from this end has left it */
};

struct world {
	uint64_t now_ns;
	uint64_t random;
	struct world_node nodes[WORLD_NODES_MAX];
	int num_nodes;
	struct world_cable cables[WORLD_CABLES_MAX];
	int num_cables;
	bool trace;
};

extern struct world world;

/* ---- the driver's side --------------------------------------------------------------------- */

/** Begins; the calling thread becomes the driver's. The seed: of everything that is drawn. */
void world_start(uint64_t seed);

/** A node with a process of its own, and the interface lo. */
struct world_node *world_node_add(const char *name);

/** A cable, which is a subnet of its own, 10.N.0.0/24. Returns its number N. */
int world_cable_add(struct world_node *a, struct world_node *b, uint64_t mbps, uint64_t delay_us);

/** Both ends see what becomes of the carrier. */
void world_cable_set(int cable, enum world_cable_state state);

/** Resets all TCP connections over the cable at both ends, as a firewall's reload does. */
void world_cable_reset(int cable);

/** The process ends at once, as by SIGKILL: its kernel closes what it had. */
void world_kill(struct world_node *node);

/** Stops the process, or lets it go on: SIGSTOP, SIGCONT. */
void world_freeze(struct world_node *node, bool frozen);

/** No further descriptors for this process, or as many as it likes. */
void world_descriptors_limit(struct world_node *node, bool none);

/** The calling thread acts for this process from now on; NULL: for none. */
void world_act_for(struct world_node *node);

/** The same for the calling thread until the end of the call. */
struct world_node *world_acting(void);

/** Lets the others run, and so much time pass. */
void world_pause(uint64_t ns);

/** Below @limit, drawn. */
uint64_t world_draw(uint64_t limit);

/** A line for the reader, with the time, if WORLD_TRACE is set. */
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- between the files of this folder ------------------------------------------------------ */

/** Waits until @ready(@arg) or the time; the first may be NULL. Returns whether it is ready. */
bool world_wait(bool (*ready)(void *arg), void *arg, uint64_t until_ns);

/** At the beginning of each call of the kernel: takes a moment, in which packets arrive. */
void world_enter(void);

/** Calls @what(@arg, @number) at this time, in whichever thread. */
void world_at(uint64_t ns, void (*what)(void *arg, uint64_t number), void *arg, uint64_t number);

/** Ends the program with a line: the world is not as it can be. */
void world_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
