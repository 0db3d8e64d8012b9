/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider_id.c - the providers' names. */
#include "nic/addr.h"

#include "unit.h"

TEST(round_trip)
{
	for (int id = MESH_PROVIDER_NONE + 1; id <= MESH_PROVIDER_ID_MAX; id++) {
		const char *text = mesh_provider_id_text((enum mesh_provider_id)id);

		assert_int_equal(mesh_provider_id_parse(text), id);
	}
}

/* The ids travel on the wire: they must never change. */
TEST(names)
{
	assert_int_equal(mesh_provider_id_parse("verbs;ofi_rxm"), 1);
	assert_int_equal(mesh_provider_id_parse("tcp"), 2);
	assert_int_equal(mesh_provider_id_parse("net"), 2);
	assert_int_equal(mesh_provider_id_parse("tcp;ofi_rxm"), 3);
	assert_string_equal(mesh_provider_id_text(MESH_PROVIDER_NONE), "none");
}

TEST(unknown)
{
	static const char *const bad[] = {"",	  "none", "verbs",	  "TCP",     "tcp ",
					  " tcp", "tcp;", "tcp;ofi_rxm ", "sockets", "unknown"};

	FOR_EACH(i, bad)
		assert_int_equal(mesh_provider_id_parse(bad[i]), MESH_PROVIDER_NONE);
	assert_string_equal(
		mesh_provider_id_text((enum mesh_provider_id)(MESH_PROVIDER_ID_MAX + 1)),
		"unknown");
	assert_string_equal(mesh_provider_id_text((enum mesh_provider_id)255), "unknown");
}
