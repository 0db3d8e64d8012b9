/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_reason.c - each candidate of a choice has the reason for its place. */
#include "nic/nic_near.h"
#include "nic/path_choice.h"
#include "nic/path_proof.h"

#include "unit.h"

#define NICS 4

static struct mesh_endpoint_addr local[NICS], remote[NICS];
static struct mesh_path_choice choice;

static void side_set(struct mesh_endpoint_addr *side, const char *const *addrs, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		side[i] = (struct mesh_endpoint_addr){.nic = (uint8_t)i,
						      .provider = MESH_PROVIDER_TCP};
		assert_int_equal(mesh_addr_parse(addrs[i], &side[i].addr), 0);
	}
}

#define LOCAL(...)                                                                                 \
	side_set(local, (const char *const[]){__VA_ARGS__},                                        \
		 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
#define REMOTE(...)                                                                                \
	side_set(remote, (const char *const[]){__VA_ARGS__},                                       \
		 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void reason_is(int i, int l, int r, enum mesh_path_reason reason)
{
	assert_true(i < choice.num_candidates);
	assert_int_equal(choice.candidates[i].local, l);
	assert_int_equal(choice.candidates[i].remote, r);
	assert_string_equal(mesh_path_reason_word(choice.candidates[i].reason),
			    mesh_path_reason_word(reason));
}

static bool leads(const struct mesh_endpoint_addr *from, const struct mesh_endpoint_addr *to,
		  const void *arg)
{
	(void)from;
	(void)to;
	(void)arg;
	return true;
}

/* NCCL's NICs, then the other pair without a NIC in common, then those that share one. */
TEST(switched)
{
	struct mesh_path_hints hints = {.local_nic = 1, .remote_nic = 0};

	LOCAL("10.1.0.1/24", "10.1.0.2/24");
	REMOTE("10.1.0.3/24", "10.1.0.4/24");
	mesh_path_choose(local, 2, remote, 2, &hints, &choice);
	reason_is(0, 1, 0, MESH_PATH_WHY_NCCL);
	reason_is(1, 0, 1, MESH_PATH_WHY_SUBNET);
	assert_int_equal(choice.candidates[2].reason, MESH_PATH_WHY_SHARES);
	assert_int_equal(choice.candidates[3].reason, MESH_PATH_WHY_SHARES);
}

TEST(one_hint)
{
	struct mesh_path_hints hints = {.local_nic = 0, .remote_nic = 5};

	LOCAL("10.1.0.1/24", "10.2.0.1/24", "fe80::1/64");
	REMOTE("10.1.0.3/24", "10.2.0.3/24", "fe80::2/64");
	mesh_path_choose(local, 3, remote, 3, &hints, &choice);
	reason_is(0, 0, 0, MESH_PATH_WHY_NCCL_HERE);
	reason_is(1, 1, 1, MESH_PATH_WHY_SUBNET);
	reason_is(2, 2, 2, MESH_PATH_WHY_LINK_LOCAL);
	hints = (struct mesh_path_hints){.local_nic = 5, .remote_nic = 1};
	mesh_path_choose(local, 3, remote, 3, &hints, &choice);
	reason_is(0, 1, 1, MESH_PATH_WHY_NCCL_THERE);
	/* With neither, equal choices keep their order. */
	hints.remote_nic = 5;
	mesh_path_choose(local, 3, remote, 3, &hints, &choice);
	reason_is(0, 0, 0, MESH_PATH_WHY_SUBNET);
	reason_is(1, 1, 1, MESH_PATH_WHY_SUBNET);
}

TEST(routed)
{
	struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1, .same_count = true};
	struct mesh_rails rails;

	LOCAL("10.1.0.1/31", "10.2.0.1/31");
	REMOTE("10.3.0.1/31", "10.4.0.1/31");
	mesh_path_choose(local, 2, remote, 2, &hints, &choice);
	mesh_path_choose_routed(local, 2, remote, 2, &hints, leads, NULL, &choice);
	reason_is(0, 0, 0, MESH_PATH_WHY_NUMBER);
	reason_is(1, 1, 1, MESH_PATH_WHY_NUMBER);
	reason_is(2, 0, 1, MESH_PATH_WHY_SHARES);
	assert_int_equal(
		mesh_rails_parse("10.1.0.0/16+10.4.0.0/16,10.2.0.0/16+10.3.0.0/16", &rails), 0);
	hints.rails = &rails;
	mesh_path_choose(local, 2, remote, 2, &hints, &choice);
	mesh_path_choose_routed(local, 2, remote, 2, &hints, leads, NULL, &choice);
	reason_is(0, 0, 1, MESH_PATH_WHY_RAIL);
	hints = (struct mesh_path_hints){.local_nic = -1, .remote_nic = -1};
	mesh_path_choose(local, 2, remote, 2, &hints, &choice);
	mesh_path_choose_routed(local, 2, remote, 2, &hints, leads, NULL, &choice);
	reason_is(0, 0, 0, MESH_PATH_WHY_ROUTE);
}

TEST(near)
{
	const struct mesh_path_hints hints = {.local_nic = 0, .remote_nic = 0};
	const struct mesh_near_rule rule = {.local = 0x3, .remote = 0x3, .num_nics = 4};
	int i;

	LOCAL("10.1.0.1/24", "10.1.0.2/24", "10.1.0.3/24", "10.1.0.4/24");
	REMOTE("10.1.0.5/24", "10.1.0.6/24", "10.1.0.7/24", "10.1.0.8/24");
	mesh_path_choose(local, 4, remote, 4, &hints, &choice);
	assert_true(mesh_path_near_first(local, remote, &hints, &rule, &choice));
	reason_is(0, 0, 0, MESH_PATH_WHY_NCCL);
	for (i = 1; i < 4; i++)
		assert_true(choice.candidates[i].reason == MESH_PATH_WHY_NEAR ||
			    choice.candidates[i].reason == MESH_PATH_WHY_SHARES);
	for (i = 4; i < 16; i++)
		assert_int_equal(choice.candidates[i].reason, MESH_PATH_WHY_FAR);
}

TEST(answers)
{
	const enum mesh_path_proof proofs[] = {MESH_PROOF_OTHER, MESH_PROOF_THERE};
	const struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1};

	LOCAL("fe80::1/64", "fe80::2/64");
	REMOTE("fe80::3/64");
	mesh_path_choose(local, 2, remote, 1, &hints, &choice);
	reason_is(0, 0, 0, MESH_PATH_WHY_LINK_LOCAL);
	choice.candidates[1].reason = MESH_PATH_WHY_LINK_LOCAL;
	mesh_path_order(local, remote, proofs, &choice);
	reason_is(0, 1, 0, MESH_PATH_WHY_CABLE);
	reason_is(1, 0, 0, MESH_PATH_WHY_UNLIKELY);
}

