/* SPDX-License-Identifier: Apache-2.0 */
/* test_fork_verbs.c - fork protection is switched on once, before verbs is used. */
#include <rdma/fabric.h>

#include "fabric/provider.h"

#include "fake_fabric.h"
#include "log_capture.h"
#include "unit.h"

/* libibverbs. */
static struct {
	int opens, calls;
	int asked_before; /* fi_getinfo's calls when ibv_fork_init was called */
} verbs;

static int fork_init(void)
{
	verbs.calls++;
	verbs.asked_before = fake.on[FAKE_GETINFO].calls;
	return EINVAL;
}

void *__wrap_dlopen(const char *file, int flags)
{
	assert_string_equal(file, "libibverbs.so.1");
	verbs.opens++;
	return &verbs;
}

void *__wrap_dlsym(void *library, const char *name)
{
	int (*function)(void) = fork_init;
	void *result;

	assert_ptr_equal(library, &verbs);
	assert_string_equal(name, "ibv_fork_init");
	memcpy(&result, &function, sizeof(result));
	return result;
}

int __wrap_access(const char *path, int mode)
{
	return 0;
}

static int find(struct mesh_nic *nic, enum mesh_provider_id wanted)
{
	char reason[MESH_PROVIDER_REASON_MAX];
	enum mesh_provider_id id;
	struct fi_info *info;
	int ret = mesh_provider_find(nic, wanted, &info, &id, reason);

	if (!ret)
		fi_freeinfo(info);
	return ret;
}

/* It cannot be undone in one process, so this is all one test. */
TEST(once_and_first)
{
	struct mesh_nic nic = *fake_nic();

	fake_reset();
	log_capture_start();
	nic.rdma.device[0] = '\0';
	assert_int_equal(find(&nic, MESH_PROVIDER_TCP), 0);
	assert_int_equal(verbs.opens, 0); /* without RDMA it forks as it likes */
	fake.on[FAKE_GETINFO].calls = 0;
	strcpy(nic.rdma.device, "mlx5_7");
	find(&nic, MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(verbs.calls, 1);
	assert_int_equal(verbs.asked_before, 0);
	assert_true(log_captured(MESH_LOG_INFO, "RDMAV_FORK_SAFE=1"));
	find(&nic, MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(verbs.calls, 1);
	fake_teardown();
}
