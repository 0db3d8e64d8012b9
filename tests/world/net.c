/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - nodes, their NICs, and the cables between them. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel.h"

#define LO_DELAY_NS (5 * WORLD_US)
/* What passes a cable in the state SMALL: a frame of Ethernet. */
#define SMALL_BYTES 1500

static const struct world_nic lo = {.name = "lo", .ifindex = 1, .cable = -1};

struct world_node *world_node_add(const char *name)
{
	struct world_node *node = &world.nodes[world.num_nodes];

	if (world.num_nodes == WORLD_NODES_MAX)
		world_die("too many nodes");
	node->number = world.num_nodes++;
	node->id = 0x1000 + (uint64_t)node->number;
	node->limit_files = WORLD_FILES_MAX;
	node->next_port = 32768;
	snprintf(node->name, sizeof(node->name), "%s", name);
	return node;
}

static struct world_nic *nic_add(struct world_node *node, int cable, int end)
{
	struct world_nic *nic = &node->nics[node->num_nics];

	if (node->num_nics == WORLD_NICS_MAX)
		world_die("too many NICs");
	nic->ifindex = 2 + (unsigned int)node->num_nics++;
	snprintf(nic->name, sizeof(nic->name), "x%d", cable);
	nic->addr.s_addr = htonl(10u << 24 | (uint32_t)cable << 16 | (uint32_t)(end + 1));
	nic->cable = cable;
	nic->end = end;
	return nic;
}

int world_cable_add(struct world_node *a, struct world_node *b, uint64_t mbps, uint64_t delay_us)
{
	struct world_cable *cable = &world.cables[world.num_cables];

	if (world.num_cables == WORLD_CABLES_MAX)
		world_die("too many cables");
	cable->nodes[0] = a;
	cable->nodes[1] = b;
	cable->ends[0] = nic_add(a, world.num_cables, 0);
	cable->ends[1] = nic_add(b, world.num_cables, 1);
	cable->mbps = mbps;
	cable->delay_ns = delay_us * WORLD_US;
	world_links_changed(a);
	world_links_changed(b);
	return world.num_cables++;
}

bool world_nic_runs(const struct world_nic *nic)
{
	return nic->cable < 0 || world.cables[nic->cable].state != WORLD_CABLE_DOWN;
}

void world_cable_set(int number, enum world_cable_state state)
{
	static const char *const words[] = {"up", "down", "a black hole", "for small packets only"};
	struct world_cable *cable = &world.cables[number];
	bool changes = (cable->state == WORLD_CABLE_DOWN) != (state == WORLD_CABLE_DOWN);

	world_say("cable %d is %s", number, words[state]);
	cable->state = state;
	cable->changes++;
	cable->free_ns[0] = cable->free_ns[1] = 0;
	if (!changes)
		return;
	world_links_changed(cable->nodes[0]);
	world_links_changed(cable->nodes[1]);
}

void world_address_set(struct world_node *node, int cable, bool there)
{
	struct world_nic *nic = world.cables[cable].ends[node != world.cables[cable].nodes[0]];

	world_say("%s %s its address of cable %d", node->name, there ? "has" : "loses", cable);
	nic->bare = !there;
	world_links_changed(node);
}

struct world_nic *world_nic_find(struct world_node *node, struct in_addr addr)
{
	for (int i = 0; i < node->num_nics; i++) {
		if (node->nics[i].addr.s_addr == addr.s_addr && !node->nics[i].bare)
			return &node->nics[i];
	}
	return NULL;
}

static bool same_subnet(struct in_addr a, struct in_addr b)
{
	return ntohl(a.s_addr) >> 8 == ntohl(b.s_addr) >> 8;
}

struct world_nic *world_route(struct world_node *node, struct in_addr from, struct in_addr to)
{
	if (ntohl(to.s_addr) >> 24 == 127 || world_nic_find(node, to))
		return (struct world_nic *)(uintptr_t)&lo;
	for (int i = 0; i < node->num_nics; i++) {
		if (same_subnet(node->nics[i].addr, to) && !node->nics[i].bare &&
		    (!from.s_addr || from.s_addr == node->nics[i].addr.s_addr))
			return &node->nics[i];
	}
	return NULL;
}

struct world_nic *world_nic_other(const struct world_nic *nic, struct world_node *node,
				  struct world_node **other)
{
	struct world_cable *cable;

	if (nic->cable < 0) {
		*other = node;
		return (struct world_nic *)(uintptr_t)&lo;
	}
	cable = &world.cables[nic->cable];
	*other = cable->nodes[!nic->end];
	return cable->ends[!nic->end];
}

/* ---- packets ------------------------------------------------------------------------------- */

/* A packet on the way over a cable. */
struct flight {
	void (*arrive)(void *arg, uint64_t arrived);
	void *arg;
	const struct world_cable *cable;
	uint64_t changes; /* of the cable before it was sent */
	bool passes;
};

static bool cable_passes(const struct world_cable *cable, size_t size)
{
	return cable->state == WORLD_CABLE_UP ||
	       (cable->state == WORLD_CABLE_SMALL && size <= SMALL_BYTES);
}

/* A fault also loses what the NIC has queued: at 100 Mbit/s that may be 100 ms of traffic. */
static void flight_arrives(void *arg, uint64_t number)
{
	struct flight *flight = arg;

	flight->arrive(flight->arg, flight->passes && flight->changes == flight->cable->changes);
	free(flight);
}

void world_packet_send(const struct world_nic *nic, size_t size,
		       void (*arrive)(void *arg, uint64_t arrived), void *arg)
{
	struct world_cable *cable;
	struct flight *flight;
	uint64_t *free_ns;

	if (nic->cable < 0) {
		world_at(world.now_ns + LO_DELAY_NS, arrive, arg, 1);
		return;
	}
	cable = &world.cables[nic->cable];
	free_ns = &cable->free_ns[nic->end];
	if (*free_ns < world.now_ns)
		*free_ns = world.now_ns;
	*free_ns += size * 8000 / cable->mbps;
	cable->bytes += size;
	flight = malloc(sizeof(*flight));
	if (!flight)
		world_die("no memory");
	*flight = (struct flight){arrive, arg, cable, cable->changes, cable_passes(cable, size)};
	world_at(*free_ns + cable->delay_ns, flight_arrives, flight, 0);
}

/* ---- processes ----------------------------------------------------------------------------- */

WORLD_REAL_OF(getpid)

/* The plugin begins with a port that follows from it: a run is to be the same each time. */
pid_t getpid(void)
{
	const struct world_node *node = world_acting();

	return node ? 1000 * (node->number + 1) + node->lives : WORLD_REAL(getpid)();
}

void world_kill(struct world_node *node)
{
	world_say("the process of %s is killed", node->name);
	node->lives++;
	node->limit_files = WORLD_FILES_MAX;
	world_files_close(node);
}

void world_freeze(struct world_node *node, bool frozen)
{
	world_say("the process of %s %s", node->name, frozen ? "is stopped" : "goes on");
	node->frozen = frozen;
}

void world_descriptors_limit(struct world_node *node, bool none)
{
	world_say("%s has %s descriptors", node->name, none ? "no further" : "enough");
	node->limit_files = none ? node->num_files : WORLD_FILES_MAX;
}
