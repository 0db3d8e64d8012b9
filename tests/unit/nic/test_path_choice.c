/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_choice.c - which NICs reach each other, and what neighbours' answers add. */
#include "nic/path_choice.h"

#include "path_sides.h"
#include "unit.h"

static const struct mesh_path_hints no_hints = {.local_nic = -1, .remote_nic = -1};

static int choose(const char *a, const char *b, const struct mesh_path_hints *hints)
{
	const struct path_side local = path_side(a), remote = path_side(b);

	return paths_choose(&local, &remote, NULL, hints);
}

/* The same without hints: it has these paths, and this says whether a provider rules one out. */
static void chooses(const char *a, const char *b, const char *paths, bool differs)
{
	choose(a, b, &no_hints);
	paths_are(paths, -1);
	assert_int_equal(chosen.differing.provider != MESH_PROVIDER_NONE, differs);
}

#define TRIANGLE_A "10.0.1.1/30 10.0.3.1/30"
#define TRIANGLE_B "10.0.1.2/30 10.0.2.1/30"
#define TRIANGLE_C "10.0.3.2/30 10.0.2.2/30"
#define K4_A "10.0.1.1/24 10.0.2.1/24 10.0.3.1/24"
#define K4_B "10.0.4.1/24 10.0.1.2/24 10.0.5.1/24"
#define K4_C "10.0.5.2/24 10.0.6.1/24 10.0.2.2/24"
#define K4_D "10.0.6.2/24 10.0.3.2/24 10.0.4.2/24"
#define SMALL "10.0.0.1/30 10.0.0.5/30 10.0.0.9/30"
#define LOOPBACK "127.0.0.1/8 10.0.1.1/24 ::1/128"

/* Without hints, from both ends. */
TEST(cablings)
{
	static const struct {
		const char *a, *b, *paths, *back;
	} cases[] = {
		{TRIANGLE_A, TRIANGLE_B, "0-0", "0-0"},
		{TRIANGLE_A, TRIANGLE_C, "1-0", "0-1"},
		{TRIANGLE_B, TRIANGLE_C, "1-1", "1-1"},
		{K4_A, K4_B, "0-1", "1-0"},
		{K4_A, K4_C, "1-2", "2-1"},
		{K4_A, K4_D, "2-1", "1-2"},
		{K4_B, K4_C, "2-0", "0-2"},
		{K4_B, K4_D, "0-2", "2-0"},
		{K4_C, K4_D, "1-0", "0-1"},
		/* The first bytes being alike means nothing; nor does one side's shorter prefix. */
		{SMALL, "10.0.0.10/30 10.0.0.6/30", "1-1 2-0", "0-2 1-1"},
		{SMALL, "10.0.0.77/24", "", ""},
		/* Only the first /30 holds .2; the /24 holds all of them. */
		{SMALL, "10.0.0.2/24", "0-0", "0-0"},
		{"10.0.1.1/24 fd00:1::1/64", "10.0.2.1/24 fd00:2::1/64", "", ""},
		{SMALL, "", "", ""},
		/* Every node has 127/8 and ::1: they connect a node with itself only. */
		{LOOPBACK, "127.0.0.1/8 10.0.1.2/24 ::1/128", "1-1", "1-1"},
		{"127.0.0.1/8", "127.0.0.1/8", "", ""},
		/* Both ends are one node: an address lies in its own subnet. */
		{"10.0.1.1/32", "10.0.1.1/32", "0-0", "0-0"},
		/* More NICs than there: each path of its own first. */
		{"10.0.0.1/24 10.0.0.2/24 10.0.0.3/24 10.0.0.4/24", "10.0.0.5/24 10.0.0.6/24",
		 "0-0 1-1 0-1 1-0 2-0 3-1 2-1 3-0", "0-0 1-1 0-1 1-0 0-2 1-3 0-3 1-2"},
	};

	FOR_EACH(i, cases) {
		chooses(cases[i].a, cases[i].b, cases[i].paths, false);
		chooses(cases[i].b, cases[i].a, cases[i].back, false);
	}
}

