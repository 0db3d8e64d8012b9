/* SPDX-License-Identifier: Apache-2.0 */
/* test_facts.c - where the cables lead, in the words of the plugin's errors. */
#include "neighbours/neighbours.h"

#include "asking_fixture.h"
#include "unit.h"

static struct mesh_neighbour_self self;
static struct mesh_asking asking;

void tests_setup(void)
{
	asking_fixture_open(&asking, &self);
}

void tests_teardown(void)
{
	mesh_asking_finish(&asking);
}

static void says(const char *expected)
{
	char text[400];

	assert_string_equal(mesh_asking_words(&asking, text, sizeof(text)), expected);
}

TEST(silence)
{
	says("Neighbours: ab0 has no answer; ab1 has no answer");
	asking.num_links = 0;
	says("");
}

TEST(mtu_and_version)
{
	struct mesh_heard *first, *second;

	first = asking_heard_add(&asking, 0, ASKING_THEIR_ID, "ba0", "10.1.0.2/24");
	second = asking_heard_add(&asking, 1, ASKING_THEIR_ID, "ba1", "10.2.0.2/24");
	says("Neighbours: ab0 is cabled to node b (ba0); ab1 is cabled to node b (ba1)");
	first->about.mtu = 1500;
	second->error = -EPROTONOSUPPORT;
	says("Neighbours: ab0 is cabled to node b (ba0), whose MTU is 1500, that of ab0 is 9000; "
	     "ab1 is cabled to node b, which has another version, nccl-net-mesh 9.9");
	second->error = 0;
	second->about.protocol++;
	first->about.mtu = 0; /* unknown */
	says("Neighbours: ab0 is cabled to node b (ba0); ab1 is cabled to node b (ba1), which has "
	     "another version, nccl-net-mesh 9.9");
}

TEST(loop)
{
	asking_heard_add(&asking, 0, ASKING_OWN_ID, "ab1", "10.2.0.1/24");
	says("Neighbours: ab0 and ab1 hear each other, and no other node; ab1 has no answer");
	asking_heard_add(&asking, 1, ASKING_OWN_ID, "ab0", "10.1.0.1/24");
	asking_ports_set(&asking, 7, 8);
	says("Neighbours: both ends of one cable are on this node: ab0 and ab1");
	asking_ports_set(&asking, 7, 7);
	says("Neighbours: ab0 has no answer; ab1 has no answer");
	/* The other end answers. */
	asking_heard_add(&asking, 0, ASKING_THEIR_ID, "ba0", "10.1.0.2/24");
	asking_heard_add(&asking, 1, ASKING_THEIR_ID, "ba1", "10.2.0.2/24");
	says("Neighbours: ab0 is cabled to node b (ba0); ab1 is cabled to node b (ba1), a half of "
	     "the same cable as ab0");
}

TEST(bridge)
{
	asking_heard_add(&asking, 0, ASKING_THEIR_ID, "br0", "10.1.0.2/24");
	asking_heard_add(&asking, 1, ASKING_THEIR_ID, "br0", "10.1.0.2/24");
	says("Neighbours: ab0 is cabled to node b (br0), and so is ab1: two cables to one NIC; "
	     "ab1 is cabled to node b (br0)");
}

/* More than fit are counted; what does not fit into the text is cut. */
TEST(switch)
{
	char name[8], text[16];

	asking.num_links = 1;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "ba%d", i);
		asking_heard_add(&asking, 0, ASKING_THEIR_ID + i, name, "10.1.0.2/24");
	}
	says("Neighbours: ab0 is cabled to node b (ba0); ab0 is cabled to node b (ba1); ab0 is "
	     "cabled to node b (ba2) and 17 more");
	mesh_asking_words(&asking, text, sizeof(text));
	assert_string_equal(text, "Neighbours: ab0");
}
