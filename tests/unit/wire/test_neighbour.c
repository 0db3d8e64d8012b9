/* SPDX-License-Identifier: Apache-2.0 */
/* test_neighbour.c - questions and answers: all fields are decoded, and damage is detected. */
#include "wire/neighbour.h"

#include "unit.h"

/* A question with @num_processes, with something in each field. */
static size_t question_make(struct mesh_neighbour *made, int num_processes)
{
	static const char *const addrs[] = {"fe80::1:2/64", "10.1.0.1/24", "169.254.9.9/16"};
	struct mesh_addr addr;

	memset(made, 0, sizeof(*made));
	snprintf(made->product, sizeof(made->product), "1.2.3");
	snprintf(made->node, sizeof(made->node), "node-a");
	made->protocol = 7;
	made->nic = 15;
	made->total_processes = 64;
	made->num_processes = (uint8_t)num_processes;
	made->providers = 1 << MESH_PROVIDER_TCP;
	made->node_id = 0x1122334455667788;
	made->token = 0xfedcba9876543210;
	made->job = 0x0f1e2d3c4b5a6978;
	made->mtu = 9000;
	made->speed_mbps = 200000;
	snprintf(made->netdev, sizeof(made->netdev), "enp1s0f0np0");
	snprintf(made->site, sizeof(made->site), "north");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mesh_addr_parse(addrs[i], &addr), 0);
		assert_true(mesh_neighbour_addr_add(made, &addr));
	}
	for (int i = 0; i < num_processes; i++)
		made->processes[i] = (struct mesh_neighbour_process){
			.process_id = 100 + (uint64_t)i,
			.job = 5,
			.control_port = (uint16_t)(4000 + i),
			.protocol = 7,
			.role = MESH_NEIGHBOUR_RANK,
		};
	return mesh_neighbour_finish(made, MESH_NEIGHBOUR_QUESTION);
}

TEST(round_trip)
{
	struct mesh_neighbour made, got;
	struct mesh_addr addr;
	char text[MESH_ADDR_TEXT_MAX];

	for (int num = 0; num <= MESH_NEIGHBOUR_PROCESSES_MAX; num++) {
		size_t size = question_make(&made, num);

		memset(&got, 0xa5, sizeof(got));
		assert_int_equal(mesh_neighbour_decode(&made, size, &got), 0);
		assert_memory_equal(&got, &made, sizeof(got));
	}
	mesh_neighbour_addr_get(&got.addrs[0], &addr);
	assert_string_equal(mesh_addr_text_prefix(&addr, text), "fe80::1:2/64");
	mesh_neighbour_addr_get(&got.addrs[1], &addr);
	assert_string_equal(mesh_addr_text_prefix(&addr, text), "10.1.0.1/24");
	addr.scope_id = 3;
	addr.prefix_len = 8;
	assert_true(mesh_neighbour_has_addr(&got, &addr));
	addr.bytes[3]++;
	assert_false(mesh_neighbour_has_addr(&got, &addr));
}

TEST(addresses_are_bounded)
{
	struct mesh_neighbour made;
	struct mesh_addr addr;

	question_make(&made, 0);
	assert_int_equal(mesh_addr_parse("10.1.0.9/24", &addr), 0);
	for (int i = made.num_addrs; i < MESH_NEIGHBOUR_ADDRS_MAX; i++)
		assert_true(mesh_neighbour_addr_add(&made, &addr));
	assert_false(mesh_neighbour_addr_add(&made, &addr));
	assert_int_equal(made.num_addrs, MESH_NEIGHBOUR_ADDRS_MAX);
}

/* Any other length than the counts give is refused: cut and oversized datagrams. */
TEST(lengths)
{
	uint8_t bytes[sizeof(struct mesh_neighbour) + 64] = {0};
	struct mesh_neighbour made, got;
	size_t size = question_make(&made, 3), n;
	uint16_t length;

	for (n = 0; n <= sizeof(bytes); n++) {
		memcpy(bytes, &made, sizeof(made));
		assert_int_equal(mesh_neighbour_decode(bytes, n, &got), n == size ? 0 : -EPROTO);
		length = (uint16_t)n;
		memcpy(bytes + offsetof(struct mesh_neighbour, length), &length, sizeof(length));
		assert_int_equal(mesh_neighbour_decode(bytes, n, &got), n == size ? 0 : -EPROTO);
	}
}