/* Two cables between the same nodes: both, with any spread, which decides the order. */
TEST(two_cables)
{
	struct mesh_path_hints hints = no_hints;
	int first_seen[2] = {0, 0}, first;

	for (hints.spread = 0; hints.spread < 8; hints.spread++) {
		choose("10.0.1.1/30 10.0.2.1/30", "10.0.2.2/30 10.0.1.2/30", &hints);
		first = chosen.candidates[0].local;
		paths_are(first ? "1-0 0-1" : "0-1 1-0", -1);
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
	struct mesh_path_hints hints = no_hints;

	for (hints.spread = 0; hints.spread < 9; hints.spread++) {
		int pairs = 0, locals = 0, remotes = 0, i;

		assert_int_equal(choose("10.0.1.1/24 10.0.1.2/24 10.0.1.3/24",
					"10.0.1.4/24 10.0.1.5/24 10.0.1.6/24", &hints),
				 9);
		for (i = 0; i < 9; i++) {
			locals |= (i < 3) << chosen.candidates[i].local;
			remotes |= (i < 3) << chosen.candidates[i].remote;
			pairs |= 1
				 << (3 * chosen.candidates[i].local + chosen.candidates[i].remote);
		}
		assert_int_equal(locals, 7);
		assert_int_equal(remotes, 7);
		assert_int_equal(pairs, 0x1ff); /* each pair once */
	}
}

/* With these hints and any spread the first @known of @num paths are these; -1: all. */
static void always(const char *a, const char *b, int local_nic, int remote_nic, const char *paths,
		   int known, int num)
{
	struct mesh_path_hints hints = {.local_nic = PATH_SIDE_FIRST + local_nic,
					.remote_nic = PATH_SIDE_FIRST + remote_nic};

	for (hints.spread = 0; hints.spread < 9; hints.spread++) {
		assert_int_equal(choose(a, b, &hints), num);
		paths_are(paths, known);
	}
}

TEST(hints)
{
	char text[8];

	/* fe80::/64 is every link's subnet: a shared one proves nothing, so it comes last. */
	always("fe80::1/64 fe80::2/64 fd00:1::1/64", "fe80::3/64 fd00:1::2/64 fe80::4/64", 0, 0,
	       "2-1", 1, 5);
	always("169.254.1.1/16 10.0.1.1/24", "169.254.1.2/16 10.0.1.2/24", 0, 0, "1-1", 1, 2);
	/* NCCL's choice decides where both will do. */
	for (int l = 0; l < 3; l++)
		for (int r = 0; r < 3; r++) {
			snprintf(text, sizeof(text), "%d-%d", l, r);
			always("10.0.1.1/24 10.0.1.2/24 10.0.1.3/24",
			       "10.0.1.4/24 10.0.1.5/24 10.0.1.6/24", l, r, text, 1, 9);
		}
	/* Each NIC has one cable only: the local hint wins over the remote one. */
	always("10.0.1.1/24 10.0.2.1/24", "10.0.1.2/24 10.0.2.2/24", 1, 0, "1-1 0-0", -1, 2);
	/* A hint for a NIC that does not lead there is ignored. */
	always("10.0.1.1/24 10.0.2.1/24", "10.0.3.1/24 10.0.2.2/24", 0, 0, "1-1", -1, 1);
	/* Both ends are one node. */
	always("10.0.1.1/30 10.0.2.1/30", "10.0.1.1/30 10.0.2.1/30", 1, 1, "1-1 0-0", -1, 2);
}

/* As many as there can be: nothing overflows, and it ends. */
TEST(largest)
{
	struct path_side a = {.num = MESH_NICS_MAX}, b;
	const struct path_side one = path_side("10.0.1.1/24"), other = path_side("10.0.1.2/24");
	const struct mesh_path_hints hints = {
		.local_nic = 5, .remote_nic = 6, .spread = UINT32_MAX};
	bool seen[MESH_NICS_MAX][MESH_NICS_MAX] = {{false}};

	b = a;
	for (int i = 0; i < MESH_NICS_MAX; i++) {
		a.nics[i] = one.nics[0];
		b.nics[i] = other.nics[0];
		a.nics[i].nic = b.nics[i].nic = (uint8_t)(PATH_SIDE_FIRST + i);
	}
	assert_int_equal(paths_choose(&a, &b, NULL, &hints), MESH_PATH_CANDIDATES_MAX);
	paths_are("2-3", 1);
	for (int i = 0; i < chosen.num_candidates; i++) {
		bool *pair = &seen[chosen.candidates[i].local][chosen.candidates[i].remote];

		assert_false(*pair);
		*pair = true;
	}
}

TEST(provider_mismatch)
{
	chooses("10.0.1.1/24 10.0.2.1/24", "10.0.3.1/24 10.0.2.2/24!", "", true);
	assert_int_equal(chosen.differing.local, 1);
	assert_int_equal(chosen.differing.remote, 1);
	/* A working path is found as well, and the reason against the other is still reported. */
	chooses("10.0.1.1/24 10.0.2.1/24 10.0.3.2/24", "10.0.3.1/24 10.0.2.2/24!", "2-0", true);
	/* Two nodes that share no subnet are not kept apart by a provider. */
	chooses("10.0.1.1/24 10.0.2.1/24 10.0.3.2/24", "10.0.9.1/24!", "", false);
	chooses(LOOPBACK, "127.0.0.1/8! 10.0.1.2/24 ::1/128", "1-1", false);
}

/* Equal choices rotate evenly with the spread. */
TEST(spread)
{
	struct mesh_path_hints hints = no_hints;
	int first[4] = {0}, i;

	for (hints.spread = 0; hints.spread < 40; hints.spread++) {
		choose("10.0.1.1/30 10.0.2.1/30 10.0.3.1/30 10.0.4.1/30",
		       "10.0.1.2/30 10.0.2.2/30 10.0.3.2/30 10.0.4.2/30", &hints);
		first[chosen.candidates[0].local]++;
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(first[i], 10);
}

TEST(loopback)
{
	struct mesh_path_hints hints = no_hints;

	hints.same_node = true;
	assert_int_equal(choose(LOOPBACK, LOOPBACK, &hints), 3);
	choose("127.0.0.1/8", "127.0.0.1/8", &hints);
	paths_are("0-0", -1);
}

/* The one pair of two NICs uses the best provider that both have. */
TEST(providers)
{
	static const struct {
		const char *a, *b, *path; /* "": the providers differ */
	} cases[] = {
		{"10.1.0.1/24+", "10.1.0.2/24+", "0+0"}, {"10.1.0.1/24+", "10.1.0.2/24!", "0+0"},
		{"10.1.0.1/24+", "10.1.0.2/24", "0-0"},	 {"10.1.0.2/24!", "10.1.0.1/24", ""},
		{"10.1.0.1/24+", "10.1.0.2/24~", ""},
	};

	FOR_EACH(i, cases) {
		chooses(cases[i].a, cases[i].b, cases[i].path, !*cases[i].path);
		chooses(cases[i].b, cases[i].a, cases[i].path, !*cases[i].path);
	}
}

/* Two cables, of which one lacks RDMA at one end: both are used, each once. */
TEST(each_pair_its_own)
{
	struct mesh_path_hints hints = no_hints;

	choose("10.1.0.1/24+ 10.2.0.1/24+", "10.1.0.2/24+ 10.2.0.2/24", &hints);
	paths_are("0+0 1-1", -1);
	/* Where the setting allows it, tcp follows as a class of its own, for RDMA only. */
	hints.fallback = true;
	choose("10.1.0.1/24+ 10.2.0.1/24+", "10.1.0.2/24+ 10.2.0.2/24", &hints);
	paths_are("0+0 1-1 0-0f", -1);
}

#define THERE MESH_PROOF_THERE
#define OTHER MESH_PROOF_OTHER
#define NONE MESH_PROOF_NONE

static const struct {
	const char *ours; /* theirs have link-local addresses */
	bool guess, proven;
	struct {
		uint8_t local, remote;
		enum mesh_path_proof proof;
	} pairs[4];
	int num;
	const char *paths;
} cases[] = {
	/* Each of our two NICs could reach each of theirs; one cable is known. */
	{"fe80::1/64 fe80::2/64",
	 true,
	 true,
	 {{0, 0, OTHER}, {1, 1, OTHER}, {0, 1, OTHER}, {1, 0, THERE}},
	 4,
	 "1-0 0-0u 1-1u 0-1u"},
	/* Nothing is known: all stay as they are, and are tried together. */
	{"fe80::1/64 fe80::2/64", true, false, {{0, 0, NONE}, {1, 1, NONE}}, 2, "0-0 1-1"},
	/* A NIC on which another node has answered comes later. */
	{"fe80::1/64 fe80::2/64", true, false, {{0, 0, OTHER}, {1, 1, NONE}}, 2, "1-1 0-0u"},
	/* A subnet counts without an answer; a cable to another node does not. */
	{"10.1.0.1/24 10.1.0.1/24 fe80::1/64",
	 true,
	 true,
	 {{0, 0, OTHER}, {1, 1, NONE}, {2, 2, NONE}},
	 3,
	 "1-1 0-0u 2-2u"},
	{"10.1.0.1/24", false, true, {{0, 0, NONE}}, 1, "0-0"},
	/* Two halves of a port hear both of the other: the first goes with the first. */
	{"fe80::1/64 fe80::2/64",
	 true,
	 true,
	 {{0, 1, THERE}, {1, 0, THERE}, {1, 1, THERE}, {0, 0, THERE}},
	 4,
	 "1-1 0-0 0-1 1-0"},
};

TEST(order)
{
	const struct path_side remote = path_side("fe80::5/64 fe80::6/64 fe80::7/64");
	enum mesh_path_proof proofs[MESH_PATH_CANDIDATES_MAX];
	struct path_side local;

	FOR_EACH(i, cases) {
		local = path_side(cases[i].ours);
		chosen = (struct mesh_path_choice){.num_candidates = cases[i].num};
		for (int k = 0; k < cases[i].num; k++) {
			proofs[k] = cases[i].pairs[k].proof;
			chosen.candidates[k] =
				(struct mesh_path_candidate){.local = cases[i].pairs[k].local,
							     .remote = cases[i].pairs[k].remote,
							     .provider = MESH_PROVIDER_TCP};
		}
		assert_int_equal(mesh_path_is_guess(local.nics, &chosen), cases[i].guess);
		mesh_path_order(local.nics, remote.nics, proofs, &chosen);
		assert_int_equal(chosen.proven, cases[i].proven);
		paths_are(cases[i].paths, -1);
	}
}
