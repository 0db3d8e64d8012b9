/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_filter.c - the grammar of NCCL_MESH_NICS. */
#include "nic/user_lists.h"

#include "log_capture.h"
#include "unit.h"

void tests_setup(void)
{
	log_capture_start();
}

static bool names(const char *list, const char *netdev, const char *device, int port)
{
	struct mesh_nic nic = {.rdma = {.port = port}};
	struct mesh_nic_filter filter;

	snprintf(nic.netdev, sizeof(nic.netdev), "%s", netdev);
	snprintf(nic.name, sizeof(nic.name), "mesh-%s", netdev);
	snprintf(nic.rdma.device, sizeof(nic.rdma.device), "%s", device);
	assert_int_equal(mesh_nic_filter_parse(list, &filter), 0);
	return mesh_nic_filter_names(&filter, &nic);
}

TEST(list)
{
	struct mesh_nic_filter filter;

	assert_int_equal(mesh_nic_filter_parse("mlx5_0:1, eth0 ,,ib0,", &filter), 0);
	assert_false(filter.exclude);
	assert_false(filter.exact);
	assert_int_equal(filter.num_items, 3);
	assert_string_equal(filter.items[0].name, "mlx5_0");
	assert_int_equal(filter.items[0].port, 1);
	assert_string_equal(filter.items[1].name, "eth0");
	assert_int_equal(filter.items[1].port, MESH_NIC_FILTER_ANY_PORT);
	assert_string_equal(filter.items[2].name, "ib0");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

TEST(marks)
{
	static const struct {
		const char *text;
		bool exclude, exact;
	} cases[] = {
		{"a", false, false}, {"^a", true, false},  {"=a", false, true},
		{"^=a", true, true}, {" ^=a", true, true},
	};
	struct mesh_nic_filter filter;

	FOR_EACH(i, cases) {
		assert_int_equal(mesh_nic_filter_parse(cases[i].text, &filter), 0);
		assert_int_equal(filter.exclude, cases[i].exclude);
		assert_int_equal(filter.exact, cases[i].exact);
		assert_int_equal(filter.num_items, 1);
		assert_string_equal(filter.items[0].name, "a");
	}
}

TEST(nothing_named)
{
	static const char *const texts[] = {"", " ", ",", " , ,"};
	struct mesh_nic_filter filter;

	FOR_EACH(i, texts) {
		assert_int_equal(mesh_nic_filter_parse(texts[i], &filter), 0);
		assert_int_equal(filter.num_items, 0);
		assert_false(filter.exclude);
	}
	assert_false(names("", "eth0", "", 0));
}

TEST(refused)
{
	static const char *const texts[] = {
		"^",
		"=",
		"^=",
		"=^a",
		"^^a",
		"==a",
		"a,^b",
		"a,=b",
		":1",
		"mlx5_0:",
		"a:0",
		"a:256",
		"a:-1",
		"a:1x",
		"a:1:2",
		"a b",
		"a: 1",
		"a :1",
		"^ a b",
		"a:99999999999",
		"a-name-of-64-letters-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct mesh_nic_filter filter = {.num_items = 7};

	FOR_EACH(i, texts) {
		if (mesh_nic_filter_parse(texts[i], &filter) != -EINVAL)
			fail_msg("\"%s\" is understood", texts[i]);
		assert_int_equal(log_captured_times(MESH_LOG_WARN, "NCCL_MESH_NICS"), (int)i + 1);
		assert_int_equal(log_captured_lines(MESH_LOG_WARN), (int)i + 1);
	}
	assert_int_equal(filter.num_items, 7);
}

TEST(too_many)
{
	struct mesh_nic_filter filter;
	char text[4 * MESH_NIC_FILTER_MAX + 8] = "";

	for (int i = 0; i < MESH_NIC_FILTER_MAX; i++)
		strcat(text, "e1,");
	assert_int_equal(mesh_nic_filter_parse(text, &filter), 0);
	assert_int_equal(filter.num_items, MESH_NIC_FILTER_MAX);
	strcat(text, "e1");
	assert_int_equal(mesh_nic_filter_parse(text, &filter), -EINVAL);
}

TEST(prefix)
{
	assert_true(names("mlx5", "eth0", "mlx5_0", 1));
	assert_true(names("mlx5_1", "eth0", "mlx5_10", 1)); /* as NCCL_IB_HCA */
	assert_true(names("enp", "enp1s0", "", 0));
	assert_true(names("x,eth", "eth0", "", 0));
	assert_false(names("mlx5_1", "eth0", "mlx5_0", 1));
	assert_false(names("eth0", "eth", "", 0));
}

TEST(exact)
{
	assert_true(names("=mlx5_1", "eth0", "mlx5_1", 1));
	assert_false(names("=mlx5_1", "eth0", "mlx5_10", 1));
	assert_true(names("=eth0", "eth0", "mlx5_10", 1));
	assert_false(names("=eth", "eth0", "", 0));
	assert_true(names("^=eth0", "eth0", "", 0)); /* named, to be excluded */
}

TEST(port)
{
	assert_true(names("mlx4_0:2", "eth0", "mlx4_0", 2));
	assert_false(names("mlx4_0:1", "eth0", "mlx4_0", 2));
	assert_true(names("mlx4_0", "eth0", "mlx4_0", 2));
	assert_false(names("eth0:2", "eth0", "mlx4_0", 2)); /* ports are of RDMA devices */
	assert_false(names("eth0:1", "eth0", "", 1));
}

/* The name that NCCL prints is understood, but does not make "mesh" a prefix of all. */
TEST(mesh_name)
{
	assert_true(names("mesh-eth0", "eth0", "", 0));
	assert_false(names("mesh", "eth0", "", 0));
	assert_false(names("mesh-eth", "eth0", "", 0));
	assert_true(names("mesh", "mesh0", "", 0));
}
