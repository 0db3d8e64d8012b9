/* SPDX-License-Identifier: Apache-2.0 */
/* test_check_usb4.c - the rate of a network over USB4, whose cable trains at one lane or at two. */
#include <sys/stat.h>

#include "check/context.h"
#include "check/nic.h"
#include "common/finding.h"
#include "common/report.h"

#include "sysfs_fixture.h"
#include "unit.h"

#define NIC "class/net/thunderbolt0"

static struct sysfs_fixture tree, sysfs; /* "/" and its "/sys" */
static struct mesh_nic nic;
static struct check_context context;

static int setup(void)
{
	sysfs_fixture_make(&tree);
	snprintf(sysfs.root, sizeof(sysfs.root), "%.240s/sys", tree.root);
	if (mkdir(sysfs.root, 0755))
		return -1;
	/* The other host's folder is the one above the device: here the NIC's own. */
	sysfs_fixture_file(&sysfs, "1", NIC "/device/prtcid");
	nic = (struct mesh_nic){.netdev = "thunderbolt0", .taken = true};
	context = (struct check_context){.table = {.nics = &nic, .num_nics = 1, .num_taken = 1}};
	return mesh_sysfs_open(tree.root, &context.files);
}

static int teardown(void)
{
	mesh_sysfs_close(&context.files);
	sysfs_fixture_remove(&tree);
	return 0;
}

TESTS_USE(setup, teardown);

static void trains_at(const char *lanes, const char *speed, enum check_verdict verdict,
		      const char *words)
{
	struct check_result result = {0};
	char said[1024] = "";
	FILE *file = fmemopen(said, sizeof(said) - 1, "w");

	assert_non_null(file);
	sysfs_fixture_file(&sysfs, lanes, NIC "/rx_lanes");
	sysfs_fixture_file(&sysfs, speed, NIC "/rx_speed");
	check_speed(&context, &result);
	check_print(file, "speed", &result, false);
	fclose(file);
	if (check_verdict_of(&result) != verdict || !strstr(said, words))
		fail_msg("%s lanes of %s: no \"%s\" in:\n%s", lanes, speed, words, said);
	check_result_free(&result);
}

TEST(lanes)
{
	trains_at("1", "20.0 Gb/s", CHECK_WARN,
		  "the USB4 link of thunderbolt0 runs at 20 Gb/s instead of 40: 1 lane of 20.0 "
		  "Gb/s");
	trains_at("1", "20.0 Gb/s", CHECK_WARN, "disconnect the cable");
	trains_at("2", "10.0 Gb/s", CHECK_WARN, "2 lanes of 10.0 Gb/s");
	trains_at("2", "20.0 Gb/s", CHECK_PASS, "full speed");
	trains_at("2", "40.0 Gb/s", CHECK_PASS, "full speed");
}

/* What is no rate is none. */
TEST(unknown)
{
	trains_at("2", "none", CHECK_UNKNOWN, "thunderbolt0 does not report its speed");
	trains_at("", "20.0 Gb/s", CHECK_UNKNOWN, "thunderbolt0 does not report its speed");
	trains_at("-2", "20.0 Gb/s", CHECK_UNKNOWN, "thunderbolt0 does not report its speed");
}
