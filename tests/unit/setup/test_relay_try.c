/* SPDX-License-Identifier: Apache-2.0 */
/* test_relay_try.c - which routes are tried first, and over which of our links. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/peer.h"
#include "relay/relay.h"
#include "setup/relay_try.h"
#include "setup/setup.h"

#define NOW 1000000
#define TARGET 99
#define LINKS 2 /* to each node: the first one has no RDMA */

static struct mesh_setup setup_state;
static struct mesh_process *const process = &setup_state.process;
static struct mesh_relay job_relay;
static struct mesh_neighbours neighbours;
static struct mesh_handle handle = {.node_id = TARGET};
static struct mesh_relay_try *relay;
static struct mesh_peer peers[MESH_PATHS_MAX];
static int num_peers;
static struct mesh_route found[MESH_ROUTES_MAX];
static int num_found;
/* What is there without the first relays of these; 0 hops: nothing. */
static struct mesh_route other;
static bool misses_rdma;
static bool search_goes_on; /* though it has found the target */
static int searches;
static int unusable; /* bit N: our link N to each node */

bool __wrap_mesh_neighbours_searches(const struct mesh_neighbours *of, uint64_t target);
bool __wrap_mesh_neighbours_searches(const struct mesh_neighbours *of, uint64_t target)
{
	(void)of;
	return !target && search_goes_on;
}

bool __wrap_mesh_neighbours_miss_rdma(const struct mesh_neighbours *of, uint64_t target);
bool __wrap_mesh_neighbours_miss_rdma(const struct mesh_neighbours *of, uint64_t target)
{
	(void)of;
	assert_int_equal(target, TARGET);
	return misses_rdma;
}

static uint64_t rdma_hope; /* by what only one end has reported */

static bool young; /* it has only begun to search: no more than 4 s ago */

uint64_t __wrap_mesh_neighbours_rdma_hope(const struct mesh_neighbours *of, uint64_t target,
					  bool is_young);
uint64_t __wrap_mesh_neighbours_rdma_hope(const struct mesh_neighbours *of, uint64_t target,
					  bool is_young)
{
	(void)of;
	young = is_young;
	assert_int_equal(target, TARGET);
	return rdma_hope;
}

int __wrap_mesh_neighbours_search(struct mesh_neighbours *of, uint64_t target, uint64_t limit_ms);
int __wrap_mesh_neighbours_search(struct mesh_neighbours *of, uint64_t target, uint64_t limit_ms)
{
	(void)of;
	(void)target;
	(void)limit_ms;
	searches++;
	return 0;
}

int __wrap_mesh_neighbours_routes(const struct mesh_neighbours *of, uint64_t target, int relays_max,
				  struct mesh_route *routes, int routes_max);
int __wrap_mesh_neighbours_routes(const struct mesh_neighbours *of, uint64_t target, int relays_max,
				  struct mesh_route *routes, int routes_max)
{
	(void)of;
	(void)relays_max;
	(void)routes_max;
	assert_int_equal(target, TARGET);
	memcpy(routes, found, sizeof(found));
	return num_found;
}

int __wrap_mesh_neighbours_routes_beside(const struct mesh_neighbours *of, uint64_t target,
					 int relays_max, const uint64_t *avoided, int num_avoided,
					 struct mesh_route *routes, int routes_max);
int __wrap_mesh_neighbours_routes_beside(const struct mesh_neighbours *of, uint64_t target,
					 int relays_max, const uint64_t *avoided, int num_avoided,
					 struct mesh_route *routes, int routes_max)
{
	int i;

	if (relay->beside.num) {
		assert_int_equal(num_avoided, 1);
		assert_int_equal(avoided[0], 'q');
		return __wrap_mesh_neighbours_routes(of, target, relays_max, routes, routes_max);
	}
	assert_int_equal(target, TARGET);
	assert_int_equal(num_avoided, num_found);
	for (i = 0; i < num_found; i++)
		assert_int_equal(avoided[i], found[i].hops[0]);
	routes[0] = other;
	return other.num_relays > 0;
}

/* One process, over two links: relay/next.c lists that with RDMA first, this lists it last. */
int __wrap_mesh_nexts_of_node(const struct mesh_process *of, const struct mesh_neighbours *who,
			      uint64_t node_id, uint64_t job, struct mesh_next *nexts, int max);
