/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_routed.c - `check --peer` pairs the NICs of a routed fabric as the plugin does. */
#include <net/if.h>

#include "common/finding.h"
#include "peer/checker.h"
#include "peer/paths.h"
#include "peer/wire.h"

#include "namespace.h"
#include "unit.h"

#define NICS 2

static struct peer_checker checker;
static struct peer peer = {.name = "b"};
static struct mesh_nic nics[NICS];

static void theirs_set(int i, const char *text)
{
	struct mesh_check_nic *theirs = &peer.hello.nics[i];
	struct mesh_addr addr;

	assert_int_equal(mesh_addr_parse(text, &addr), 0);
	theirs->family = (uint8_t)addr.family;
	theirs->prefix_len = addr.prefix_len;
	theirs->provider = MESH_PROVIDER_TCP;
	memcpy(theirs->addr, addr.bytes, sizeof(theirs->addr));
	snprintf(theirs->netdev, sizeof(theirs->netdev), "r%d", i);
}

/* What has the address of NIC k leaves by NIC k, so that routes connect all pairs. */
/* The first two paths: from our NIC 0 to NIC @first of the peer, and from NIC 1 to @second. */
static void assert_pairs(int first, int second)
{
	struct check_result result = {0};

	peer_paths_check(&checker, &peer, &result);
	assert_int_equal(check_verdict_of(&result), CHECK_PASS);
	assert_true(peer.choice.num_candidates >= NICS);
	for (int i = 0; i < NICS; i++)
		assert_int_equal(peer.choice.candidates[i].remote,
				 peer.choice.candidates[i].local ? second : first);
	check_result_free(&result);
}

TEST(rails)
{
	assert_pairs(0, 1); /* as many on both nodes: those of the same number */
	assert_int_equal(mesh_rails_parse("10.1.0.0/24+10.9.2.0/24,10.2.0.0/24+10.9.1.0/24",
					  &checker.self.rails),
			 0);
	assert_pairs(1, 0);
}

void tests_begin(void)
{
	char text[MESH_ADDR_TEXT_MAX];
	int i;

	if (!namespace_enter())
		exit(77);
	namespace_nics(NICS);
	for (i = 0; i < NICS; i++) {
		namespace_ip("rule add from 10.%d.0.1 table %d", i + 1, 101 + i);
		namespace_ip("route add default dev n%d table %d", i, 101 + i);
		snprintf(text, sizeof(text), "10.%d.0.1/24", i + 1);
		assert_int_equal(mesh_addr_parse(text, &nics[i].source), 0);
		nics[i].addrs[0] = nics[i].source;
		nics[i].num_addrs = 1;
		snprintf(nics[i].netdev, sizeof(nics[i].netdev), "n%d", i);
		nics[i].ifindex = if_nametoindex(nics[i].netdev);
		checker.self.providers[i] = MESH_PROVIDER_TCP;
		snprintf(text, sizeof(text), "10.9.%d.1/31", i + 1);
		theirs_set(i, text);
	}
	checker.self.table.nics = nics;
	checker.self.table.num_nics = checker.self.table.num_taken = checker.self.num_nics = NICS;
	peer.hello.num_nics = NICS;
	peer.hello.plugin_protocol = MESH_PROTOCOL_VERSION;
}
