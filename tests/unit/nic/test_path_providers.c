/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_providers.c - two NICs use the best provider that both have. */
#include "nic/path_choice.h"

#include "unit.h"

static struct mesh_endpoint_addr rdma(const char *addr, int nic)
{
	struct mesh_endpoint_addr endpoint = {
		.nic = (uint8_t)nic, .provider = MESH_PROVIDER_VERBS_RXM, .also_tcp = true};

	assert_int_equal(mesh_addr_parse(addr, &endpoint.addr), 0);
	return endpoint;
}

static struct mesh_endpoint_addr plain(const char *addr, int nic, enum mesh_provider_id provider)
{
	struct mesh_endpoint_addr endpoint = rdma(addr, nic);

	endpoint.provider = provider;
	endpoint.also_tcp = false;
	return endpoint;
}

/* The one pair of these NICs has this provider; NONE: there is none. Also from the other end. */
static void pair_has(struct mesh_endpoint_addr a, struct mesh_endpoint_addr b,
		     enum mesh_provider_id provider)
{
	const struct mesh_path_hints hints = {.local_nic = 0};
	struct mesh_path_choice choice;
	int turn;

	for (turn = 0; turn < 2; turn++) {
		mesh_path_choose(turn ? &b : &a, 1, turn ? &a : &b, 1, &hints, &choice);
		assert_int_equal(choice.num_candidates, provider != MESH_PROVIDER_NONE);
		assert_int_equal(choice.provider_differs, provider == MESH_PROVIDER_NONE);
		if (!choice.num_candidates)
			continue;
		assert_int_equal(choice.candidates[0].provider, provider);
		assert_int_equal(choice.candidates[0].class, MESH_PATH_DIRECT);
	}
}

TEST(best_of_both)
{
	struct mesh_endpoint_addr a = rdma("10.1.0.1/24", 0), b = rdma("10.1.0.2/24", 0), only;

	only = plain("10.1.0.2/24", 0, MESH_PROVIDER_VERBS_RXM);
	pair_has(a, b, MESH_PROVIDER_VERBS_RXM);
	pair_has(a, only, MESH_PROVIDER_VERBS_RXM);
	pair_has(a, plain("10.1.0.2/24", 0, MESH_PROVIDER_TCP), MESH_PROVIDER_TCP);
	pair_has(only, plain("10.1.0.1/24", 0, MESH_PROVIDER_TCP), MESH_PROVIDER_NONE);
	pair_has(a, plain("10.1.0.2/24", 0, MESH_PROVIDER_TCP_RXM), MESH_PROVIDER_NONE);
}

/* Two cables, of which one lacks RDMA at one end: both are used, each once. */
TEST(each_pair_its_own)
{
	struct mesh_endpoint_addr a[] = {rdma("10.1.0.1/24", 0), rdma("10.2.0.1/24", 1)};
	struct mesh_endpoint_addr b[] = {rdma("10.1.0.2/24", 0),
					 plain("10.2.0.2/24", 1, MESH_PROVIDER_TCP)};
	const struct mesh_path_hints hints = {.local_nic = 0};
	struct mesh_path_choice choice;
	int i;

	mesh_path_choose(a, 2, b, 2, &hints, &choice);
	assert_int_equal(choice.num_candidates, 2);
	for (i = 0; i < 2; i++)
		assert_int_equal(choice.candidates[i].provider, choice.candidates[i].local
									? MESH_PROVIDER_TCP
									: MESH_PROVIDER_VERBS_RXM);
}

/* Where the setting allows it, tcp follows as a class of its own, for pairs of RDMA only. */
TEST(fallback)
{
	struct mesh_endpoint_addr a[] = {rdma("10.1.0.1/24", 0), rdma("10.2.0.1/24", 1)};
	struct mesh_endpoint_addr b[] = {rdma("10.1.0.2/24", 0),
					 plain("10.2.0.2/24", 1, MESH_PROVIDER_TCP)};
	const struct mesh_path_hints hints = {.local_nic = 0, .fallback = true};
	struct mesh_path_choice choice;

	mesh_path_choose(a, 2, b, 2, &hints, &choice);
	assert_int_equal(choice.num_candidates, 3);
	assert_int_equal(choice.candidates[2].class, MESH_PATH_FALLBACK);
	assert_int_equal(choice.candidates[2].provider, MESH_PROVIDER_TCP);
	assert_int_equal(choice.candidates[2].local, 0);
}
