/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_routed.c - which pairs of NICs are routed paths, and in which order. */
#include "nic/path_choice.h"

#include "unit.h"

struct side {
	struct mesh_endpoint_addr nics[MESH_NICS_MAX];
	int num;
};

static int asked; /* calls of the two functions below */

static bool leads_all(const struct mesh_endpoint_addr *local,
		      const struct mesh_endpoint_addr *remote, const void *arg)
{
	(void)local;
	(void)remote;
	(void)arg;
	asked++;
	return true;
}

/* What goes to NIC k leaves by NIC k: plain routes of a fabric with rails. */
static bool leads_rails(const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, const void *arg)
{
	(void)arg;
	asked++;
	return local->nic == remote->nic;
}

static struct side side_of(const char *const *addrs)
{
	struct side side = {.num = 0};
	struct mesh_endpoint_addr *nic;

	for (; *addrs; addrs++) {
		nic = &side.nics[side.num];
		assert_int_equal(mesh_addr_parse(*addrs, &nic->addr), 0);
		nic->nic = (uint8_t)side.num++;
		nic->provider = MESH_PROVIDER_TCP;
	}
	return side;
}

#define SIDE(...) side_of((const char *const[]){__VA_ARGS__, NULL})

static struct mesh_path_choice choose(const struct side *local, const struct side *remote,
				      mesh_path_leads *leads, const struct mesh_path_hints *hints)
{
	struct mesh_path_choice choice;

	asked = 0;
	mesh_path_choose(local->nics, local->num, remote->nics, remote->num, hints, &choice);
	mesh_path_choose_routed(local->nics, local->num, remote->nics, remote->num, hints, leads,
				NULL, &choice);
	return choice;
}

static void candidate_is(const struct mesh_path_choice *choice, int i, int local, int remote,
			 bool routed)
{
	assert_true(i < choice->num_candidates);
	assert_int_equal(choice->candidates[i].local, local);
	assert_int_equal(choice->candidates[i].remote, remote);
	assert_int_equal(choice->candidates[i].class == MESH_PATH_ROUTED, routed);
}

/* The direct path first, although NCCL chose other NICs. */
TEST(direct_first)
{
	struct side a = SIDE("10.1.0.1/24", "10.2.0.1/24"), b = SIDE("10.3.0.1/24", "10.2.0.2/24");
	struct mesh_path_hints hints = {.local_nic = 0, .remote_nic = 0, .same_count = true};
	struct mesh_path_choice choice = choose(&a, &b, leads_all, &hints);
	int i;

	assert_int_equal(choice.num_candidates, 4);
	candidate_is(&choice, 0, 1, 1, false);
	for (i = 1; i < 4; i++)
		assert_int_equal(choice.candidates[i].class, MESH_PATH_ROUTED);
	assert_int_equal(asked, 3); /* not for the pair that shares a subnet */
}

/* Only the pairs that the kernel connects. */
TEST(rails)
{
	struct side a = SIDE("10.1.0.0/31", "10.1.0.2/31", "10.1.0.4/31", "10.1.0.6/31");
	struct side b = SIDE("10.2.0.0/31", "10.2.0.2/31", "10.2.0.4/31", "10.2.0.6/31");
	struct mesh_path_hints hints = {.local_nic = 2, .remote_nic = 1, .same_count = true};
	struct mesh_path_choice choice = choose(&a, &b, leads_rails, &hints);
	uint32_t seen = 0;
	int i;

	assert_int_equal(choice.num_candidates, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(choice.candidates[i].local, choice.candidates[i].remote);
		seen |= 1u << choice.candidates[i].local;
	}
	assert_int_equal(seen, 0xf);
}

/* Rules by source address connect all pairs: NICs with the same number come first. */
TEST(all_pairs)
{
	struct side a = SIDE("10.1.0.0/31", "10.1.0.2/31", "10.1.0.4/31");
	struct side b = SIDE("10.2.0.0/31", "10.2.0.2/31", "10.2.0.4/31");
	struct mesh_path_hints hints = {.same_count = true};
	struct mesh_path_choice choice;
	int i;

	for (hints.spread = 0; hints.spread < 9; hints.spread++) {
		hints.local_nic = (int)hints.spread % 3;
		hints.remote_nic = (int)hints.spread / 3;
		choice = choose(&a, &b, leads_all, &hints);
		assert_int_equal(choice.num_candidates, 9);
		for (i = 0; i < 3; i++)
			assert_int_equal(choice.candidates[i].local, choice.candidates[i].remote);
	}
	/* Otherwise the NICs that NCCL chose. */
	hints = (struct mesh_path_hints){.local_nic = 0, .remote_nic = 2};
	choice = choose(&a, &b, leads_all, &hints);
	candidate_is(&choice, 0, 0, 2, true);
}

