/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_neighbours.c - what is wrong with a link, in words, and the output. */
#include "commands.h"
#include "common/finding.h"
#include "common/output.h"
#include "neighbours/show.h"

#include "asking_fixture.h"
#include "printed.h"
#include "unit.h"

#define OWN_ID ASKING_OWN_ID
#define THEIR_ID ASKING_THEIR_ID

static struct mesh_neighbour_self self;
static struct mesh_asking asking;
static struct check_result result;

static struct mesh_heard *heard_add(int index, uint64_t node_id, const char *netdev,
				    const char *addr)
{
	return asking_heard_add(&asking, index, node_id, netdev, addr);
}

void tests_setup(void)
{
	asking_fixture_open(&asking, &self);
	memset(&result, 0, sizeof(result));
}

void tests_teardown(void)
{
	check_result_free(&result);
	mesh_asking_finish(&asking);
}

/* The verdict about that NIC of ours, which has a finding with @text. */
static void judged_at(int index, enum check_verdict verdict, const char *text)
{
	check_result_free(&result);
	memset(&result, 0, sizeof(result));
	neighbours_judge(&asking, index, &result);
	assert_int_equal(check_verdict_of(&result), verdict);
	for (int i = 0; i < result.num_findings; i++) {
		if (strstr(result.findings[i].text, text))
			return;
	}
	fail_msg("no \"%s\", but \"%s\"", text, result.findings[result.num_findings - 1].text);
}

static void judged(enum check_verdict verdict, const char *text)
{
	judged_at(0, verdict, text);
}

TEST(silence)
{
	judged(CHECK_WARN, "no node answers on ab0");
	asking.asked[0].error = -EADDRNOTAVAIL;
	judged(CHECK_FAIL, "it has neither an IPv6 link-local nor an IPv4 address");
	asking.asked[0].error = -ENETUNREACH;
	judged(CHECK_FAIL, "ab0 cannot ask: Network is unreachable");
}

TEST(differences)
{
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");

	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b");
	heard->about.mtu = 1500;
	judged(CHECK_WARN, "the MTU of ab0 is 9000, that of ba0 on node b 1500");
	assert_has(result.findings[1].fix, "by hand on node b: ip link set ba0 mtu 9000");
	heard->about.mtu = 9100;
	judged(CHECK_WARN, "the MTU of ab0 is 9000, that of ba0 on node b 9100");
	assert_has(result.findings[1].fix, "by hand: ip link set ab0 mtu 9100");
	heard->about.mtu = 9000;
	heard->about.speed_mbps = 25000;
	judged(CHECK_WARN, "ab0 has 100 Gb/s, ba0 on node b 25 Gb/s");
	heard->about.speed_mbps = 0; /* unknown */
	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b");
	heard->about.providers = 1 << MESH_PROVIDER_VERBS_RXM;
	judged(CHECK_FAIL, "no libfabric provider in common");
	heard->about.providers |= 1 << MESH_PROVIDER_TCP;
	heard->about.addrs[0].addr[1] = 7;
	judged(CHECK_FAIL, "10.1.0.1/24 and 10.7.0.2/24 have no subnet in common");
}

TEST(versions)
{
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");

	heard->about.protocol = MESH_PROTOCOL_VERSION + 1;
	judged(CHECK_FAIL, "node b at ab0 has nccl-net-mesh 9.9 with protocol");
	heard->error = -EPROTONOSUPPORT;
	judged(CHECK_FAIL, "node b at ab0 has nccl-net-mesh 9.9, whose answers this one");
	assert_int_equal(result.num_findings, 1);
}

TEST(cables)
{
	heard_add(0, OWN_ID, "ab1", "10.2.0.1/24");
	judged(CHECK_WARN, "no node answers on ab0: it and ab1 of this node hear each other");
	asking_ports_set(&asking, 7, 7);
	judged(CHECK_WARN, "no node answers on ab0");
	assert_lacks(result.findings[0].text, "ab1");
	asking_ports_set(&asking, 7, 8);
	judged(CHECK_FAIL, "both ends of this cable are on this node: ab0 and ab1");
	/* Both NICs of this node, and one of the other. */
	heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");
	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b");
	heard_add(1, THEIR_ID, "ba0", "10.1.0.2/24");
	judged_at(1, CHECK_WARN, "ab1 and ab0 are both cabled to ba0 of node b");
	asking_ports_set(&asking, 7, 7);
	judged_at(1, CHECK_WARN, "of the port of node b only ba0 answers");
	/* As many NICs on each side: two halves of one port. */
	heard_add(0, THEIR_ID, "ba1", "10.2.0.3/24");
	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b; the other half of this cable is ab1");
	judged_at(1, CHECK_PASS, "ab1 is cabled to ba1 of node b");
	/* Two ports on one switch with those of one other node. */
	asking_ports_set(&asking, 7, 8);
	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b");
	assert_lacks(result.findings[0].text, "half");
	/* A switch, where each node has a NIC in each of our subnets. */
	heard_add(0, 3, "ca0", "10.1.0.4/24");
	heard_add(1, 3, "ca1", "10.2.0.4/24");
	judged_at(1, CHECK_PASS, "ab1 is cabled to ca1 of node b");
	/* One with fewer NICs than we have is nothing wrong there. */
	heard_add(0, 4, "da0", "10.1.0.5/24");
	judged_at(1, CHECK_PASS, "ab1 is cabled to ca1 of node b");
}

