/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_neighbour_hints.c - how long a connection over link-local addresses waits for the answers of
 * its node, on NICs that are on switches: other nodes answer there, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "neighbours/neighbours.h"
#include "setup/neighbour_hints.h"
#include "setup/setup.h"

#include "fake_clock.h"

#define NICS 2
#define NODE 7	/* the listener's */
#define OTHER 8 /* on the same switches */

static struct mesh_setup mine;
static struct mesh_process *const process = &mine.process;
static struct mesh_neighbours neighbours;
static struct mesh_nic nics[NICS];
static struct mesh_handle handle;
static struct mesh_path_choice choice;
static int questions;
static uint64_t began_ms; /* the connection */

/* A round without a network: the questions are on their way. */
static void round_begin(struct mesh_asking *asking)
{
	int i;

	questions++;
	asking->began_ms = mesh_clock_ms();
	for (i = 0; i < NICS; i++)
		asking->asked[i].answered = false;
}

void __wrap_mesh_rounds_ask(struct mesh_rounds *rounds);
void __wrap_mesh_rounds_ask(struct mesh_rounds *rounds)
{
	round_begin(&rounds->asking);
}

void __wrap_mesh_rounds_seek(struct mesh_rounds *rounds, uint64_t node_id);
void __wrap_mesh_rounds_seek(struct mesh_rounds *rounds, uint64_t node_id)
{
	(void)node_id;
	round_begin(&rounds->asking);
}

/* NIC @there of a node has the address fe80::NODE:THERE. */
static struct mesh_addr address_of(uint64_t node_id, int there)
{
	struct mesh_addr address;

	assert_int_equal(mesh_addr_parse("fe80::/64", &address), 0);
	address.bytes[13] = (uint8_t)node_id;
	address.bytes[15] = (uint8_t)there;
	return address;
}

/* Our NIC @here hears NIC @there of the node. */
static void hears(int here, uint64_t node_id, int there)
{
	struct mesh_asked *asked = &neighbours.rounds.asking.asked[here];
	struct mesh_heard *heard = calloc(1, sizeof(*heard));
	const struct mesh_addr address = address_of(node_id, there);

	assert_non_null(heard);
	heard->about.node_id = node_id;
	assert_true(mesh_neighbour_addr_add(&heard->about, &address));
	asked->heard[asked->num_heard++] = heard;
	asked->answered = true;
}

/* The first questions were asked long ago, when only the other node ran. */
static int setup(void **state)
{
	int i, k;

	(void)state;
	memset(&mine, 0, sizeof(mine));
	memset(&neighbours, 0, sizeof(neighbours));
	memset(&handle, 0, sizeof(handle));
	memset(&choice, 0, sizeof(choice));
	questions = 0;
	mesh_lock_init(&process->lock);
	mesh_lock_take(&process->lock);
	mine.neighbours = &neighbours;
	process->node_id = 1;
	handle.node_id = NODE;
	handle.num_endpoints = handle.total_nics = NICS;
	process->num_endpoints = neighbours.rounds.asking.num_links = NICS;
	for (i = 0; i < NICS; i++) {
		nics[i].ifindex = neighbours.rounds.asking.asked[i].ifindex = (unsigned int)i + 1;
		process->nics[i] = &nics[i];
		process->endpoints[i].nic = (uint8_t)i;
		process->endpoints[i].addr = address_of(1, i);
		handle.endpoints[i].addr = address_of(NODE, i);
		for (k = 0; k < NICS; k++)
			choice.candidates[choice.num_candidates++] = (struct mesh_path_candidate){
				.local = (uint8_t)i, .remote = (uint8_t)k};
		hears(i, OTHER, i);
	}
	fake_clock_us = 1000000000;
	began_ms = mesh_clock_ms();
	return 0;
}

static int teardown(void **state)
{
	struct mesh_asked *asked;
	int i;

	(void)state;
	for (i = 0; i < NICS; i++) {
		asked = &neighbours.rounds.asking.asked[i];
		while (asked->num_heard)
			free(asked->heard[--asked->num_heard]);
	}
	mesh_lock_release(&process->lock);
	mesh_lock_destroy(&process->lock);
	return 0;
}

static bool asks(void)
{
	return mesh_neighbour_hints_ask(process, &handle, &choice);
}

static bool waits(uint64_t after_ms)
{
	return mesh_neighbour_hints_wait(process, &handle, &choice, began_ms, began_ms + after_ms);
}

static int num_likely(void)
{
	struct mesh_path_choice ordered = choice;
	int i, num = 0;

	mesh_neighbour_hints_order(process, &handle, &ordered);
	for (i = 0; i < ordered.num_candidates; i++)
		num += ordered.candidates[i].class != MESH_PATH_UNLIKELY;
	return num;
}

