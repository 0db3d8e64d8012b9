/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peer_paths.c - the paths of `check --peer`, as the plugin finds them: providers, rails, and
 * when it looks for relays: where there is no path, and before routes of the kernel without RDMA if
 * both nodes have it.
 */
#include "common/finding.h"
#include "peer/checker.h"
#include "peer/wire.h"
#include "system/node.h"

#include "printed.h"
#include "unit.h"

#define NICS 2
#define IFINDEX 11 /* of our first NIC */

static struct peer_checker checker;
static struct peer peer;
static struct mesh_nic nics[NICS];
static int asked;	  /* times that relays were looked for */
static bool asked_before; /* the latest time only for what goes before routed tcp */
static bool found;	  /* there are some */
static bool routed;	  /* the kernel's routes lead from each of our NICs to each of theirs */

bool __wrap_peer_relays_check(const struct peer_checker *by, struct peer *of, bool replace,
			      struct check_result *result)
{
	asked++;
	asked_before = replace;
	return found;
}

bool __wrap_mesh_route_leads(struct mesh_routes *routes, const struct mesh_addr *from,
			     unsigned int ifindex, const struct mesh_addr *to)
{
	const struct mesh_check_nic *theirs = peer.hello.nics;

	(void)routes;
	assert_in_range(ifindex, IFINDEX, IFINDEX + NICS - 1);
	assert_true(mesh_addr_equal(from, &nics[ifindex - IFINDEX].source));
	assert_true(!memcmp(to->bytes, theirs[0].addr, sizeof(to->bytes)) ||
		    !memcmp(to->bytes, theirs[1].addr, sizeof(to->bytes)));
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

/* Each node has two NICs; no two of them share a subnet, and the first one has no RDMA. */
void tests_setup(void)
{
	char text[MESH_ADDR_TEXT_MAX];

	memset(&checker, 0, sizeof(checker));
	peer = (struct peer){.name = "b"};
	for (int i = 0; i < NICS; i++) {
		snprintf(text, sizeof(text), "10.%d.0.1/24", i + 1);
		assert_int_equal(mesh_addr_parse(text, &nics[i].source), 0);
		nics[i].addrs[0] = nics[i].source;
		nics[i].num_addrs = 1;
		nics[i].ifindex = IFINDEX + (unsigned int)i;
		snprintf(nics[i].netdev, sizeof(nics[i].netdev), "n%d", i);
		snprintf(text, sizeof(text), "10.9.%d.1/31", i + 1);
		theirs_set(i, text);
	}
	checker.self.providers[0] = peer.hello.nics[1].provider = MESH_PROVIDER_VERBS_RXM;
	checker.self.providers[1] = peer.hello.nics[0].provider = MESH_PROVIDER_TCP;
	checker.self.table.nics = nics;
	checker.self.table.num_nics = checker.self.table.num_taken = checker.self.num_nics = NICS;
	peer.hello.num_nics = NICS;
	peer.hello.plugin_protocol = MESH_PROTOCOL_VERSION;
	strcpy(checker.self.config.relay, "job");
	asked = 0;
	asked_before = false;
	found = routed = true;
}

/* The check has this verdict and first finding. */
static void check_is(enum check_verdict verdict, int num_paths, const char *text, const char *fix)
{
	struct check_result result = {0};

	peer_paths_check(&checker, &peer, &result);
	assert_int_equal(check_verdict_of(&result), verdict);
	assert_int_equal(peer.choice.num_candidates, num_paths);
	assert_has(result.findings[0].text, text);
	if (fix)
		assert_has(result.findings[0].fix, fix);
	check_result_free(&result);
}

#define TCP MESH_PROVIDER_TCP
#define RXM MESH_PROVIDER_TCP_RXM
#define RDMA MESH_PROVIDER_VERBS_RXM

TEST(routed_tcp_is_replaced)
{
	static const struct {
		enum mesh_provider_id ours[NICS], theirs[NICS];
		const char *addrs[NICS]; /* of theirs; NULL: as in tests_setup() */
		const char *relay;	 /* the setting */
		bool routed, found;
		int asked; /* 1: for all relays, 2: only for those before routed tcp */
		int num_paths;
		enum mesh_provider_id first; /* of the first path */
	} cases[] = {
		/* RDMA is at both ends, and on no routed pair: no route leads to fe80::1. */
		{{RDMA, RDMA}, {TCP, RDMA}, {NULL, "fe80::1/64"}, "job", true, true, 2, 0, 0},
		/* There are no such relays: the routes are the paths. */
		{{RDMA, RDMA}, {TCP, RDMA}, {NULL, "fe80::1/64"}, "job", true, false, 2, 2, TCP},
		{{RDMA, RDMA}, {TCP, RDMA}, {NULL, "fe80::1/64"}, "off", true, true, 0, 2, TCP},
		/* One routed pair has RDMA: it is the first choice. */
		{{RDMA, TCP}, {TCP, RDMA}, {NULL, NULL}, "job", true, true, 0, 4, RDMA},
		/* One end has none. */
		{{RDMA, RDMA}, {TCP, TCP}, {NULL, NULL}, "job", true, true, 0, 4, TCP},
		{{TCP, TCP}, {RDMA, RDMA}, {NULL, NULL}, "job", true, true, 0, 4, TCP},
		/* There is no route. */
		{{RDMA, TCP}, {TCP, RDMA}, {NULL, NULL}, "job", false, true, 1, 0, 0},
		{{RDMA, TCP}, {TCP, RDMA}, {"10.1.0.2/24", NULL}, "job", true, true, 0, 1, TCP},
		/* Two NICs of one subnet use different providers: relays would hide that. */
		{{TCP, TCP}, {RXM, RXM}, {"10.1.0.2/24", NULL}, "job", false, true, 0, 0, 0},
	};
	struct check_result result;

	FOR_EACH(i, cases) {
		tests_setup();
		for (int k = 0; k < NICS; k++) {
			checker.self.providers[k] = cases[i].ours[k];
			peer.hello.nics[k].provider = (uint8_t)cases[i].theirs[k];
			if (cases[i].addrs[k])
				theirs_set(k, cases[i].addrs[k]);
		}
		strcpy(checker.self.config.relay, cases[i].relay);
		routed = cases[i].routed;
		found = cases[i].found;
		memset(&result, 0, sizeof(result));
		peer_paths_check(&checker, &peer, &result);
		check_result_free(&result);
		if (asked + asked_before != cases[i].asked ||
		    peer.choice.num_candidates != cases[i].num_paths)
			fail_msg("case %zu: asked %d, before tcp %d, %d paths", i, asked,
				 asked_before, peer.choice.num_candidates);
		if (cases[i].num_paths)
			assert_int_equal(peer.choice.candidates[0].provider, cases[i].first);
	}
}

/* A node with RDMA and one without: the plugin uses tcp there, and warns. */
TEST(mixed_providers)
{
	checker.self.table.num_nics = checker.self.table.num_taken = checker.self.num_nics = 1;
	peer.hello.num_nics = 1;
	theirs_set(0, "10.1.0.2/24");
	check_is(CHECK_WARN, 1, "tcp (because there is no RDMA at one end", "on node b");
	assert_int_equal(peer.choice.candidates[0].provider, TCP);
	/* A setting without tcp in it rules that out. */
	strcpy(checker.self.config.provider, "verbs;ofi_rxm");
	check_is(CHECK_FAIL, 0, "", NULL);
	/* RDMA at both ends. */
	strcpy(checker.self.config.provider, "");
	peer.hello.nics[0].provider = RDMA;
	check_is(CHECK_PASS, 1, "verbs;ofi_rxm (RDMA at both ends)", NULL);
	assert_int_equal(peer.choice.candidates[0].provider, RDMA);
}

/* Routes connect all pairs: our NIC 0 goes with NIC @first of the peer, and NIC 1 with @second. */
static void pairs_are(int first, int second)
{
	check_is(CHECK_PASS, NICS * NICS, "", NULL);
	for (int i = 0; i < NICS; i++)
		assert_int_equal(peer.choice.candidates[i].remote,
				 peer.choice.candidates[i].local ? second : first);
}

TEST(rails)
{
	for (int i = 0; i < NICS; i++)
		checker.self.providers[i] = peer.hello.nics[i].provider = TCP;
	pairs_are(0, 1); /* as many on both nodes: those of the same number */
	assert_int_equal(mesh_rails_parse("10.1.0.0/24+10.9.2.0/24,10.2.0.0/24+10.9.1.0/24",
					  &checker.self.rails),
			 0);
	pairs_are(1, 0);
}
