/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_neighbours.c - what is wrong with a link, in words, and the output. */
#include <jansson.h>

#include "common/exit_status.h"
#include "common/finding.h"
#include "neighbours/command.h"
#include "neighbours/judge.h"
#include "neighbours/show.h"

#include "asking_fixture.h"
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

static int setup(void)
{
	asking_fixture_open(&asking, &self);
	memset(&result, 0, sizeof(result));
	return 0;
}

static int teardown(void)
{
	check_result_free(&result);
	mesh_asking_finish(&asking);
	return 0;
}

TESTS_USE(setup, teardown);

/* The verdict about our first NIC, which has a finding with @text. */
static void judged(enum check_verdict verdict, const char *text)
{
	int i;

	check_result_free(&result);
	memset(&result, 0, sizeof(result));
	neighbours_judge(&asking, 0, &result);
	assert_int_equal(check_verdict_of(&result), verdict);
	for (i = 0; i < result.num_findings; i++) {
		if (strstr(result.findings[i].text, text))
			return;
	}
	fail_msg("no \"%s\", but \"%s\"", text, result.findings[result.num_findings - 1].text);
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

	judged(CHECK_PASS, "ab0 leads to ba0 of node b");
	heard->about.mtu = 1500;
	judged(CHECK_WARN, "the MTU of ab0 is 9000, that of ba0 on node b 1500");
	assert_string_equal(result.findings[1].fix, "on node b: ip link set ba0 mtu 9000");
	heard->about.mtu = 9100;
	judged(CHECK_WARN, "the MTU of ab0 is 9000, that of ba0 on node b 9100");
	assert_string_equal(result.findings[1].fix, "ip link set ab0 mtu 9100");
	heard->about.mtu = 9000;
	heard->about.speed_mbps = 25000;
	judged(CHECK_WARN, "ab0 has 100 Gb/s, ba0 on node b 25 Gb/s");
	heard->about.speed_mbps = 0; /* unknown */
	judged(CHECK_PASS, "ab0 leads to ba0 of node b");
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
	judged(CHECK_FAIL, "both ends of this cable are on this node: ab0 and ab1");
	/* A switch, with both NICs of this node and one of the other. */
	heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");
	judged(CHECK_PASS, "ab0 and ab1 of this node are on one wire");
	heard_add(1, THEIR_ID, "ba0", "10.1.0.2/24");
	judged(CHECK_WARN, "ab0 and ab1 lead to one NIC, ba0 of node b");
	/* As many NICs on each side: two halves of one port. */
	heard_add(0, THEIR_ID, "ba1", "10.1.0.3/24");
	judged(CHECK_PASS, "ab0 leads to ba1 of node b");
}

TEST(text)
{
	struct check_result results[2] = {{0}};
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	heard->about.total_processes = heard->about.num_processes = 2;
	heard->about.processes[0].role = MESH_NEIGHBOUR_RANK;
	heard->about.processes[1].role = MESH_NEIGHBOUR_SERVICE;
	neighbours_judge(&asking, 0, &results[0]);
	neighbours_judge(&asking, 1, &results[1]);
	neighbours_print(file, &asking, results);
	fclose(file);
	assert_non_null(strstr(text, "b          ba0      10.1.0.2/24  100 Gb/s  9000  1 process "
				     "and fi_mesh serve"));
	assert_non_null(strstr(text, "no answer"));
	assert_non_null(strstr(text, "warn     ab1"));
	assert_null(strstr(text, "leads to"));
	free(text);
	check_result_free(&results[0]);
	check_result_free(&results[1]);
}

/* A service that relays is listed beside the one that answers checks. */
TEST(relay_text)
{
	struct check_result results[2] = {{0}};
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	heard->about.total_processes = heard->about.num_processes = 2;
	heard->about.processes[0].role = MESH_NEIGHBOUR_SERVICE;
	heard->about.processes[1].role = MESH_NEIGHBOUR_SERVICE;
	heard->about.processes[1].control_port = 4711;
	neighbours_judge(&asking, 0, &results[0]);
	neighbours_judge(&asking, 1, &results[1]);
	neighbours_print(file, &asking, results);
	fclose(file);
	assert_non_null(strstr(text, "9000  fi_mesh serve --relay"));
	free(text);
	check_result_free(&results[0]);
	check_result_free(&results[1]);
}

/* A neighbour of another version, and a role that this one does not know. */
TEST(json)
{
	struct check_result results[2] = {{0}};
	struct mesh_heard *heard = heard_add(0, THEIR_ID, "ba0", "10.1.0.2/24");
	json_t *root, *nic, *neighbour;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	heard->about.total_processes = 40;
	heard->about.num_processes = 1;
	heard->about.processes[0].role = 77;
	heard_add(1, THEIR_ID, "", "10.2.0.2/24")->error = -EPROTONOSUPPORT;
	neighbours_judge(&asking, 0, &results[0]);
	neighbours_judge(&asking, 1, &results[1]);
	assert_int_equal(neighbours_print_json("test", file, &asking, results), 0);
	fclose(file);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "pass")), 1);
	assert_int_equal(json_integer_value(json_object_get(root, "fail")), 1);
	nic = json_array_get(json_object_get(root, "nics"), 0);
	assert_string_equal(json_string_value(json_object_get(nic, "netdev")), "ab0");
	neighbour = json_array_get(json_object_get(nic, "neighbours"), 0);
	assert_int_equal(json_integer_value(json_object_get(neighbour, "total_processes")), 40);
	neighbour = json_array_get(json_object_get(neighbour, "processes"), 0);
	assert_string_equal(json_string_value(json_object_get(neighbour, "role")), "other");
	nic = json_array_get(json_object_get(root, "nics"), 1);
	neighbour = json_array_get(json_object_get(nic, "neighbours"), 0);
	assert_true(json_is_false(json_object_get(neighbour, "readable")));
	assert_true(json_is_null(json_object_get(neighbour, "node_id")));
	json_decref(root);
	free(text);
	check_result_free(&results[0]);
	check_result_free(&results[1]);
}

TEST_BARE(usage)
{
	char name[] = "neighbours", option[] = "--jason", operand[] = "b";
	char *wrong[] = {name, option, NULL}, *more[] = {name, operand, NULL};

	assert_int_equal(command_neighbours(2, wrong), COMMAND_MISUSE);
	assert_int_equal(command_neighbours(2, more), COMMAND_MISUSE);
}