/*
 * Where all pairs are connected, those of one rail come first: with a different number of NICs, and
 * with NICs in another order. One whose rail is unknown goes by its number.
 */
TEST(rails_setting)
{
	struct side a = SIDE("10.1.0.0/31", "10.2.0.0/31", "10.3.0.0/31", "10.4.0.0/31");
	struct side b = SIDE("10.3.9.0/31", "10.4.9.0/31");
	struct side c = SIDE("10.4.8.0/31", "10.3.8.0/31", "10.2.8.0/31", "10.1.8.0/31");
	struct mesh_rails rails;
	struct mesh_path_hints hints = {.rails = &rails};
	struct mesh_path_choice choice;
	int i;

	assert_int_equal(
		mesh_rails_parse("10.1.0.0/16,10.2.0.0/16,10.3.0.0/16,10.4.0.0/16", &rails), 0);
	for (hints.spread = 0; hints.spread < 16; hints.spread++) {
		hints.local_nic = (int)hints.spread % 4;
		hints.remote_nic = (int)hints.spread / 4;
		hints.same_count = false;
		choice = choose(&a, &b, leads_all, &hints);
		assert_int_equal(choice.num_candidates, 8);
		for (i = 0; i < 2; i++)
			assert_int_equal(choice.candidates[i].local,
					 choice.candidates[i].remote + 2);
		hints.same_count = true;
		choice = choose(&a, &c, leads_all, &hints);
		assert_int_equal(choice.num_candidates, 16);
		for (i = 0; i < 4; i++)
			assert_int_equal(choice.candidates[i].local,
					 3 - choice.candidates[i].remote);
	}
	assert_int_equal(mesh_rails_parse("192.168.0.0/16", &rails), 0);
	choice = choose(&a, &c, leads_all, &hints);
	for (i = 0; i < 4; i++)
		assert_int_equal(choice.candidates[i].local, choice.candidates[i].remote);
}

/* Nothing that routers do not forward, no other family, no other provider. */
TEST(never)
{
	struct side a = SIDE("10.1.0.1/24", "fe80::1/64", "169.254.1.1/16", "127.0.0.1/8");
	struct side b = SIDE("fd00::1/64", "169.254.2.1/24", "fe80::2/64", "127.0.0.1/8");
	struct side c = SIDE("10.2.0.1/24");
	struct mesh_path_hints hints = {.same_count = true};
	struct mesh_path_choice choice = choose(&a, &b, leads_all, &hints);
	int i;

	for (i = 0; i < choice.num_candidates; i++)
		assert_false(choice.candidates[i].class == MESH_PATH_ROUTED);
	assert_int_equal(asked, 0);
	c.nics[0].provider = MESH_PROVIDER_TCP_RXM;
	assert_int_equal(choose(&a, &c, leads_all, &hints).num_candidates, 0);
	c.nics[0].provider = MESH_PROVIDER_TCP;
	assert_int_equal(choose(&a, &c, leads_all, &hints).num_candidates, 1);
	hints.same_node = true;
	assert_int_equal(choose(&a, &c, leads_all, &hints).num_candidates, 0);
}

