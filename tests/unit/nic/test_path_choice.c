/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_choice.c - which NIC reaches which, on the cablings that people build. */
#include "nic/path_choice.h"

#include "unit.h"

struct side {
	struct mesh_endpoint_addr nics[MESH_NICS_MAX];
	int num;
};

static const struct mesh_path_hints no_hints = {.local_nic = -1, .remote_nic = -1};

/* Adds a NIC whose index differs from its place, so that the two cannot be mixed up. */
static void nic_add(struct side *side, const char *addr, enum mesh_provider_id provider)
{
	struct mesh_endpoint_addr *nic = &side->nics[side->num];

	memset(nic, 0, sizeof(*nic));
	if (mesh_addr_parse(addr, &nic->addr))
		fail_msg("%s is not read", addr);
	nic->provider = provider;
	nic->nic = (uint8_t)(side->num + 3);
	side->num++;
}

static struct side side_of(const char *const *addrs)
{
	struct side side = {.num = 0};

	for (; *addrs; addrs++)
		nic_add(&side, *addrs, MESH_PROVIDER_TCP);
	return side;
}

#define SIDE(...) side_of((const char *const[]){__VA_ARGS__, NULL})

static struct mesh_path_choice choose(const struct side *local, const struct side *remote,
				      const struct mesh_path_hints *hints)
{
	struct mesh_path_choice choice;

	memset(&choice, 0xa5, sizeof(choice));
	mesh_path_choose(local->nics, local->num, remote->nics, remote->num, hints, &choice);
	return choice;
}

static void candidate_is(const struct mesh_path_choice *choice, int i, int local, int remote)
{
	assert_true(i < choice->num_candidates);
	assert_int_equal(choice->candidates[i].local, local);
	assert_int_equal(choice->candidates[i].remote, remote);
}

/* Exactly one path, and the same one from the other end. */
static void only_path(const struct side *a, const struct side *b, int at_a, int at_b)
{
	struct mesh_path_choice choice = choose(a, b, &no_hints);

	assert_int_equal(choice.num_candidates, 1);
	candidate_is(&choice, 0, at_a, at_b);
	choice = choose(b, a, &no_hints);
	assert_int_equal(choice.num_candidates, 1);
	candidate_is(&choice, 0, at_b, at_a);
	assert_false(choice.provider_differs);
}

TEST(triangle)
{
	struct side a = SIDE("10.0.1.1/30", "10.0.3.1/30");
	struct side b = SIDE("10.0.1.2/30", "10.0.2.1/30");
	struct side c = SIDE("10.0.3.2/30", "10.0.2.2/30");

	only_path(&a, &b, 0, 0);
	only_path(&a, &c, 1, 0);
	only_path(&b, &c, 1, 1);
}

