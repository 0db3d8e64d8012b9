/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_near.c - which NICs are near each other, and when their paths come first. */
#include "nic/nic.h"
#include "nic/path_choice.h"

#include "unit.h"

static struct mesh_nic nics[MESH_NICS_MAX];
static const struct mesh_nic *pointers[MESH_NICS_MAX];
static struct mesh_endpoint_addr local[MESH_NICS_MAX], remote[MESH_NICS_MAX];
static struct mesh_path_choice choice;
static struct mesh_path_hints hints;
static struct mesh_near_rule rule;

void tests_setup(void)
{
	memset(nics, 0, sizeof(nics));
	memset(local, 0, sizeof(local));
	memset(remote, 0, sizeof(remote));
	for (int i = 0; i < MESH_NICS_MAX; i++) {
		pointers[i] = &nics[i];
		nics[i].numa_node = -1;
	}
}

static uint32_t near(int num, int dev)
{
	return mesh_nics_near(pointers, num, dev);
}

static void pci_set(int nic, const char *path)
{
	snprintf(nics[nic].pci_path, sizeof(nics[nic].pci_path), "/sys/devices/%s", path);
}

TEST(unknown)
{
	assert_int_equal(near(1, 0), 1);
	assert_int_equal(near(16, 3), 0xffff);
}

/* Two sockets; a NIC alone on its NUMA node would have no other to go on with. */
TEST(numa)
{
	for (int i = 0; i < 8; i++)
		nics[i].numa_node = i / 4;
	assert_int_equal(near(8, 0), 0x0f);
	assert_int_equal(near(8, 5), 0xf0);
	assert_int_equal(near(5, 0), 0x1f);
	nics[7].numa_node = -1;
	assert_int_equal(near(8, 0), 0xff);
}

/* Two NICs behind each of two switches below one CPU; on root ports nothing divides them. */
TEST(switch)
{
	char path[128];

	for (int i = 0; i < 4; i++) {
		nics[i].numa_node = 0;
		snprintf(
			path, sizeof(path),
			"pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:0%d.0/0000:%02x:00.0",
			i / 2, i / 2, 0x10 + i / 2, 0x11 + i / 2, i % 2, 0x20 + i);
		pci_set(i, path);
	}
	assert_int_equal(near(4, 0), 0x3);
	assert_int_equal(near(4, 3), 0xc);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "pci0000:00/0000:00:0%d.0/0000:0%d:00.0", i + 1,
			 i + 1);
		pci_set(i, path);
	}
	assert_int_equal(near(4, 0), 0xf);
	/* Two functions of one card at a root port are no switch. */
	pci_set(0, "pci0000:00/0000:00:01.0/0000:01:00.0");
	pci_set(1, "pci0000:00/0000:00:01.0/0000:01:00.1");
	nics[0].numa_node = nics[1].numa_node = -1;
	assert_int_equal(near(2, 0), 0x3);
}

/* Four NICs a node, two of them near. */
static void nodes_make(bool one_subnet)
{
	char text[MESH_ADDR_TEXT_MAX];

	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "10.77.%d.%d/24", one_subnet ? 1 : i + 1, 10 + i);
		assert_int_equal(mesh_addr_parse(text, &local[i].addr), 0);
		snprintf(text, sizeof(text), "10.77.%d.%d/24", one_subnet ? 1 : i + 1, 20 + i);
		assert_int_equal(mesh_addr_parse(text, &remote[i].addr), 0);
		local[i].nic = remote[i].nic = (uint8_t)i;
		local[i].provider = remote[i].provider = MESH_PROVIDER_TCP;
	}
	hints = (struct mesh_path_hints){.local_nic = 2, .remote_nic = 1};
	rule = (struct mesh_near_rule){.local = 0xc, .remote = 0x3, .num_nics = 4};
}

static bool rail_leads(const struct mesh_endpoint_addr *from, const struct mesh_endpoint_addr *to,
		       const void *arg)
{
	return from->nic == (to->nic ^ 2); /* one for each NIC, of near ones with near ones */
}

static bool applies(int num_remote)
{
	mesh_path_choose(local, 4, remote, num_remote, &hints, &choice);
	return mesh_path_near_first(local, remote, &hints, &rule, &choice);
}

/* The first @num candidates are near, and the others behind them are of class @far. */
static void order_is(int num, enum mesh_path_class class, enum mesh_path_class far)
{
	const struct mesh_path_candidate *pair;
	bool near_pair;

	for (int i = 0; i < choice.num_candidates; i++) {
		pair = &choice.candidates[i];
		near_pair = pair->local >= 2 && pair->remote <= 1;
		assert_int_equal(near_pair, i < num);
		assert_int_equal(pair->class, near_pair ? class : far);
	}
}

TEST(switched)
{
	nodes_make(true);
	assert_true(applies(4));
	assert_int_equal(choice.num_candidates, 16);
	order_is(4, MESH_PATH_DIRECT, MESH_PATH_FAR);
	assert_int_equal(choice.candidates[0].local, 2); /* NCCL's own */
	assert_int_equal(choice.candidates[0].remote, 1);
}

/* Fewer ways than NICs: those that NCCL chose for the others must go over these. */
TEST(fewer_ways)
{
	nodes_make(true);
	assert_false(applies(3));
	assert_int_equal(choice.candidates[11].class, MESH_PATH_DIRECT);
}

/* Each NIC reaches one of the peer: cables, or rails. */
TEST(cables)
{
	nodes_make(false);
	rule.remote = 0xc;
	hints.remote_nic = 2;
	assert_false(applies(4));
	rule.always = true;
	assert_true(applies(4));
	for (int i = 0; i < 4; i++)
		assert_int_equal(choice.candidates[i].class,
				 i < 2 ? MESH_PATH_DIRECT : MESH_PATH_FAR);
	assert_true(choice.candidates[0].local >= 2 && choice.candidates[1].local >= 2);
	hints.remote_nic = 1; /* NCCL's NICs do not reach each other */
	assert_false(applies(4));
}

TEST(routed)
{
	nodes_make(false);
	remote[0].addr.bytes[2] = remote[1].addr.bytes[2] = remote[2].addr.bytes[2] = 99;
	remote[3].addr.bytes[2] = 99;
	hints.remote_nic = 0;
	mesh_path_choose(local, 4, remote, 4, &hints, &choice);
	mesh_path_choose_routed(local, 4, remote, 4, &hints, rail_leads, NULL, &choice);
	assert_int_equal(choice.num_candidates, 4);
	assert_true(mesh_path_near_first(local, remote, &hints, &rule, &choice));
	order_is(2, MESH_PATH_ROUTED, MESH_PATH_FAR_ROUTED);
	assert_true(mesh_path_class_is_routed(MESH_PATH_FAR_ROUTED));
}

TEST(nothing_far)
{
	nodes_make(true);
	rule.local = rule.remote = 0xf;
	assert_false(applies(4));
	choice.num_candidates = 0;
	assert_false(mesh_path_near_first(local, remote, &hints, &rule, &choice));
}
