/* SPDX-License-Identifier: Apache-2.0 */
/* test_check_memlock.c - the check of locked memory, on recorded trees. */
#include "machine_fixture.h"
#include "unit.h"

TESTS_USE(machine_setup, machine_teardown);

static void limits_write(const char *limit)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "Max stack size            8388608              unlimited            bytes\n"
		 "Max locked memory         %s                 unlimited            bytes",
		 limit);
	tree_file(text, "proc/self/limits");
}

TEST(memlock)
{
	machine_spark_make();
	limits_write("8388608");
	assert_says("memlock", CHECK_FAIL, "only 8192 KiB of memory may be locked", "limits.d");
	limits_write("8589934592");
	assert_says("memlock", CHECK_WARN, "fails once NCCL registers more");
	tree_file("CapEff:\t0000000000004000", "proc/self/status"); /* CAP_IPC_LOCK */
	assert_well("memlock");
	/* Root of a container without the host's privileges has the bit, and it helps nothing. */
	tree_file("         0     100000      65536", "proc/self/uid_map");
	assert_says("memlock", CHECK_WARN, "fails once NCCL registers more");
	tree_file("         0          0 4294967295", "proc/self/uid_map");
	assert_well("memlock");
	limits_write("junk");
	assert_says("memlock", CHECK_UNKNOWN, "/proc/self/limits does not show");
}

/* What a relay holds is locked once for each of two NICs. */
TEST(memlock_of_relays)
{
	machine_spark_make();
	machine.context.config.relay_memory_bytes = 256 << 20;
	limits_write("536870912");
	assert_says("memlock", CHECK_WARN, "relaying for other nodes over RDMA may lock 128 MiB");
	snprintf(machine.context.config.relay, sizeof(machine.context.config.relay), "off");
	assert_says("memlock", CHECK_WARN, "fails once NCCL registers more");
	assert_null(strstr(machine.said, "relaying"));
	machine.context.config.relay[0] = '\0';
	limits_write("671088640");
	assert_says("memlock", CHECK_WARN, "fails once NCCL registers more");
	assert_null(strstr(machine.said, "relaying"));
}

TEST(memlock_of_one_nic)
{
	machine_connectx3_make("10.1.0.1/24");
	machine_load();
	machine.context.config.relay_memory_bytes = 256 << 20;
	limits_write("536870912");
	assert_says("memlock", CHECK_WARN, "fails once NCCL registers more");
	assert_null(strstr(machine.said, "relaying"));
}

/* An empty area of contiguous memory is reported on arm64 only, and only with RDMA. */
TEST(cma)
{
	machine_nic_add("eth0", "02:00:00:00:00:01", "10.1.0.1/24");
	tree_file("Max locked memory         unlimited            unlimited            bytes",
		  "proc/self/limits");
	tree_file("MemTotal: 9 kB\nCmaTotal:              0 kB\n", "proc/meminfo");
	tree_file("x86_64\n", "proc/sys/kernel/arch");
	strcpy(machine.context.table.nics[0].rdma.device, "mlx5_0");
	assert_well("memlock");
	tree_file("aarch64\n", "proc/sys/kernel/arch");
	assert_says("memlock", CHECK_UNKNOWN, "the kernel reserves no contiguous memory");
}
