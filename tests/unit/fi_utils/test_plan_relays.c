/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_relays.c - routes of pairs without a cable, and what the cables leave each pair. */
#include <math.h>

#include "plan/make.h"

#include "unit.h"

static struct mesh_plan plan;
static struct plan_relays found;

/* A plan of cables: "abbc" joins a with b, and b with c. */
static void plan_of(int num_nodes, const char *cables)
{
	struct mesh_cable_end ends[2] = {{0}};

	plan = (struct mesh_plan){.halves = 1};
	assert_int_equal(mesh_topology_init(&plan.topology, num_nodes), 0);
	for (; *cables; cables += 2) {
		ends[0].node = cables[0] - 'a';
		ends[1].node = cables[1] - 'a';
		assert_int_equal(mesh_topology_add(&plan.topology, ends[0], ends[1]), 0);
	}
}

static void forget(void)
{
	plan_relays_free(&found);
	mesh_plan_free(&plan);
	memset(&found, 0, sizeof(found));
	memset(&plan, 0, sizeof(plan));
}

TESTS_USE(NULL, forget);

static void find(int num_nodes, const char *cables)
{
	forget();
	plan_of(num_nodes, cables);
	assert_int_equal(plan_relays_find(&plan, &found), 0);
}

static const struct plan_pair *pair_of(const char *name)
{
	for (int i = 0; i < found.num_pairs; i++) {
		if (found.pairs[i].from == name[0] - 'a' && found.pairs[i].to == name[1] - 'a')
			return &found.pairs[i];
	}
	fail_msg("no pair %s", name);
	return NULL;
}

static void pair_is(const char *name, int num_relays, int num_routes, double share)
{
	const struct plan_pair *pair = pair_of(name);

	if (pair->routes.num_relays != num_relays || pair->routes.num != num_routes ||
	    fabs(pair->share - share) > 1e-6)
		fail_msg("%s: %d relays, %d routes, share %f", name, pair->routes.num_relays,
			 pair->routes.num, pair->share);
}

/* Each cable carries the pair at its ends, and the pair of the ends of the line. */
TEST(line)
{
	find(3, "abbc");
	assert_int_equal(found.num_pairs, 3);
	assert_true(found.all_reached);
	pair_is("ab", 0, 1, 0.5);
	pair_is("bc", 0, 1, 0.5);
	pair_is("ac", 1, 1, 0.5);
	assert_int_equal(pair_of("ac")->routes.relays[0][0], 1);
	/* A cut in the middle of 5 has 6 pairs across; a-b has the 4 of a. */
	find(5, "abbccdde");
	pair_is("ae", 3, 1, 1.0 / 6);
	pair_is("cd", 0, 1, 1.0 / 6);
	/* a-b: a to c, d and e have a sixth each. */
	pair_is("ab", 0, 1, 0.5);
	assert_int_equal(pair_of("ae")->routes.relays[0][0], 1);
	assert_int_equal(pair_of("ae")->routes.relays[0][2], 3);
}

/* The diagonals go both ways round: half of each on every cable. */
TEST(ring)
{
	find(4, "abbccdda");
	pair_is("ab", 0, 1, 0.5);
	pair_is("ac", 1, 2, 0.5);
	pair_is("bd", 1, 2, 0.5);
	assert_int_equal(pair_of("ac")->routes.relays[0][0] + pair_of("ac")->routes.relays[1][0],
			 1 + 3);
}

/* Each leaf's cable carries it to the hub, and to three others. */
TEST(star)
{
	find(5, "abacadae");
	pair_is("ab", 0, 1, 0.25);
	pair_is("be", 1, 1, 0.25);
	assert_int_equal(pair_of("be")->routes.relays[0][0], 0);
}

/* Two cables carry twice as much, so what is left of them goes to their own pair. */
TEST(parallel)
{
	find(3, "ababbc");
	pair_is("ac", 1, 1, 0.5);
	pair_is("bc", 0, 1, 0.5);
	pair_is("ab", 0, 1, 1.5);
	/* The same cable, which is seen as two halves. */
	forget();
	plan_of(3, "ababbcbc");
	plan.halves = 2;
	assert_int_equal(plan_relays_find(&plan, &found), 0);
	pair_is("ab", 0, 1, 0.5);
}

TEST(full)
{
	find(3, "abbcac");
	pair_is("ab", 0, 1, 1);
	pair_is("ac", 0, 1, 1);
	find(1, "");
	assert_int_equal(found.num_pairs, 0);
}

/* A route has 15 relays at most; and what is too large is refused. */
TEST(limits)
{
	find(18, "abbccddeeffgghhiijjkkllmmnnooppqqr");
	assert_false(found.all_reached);
	assert_int_equal(found.pairs[15].routes.num_relays, 15);
	assert_int_equal(found.pairs[15].routes.num, 1);
	assert_int_equal(found.pairs[16].routes.num, 0);
	assert_true(found.pairs[16].share <= 0);
	forget();
	plan_of(PLAN_RELAYS_NODES_MAX + 1, "");
	assert_int_equal(plan_relays_find(&plan, &found), -E2BIG);
	/* A hub with more cables than the plugin uses NICs. */
	forget();
	plan_of(18, "abacadaeafagahaiajakalamanaoapaqar");
	assert_int_equal(plan_relays_find(&plan, &found), -E2BIG);
}
