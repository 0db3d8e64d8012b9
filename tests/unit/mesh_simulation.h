/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mesh_simulation.h - nodes that pass questions about links on, as src/neighbours does, with a
 * network and a clock of their own: links lose datagrams and go down, nodes lie.
 */
#ifndef MESH_TESTS_MESH_SIMULATION_H
#define MESH_TESTS_MESH_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "neighbours/answering.h"
#include "neighbours/searching.h"

/* Node i has the id SIMULATION_ID + i. */
#define SIMULATION_ID 1000
#define SIMULATION_LINKS_MAX 126

enum simulation_lie {
	SIMULATION_HONEST,
	SIMULATION_INVENTS, /* reports nodes that do not exist */
	SIMULATION_SILENT,  /* answers nothing and passes nothing on */
};

struct simulated_link {
	int own;       /* the NIC, or the cable, here */
	int node, nic; /* at the other end */
	bool down;
};

struct simulated_node {
	struct mesh_forwarding forwarding;
	struct simulated_link links[SIMULATION_LINKS_MAX];
	int num_links;
	enum simulation_lie lie;
	bool passes;	   /* it will look what is to be passed on */
	uint64_t received; /* datagrams */
};

struct simulated_search {
	struct mesh_explore explore;
	int node, tries;
	uint64_t done_us; /* 0: not over */
};

struct simulation_event;

struct simulation {
	struct simulated_node *nodes;
	int num_nodes;
	struct simulated_search *searches;
	int num_searches;
	uint64_t now_us, datagrams;
	uint32_t seed, loss_percent;
	struct simulation_event **events; /* a heap */
	int num_events;
	uint64_t order;
};

/** Makes nodes without links. */
void simulation_open(struct simulation *simulation, int num_nodes, int num_searches, uint32_t seed);
void simulation_close(struct simulation *simulation);

uint32_t simulation_draw(struct simulation *simulation, uint32_t below);

/** Joins two nodes by a cable. */
void simulation_cable(struct simulation *simulation, int a, int b);

/** Takes a cable down at both ends, or up. */
void simulation_cable_set(struct simulation *simulation, int a, int b, bool down);

/** The torus x * y * z. */
void simulation_torus(struct simulation *simulation, int x, int y, int z);

/** Joins each NIC of all nodes by a switch of its own. */
void simulation_switches(struct simulation *simulation, int nics);

/** A connected graph with this many cables in all, at least. */
void simulation_random_graph(struct simulation *simulation, int cables);

/** Search @i begins at @node. */
void simulation_search(struct simulation *simulation, int i, int node);

/** Until nothing happens for good, or this time has passed. */
void simulation_run(struct simulation *simulation, uint64_t us);

#endif