static void refused(const struct mesh_neighbour *made)
{
	struct mesh_neighbour got;

	assert_int_equal(mesh_neighbour_decode(made, made->length, &got), -EPROTO);
}

/* A question of three processes with this one change is refused. */
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		question_make(&made, 3);                                                           \
		change;                                                                            \
		refused(&made);                                                                    \
	} while (0)

TEST(fields)
{
	struct mesh_neighbour made;

	REFUSED(made.magic++);
	REFUSED(made.type = 0);
	REFUSED(made.type = MESH_NEIGHBOUR_TYPES);
	REFUSED(made.num_processes = 4);
	REFUSED(made.total_processes = 2);
	REFUSED(made.node_id = 0); /* a list of links with this node in it would be refused */
	REFUSED(made.num_addrs = MESH_NEIGHBOUR_ADDRS_MAX + 1);
	REFUSED(made.nic = MESH_NICS_MAX);
	REFUSED(made.providers = 1 << (MESH_PROVIDER_ID_MAX + 1));
	REFUSED(made.addrs[1].family = 5);
	REFUSED(made.addrs[1].prefix_len = 33);
	REFUSED(memset(made.node, 'n', sizeof(made.node)));
	REFUSED(memset(made.netdev, 'n', sizeof(made.netdev)));
}

TEST(texts)
{
	struct mesh_neighbour made, got;

	question_make(&made, 1);
	snprintf(made.node, sizeof(made.node), "a\033[2J\n");
	snprintf(made.netdev, sizeof(made.netdev), "e\tth");
	assert_int_equal(mesh_neighbour_decode(&made, made.length, &got), 0);
	assert_string_equal(got.node, "a?[2J?");
	assert_string_equal(got.netdev, "e?th");
}

/* Of another version only its product and node are read, whatever the rest is. */
TEST(other_version)
{
	struct mesh_neighbour made, got, zero = {0};

	question_make(&made, 3);
	made.version = 200;
	made.type = 99;
	memset(made.node, 'n', sizeof(made.node));
	memset(&made.protocol, 0xff, sizeof(made) - MESH_NEIGHBOUR_FROZEN_BYTES);
	assert_int_equal(mesh_neighbour_decode(&made, made.length, &got), -EPROTONOSUPPORT);
	assert_string_equal(got.product, "1.2.3");
	assert_int_equal(strlen(got.node), MESH_NODE_NAME_MAX - 1);
	assert_int_equal(got.version, 200);
	assert_memory_equal(&got.protocol, &zero.protocol,
			    sizeof(got) - MESH_NEIGHBOUR_FROZEN_BYTES);
	made.length = MESH_NEIGHBOUR_FROZEN_BYTES;
	assert_int_equal(mesh_neighbour_decode(&made, made.length, &got), -EPROTONOSUPPORT);
	made.length--;
	refused(&made);
}

/* `fi_mesh serve --relay`: with its job's key for that job, with none for all. */
TEST(serves)
{
	struct mesh_neighbour_process process = {
		.role = MESH_NEIGHBOUR_SERVICE, .control_port = 4711, .job = 7};

	assert_true(mesh_neighbour_serves(&process, 7));
	assert_false(mesh_neighbour_serves(&process, 8));
	assert_false(mesh_neighbour_serves(&process, 0));
	process.job = 0;
	assert_true(mesh_neighbour_serves(&process, 7));
	assert_true(mesh_neighbour_serves(&process, 0));
	process.control_port = 0;
	assert_false(mesh_neighbour_serves(&process, 7));
	process.control_port = 4711;
	process.role = MESH_NEIGHBOUR_RANK;
	assert_false(mesh_neighbour_serves(&process, 7));
}