/* RDMA at both ends is used across routers as well, and tcp only where the setting allows it. */
TEST(rdma)
{
	struct side a = SIDE("10.1.0.1/24", "10.2.0.1/24", "10.3.0.1/24");
	struct side b = SIDE("10.4.0.1/24", "10.5.0.1/24", "10.3.0.2/24");
	struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1, .same_count = true};
	static const enum mesh_path_class classes[] = {MESH_PATH_DIRECT, MESH_PATH_FALLBACK,
						       MESH_PATH_ROUTED, MESH_PATH_ROUTED,
						       MESH_PATH_FALLBACK_ROUTED};
	struct mesh_path_choice choice;
	int i;

	for (i = 0; i < 3; i++) {
		a.nics[i].provider = b.nics[i].provider = MESH_PROVIDER_VERBS_RXM;
		a.nics[i].also_tcp = b.nics[i].also_tcp = true;
	}
	b.nics[1].provider = MESH_PROVIDER_TCP; /* its only provider */
	b.nics[1].also_tcp = false;
	choice = choose(&a, &b, leads_rails, &hints);
	assert_int_equal(choice.num_candidates, 3);
	assert_int_equal(choice.candidates[1].provider, MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(choice.candidates[2].provider, MESH_PROVIDER_TCP);
	hints.fallback = true;
	choice = choose(&a, &b, leads_rails, &hints);
	assert_int_equal(choice.num_candidates, 5);
	for (i = 0; i < 5; i++)
		assert_int_equal(choice.candidates[i].class, classes[i]);
	assert_int_equal(choice.candidates[4].provider, MESH_PROVIDER_TCP);
	assert_int_equal(choice.candidates[4].local, 0);
	assert_int_equal(choice.candidates[4].reason, MESH_PATH_WHY_FALLBACK);
	assert_int_equal(mesh_path_provider_reason(MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM,
						   &choice.candidates[4], false),
			 MESH_PROVIDER_WHY_FALLBACK);
}

/* A pair with RDMA is among the first, although rails speak for two others. */
TEST(rdma_before_rails)
{
	struct side a = SIDE("10.1.0.1/24", "10.2.0.1/24");
	struct side b = SIDE("10.4.0.1/24", "10.5.0.1/24");
	struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1, .same_count = true};
	struct mesh_path_choice choice;

	a.nics[0].provider = b.nics[1].provider = MESH_PROVIDER_VERBS_RXM;
	a.nics[0].also_tcp = b.nics[1].also_tcp = true;
	choice = choose(&a, &b, leads_all, &hints);
	assert_int_equal(choice.num_candidates, 4);
	assert_int_equal(choice.candidates[0].provider, MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(choice.candidates[0].local, 0);
	assert_int_equal(choice.candidates[0].remote, 1);
	assert_int_equal(choice.candidates[1].local, 1);
	assert_int_equal(choice.candidates[1].remote, 0);
}

/* Relays with RDMA go before routed paths without: not before direct ones, nor if some have it. */
TEST(yield)
{
	struct mesh_path_candidate pairs[2] = {
		{.class = MESH_PATH_ROUTED, .provider = MESH_PROVIDER_TCP},
		{.class = MESH_PATH_RESERVE_ROUTED, .provider = MESH_PROVIDER_TCP_RXM},
	};

	assert_false(mesh_paths_yield(pairs, 0));
	assert_true(mesh_paths_yield(pairs, 2));
	pairs[1].class = MESH_PATH_FALLBACK_ROUTED;
	assert_true(mesh_paths_yield(pairs, 2));
	pairs[1].provider = MESH_PROVIDER_VERBS_RXM;
	assert_false(mesh_paths_yield(pairs, 2));
	pairs[1].provider = MESH_PROVIDER_NONE; /* it is not known */
	assert_false(mesh_paths_yield(pairs, 2));
	pairs[1].provider = MESH_PROVIDER_TCP;
	pairs[0].class = MESH_PATH_FALLBACK;
	assert_false(mesh_paths_yield(pairs, 2));
}

TEST(largest)
{
	struct mesh_path_hints hints = {.same_count = true};
	struct side a = {.num = MESH_NICS_MAX}, b;
	int i;

	for (i = 0; i < MESH_NICS_MAX; i++) {
		assert_int_equal(mesh_addr_parse("10.1.0.1/31", &a.nics[i].addr), 0);
		a.nics[i].addr.bytes[2] = (uint8_t)i;
		a.nics[i].nic = (uint8_t)i;
		a.nics[i].provider = MESH_PROVIDER_TCP;
	}
	b = a;
	for (i = 0; i < MESH_NICS_MAX; i++)
		b.nics[i].addr.bytes[1] = 2;
	assert_int_equal(choose(&a, &b, leads_all, &hints).num_candidates,
			 MESH_PATH_CANDIDATES_MAX);
}