/* More NICs here than there, all on one subnet: the search for pairs ends. */
TEST(more_nics_than_peers)
{
	struct side a = SIDE("10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "10.0.0.4/24");
	struct side b = SIDE("10.0.0.5/24", "10.0.0.6/24");
	struct mesh_path_choice choice = choose(&a, &b, &no_hints);

	assert_int_equal(choice.num_candidates, 8);
	assert_int_not_equal(choice.candidates[0].local, choice.candidates[1].local);
	assert_int_not_equal(choice.candidates[0].remote, choice.candidates[1].remote);
}

TEST(k4)
{
	struct side nodes[4] = {
		SIDE("10.0.1.1/24", "10.0.2.1/24", "10.0.3.1/24"),
		SIDE("10.0.4.1/24", "10.0.1.2/24", "10.0.5.1/24"),
		SIDE("10.0.5.2/24", "10.0.6.1/24", "10.0.2.2/24"),
		SIDE("10.0.6.2/24", "10.0.3.2/24", "10.0.4.2/24"),
	};

	only_path(&nodes[0], &nodes[1], 0, 1);
	only_path(&nodes[0], &nodes[2], 1, 2);
	only_path(&nodes[0], &nodes[3], 2, 1);
	only_path(&nodes[1], &nodes[2], 2, 0);
	only_path(&nodes[1], &nodes[3], 0, 2);
	only_path(&nodes[2], &nodes[3], 1, 0);
}

/* The first bytes being alike means nothing; nor does one side's shorter prefix. */
TEST(real_prefixes)
{
	struct side a = SIDE("10.0.0.1/30", "10.0.0.5/30", "10.0.0.9/30");
	struct side b = SIDE("10.0.0.10/30", "10.0.0.6/30");
	struct side wide = SIDE("10.0.0.77/24");
	struct side inside = SIDE("10.0.0.2/24");
	struct mesh_path_choice choice = choose(&a, &b, &no_hints);

	assert_int_equal(choice.num_candidates, 2);
	choice = choose(&a, &wide, &no_hints);
	assert_int_equal(choice.num_candidates, 0);
	assert_false(choice.provider_differs);
	/* Only the first /30 holds .2; the /24 holds all of them. */
	only_path(&a, &inside, 0, 0);
}

TEST(none)
{
	struct side a = SIDE("10.0.1.1/24", "fd00:1::1/64");
	struct side b = SIDE("10.0.2.1/24", "fd00:2::1/64");
	struct side empty = {.num = 0};

	assert_int_equal(choose(&a, &b, &no_hints).num_candidates, 0);
	assert_int_equal(choose(&a, &empty, &no_hints).num_candidates, 0);
	assert_int_equal(choose(&empty, &a, &no_hints).num_candidates, 0);
}

/* Two cables between the same nodes: both, with any spread, which decides the order. */
TEST(two_cables)
{
	struct side a = SIDE("10.0.1.1/30", "10.0.2.1/30");
	struct side b = SIDE("10.0.2.2/30", "10.0.1.2/30");
	struct mesh_path_hints hints = no_hints;
	int first_seen[2] = {0, 0};

	for (hints.spread = 0; hints.spread < 8; hints.spread++) {
		struct mesh_path_choice choice = choose(&a, &b, &hints);
		int first = choice.candidates[0].local;

		assert_int_equal(choice.num_candidates, 2);
		candidate_is(&choice, 0, first, 1 - first);
		candidate_is(&choice, 1, 1 - first, first);
		first_seen[first]++;
	}
	assert_int_equal(first_seen[0], 4);
	assert_int_equal(first_seen[1], 4);
}

/*
 * n NICs of each side on one subnet make n * n pairs. The first n use every NIC once: they are n
 * different cables.
 */
TEST(parallel)
{
	static const char *const a_addrs[] = {"10.0.1.1/24", "10.0.1.2/24", "10.0.1.3/24", NULL};
	static const char *const b_addrs[] = {"10.0.1.4/24", "10.0.1.5/24", "10.0.1.6/24", NULL};
	struct side a = side_of(a_addrs), b = side_of(b_addrs);
	struct mesh_path_hints hints = no_hints;

	for (hints.spread = 0; hints.spread < 9; hints.spread++) {
		struct mesh_path_choice choice = choose(&a, &b, &hints);
		int pairs = 0, locals = 0, remotes = 0, i;

		assert_int_equal(choice.num_candidates, 9);
		for (i = 0; i < 3; i++) {
			locals |= 1 << choice.candidates[i].local;
			remotes |= 1 << choice.candidates[i].remote;
		}
		assert_int_equal(locals, 7);
		assert_int_equal(remotes, 7);
		for (i = 0; i < 9; i++)
			pairs |= 1
				 << (3 * choice.candidates[i].local + choice.candidates[i].remote);
		assert_int_equal(pairs, 0x1ff); /* each pair once */
	}
}

/* A NIC that reaches only one gets it, though another one that has a choice prefers it. */
TEST(matching)
{
	struct side a = SIDE("10.0.0.130/24", "10.0.0.129/30");
	struct side b = SIDE("10.0.0.131/30", "10.0.0.200/24");
	struct mesh_path_hints hints = {.local_nic = 3, .remote_nic = 3};
	struct mesh_path_choice choice;

	for (hints.spread = 0; hints.spread < 3; hints.spread++) {
		choice = choose(&a, &b, &hints);
		assert_int_equal(choice.num_candidates, 3);
		candidate_is(&choice, 0, 0, 1);
		candidate_is(&choice, 1, 1, 0);
		candidate_is(&choice, 2, 0, 0);
	}
}

/* As many as there can be: nothing overflows, and it ends. */
TEST(largest)
{
	struct side a = {.num = 0}, b = {.num = 0};
	bool seen[MESH_NICS_MAX][MESH_NICS_MAX];
	struct mesh_path_choice choice;
	struct mesh_path_hints hints = {.local_nic = 5, .remote_nic = 6, .spread = UINT32_MAX};
	int i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < MESH_NICS_MAX; i++) {
		nic_add(&a, "10.0.1.1/24", MESH_PROVIDER_TCP);
		nic_add(&b, "10.0.1.2/24", MESH_PROVIDER_TCP);
	}
	choice = choose(&a, &b, &hints);
	assert_int_equal(choice.num_candidates, MESH_PATH_CANDIDATES_MAX);
	candidate_is(&choice, 0, 2, 3);
	for (i = 0; i < choice.num_candidates; i++) {
		bool *pair = &seen[choice.candidates[i].local][choice.candidates[i].remote];

		assert_false(*pair);
		*pair = true;
	}
}