/* The node has answered on one NIC, and it started after the question on the other one. */
static void test_awaits_each_nic(void **state)
{
	(void)state;
	hears(1, NODE, 1);
	assert_true(asks());
	assert_int_equal(questions, 1);
	hears(0, OTHER, 0);
	neighbours.rounds.asking.asked[1].answered = true;
	assert_true(waits(1));
	assert_int_equal(num_likely(), 1);
	hears(0, NODE, 0);
	assert_false(waits(1));
	assert_int_equal(num_likely(), 2);
	assert_false(asks()); /* all is known */
	assert_int_equal(questions, 1);
}

/* The same of a node that has not answered on any NIC yet. */
static void test_awaits_new_node(void **state)
{
	(void)state;
	assert_true(asks());
	assert_int_equal(questions, 1);
	hears(0, OTHER, 0);
	hears(1, NODE, 1);
	assert_true(waits(1));
	hears(0, NODE, 0);
	assert_false(waits(1));
}

/* It is not there: that is waited for once, and by no other connection. */
static void test_remembers(void **state)
{
	(void)state;
	hears(1, NODE, 1);
	assert_true(asks());
	hears(0, OTHER, 0);
	hears(1, NODE, 1);
	assert_true(waits(99));
	assert_false(waits(100));
	asks();
	assert_int_equal(questions, 1);
	assert_false(waits(100));
	fake_clock_us += 10000000;
	asks();
	assert_int_equal(questions, 1);
	assert_false(waits(10000));
}

/* A connection that begins while another one waits for the same node waits as long as that. */
static void test_shares_the_wait(void **state)
{
	(void)state;
	hears(1, NODE, 1);
	assert_true(asks());
	fake_clock_us += 50000;
	assert_true(asks());
	assert_int_equal(questions, 1);
	hears(0, OTHER, 0);
	hears(1, NODE, 1);
	assert_true(waits(99));
	assert_false(waits(100));
}

/* A NIC may have been on another switch, or the node's. */
static void test_forgets(void **state)
{
	(void)state;
	hears(1, NODE, 1);
	asks();
	mesh_neighbour_hints_forget(process);
	assert_true(asks());
	assert_int_equal(questions, 2);
}

/* Other connections ask for other nodes again and again, and one of the NICs has no answer. */
static void test_wait_has_an_end(void **state)
{
	uint64_t after_ms;

	(void)state;
	assert_true(asks());
	for (after_ms = 0; after_ms < 300; after_ms += 50) {
		assert_true(waits(after_ms));
		fake_clock_us += 50000;
		handle.node_id++;
		asks();
		handle.node_id = NODE;
	}
	assert_false(waits(300));
}

/* A node of another version answers, of which only the name is known: not its id. */
static void other_version_answers(int here)
{
	struct mesh_asked *asked = &neighbours.rounds.asking.asked[here];

	hears(here, 0, 0);
	asked->heard[asked->num_heard - 1]->error = -EPROTONOSUPPORT;
}

/* It may be another node on the same switch: the one that is sought is asked for, once. */
static void test_other_version(void **state)
{
	(void)state;
	hears(1, NODE, 1);
	other_version_answers(0);
	assert_true(asks());
	assert_int_equal(questions, 1);
	assert_true(waits(99));
	assert_false(waits(100));
	assert_true(asks());
	assert_int_equal(questions, 1);
}

/* The same of a node that nobody has asked for yet. */
static void test_other_version_and_new_node(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < NICS; i++)
		other_version_answers(i);
	assert_true(asks());
	assert_int_equal(questions, 1);
	for (i = 0; i < NICS; i++)
		hears(i, NODE, i);
	assert_false(waits(1));
	assert_int_equal(num_likely(), 2);
}

/* What failed at the first question may work now. */
static void test_question_had_failed(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < NICS; i++)
		neighbours.rounds.asking.asked[i].error = -ENETUNREACH;
	assert_true(asks());
	assert_int_equal(questions, 1);
	assert_false(waits(1)); /* they have failed again */
	neighbours.rounds.asking.asked[0].error = 0;
	assert_true(waits(1));
	hears(0, NODE, 0);
	assert_false(waits(1));
}

/* Addresses of a subnet say themselves where they lead. */
static void test_no_guess(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < NICS; i++)
		mesh_addr_parse("10.1.0.1/24", &process->endpoints[i].addr);
	assert_false(asks());
	assert_int_equal(questions, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_awaits_each_nic), TEST(test_awaits_new_node),
		TEST(test_remembers),	    TEST(test_shares_the_wait),
		TEST(test_forgets),	    TEST(test_wait_has_an_end),
		TEST(test_other_version),   TEST(test_other_version_and_new_node),
		TEST(test_no_guess),	    TEST(test_question_had_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
