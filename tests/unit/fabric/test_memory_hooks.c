/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_hooks.c - libfabric's cache of registrations is off before libfabric starts. */
#include <rdma/fabric.h>

#include "fabric/provider.h"

#include "child.h"

#define COUNT "FI_MR_CACHE_MAX_COUNT"
#define MONITOR "FI_MR_CACHE_MONITOR"

/* What libfabric reads at the process's first fi_getinfo(); later changes do not reach it. */
static char read_count[16];
static int queries;

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	const char *count = getenv(COUNT);

	if (!queries++)
		strncpy(read_count, count ? count : "none", sizeof(read_count) - 1);
	return -FI_ENODATA;
}

static const char *expected;

static int is_expected(void)
{
	struct mesh_nic nic = {.netdev = "ab", .source = {.family = MESH_FAMILY_IPV4}};
	char reason[MESH_PROVIDER_REASON_MAX];
	enum mesh_provider_id id;
	struct fi_info *info;

	mesh_provider_find(&nic, MESH_PROVIDER_TCP, &info, &id, reason);
	return !queries || strcmp(read_count, expected);
}

/* The first query of a process decides, so each case has a process of its own. */
static bool count_is(const char *count)
{
	expected = count;
	return !child_run(is_expected);
}

TEST(cache_is_off)
{
	unsetenv(COUNT);
	unsetenv(MONITOR);
	assert_true(count_is("0"));
}

TEST(own_choice_stays)
{
	unsetenv(MONITOR);
	setenv(COUNT, "512", 1);
	assert_true(count_is("512"));
	unsetenv(COUNT);
	setenv(MONITOR, "userfaultfd", 1);
	assert_true(count_is("none"));
	unsetenv(MONITOR);
}
