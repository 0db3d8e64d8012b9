/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin_properties.c - what NCCL reads from the plugin, through the table of every version:
 * the NICs' properties, results and log lines. Each test_trap_* is named after a way in which NCCL
 * punishes a plugin.
 */
#include "base/log.h"

#include "plugin_fixture.h"

TEST_EACH(devices_are_counted)
{
	int n = -1;

	assert_int_equal(v->devices(&n), NCCL_RESULT_SUCCESS);
	assert_int_equal(n, FAKE_NICS);
}

TEST_EACH(trap_unzeroed_properties_are_fully_written)
{
	uint64_t a[32], b[32];

	assert_true(v->properties_size < sizeof(a));
	memset(a, 0xaa, sizeof(a));
	memset(b, 0x55, sizeof(b));
	assert_int_equal(v->get_properties(1, a), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->get_properties(1, b), NCCL_RESULT_SUCCESS);
	assert_memory_equal(a, b, v->properties_size);
	/* and nothing behind them */
	assert_int_equal(((unsigned char *)a)[v->properties_size], 0xaa);
	assert_int_equal(((unsigned char *)b)[v->properties_size], 0x55);
}

static struct common_properties common_get(int dev)
{
	struct common_properties common;
	uint64_t memory[32];

	memset(memory, 0xaa, sizeof(memory));
	assert_int_equal(v->get_properties(dev, memory), NCCL_RESULT_SUCCESS);
	v->common(memory, &common);
	return common;
}

TEST_EACH(properties_are_those_of_the_nic)
{
	struct common_properties common = common_get(1);

	assert_ptr_equal(common.identity.name, fake.nics[1].name);
	assert_ptr_equal(common.identity.pci_path, fake.nics[1].pci_path);
	assert_int_equal(common.identity.guid, fake.nics[1].guid);
	assert_int_equal(common.pointer_support, NCCL_POINTER_HOST);
	assert_int_equal(common.link.speed, 200000);
	assert_int_equal(common.link.port, 2);
	assert_true(common.link.latency == 0.0f);
	assert_true(common.link.max_comms >= 1024);
	assert_int_equal(common.link.max_receives, 1);
}

TEST_EACH(trap_unknown_speed_is_10000)
{
	fake.nics[0].speed_mbps = 0;
	assert_int_equal(common_get(0).link.speed, 10000);
	fake.nics[0].speed_mbps = -1;
	assert_int_equal(common_get(0).link.speed, 10000);
}

/* NCCL copies the last component into 16 bytes. */
TEST_EACH(trap_pci_path_that_nccl_cannot_take_is_null)
{
	strcpy(fake.nics[0].pci_path, "");
	assert_null(common_get(0).identity.pci_path);
	strcpy(fake.nics[0].pci_path, "/sys/devices/0123456789abcdef");
	assert_null(common_get(0).identity.pci_path);
	strcpy(fake.nics[0].pci_path, "/sys/devices/");
	assert_null(common_get(0).identity.pci_path);
	strcpy(fake.nics[0].pci_path, "/sys/devices/0123456789abcde");
	assert_non_null(common_get(0).identity.pci_path);
}

TEST_EACH(trap_unknown_dev_is_refused)
{
	uint64_t memory[32], before[32];

	memset(memory, 0xaa, sizeof(memory));
	memset(before, 0xaa, sizeof(before));
	assert_refused_in_words(v->get_properties(FAKE_NICS, memory));
	assert_memory_equal(memory, before, sizeof(memory));
	assert_int_equal(v->get_properties(-1, memory), NCCL_RESULT_INVALID_ARGUMENT);
}