int __wrap_mesh_nexts_of_node(const struct mesh_process *of, const struct mesh_neighbours *who,
			      uint64_t node_id, uint64_t job, struct mesh_next *nexts, int max)
{
	int i;

	(void)of;
	(void)who;
	(void)job;
	(void)max;
	for (i = 0; i < LINKS; i++) {
		memset(&nexts[i], 0, sizeof(nexts[i]));
		nexts[i].dev = i;
		nexts[i].node_id = nexts[i].cookie = node_id;
		nexts[i].address.addr.family = MESH_FAMILY_IPV4;
		nexts[i].address.addr.bytes[0] = (uint8_t)i;
		nexts[i].address.provider = i ? MESH_PROVIDER_VERBS_RXM : MESH_PROVIDER_TCP;
	}
	return LINKS;
}

int __wrap_mesh_next_open(struct mesh_process *of, const struct mesh_next *next);
int __wrap_mesh_next_open(struct mesh_process *of, const struct mesh_next *next)
{
	(void)of;
	return unusable >> next->dev & 1 ? -ENETDOWN : 0;
}

int __wrap_mesh_next_peer_get(struct mesh_process *of, const struct mesh_next *next,
			      struct mesh_peer **peer);
int __wrap_mesh_next_peer_get(struct mesh_process *of, const struct mesh_next *next,
			      struct mesh_peer **peer)
{
	(void)of;
	(void)next;
	peers[num_peers].users = 1000;
	peers[num_peers].process = process;
	peers[num_peers].state = MESH_PEER_UP;
	*peer = &peers[num_peers++];
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&setup_state, 0, sizeof(setup_state));
	memset(peers, 0, sizeof(peers));
	mesh_lock_init(&process->lock);
	process->relay = &job_relay;
	process->node_id = 1;
	strcpy(process->config.relay, "any");
	job_relay.process = process;
	job_relay.neighbours = setup_state.neighbours = &neighbours;
	setup_state.first_searched_ms = NOW - 10000;
	setup_state.searched_ms = NOW;
	num_found = num_peers = unusable = searches = 0;
	memset(&other, 0, sizeof(other));
	misses_rdma = search_goes_on = false;
	rdma_hope = 0;
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_relay_try_open(process, &handle, 4, &relay), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_relay_try_close(relay);
	mesh_lock_release(&process->lock);
	mesh_lock_destroy(&process->lock);
	return 0;
}

/* What the search has found: a route over @first, and others behind it. */
static struct mesh_route *route(uint64_t first, int num_relays, bool rdma)
{
	found[num_found] = (struct mesh_route){.num_relays = num_relays, .rdma = rdma};
	found[num_found].hops[0] = first;
	return &found[num_found++];
}

/* Looks for relays anew; those nodes are asked, each over this one of our links to it. */
static void asks(uint64_t now_ms, const char *nodes, int dev)
{
	int i;

	mesh_relay_try_end(relay);
	num_peers = 0;
	mesh_relay_try_is_ready(relay, now_ms);
	assert_int_equal(relay->num_peers, strlen(nodes));
	for (i = 0; nodes[i]; i++) {
		assert_int_equal(relay->routes[i].hops[0], nodes[i]);
		assert_int_equal(relay->nexts[i].node_id, nodes[i]);
		assert_int_equal(relay->nexts[i].dev, dev);
	}
}

/* The first of these has refused, and is not to be asked before @until_ms. */
static void refuses(uint64_t until_ms)
{
	mesh_relay_try_refused(relay, 0, MESH_REFUSAL_RELAY_LINK);
	relay->tried.all[relay->tried.num - 1].not_before_ms = until_ms;
}

/* Routes with RDMA are not used beside others, also if they are as long. */
static void test_kinds(void **state)
{
	(void)state;
	route('b', 1, true);
	route('c', 1, true);
	route('d', 2, true);
	route('e', 1, false);
	asks(NOW, "bc", 1);
}

/* Over the link with RDMA, if there is one that can be used. */
static void test_links(void **state)
{
	(void)state;
	route('b', 1, true);
	asks(NOW, "b", 1);
	unusable = 1 << 1;
	asks(NOW, "b", 0);
	unusable = 3;
	asks(NOW, "", 0);
}

/* Else they take turns, as they are listed at first. */
static void test_turns(void **state)
{
	(void)state;
	route('b', 1, false);
	asks(NOW, "b", 0);
	refuses(NOW + 300);
	asks(NOW + 299, "", 0);
	asks(NOW + 300, "b", 1);
}

/* One that refuses may be starting: for 10 s, only what is wanted most is asked again. */
static void test_early(void **state)
{
	(void)state;
	route('b', 1, true);
	route('c', 1, false);
	asks(NOW, "b", 1);
	refuses(NOW + 300);
	asks(NOW + 299, "", 0);
	asks(NOW + 300, "b", 1);
	refuses(NOW + 10300);
	asks(NOW + 9999, "", 0);
	asks(NOW + 10000, "c", 0);
	/* Its other link has its turn as well now. */
	asks(NOW + 10300, "b", 0);
}

