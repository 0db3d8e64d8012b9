/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider_reason.c - why two NICs use their provider. */
#include "common/provider_reason.h"

#include "unit.h"

TEST(providers)
{
	static const struct {
		enum mesh_provider_id ours, theirs, used;
		enum mesh_path_class class;
		bool setting;
		const char *word;
	} cases[] = {
		{MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, MESH_PATH_DIRECT, false,
		 "no-rdma"},
		{MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, MESH_PATH_DIRECT, true,
		 "setting"},
		{MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM,
		 MESH_PATH_DIRECT, false, "rdma"},
		{MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, MESH_PATH_DIRECT,
		 false, "one-end"},
		{MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP,
		 MESH_PATH_FALLBACK, true, "fallback"},
		{MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP,
		 MESH_PATH_FALLBACK_ROUTED, false, "fallback"},
	};

	FOR_EACH(i, cases) {
		const struct mesh_path_candidate pair = {.provider = cases[i].used,
							 .class = cases[i].class};

		assert_string_equal(
			provider_reason_word(provider_reason_of(cases[i].ours, cases[i].theirs,
								&pair, cases[i].setting)),
			cases[i].word);
	}
}

/* Each reason has words, and no two have the same. */
TEST(words)
{
	for (int i = 0; i < MESH_PATH_REASONS; i++)
		assert_true(*path_reason_text((enum mesh_path_reason)i));
	for (int i = 0; i < PROVIDER_REASONS; i++) {
		assert_true(*provider_reason_text((enum provider_reason)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(provider_reason_word((enum provider_reason)i),
						provider_reason_word((enum provider_reason)k));
	}
}