TEST(provider_mismatch)
{
	struct side a = SIDE("10.0.1.1/24", "10.0.2.1/24");
	struct side b = SIDE("10.0.3.1/24", "10.0.2.2/24");
	struct mesh_path_choice choice;

	b.nics[1].provider = MESH_PROVIDER_VERBS_RXM;
	choice = choose(&a, &b, &no_hints);
	assert_int_equal(choice.num_candidates, 0);
	assert_true(choice.provider_differs);
	assert_int_equal(choice.differing.local, 1);
	assert_int_equal(choice.differing.remote, 1);
	/* A working path is found as well, and the reason against the other is still reported. */
	nic_add(&a, "10.0.3.2/24", MESH_PROVIDER_TCP);
	choice = choose(&a, &b, &no_hints);
	assert_int_equal(choice.num_candidates, 1);
	candidate_is(&choice, 0, 2, 0);
	assert_true(choice.provider_differs);
	/* Two nodes that share no subnet are not kept apart by a provider. */
	b = SIDE("10.0.9.1/24");
	b.nics[0].provider = MESH_PROVIDER_VERBS_RXM;
	assert_false(choose(&a, &b, &no_hints).provider_differs);
}

/* fe80::/64 is every link's subnet: a shared one proves nothing, so it comes last. */
TEST(link_local_last)
{
	struct side a = SIDE("fe80::1/64", "fe80::2/64", "fd00:1::1/64");
	struct side b = SIDE("fe80::3/64", "fd00:1::2/64", "fe80::4/64");
	struct mesh_path_hints hints = {.local_nic = 3, .remote_nic = 3};

	for (hints.spread = 0; hints.spread < 8; hints.spread++) {
		struct mesh_path_choice choice = choose(&a, &b, &hints);

		assert_int_equal(choice.num_candidates, 5);
		candidate_is(&choice, 0, 2, 1);
	}
	a = SIDE("169.254.1.1/16", "10.0.1.1/24");
	b = SIDE("169.254.1.2/16", "10.0.1.2/24");
	for (hints.spread = 0; hints.spread < 8; hints.spread++) {
		struct mesh_path_choice choice = choose(&a, &b, &hints);

		assert_int_equal(choice.num_candidates, 2);
		candidate_is(&choice, 0, 1, 1);
	}
}