/* A circuit with RDMA would not suffice: others do not wait for it, also if they share a relay. */
static void test_no_rdma(void **state)
{
	(void)state;
	relay->no_rdma = true;
	route('b', 2, true);
	route('c', 1, false);
	asks(NOW, "c", 0);
	num_found = 1;
	asks(NOW, "", 0);
	other = (struct mesh_route){.num_relays = 1, .hops = {'d'}};
	asks(NOW, "d", 0);
}

/* After that time also one that shares a relay with those that refuse: it is not among them. */
static void test_shared_relay(void **state)
{
	(void)state;
	route('b', 2, true);
	other = (struct mesh_route){.num_relays = 1, .hops = {'c'}};
	asks(NOW, "b", 1);
	refuses(NOW + 10300);
	asks(NOW + 9999, "", 0);
	asks(NOW + 10000, "c", 0);
	asks(NOW + 10300, "b", 0);
	refuses(NOW + 10600);
	relay->sure = true; /* no other than those */
	asks(NOW + 10300, "", 0);
}

/* A route with RDMA over another site, or over a hop that has failed, does not hold others up. */
static void test_others(void **state)
{
	(void)state;
	route('c', 1, false);
	route('b', 1, true)->leaves = true;
	route('d', 1, true)->doubtful = true;
	asks(NOW, "c", 0);
	refuses(NOW + 3300);
	asks(NOW + 2999, "d", 1);
	asks(NOW + 3000, "b", 1);
	asks(NOW + 3300, "c", 1); /* it comes before the other site all the same */
}

/* All routes lead over another site: RDMA comes first there as well. */
static void test_elsewhere(void **state)
{
	(void)state;
	route('b', 2, true)->leaves = true;
	route('c', 1, false)->leaves = true;
	asks(NOW, "b", 1);
	refuses(NOW + 10300);
	asks(NOW + 9999, "", 0);
	asks(NOW + 10000, "c", 0);
}

/* A process searches twice, and again for 4 s while a route may be found that has RDMA. */
static void test_searches(void **state)
{
	(void)state;
	route('c', 1, false);
	setup_state.first_searched_ms = setup_state.searched_ms = 0;
	asks(NOW, "", 0);
	asks(NOW + 1199, "", 0);
	assert_int_equal(searches, 1);
	misses_rdma = true;
	asks(NOW + 1200, "", 0);
	assert_int_equal(searches, 2);
	asks(NOW + 2400, "", 0);
	assert_int_equal(searches, 3);
	misses_rdma = false;
	asks(NOW + 2401, "c", 0);
	misses_rdma = true;
	asks(NOW + 3999, "", 0);
	asks(NOW + 4000, "c", 0);
}

/* The route in use is found first: one beside it is not missing before all nodes are known. */
static void test_beside(void **state)
{
	(void)state;
	relay->beside.relays[0] = 'q';
	relay->beside.num = relay->beside.longest = 1;
	search_goes_on = true;
	asks(NOW, "", 0);
	assert_false(relay->vain);
	route('p', 1, false);
	asks(NOW + 50, "p", 0);
	assert_false(relay->vain);
	num_found = 0;
	asks(NOW + 100, "", 0);
	assert_false(relay->vain);
	search_goes_on = false;
	asks(NOW + 150, "", 0);
	assert_true(relay->vain);
}

/* A later search asks another node, or the same one over another link, than the last one did. */
static void test_again(void **state)
{
	(void)state;
	relay->beside.relays[0] = 'q';
	relay->beside.num = relay->beside.longest = relay->most = 1;
	route('p', 1, false);
	asks(NOW, "p", 0);
	refuses(NOW + 300);
	mesh_relay_try_again(relay);
	asks(NOW + 1000, "p", 1);
	refuses(NOW + 1300);
	route('r', 1, false);
	mesh_relay_try_again(relay);
	asks(NOW + 3000, "r", 0);
	refuses(NOW + 3300);
	mesh_relay_try_again(relay);
	asks(NOW + 7000, "p", 0);
	mesh_relay_try_restart(relay);
	asks(NOW + 7000, "p", 0);
}

/* Where routed tcp waits, only routes that go before it are used, and our links with RDMA. */
static void test_before_tcp(void **state)
{
	(void)state;
	relay->before_tcp = true;
	route('b', 2, true);
	route('c', 1, true)->leaves = true;
	route('d', 1, true)->doubtful = true;
	route('e', 1, false);
	other = (struct mesh_route){.num_relays = 1, .hops = {'f'}};
	asks(NOW, "b", 1);
	refuses(NOW + 300);
	asks(NOW + 299, "", 0);
	assert_false(relay->vain);
	asks(NOW + 300, "b", 1);
	refuses(NOW + 600);
	unusable = 1 << 1;
	asks(NOW + 600, "", 0); /* over the other link it would not be RDMA */
	unusable = 0;
	asks(NOW + 9999, "b", 1);
	assert_false(relay->vain);
	asks(NOW + 10000, "", 0);
	assert_true(relay->vain);
	assert_true(relay->known);
}

