/* SPDX-License-Identifier: Apache-2.0 */
/* test_relay_choice.c - which relays connections use, and when they leave the kernels' routes. */
#include <errno.h>

#include "common/relay_choice.h"

#include "unit.h"

/* Routed paths without RDMA are left for relays: not direct ones, nor if some have it. */
TEST(replace)
{
	struct mesh_path_candidate pairs[2] = {
		{.class = MESH_PATH_ROUTED, .provider = MESH_PROVIDER_TCP},
		{.class = MESH_PATH_RESERVE_ROUTED, .provider = MESH_PROVIDER_TCP_RXM},
	};

	assert_false(relays_replace(pairs, 0));
	assert_true(relays_replace(pairs, 2));
	pairs[1].class = MESH_PATH_FALLBACK_ROUTED;
	assert_true(relays_replace(pairs, 2));
	pairs[1].provider = MESH_PROVIDER_VERBS_RXM;
	assert_false(relays_replace(pairs, 2));
	pairs[1].provider = MESH_PROVIDER_NONE; /* it is not known */
	assert_false(relays_replace(pairs, 2));
	pairs[1].provider = MESH_PROVIDER_TCP;
	pairs[0].class = MESH_PATH_FALLBACK;
	assert_false(relays_replace(pairs, 2));
}

/* The routes that are kept of one over these: their first hops. */
static void keeps(const struct mesh_route *found, int num, bool replace, const char *wanted)
{
	struct mesh_route routes[4];
	char kept[5] = "";

	memcpy(routes, found, (size_t)num * sizeof(*found));
	num = relays_together(routes, num, replace);
	for (int i = 0; i < num; i++)
		kept[i] = (char)routes[i].hops[0];
	assert_string_equal(kept, wanted);
}

/* A cable that is no path is stepped over, and so is what does not fit the first. */
TEST(together)
{
	const struct mesh_route routes[4] = {
		{.num_relays = 0, .hops = {'z'}, .rdma = true},
		{.num_relays = 1, .hops = {'b'}, .rdma = true},
		{.num_relays = 1, .hops = {'c'}, .rdma = true},
		{.num_relays = 1, .hops = {'d'}},
	};
	struct mesh_route none;

	keeps(routes, 4, false, "bc");
	keeps(routes, 4, true, "bc");
	keeps(&routes[3], 1, false, "d");
	keeps(&routes[3], 1, true, "");
	assert_int_equal(relays_together(&none, -ENOMEM, false), 0);
}

/* Routed tcp is not left for one that leaves the site, or over a hop that is drained. */
TEST(sound)
{
	const struct mesh_route routes[3] = {
		{.num_relays = 1, .hops = {'b'}, .rdma = true, .leaves = true},
		{.num_relays = 1, .hops = {'c'}, .rdma = true, .drained = true},
		{.num_relays = 2, .hops = {'d'}, .rdma = true},
	};

	keeps(routes, 3, true, "d");
	keeps(routes, 3, false, "b");
}
