/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peer_yield.c - when `check --peer` looks for relays: as the plugin, where there is no path,
 * and before routes of the kernel without RDMA if both nodes have it.
 */
#include "common/finding.h"
#include "peer/checker.h"
#include "peer/paths.h"
#include "peer/relays.h"
#include "peer/wire.h"
#include "system/route.h"

#include "unit.h"

#define NICS 2

static struct peer_checker checker;
static struct peer peer;
static struct mesh_nic nics[NICS];
static int asked;	  /* times that relays were looked for */
static bool asked_before; /* the latest time only for what goes before routed tcp */
static bool found;	  /* there are some */
static bool routed;	  /* the kernel's routes lead from each of our NICs to each of theirs */

bool __wrap_peer_relays_check(const struct peer_checker *by, struct peer *of, bool before_tcp,
			      struct check_result *result);
bool __wrap_peer_relays_check(const struct peer_checker *by, struct peer *of, bool before_tcp,
			      struct check_result *result)
{
	(void)by;
	(void)of;
	(void)result;
	asked++;
	asked_before = before_tcp;
	return found;
}

bool __wrap_mesh_route_leads(const struct mesh_addr *from, unsigned int ifindex,
			     const struct mesh_addr *to);
bool __wrap_mesh_route_leads(const struct mesh_addr *from, unsigned int ifindex,
			     const struct mesh_addr *to)
{
	(void)from;
	(void)ifindex;
	(void)to;
	return routed;
}

static void theirs_set(int i, const char *text)
{
	struct mesh_check_nic *theirs = &peer.hello.nics[i];
	struct mesh_addr addr;

	assert_int_equal(mesh_addr_parse(text, &addr), 0);
	theirs->family = (uint8_t)addr.family;
	theirs->prefix_len = addr.prefix_len;
	memcpy(theirs->addr, addr.bytes, sizeof(theirs->addr));
	snprintf(theirs->netdev, sizeof(theirs->netdev), "r%d", i);
}

static void providers_set(enum mesh_provider_id ours, enum mesh_provider_id theirs)
{
	int i;

	for (i = 0; i < NICS; i++) {
		checker.self.providers[i] = ours;
		peer.hello.nics[i].provider = (uint8_t)theirs;
	}
}

/* Each node has two NICs; no two of them share a subnet, and the first one has no RDMA. */
static int setup(void)
{
	char text[MESH_ADDR_TEXT_MAX];
	int i;

	memset(&checker, 0, sizeof(checker));
	peer = (struct peer){.name = "b"};
	for (i = 0; i < NICS; i++) {
		snprintf(text, sizeof(text), "10.%d.0.1/24", i + 1);
		assert_int_equal(mesh_addr_parse(text, &nics[i].source), 0);
		snprintf(nics[i].netdev, sizeof(nics[i].netdev), "n%d", i);
		snprintf(text, sizeof(text), "10.9.%d.1/31", i + 1);
		theirs_set(i, text);
	}
	providers_set(MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP);
	peer.hello.nics[1].provider = MESH_PROVIDER_VERBS_RXM;
	checker.self.providers[1] = MESH_PROVIDER_TCP;
	checker.self.table.nics = nics;
	checker.self.table.num_nics = checker.self.table.num_taken = checker.self.num_nics = NICS;
	peer.hello.num_nics = NICS;
	peer.hello.plugin_protocol = MESH_PROTOCOL_VERSION;
	strcpy(checker.self.config.relay, "job");
	asked = 0;
	found = routed = true;
	return 0;
}

TESTS_USE(setup, NULL);

static void check(void)
{
	struct check_result result = {0};

	peer_paths_check(&checker, &peer, &result);
	check_result_free(&result);
}

/* RDMA is at both ends, and on no routed pair. */
static void routed_tcp_only(void)
{
	checker.self.providers[1] = MESH_PROVIDER_VERBS_RXM;
	theirs_set(1, "fe80::1/64"); /* no route leads there */
}

TEST(before_tcp)
{
	routed_tcp_only();
	check();
	assert_int_equal(asked, 1);
	assert_true(asked_before);
	assert_int_equal(peer.choice.num_candidates, 0);
}

/* There are no such relays: the routes are the paths. */
TEST(none_found)
{
	routed_tcp_only();
	found = false;
	check();
	assert_int_equal(asked, 1);
	assert_int_equal(peer.choice.num_candidates, NICS);
	assert_int_equal(peer.choice.candidates[0].provider, MESH_PROVIDER_TCP);
}

static void uses_the_routes(void)
{
	check();
	assert_int_equal(asked, 0);
	assert_true(peer.choice.num_candidates > 0);
}

/* One routed pair has RDMA: it is the first choice. */
TEST(routed_rdma)
{
	uses_the_routes();
	assert_int_equal(peer.choice.candidates[0].provider, MESH_PROVIDER_VERBS_RXM);
}

TEST(no_rdma_there)
{
	providers_set(MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP);
	uses_the_routes();
}

TEST(no_rdma_here)
{
	providers_set(MESH_PROVIDER_TCP, MESH_PROVIDER_VERBS_RXM);
	uses_the_routes();
}

TEST(off)
{
	routed_tcp_only();
	strcpy(checker.self.config.relay, "off");
	uses_the_routes();
}

TEST(no_route)
{
	routed = false;
	check();
	assert_int_equal(asked, 1);
	assert_false(asked_before);
	assert_int_equal(peer.choice.num_candidates, 0);
}

TEST(direct)
{
	theirs_set(0, "10.1.0.2/24");
	uses_the_routes();
	assert_int_equal(peer.choice.candidates[0].class, MESH_PATH_DIRECT);
}

/* The two NICs of one subnet use different providers: to use relays instead would hide that. */
TEST(providers_differ)
{
	theirs_set(0, "10.1.0.2/24");
	routed = false;
	providers_set(MESH_PROVIDER_TCP, MESH_PROVIDER_TCP_RXM);
	check();
	assert_int_equal(asked, 0);
	assert_int_equal(peer.choice.num_candidates, 0);
}