/* No such route: that is known when a search counts, and tcp does not wait for more. */
static void test_none_before_tcp(void **state)
{
	(void)state;
	relay->before_tcp = true;
	route('e', 1, false);
	route('d', 1, true)->doubtful = true;
	asks(NOW, "", 0);
	assert_true(relay->vain);
	assert_false(relay->known);
	/* The other nodes are known, and so is that they have none: also to a young process. */
	mesh_relay_try_again(relay);
	setup_state.first_searched_ms = setup_state.searched_ms = 0;
	misses_rdma = true;
	searches = 0;
	asks(NOW, "", 0);
	assert_true(relay->vain);
	assert_int_equal(searches, 1);
	/* What was found some seconds ago counts. */
	mesh_relay_try_again(relay);
	asks(NOW + 5000, "", 0);
	assert_true(relay->vain);
	assert_int_equal(searches, 1);
	mesh_relay_try_again(relay);
	asks(NOW + 10000, "", 0);
	assert_true(relay->vain);
	assert_int_equal(searches, 2);
}

/* A link is not confirmed yet: a young process searches again. */
static void test_hope_before_tcp(void **state)
{
	(void)state;
	relay->before_tcp = true;
	rdma_hope = 5;
	setup_state.first_searched_ms = setup_state.searched_ms = 0;
	asks(NOW, "", 0);
	asks(NOW + 1199, "", 0);
	assert_true(young);
	assert_false(relay->vain);
	assert_int_equal(searches, 1);
	asks(NOW + 1200, "", 0);
	assert_int_equal(searches, 2);
	asks(NOW + 1201, "", 0); /* that is over */
	assert_false(relay->vain);
	asks(NOW + 1700, "", 0);
	assert_int_equal(searches, 3);
	asks(NOW + 4200, "", 0);
	assert_false(relay->vain);
	assert_false(young);
	asks(NOW + 4201, "", 0);
	assert_true(relay->vain);
	route('b', 1, true);
	mesh_relay_try_again(relay);
	asks(NOW + 4202, "b", 1);
	assert_false(relay->vain);
}

/* A connection to the same node looks for relays before tcp, and waits for this long. */
static void hopes_for(uint64_t now_ms, uint64_t ms)
{
	mesh_relay_try_again(relay);
	setup_state.searched_ms = now_ms;
	if (ms) {
		asks(now_ms, "", 0);
		assert_false(relay->vain);
		asks(now_ms + ms - 1, "", 0);
		assert_false(relay->vain);
	}
	asks(now_ms + ms, "", 0);
	assert_true(relay->vain);
}

/* Only the first connection waits for links that nobody confirms, until there is a route. */
static void test_hope_once(void **state)
{
	(void)state;
	relay->before_tcp = true;
	rdma_hope = 5;
	hopes_for(NOW, 3000);
	hopes_for(NOW + 4000, 0);
	rdma_hope = 6; /* there are others */
	hopes_for(NOW + 10000, 3000);
	hopes_for(NOW + 14000, 0);
	route('b', 1, true);
	mesh_relay_try_again(relay);
	asks(NOW + 14000, "b", 1);
	num_found = 0;
	hopes_for(NOW + 20000, 3000);
}

/* What a search has found is not all before it is over, and none begins before that. */
static void test_hope_while_searching(void **state)
{
	(void)state;
	relay->before_tcp = true;
	rdma_hope = 5;
	search_goes_on = true;
	hopes_for(NOW, 4000);
	assert_int_equal(searches, 0);
	hopes_for(NOW + 10000, 4000); /* it was not all: this is not remembered */
	search_goes_on = false;
	hopes_for(NOW + 20000, 3000);
	search_goes_on = true;
	mesh_relay_try_again(relay);
	asks(NOW + 24000, "", 0);
	assert_false(relay->vain);
	search_goes_on = false;
	asks(NOW + 24100, "", 0);
	assert_true(relay->vain);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_kinds),	    TEST(test_links),
		TEST(test_turns),	    TEST(test_early),
		TEST(test_shared_relay),    TEST(test_no_rdma),
		TEST(test_others),	    TEST(test_elsewhere),
		TEST(test_searches),	    TEST(test_beside),
		TEST(test_again),	    TEST(test_before_tcp),
		TEST(test_none_before_tcp), TEST(test_hope_before_tcp),
		TEST(test_hope_once),	    TEST(test_hope_while_searching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
