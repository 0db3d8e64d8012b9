/* SPDX-License-Identifier: Apache-2.0 */
/* test_asking.c - on which NICs the questions of a round are repeated. */
#include <fcntl.h>

#include "asking_fixture.h"
#include "unit.h"

#define NICS 2
#define BEGIN 1000

static struct mesh_neighbour_self self;
static struct mesh_asking asking;
static int sent[NICS]; /* questions on each NIC */

int __wrap_mesh_datagram_open(enum mesh_family family, uint16_t port)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_mesh_datagram_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
			      const struct mesh_addr *to, uint16_t port, const void *message,
			      size_t size)
{
	sent[ifindex - 1]++;
	return 0;
}

void tests_setup(void)
{
	asking_fixture_open(&asking, &self);
	for (int i = 0; i < NICS; i++) {
		sent[i] = 0;
		mesh_neighbour_addr_get(&asking.links[i].about.addrs[0], &asking.links[i].ask_from);
	}
}

void tests_teardown(void)
{
	mesh_asking_finish(&asking);
}

/* Another node of the link has answered. */
static void other_answers(int index)
{
	asking_heard_add(&asking, index, ASKING_THEIR_ID + 1, "other", "10.9.0.1/24");
	asking.asked[index].answered = true;
}

static void rest_of_round(void)
{
	mesh_asking_advance(&asking, BEGIN + 50);
	mesh_asking_advance(&asking, BEGIN + 200);
}

TEST(any_answer_will_do)
{
	assert_int_equal(mesh_asking_begin(&asking, BEGIN), 0);
	mesh_asking_advance(&asking, BEGIN);
	other_answers(0);
	rest_of_round();
	assert_int_equal(sent[0], 1);
	assert_int_equal(sent[1], 3);
}

/* The node that is sought has not answered yet. */
TEST(seeks)
{
	assert_int_equal(mesh_asking_seek(&asking, ASKING_THEIR_ID, BEGIN), 0);
	mesh_asking_advance(&asking, BEGIN);
	other_answers(0);
	other_answers(1);
	asking_heard_add(&asking, 1, ASKING_THEIR_ID, "ba1", "10.2.0.2/24");
	rest_of_round();
	assert_int_equal(sent[0], 3);
	assert_int_equal(sent[1], 1);
}

/* The next round seeks nobody. */
TEST(seeks_in_one_round)
{
	assert_int_equal(mesh_asking_seek(&asking, ASKING_THEIR_ID, BEGIN), 0);
	mesh_asking_advance(&asking, BEGIN);
	rest_of_round();
	assert_true(asking.sockets[1].watch.fd >= 0);
	mesh_asking_advance(&asking, BEGIN + 1000);
	assert_int_equal(asking.sockets[1].watch.fd, -1);
	sent[0] = 0;
	assert_int_equal(mesh_asking_begin(&asking, 2 * BEGIN), 0);
	mesh_asking_advance(&asking, 2 * BEGIN);
	other_answers(0);
	mesh_asking_advance(&asking, 2 * BEGIN + 50);
	assert_int_equal(sent[0], 1);
}
