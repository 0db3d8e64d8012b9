/* SPDX-License-Identifier: Apache-2.0 */
/* test_rails.c - NCCL_MESH_RAILS: which subnets form a rail. */
#include "base/config.h"
#include "nic/user_lists.h"

#include "log_capture.h"
#include "unit.h"

static struct mesh_rails rails;

static int rail_of(const char *text)
{
	struct mesh_addr addr;

	assert_int_equal(mesh_addr_parse(text, &addr), 0);
	return mesh_rail_of(&rails, &addr);
}

TEST(subnets)
{
	assert_int_equal(
		mesh_rails_parse(" 10.1.0.0/16+10.65.0.0/16 , 10.2.0.0/16 + fd00::/64,", &rails),
		0);
	assert_int_equal(rails.num_subnets, 4);
	assert_int_equal(rail_of("10.1.3.4/31"), 0);
	assert_int_equal(rail_of("10.65.0.1/24"), 0);
	assert_int_equal(rail_of("10.2.9.9"), 1);
	assert_int_equal(rail_of("fd00::7"), 1);
	assert_int_equal(rail_of("10.3.0.1/16"), -1);
	assert_int_equal(rail_of("fd00:0:0:1::7"), -1);
}

TEST(none)
{
	assert_int_equal(mesh_rails_parse("", &rails), 0);
	assert_int_equal(rails.num_subnets, 0);
	assert_int_equal(rail_of("10.1.3.4/31"), -1);
	assert_int_equal(mesh_rails_parse("  \t", &rails), 0);
	assert_int_equal(rails.num_subnets, 0);
}

/* The longest prefix counts, wherever it stands. */
TEST(overlap)
{
	assert_int_equal(mesh_rails_parse("10.0.0.0/8,10.1.0.0/16,0.0.0.0/0", &rails), 0);
	assert_int_equal(rail_of("10.1.0.1"), 1);
	assert_int_equal(rail_of("10.2.0.1"), 0);
	assert_int_equal(rail_of("192.168.0.1"), 2);
}

TEST(errors)
{
	static const char *const bad[] = {"10.1.0.0/33", "+10.1.0.0/16", "10.1.0.0/16,,10.2.0.0/16",
					  "eth0", "10.1.0.0/16 10.2.0.0/16"};
	char text[2048] = "";
	size_t i, used = 0;

	assert_int_equal(mesh_rails_parse("10.1.0.0/16", &rails), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		log_capture_start();
		assert_int_equal(mesh_rails_parse(bad[i], &rails), -EINVAL);
		assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_RAILS: "));
	}
	assert_int_equal(rails.num_subnets, 1); /* as before */
	for (i = 0; i < MESH_RAIL_SUBNETS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s10.1.0.0/16",
					 i ? "," : "");
	assert_int_equal(mesh_rails_parse(text, &rails), 0);
	assert_int_equal(rails.num_subnets, MESH_RAIL_SUBNETS_MAX);
	snprintf(text + used, sizeof(text) - used, ",10.1.0.0/16");
	log_capture_start();
	assert_int_equal(mesh_rails_parse(text, &rails), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "more than 64 subnets"));
}

static const char *text_lookup(void *arg, const char *name)
{
	return strcmp(name, "NCCL_MESH_RAILS") ? NULL : arg;
}

/* The setting has room for as many subnets as there may be, however long they are. */
TEST(longest)
{
	struct mesh_config config;
	char text[4096] = "";
	size_t used = 0;

	for (int i = 0; i < MESH_RAIL_SUBNETS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%04x/128",
					 i ? "," : "", "ffff:ffff:ffff:ffff:ffff:ffff:ffff",
					 0xff00 + i);
	assert_int_equal(mesh_config_load(text_lookup, text, &config), 0);
	assert_int_equal(mesh_rails_parse(config.rails, &rails), 0);
	assert_int_equal(rails.num_subnets, MESH_RAIL_SUBNETS_MAX);
	assert_int_equal(rail_of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff3f"), 63);
}
