/* SPDX-License-Identifier: Apache-2.0 */
/* test_port_range.c - ranges of ports: what is read, and that each port is tried once. */
#include "base/port_range.h"

#include "unit.h"

static void reads(const char *text, unsigned int first, unsigned int last)
{
	struct mesh_port_range range;

	assert_int_equal(mesh_port_range_parse(text, &range), 0);
	assert_int_equal(range.first, first);
	assert_int_equal(range.last, last);
}

TEST(parse)
{
	static const char *const bad[] = {"0",	   "-",	   "1-",	  "-1",	   "0-5",
					  "65536", "9-8",  "1-65536",	  "1 - 5", "1-5 ",
					  " 1",	   "a",	   "1-2-3",	  "+1",	   "0x10",
					  "1,2",   "1--2", "99999999999", "1-0",   "40000:40100"};
	struct mesh_port_range range;

	reads("", 0, 0);
	reads("40000-40100", 40000, 40100);
	reads("1-65535", 1, 65535);
	reads("7", 7, 7);
	FOR_EACH(i, bad) {
		if (mesh_port_range_parse(bad[i], &range) != -EINVAL)
			fail_msg("\"%s\" is read", bad[i]);
		assert_int_equal(range.first, 0);
		assert_int_equal(range.last, 0);
	}
}

TEST(each_once)
{
	struct mesh_port_range range = {65530, 65535}, any = {0, 0}, all = {1, 65535};
	unsigned int i, seen[6] = {0};

	assert_int_equal(mesh_port_range_size(&range), 6);
	assert_int_equal(mesh_port_range_size(&all), 65535);
	for (i = 0; i < 6; i++)
		seen[mesh_port_range_get(&range, i) - 65530]++;
	for (i = 0; i < 6; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(mesh_port_range_size(&any), 1);
	assert_int_equal(mesh_port_range_get(&any, 0), 0);
}
