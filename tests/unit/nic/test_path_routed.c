/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_routed.c - which pairs of NICs are routed paths, and in which order. */
#include "nic/user_lists.h"

#include "path_sides.h"
#include "unit.h"

static int choose(const char *a, const char *b, mesh_path_leads *leads,
		  const struct mesh_path_hints *hints)
{
	const struct path_side local = path_side(a), remote = path_side(b);

	return paths_choose(&local, &remote, leads, hints);
}

#define HERE "10.1.0.0/31 10.1.0.2/31 10.1.0.4/31"
#define THERE "10.2.0.0/31 10.2.0.2/31 10.2.0.4/31"

TEST(orders)
{
	static const struct {
		const char *a, *b;
		mesh_path_leads *leads;
		int local_nic, remote_nic;
		bool same_count, fallback;
		const char *paths;
		int known, num; /* the first ones, and how many there are */
		int asked;	/* calls of @leads */
	} cases[] = {
		/* The direct path first, although NCCL chose other NICs; it is not asked for. */
		{"10.1.0.1/24 10.2.0.1/24", "10.3.0.1/24 10.2.0.2/24", paths_lead_all, 3, 3, true,
		 false, "1-1 0-0r 0-1r 1-0r", -1, 4, 3},
		/* Only the pairs that the kernel connects. */
		{"10.1.0.0/31 10.1.0.2/31 10.1.0.4/31 10.1.0.6/31",
		 "10.2.0.0/31 10.2.0.2/31 10.2.0.4/31 10.2.0.6/31", paths_lead_rails, 5, 4, true,
		 false, "2-2r 1-1r 0-0r 3-3r", -1, 4, 16},
		/* With different numbers of NICs those that NCCL chose. */
		{HERE, THERE, paths_lead_all, 3, 5, false, false, "0-2r", 1, 9, 9},
		/* Nothing that routers do not forward, no other family, no other provider. */
		{"10.1.0.1/24 fe80::1/64 169.254.1.1/16 127.0.0.1/8",
		 "fd00::1/64 169.254.2.1/24 fe80::2/64 127.0.0.1/8", paths_lead_all, 0, 0, true,
		 false, "1-2", -1, 1, 0},
		{"10.1.0.1/24", "10.2.0.1/24~", paths_lead_all, 0, 0, true, false, "", -1, 0, 0},
		{"10.1.0.1/24", "10.2.0.1/24", paths_lead_all, 0, 0, true, false, "0-0r", -1, 1, 1},
		/* RDMA at both ends is used across routers as well ... */
		{"10.1.0.1/24+ 10.2.0.1/24+ 10.3.0.1/24+", "10.4.0.1/24+ 10.5.0.1/24 10.3.0.2/24+",
		 paths_lead_rails, -1, -1, true, false, "2+2 0+0r 1-1r", -1, 3, 8},
		/* ... and tcp only where the setting allows it. */
		{"10.1.0.1/24+ 10.2.0.1/24+ 10.3.0.1/24+", "10.4.0.1/24+ 10.5.0.1/24 10.3.0.2/24+",
		 paths_lead_rails, -1, -1, true, true, "2+2 2-2f 0+0r 1-1r 0-0fr", -1, 5, 8},
		/* A pair with RDMA is among the first, although rails speak for two others. */
		{"10.1.0.1/24+ 10.2.0.1/24", "10.4.0.1/24 10.5.0.1/24+", paths_lead_all, -1, -1,
		 true, false, "0+1r 1-0r", 2, 4, 4},
	};
	struct mesh_path_hints hints;

	FOR_EACH(i, cases) {
		hints = (struct mesh_path_hints){.local_nic = cases[i].local_nic,
						 .remote_nic = cases[i].remote_nic,
						 .same_count = cases[i].same_count,
						 .fallback = cases[i].fallback};
		assert_int_equal(choose(cases[i].a, cases[i].b, cases[i].leads, &hints),
				 cases[i].num);
		paths_are(cases[i].paths, cases[i].known);
		assert_int_equal(paths_asked, cases[i].asked);
		hints.same_node = true;
		choose(cases[i].a, cases[i].b, cases[i].leads, &hints);
		assert_int_equal(paths_asked, 0);
	}
}

/* Rules by source address connect all pairs: NICs with the same number come first. */
TEST(all_pairs)
{
	struct mesh_path_hints hints = {.same_count = true};

	for (hints.spread = 0; hints.spread < 9; hints.spread++) {
		hints.local_nic = PATH_SIDE_FIRST + (int)hints.spread % 3;
		hints.remote_nic = PATH_SIDE_FIRST + (int)hints.spread / 3;
		assert_int_equal(choose(HERE, THERE, paths_lead_all, &hints), 9);
		for (int i = 0; i < 3; i++)
			assert_int_equal(chosen.candidates[i].local, chosen.candidates[i].remote);
	}
}

/*
 * Where all pairs are connected, those of one rail come first: with a different number of NICs, and
 * with NICs in another order. One whose rail is unknown goes by its number.
 */
TEST(rails_setting)
{
	static const char a[] = "10.1.0.0/31 10.2.0.0/31 10.3.0.0/31 10.4.0.0/31";
	static const char c[] = "10.4.8.0/31 10.3.8.0/31 10.2.8.0/31 10.1.8.0/31";
	struct mesh_rails rails;
	struct mesh_path_hints hints = {.rails = &rails};

	assert_int_equal(
		mesh_rails_parse("10.1.0.0/16,10.2.0.0/16,10.3.0.0/16,10.4.0.0/16", &rails), 0);
	for (hints.spread = 0; hints.spread < 16; hints.spread++) {
		hints.local_nic = PATH_SIDE_FIRST + (int)hints.spread % 4;
		hints.remote_nic = PATH_SIDE_FIRST + (int)hints.spread / 4;
		hints.same_count = false;
		assert_int_equal(choose(a, "10.3.9.0/31 10.4.9.0/31", paths_lead_all, &hints), 8);
		for (int i = 0; i < 2; i++)
			assert_int_equal(chosen.candidates[i].local,
					 chosen.candidates[i].remote + 2);
		hints.same_count = true;
		assert_int_equal(choose(a, c, paths_lead_all, &hints), 16);
		for (int i = 0; i < 4; i++)
			assert_int_equal(chosen.candidates[i].local,
					 3 - chosen.candidates[i].remote);
	}
	assert_int_equal(mesh_rails_parse("192.168.0.0/16", &rails), 0);
	choose(a, c, paths_lead_all, &hints);
	for (int i = 0; i < 4; i++)
		assert_int_equal(chosen.candidates[i].local, chosen.candidates[i].remote);
}

TEST(largest)
{
	const struct mesh_path_hints hints = {.same_count = true};
	struct path_side a = {.num = MESH_NICS_MAX}, b;
	const struct path_side one = path_side("10.1.0.1/31");

	for (int i = 0; i < MESH_NICS_MAX; i++) {
		a.nics[i] = one.nics[0];
		a.nics[i].addr.bytes[2] = a.nics[i].nic = (uint8_t)i;
	}
	b = a;
	for (int i = 0; i < MESH_NICS_MAX; i++)
		b.nics[i].addr.bytes[1] = 2;
	assert_int_equal(paths_choose(&a, &b, paths_lead_all, &hints), MESH_PATH_CANDIDATES_MAX);
}