/* Each of two halves hears both of the other port, with a subnet for each pair. */
TEST(halves)
{
	struct mesh_heard *far[4];

	for (int i = 0; i < 2; i++) {
		heard_add(i, OWN_ID, i ? "ab0" : "ab1", i ? "10.1.0.1/24" : "10.2.0.1/24");
		far[2 * i] = heard_add(i, THEIR_ID, "ba0", "10.1.0.2/24");
		far[2 * i + 1] = heard_add(i, THEIR_ID, "ba1", "10.2.0.2/24");
	}
	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b");
	/* One half has a subnet of its own. */
	far[1]->about.addrs[0].addr[1] = far[3]->about.addrs[0].addr[1] = 7;
	judged(CHECK_PASS, "ab0 is cabled to ba0 of node b");
	judged_at(1, CHECK_FAIL, "10.2.0.1/24 and 10.7.0.2/24 have no subnet in common");
}

TEST(same_address)
{
	heard_add(0, THEIR_ID, "ba0", "10.1.0.1/24");
	judged(CHECK_FAIL, "ab0 and ba0 of node b have the same address, 10.1.0.1/24");
}

/* Also the NIC that is the other half's partner. */
TEST(same_address_of_other_half)
{
	heard_add(0, OWN_ID, "ab1", "10.2.0.1/24");
	heard_add(0, THEIR_ID, "ba0", "10.1.0.3/24");
	heard_add(0, THEIR_ID, "ba1", "10.1.0.1/24");
	judged(CHECK_FAIL, "ab0 and ba1 of node b have the same address, 10.1.0.1/24");
}

/* Judges both NICs, and prints them as a table or as JSON. */
static void show(bool json)
{
	struct check_result results[2] = {{0}};
	const struct mesh_nic_table none = {0};

	for (int i = 0; i < 2; i++)
		neighbours_judge(&asking, i, &results[i]);
	if (json)
		assert_int_equal(
			neighbours_print_json("test", print_file(), &asking, results, &none), 0);
	else
		neighbours_print(print_file(), &asking, results, &none);
	for (int i = 0; i < 2; i++)
		check_result_free(&results[i]);
}

TEST(text)
{
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");

	heard->about.total_processes = heard->about.num_processes = 2;
	heard->about.processes[0].role = MESH_NEIGHBOUR_RANK;
	heard->about.processes[1].role = MESH_NEIGHBOUR_SERVICE;
	show(false);
	PRINTED_HAS("b          ba0      10.1.0.2/24  100 Gb/s  9000  1 process and fi_mesh serve",
		    "no answer", "warn     ab1");
	assert_lacks(printed(), "is cabled to");
	/* A service that relays is listed beside the one that answers checks. */
	heard->about.processes[0].role = MESH_NEIGHBOUR_SERVICE;
	heard->about.processes[1].control_port = 4711;
	show(false);
	PRINTED_HAS("9000  fi_mesh serve --relay");
}

/* A neighbour of another version, and a role that this one does not know. */
TEST(json)
{
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");

	heard->about.total_processes = 40;
	heard->about.num_processes = 1;
	heard->about.processes[0].role = 77;
	heard_add(1, THEIR_ID, "", "10.2.0.2/24")->error = -EPROTONOSUPPORT;
	show(true);
	JSON_IS(json_printed(), "pass", "1", "fail", "1", "nics[0].netdev", "\"ab0\"",
		"nics[0].neighbours[0].total_processes", "40",
		"nics[0].neighbours[0].processes[0].role", "\"other\"",
		"nics[1].neighbours[0].readable", "false", "nics[1].neighbours[0].node_id", "null");
}

TEST_BARE(usage)
{
	COMMAND_ROWS(command_neighbours, {"--jason", COMMAND_MISUSE}, {"b", COMMAND_MISUSE});
}