static void provider_is(enum mesh_provider_id ours, enum mesh_provider_id theirs, bool setting,
			enum mesh_provider_reason reason)
{
	const struct mesh_path_candidate pair = {
		.provider = ours == theirs ? ours : MESH_PROVIDER_TCP,
	};

	assert_int_equal(mesh_path_provider_reason(ours, theirs, &pair, setting), reason);
}

TEST(providers)
{
	const struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1, .fallback = true};

	provider_is(MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, false, MESH_PROVIDER_WHY_NO_RDMA);
	provider_is(MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, true, MESH_PROVIDER_WHY_SETTING);
	provider_is(MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM, false,
		    MESH_PROVIDER_WHY_RDMA);
	provider_is(MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP, false, MESH_PROVIDER_WHY_ONE_END);
	LOCAL("10.1.0.1/24");
	REMOTE("10.1.0.3/24");
	local[0].provider = remote[0].provider = MESH_PROVIDER_VERBS_RXM;
	local[0].also_tcp = remote[0].also_tcp = true;
	mesh_path_choose(local, 1, remote, 1, &hints, &choice);
	reason_is(0, 0, 0, MESH_PATH_WHY_SUBNET);
	reason_is(1, 0, 0, MESH_PATH_WHY_FALLBACK);
	assert_int_equal(mesh_path_provider_reason(MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_VERBS_RXM,
						   &choice.candidates[1], true),
			 MESH_PROVIDER_WHY_FALLBACK);
}

/* Each reason has words, and no two have the same. */
TEST(words)
{
	int i, k;

	for (i = 0; i < MESH_PATH_REASONS; i++) {
		assert_true(*mesh_path_reason_text((enum mesh_path_reason)i));
		for (k = 0; k < i; k++)
			assert_string_not_equal(mesh_path_reason_word((enum mesh_path_reason)i),
						mesh_path_reason_word((enum mesh_path_reason)k));
	}
	for (i = 0; i < MESH_PROVIDER_REASONS; i++) {
		assert_true(*mesh_provider_reason_text((enum mesh_provider_reason)i));
		for (k = 0; k < i; k++)
			assert_string_not_equal(
				mesh_provider_reason_word((enum mesh_provider_reason)i),
				mesh_provider_reason_word((enum mesh_provider_reason)k));
	}
}