/* Properties that came after v6; NCCL loops over members.num_devs entries. */
#define ASSERT_DEVICE(n)                                                                           \
	memset(&properties, 0xaa, sizeof(properties));                                             \
	assert_int_equal(ncclNetPlugin_v##n.get_properties(1, (void *)&properties),                \
			 NCCL_RESULT_SUCCESS);                                                     \
	assert_int_equal(properties.v##n.device.type, NCCL_DEVICE_HOST);                           \
	assert_int_equal(properties.v##n.device.version, NCCL_DEVICE_NO_VERSION)
#define ASSERT_MEMBERS(n)                                                                          \
	ASSERT_DEVICE(n);                                                                          \
	assert_int_equal(properties.v##n.registration_is_global, 0);                               \
	assert_int_equal(properties.v##n.force_flush, 0);                                          \
	assert_int_equal(properties.v##n.members.num_devs, 1);                                     \
	assert_int_equal(properties.v##n.members.devs[0], 1);                                      \
	assert_int_equal(properties.v##n.limits.max_p2p_bytes, NCCL_MESSAGE_BYTES_MAX);            \
	assert_int_equal(properties.v##n.limits.max_coll_bytes, NCCL_MESSAGE_BYTES_MAX)

TEST(trap_newer_properties_are_legal)
{
	union {
		struct nccl_net_properties_v7 v7;
		struct nccl_net_properties_v8 v8;
		struct nccl_net_properties_v9 v9, v10;
		struct nccl_net_properties_v11 v11;
		struct nccl_net_properties_v12 v12;
	} properties;

	ASSERT_DEVICE(7);
	ASSERT_DEVICE(8);
	assert_int_equal(properties.v8.registration_is_global, 0);
	ASSERT_MEMBERS(9);
	ASSERT_MEMBERS(10);
	ASSERT_MEMBERS(11);
	assert_int_equal(properties.v11.max_multi_request_size, 1);
	ASSERT_MEMBERS(12);
	assert_int_equal(properties.v12.max_multi_request_size, 1);
	assert_int_equal(properties.v12.rail_id, -1);
	assert_int_equal(properties.v12.plane_id, -1);
}

/* --- results and log --- */

TEST_EACH(errors_become_results)
{
	static const struct {
		int error;
		enum nccl_result result;
	} cases[] = {
		{-EMSGSIZE, NCCL_RESULT_INVALID_ARGUMENT},
		{-EPROTONOSUPPORT, NCCL_RESULT_REMOTE_ERROR},
		{-EFAULT, NCCL_RESULT_SYSTEM_ERROR},
		{-ENODATA, NCCL_RESULT_SYSTEM_ERROR},
		{-EINVAL, NCCL_RESULT_INVALID_ARGUMENT},
		{-ENODEV, NCCL_RESULT_SYSTEM_ERROR},
		{-ENOMEM, NCCL_RESULT_SYSTEM_ERROR},
		{-EMFILE, NCCL_RESULT_SYSTEM_ERROR},
		{-ECONNRESET, NCCL_RESULT_REMOTE_ERROR},
		{-ECONNREFUSED, NCCL_RESULT_REMOTE_ERROR},
		{-ETIMEDOUT, NCCL_RESULT_REMOTE_ERROR},
		{-EHOSTUNREACH, NCCL_RESULT_REMOTE_ERROR},
		{-ENETUNREACH, NCCL_RESULT_REMOTE_ERROR},
		{-EPIPE, NCCL_RESULT_REMOTE_ERROR},
		{-ENOTCONN, NCCL_RESULT_REMOTE_ERROR},
		{-ECANCELED, NCCL_RESULT_REMOTE_ERROR},
		{-EPROTO, NCCL_RESULT_REMOTE_ERROR},
		{-EREMOTEIO, NCCL_RESULT_REMOTE_ERROR},
		{-EDOM, NCCL_RESULT_SYSTEM_ERROR},
	};
	int done;

	FOR_EACH(i, cases) {
		fake.error = cases[i].error;
		assert_int_equal(v->test(FAKE_REQUEST, &done, NULL), cases[i].result);
	}
}

/* 7 is "in progress" and 8 is no result before NCCL 2.30. */
TEST_EACH(trap_no_error_becomes_timeout_or_success)
{
	enum nccl_result result;
	int done;

	for (fake.error = -1; fake.error >= -600; fake.error--) {
		result = v->test(FAKE_REQUEST, &done, NULL);
		if (result == NCCL_RESULT_SUCCESS || result >= NCCL_RESULT_IN_PROGRESS)
			fail_msg("errno %d became %d", -fake.error, (int)result);
	}
}

TEST_EACH(log_lines_reach_nccl)
{
	mesh_info("100%% of %s", "%n%s");
	assert_int_equal(logged.level, NCCL_LEVEL_INFO);
	assert_int_equal(logged.flags, NCCL_SUBSYSTEM_INIT | NCCL_SUBSYSTEM_NET);
	assert_string_equal(logged.text, "NET/Mesh : 100% of %n%s");
	mesh_warn("w");
	assert_int_equal(logged.level, NCCL_LEVEL_WARN);
	assert_string_equal(logged.text, "NET/Mesh : w");
	mesh_trace("t");
	assert_int_equal(logged.level, NCCL_LEVEL_TRACE);
}