/* NCCL's choice decides where both will do; the local one counts more. */
TEST(hints)
{
	struct side a = SIDE("10.0.1.1/24", "10.0.1.2/24", "10.0.1.3/24");
	struct side b = SIDE("10.0.1.4/24", "10.0.1.5/24", "10.0.1.6/24");
	struct mesh_path_hints hints = no_hints;
	int l, r;

	for (hints.spread = 0; hints.spread < 9; hints.spread++) {
		for (l = 0; l < 3; l++) {
			for (r = 0; r < 3; r++) {
				struct mesh_path_choice choice;

				hints.local_nic = l + 3;
				hints.remote_nic = r + 3;
				choice = choose(&a, &b, &hints);
				candidate_is(&choice, 0, l, r);
			}
		}
	}
	/* Each NIC has one cable only: the local hint wins over the remote one. */
	a = SIDE("10.0.1.1/24", "10.0.2.1/24");
	b = SIDE("10.0.1.2/24", "10.0.2.2/24");
	for (hints.spread = 0; hints.spread < 8; hints.spread++) {
		struct mesh_path_choice choice;

		hints.local_nic = 3 + 1;
		hints.remote_nic = 3 + 0;
		choice = choose(&a, &b, &hints);
		candidate_is(&choice, 0, 1, 1);
	}
}

/* A hint for a NIC that does not lead there is ignored. */
TEST(hint_elsewhere)
{
	struct side a = SIDE("10.0.1.1/24", "10.0.2.1/24");
	struct side b = SIDE("10.0.3.1/24", "10.0.2.2/24");
	struct mesh_path_hints hints = {.local_nic = 3, .remote_nic = 3};
	struct mesh_path_choice choice = choose(&a, &b, &hints);

	assert_int_equal(choice.num_candidates, 1);
	candidate_is(&choice, 0, 1, 1);
}

/* Equal choices rotate evenly with the spread. */
TEST(spread)
{
	struct side a = SIDE("10.0.1.1/30", "10.0.2.1/30", "10.0.3.1/30", "10.0.4.1/30");
	struct side b = SIDE("10.0.1.2/30", "10.0.2.2/30", "10.0.3.2/30", "10.0.4.2/30");
	struct mesh_path_hints hints = no_hints;
	int first[4] = {0}, i;

	for (i = 0; i < 40; i++) {
		hints.spread = (uint32_t)i;
		first[choose(&a, &b, &hints).candidates[0].local]++;
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(first[i], 10);
}

/* Both ends are one node: an address lies in its own subnet. */
TEST(same_node)
{
	struct side a = SIDE("10.0.1.1/30", "10.0.2.1/30");
	struct side host = SIDE("10.0.1.1/32");
	struct mesh_path_hints hints = {.local_nic = 4, .remote_nic = 4};
	struct mesh_path_choice choice = choose(&a, &a, &hints);

	assert_int_equal(choice.num_candidates, 2);
	candidate_is(&choice, 0, 1, 1);
	candidate_is(&choice, 1, 0, 0);
	only_path(&host, &host, 0, 0);
}

/* Every node has 127/8 and ::1: they connect a node with itself only. */
TEST(loopback)
{
	struct side a = SIDE("127.0.0.1/8", "10.0.1.1/24", "::1/128");
	struct side b = SIDE("127.0.0.1/8", "10.0.1.2/24", "::1/128");
	struct mesh_path_hints hints = no_hints;
	struct mesh_path_choice choice;

	only_path(&a, &b, 1, 1);
	b.nics[0].provider = MESH_PROVIDER_VERBS_RXM;
	assert_false(choose(&a, &b, &hints).provider_differs);
	hints.same_node = true;
	assert_int_equal(choose(&a, &a, &hints).num_candidates, 3);
	a = SIDE("127.0.0.1/8");
	choice = choose(&a, &a, &hints);
	assert_int_equal(choice.num_candidates, 1);
	candidate_is(&choice, 0, 0, 0);
	choice = choose(&a, &a, &no_hints);
	assert_int_equal(choice.num_candidates, 0);
}
