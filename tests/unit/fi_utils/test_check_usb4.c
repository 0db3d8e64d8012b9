/* SPDX-License-Identifier: Apache-2.0 */
/* test_check_usb4.c - the rate of a network over USB4, whose cable trains at one lane or at two. */
#include "machine_fixture.h"
#include "unit.h"

#define NIC "class/net/thunderbolt0"

static void setup(void)
{
	machine_setup();
	/* The other host's folder is the one above the device: here the NIC's own. */
	sys_file("1", NIC "/device/prtcid");
	machine_nic_add("thunderbolt0", "02:00:00:00:00:01", NULL);
}

TESTS_USE(setup, machine_teardown);

TEST(lanes)
{
	static const struct {
		const char *lanes, *speed;
		enum check_verdict verdict;
		const char *words;
	} cases[] = {
		{"1", "20.0 Gb/s", CHECK_WARN,
		 "the USB4 link of thunderbolt0 runs at 20 Gb/s instead of 40: 1 lane of 20.0 "
		 "Gb/s"},
		{"1", "20.0 Gb/s", CHECK_WARN, "disconnect the cable"},
		{"2", "10.0 Gb/s", CHECK_WARN, "2 lanes of 10.0 Gb/s"},
		{"2", "20.0 Gb/s", CHECK_PASS, "full speed"},
		{"2", "40.0 Gb/s", CHECK_PASS, "full speed"},
		/* What is no rate is none. */
		{"2", "none", CHECK_UNKNOWN, "thunderbolt0 does not report its speed"},
		{"", "20.0 Gb/s", CHECK_UNKNOWN, "thunderbolt0 does not report its speed"},
		{"-2", "20.0 Gb/s", CHECK_UNKNOWN, "thunderbolt0 does not report its speed"},
	};

	FOR_EACH(i, cases) {
		sys_file(cases[i].lanes, NIC "/rx_lanes");
		sys_file(cases[i].speed, NIC "/rx_speed");
		assert_says("speed", cases[i].verdict, cases[i].words);
	}
}
