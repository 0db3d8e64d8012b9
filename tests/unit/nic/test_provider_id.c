/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider_id.c - the providers' names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nic/provider_id.h"

static void test_round_trip(void **state)
{
	int id;

	(void)state;
	for (id = MESH_PROVIDER_NONE + 1; id <= MESH_PROVIDER_ID_MAX; id++) {
		const char *text = mesh_provider_id_text((enum mesh_provider_id)id);

		assert_int_equal(mesh_provider_id_parse(text), id);
	}
}

/* The ids travel on the wire: they must never change. */
static void test_names(void **state)
{
	(void)state;
	assert_int_equal(mesh_provider_id_parse("verbs;ofi_rxm"), 1);
	assert_int_equal(mesh_provider_id_parse("tcp"), 2);
	assert_int_equal(mesh_provider_id_parse("net"), 2);
	assert_int_equal(mesh_provider_id_parse("tcp;ofi_rxm"), 3);
	assert_string_equal(mesh_provider_id_text(MESH_PROVIDER_NONE), "none");
}

static void test_unknown(void **state)
{
	static const char *const bad[] = {"",	  "none", "verbs",	  "TCP",     "tcp ",
					  " tcp", "tcp;", "tcp;ofi_rxm ", "sockets", "unknown"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(mesh_provider_id_parse(bad[i]), MESH_PROVIDER_NONE);
	assert_string_equal(
		mesh_provider_id_text((enum mesh_provider_id)(MESH_PROVIDER_ID_MAX + 1)),
		"unknown");
	assert_string_equal(mesh_provider_id_text((enum mesh_provider_id)255), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
