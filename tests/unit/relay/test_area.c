/* SPDX-License-Identifier: Apache-2.0 */
/* test_area.c - granules of a circuit's memory: none is given out twice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "relay/area.h"

#define STEPS 200000

static void test_granules(void **state)
{
	(void)state;
	assert_int_equal(mesh_area_granules(0, 4096), 1);
	assert_int_equal(mesh_area_granules(1, 4096), 1);
	assert_int_equal(mesh_area_granules(4096, 4096), 1);
	assert_int_equal(mesh_area_granules(4097, 4096), 2);
	assert_int_equal(mesh_area_granules(64 * 4096, 4096), 64);
	assert_int_equal(mesh_area_granules((size_t)1 << 30, 4096), 1 << 18);
}

/* All of it at once, and nothing beside it; more than all of it, never. */
static void test_bounds(void **state)
{
	struct mesh_area area = {0};

	(void)state;
	assert_int_equal(mesh_area_take(&area, MESH_GRANULES + 1), -EAGAIN);
	assert_int_equal(mesh_area_take(&area, MESH_GRANULES), 0);
	assert_int_equal(mesh_area_take(&area, 1), -EAGAIN);
	mesh_area_give(&area, 0, MESH_GRANULES);
	assert_int_equal(area.used, 0);
	assert_int_equal(mesh_area_take(&area, MESH_GRANULES - 1), 0);
	assert_int_equal(mesh_area_take(&area, 2), -EAGAIN);
	assert_int_equal(mesh_area_take(&area, 1), MESH_GRANULES - 1);
}

/* Random pieces against a plain array of owners. */
static void test_random(void **state)
{
	unsigned int counts[MESH_GRANULES] = {0}; /* by first granule: of the piece that is taken */
	int owners[MESH_GRANULES];
	struct mesh_area area = {0};
	unsigned int seed = 1, i, count;
	int step, first;

	(void)state;
	memset(owners, 0xff, sizeof(owners));
	for (step = 0; step < STEPS; step++) {
		count = (unsigned int)rand_r(&seed) % 9 + 1;
		first = mesh_area_take(&area, count);
		for (i = 0; first >= 0 && i < count; i++) {
			assert_in_range(first + (int)i, 0, MESH_GRANULES - 1);
			assert_int_equal(owners[first + (int)i], -1);
			owners[first + (int)i] = first;
		}
		if (first >= 0)
			counts[first] = count;
		first = owners[(unsigned int)rand_r(&seed) % MESH_GRANULES];
		if (first < 0 || rand_r(&seed) % 2)
			continue;
		mesh_area_give(&area, (unsigned int)first, counts[first]);
		for (i = 0; i < counts[first]; i++)
			owners[first + (int)i] = -1;
	}
	for (i = 0; i < MESH_GRANULES; i++)
		assert_int_equal(area.used >> i & 1, owners[i] >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_granules),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
