/* SPDX-License-Identifier: Apache-2.0 */
/* test_host_name.c - the names for which `fi_mesh serve --http` shows its page. */
#include "serve/http.h"

#include "unit.h"

static int num_asked;

static const char *full(void)
{
	num_asked++;
	return "spark-1.lab.example";
}

static const char *none(void)
{
	return "";
}

TEST(own_names)
{
	static const char *const names[] = {
		"spark-1",	   "SPARK-1:18622", "spark-1.local", "spark-1.local:18622",
		"localhost:18622", "10.1.2.3:80",   "[fd00::1]:80",
	};

	num_asked = 0;
	FOR_EACH(i, names)
		assert_true(serve_host_is_ours(names[i], "spark-1", full));
	assert_int_equal(num_asked, 0);
	assert_true(serve_host_is_ours("spark-1.lab.example:80", "spark-1", full));
	assert_true(serve_host_is_ours("b.rack.example", "b.rack.example", none));
	assert_true(serve_host_is_ours("b", "b.rack.example", none));
}

/* Anybody may own a domain, and give a host in it the name of one of ours. */
TEST(names_of_others)
{
	static const char *const names[] = {
		"evil.example",
		"spark-1.evil.example",
		"spark-1.local.evil.example",
		"spark-1.",
		"spark-10",
		"spark-1.lab.example.evil.example",
		"10.1.2.3.example",
		"localhost.example",
		"spark-1local",
		":80",
		"",
	};
	char longest[400];

	FOR_EACH(i, names)
		assert_false(serve_host_is_ours(names[i], "spark-1", full));
	assert_false(serve_host_is_ours("spark-1.evil.example", "spark-1", none));
	assert_false(serve_host_is_ours("b.evil.example", "b.rack.example", none));
	assert_false(serve_host_is_ours(NULL, "spark-1", full));
	assert_false(serve_host_is_ours(".evil.example", "", full));
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_false(serve_host_is_ours(longest, "spark-1", full));
	num_asked = 0;
	assert_false(serve_host_is_ours("evil.example", "spark-1", full));
	assert_int_equal(num_asked, 0);
}
