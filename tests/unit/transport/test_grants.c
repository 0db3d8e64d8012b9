/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_grants.c - when grants go out, and that no write outlives the receive that it was granted
 * for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fabric/poll.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "transport/close.h"
#include "transport/comm.h"
#include "transport/receive.h"
#include "transport/send.h"

#include "comm_inside.h"
#include "log_capture.h"
#include "transport_pair.h"

#define DEPTH 8
#define LARGE ((size_t)1 << 20)

static void receive_post(struct pair *pair, struct transfer *t)
{
	assert_int_equal(mesh_comm_receive(pair->receive, t->target, LARGE, t->to, &t->receive), 0);
	assert_non_null(t->receive);
}

static void send_post(struct pair *pair, struct transfer *t, size_t size)
{
	pattern_fill(t->source, size, (uint32_t)size);
	assert_int_equal(mesh_comm_send(pair->send, t->source, size, t->from, &t->send), 0);
	assert_non_null(t->send);
}

static void poll_once(struct pair *pair)
{
	bool polled = false;

	while (!polled)
		polled = mesh_domain_poll(comm_path(pair->receive, 0).domain);
}

static void transfer_finish(struct transfer *t, size_t size)
{
	request_finish(t->receive, size);
	request_finish(t->send, size);
	assert_memory_equal(t->source, t->target, size);
}

/* The first grant leaves at once; the next ones with a poll, so that an answer may go first. */
static void test_grants_behind_the_answer(void **state)
{
	struct transfer t[2];
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < 2; i++)
		transfer_open(&pair, &t[i], LARGE, LARGE);
	receive_post(&pair, &t[0]);
	assert_int_equal(*comm_inside(pair.receive).granted, 1);
	mesh_lock_take(&comm_path(pair.receive, 0).domain->lock); /* the engine polls as well */
	receive_post(&pair, &t[1]);
	assert_int_equal(*comm_inside(pair.receive).granted, 1);
	mesh_lock_release(&comm_path(pair.receive, 0).domain->lock);
	poll_once(&pair);
	assert_int_equal(*comm_inside(pair.receive).granted, 2);
	for (i = 0; i < 2; i++)
		send_post(&pair, &t[i], LARGE);
	for (i = 0; i < 2; i++)
		transfer_finish(&t[i], LARGE);
	assert_int_equal(*comm_inside(pair.receive).granted, 0);
	for (i = 0; i < 2; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

/* While the sender holds four grants, further ones wait, and then leave in one message. */
static void test_grants_travel_together(void **state)
{
	struct transfer t[DEPTH];
	struct pair pair;
	uint32_t least = DEPTH;
	int i, round;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < DEPTH; i++) {
		transfer_open(&pair, &t[i], LARGE, LARGE);
		receive_post(&pair, &t[i]);
	}
	poll_once(&pair);
	assert_int_equal(*comm_inside(pair.receive).granted, DEPTH);
	for (round = 0; round < 3 * DEPTH; round++) {
		i = round % DEPTH;
		send_post(&pair, &t[i], LARGE);
		transfer_finish(&t[i], LARGE);
		receive_post(&pair, &t[i]);
		poll_once(&pair);
		if (*comm_inside(pair.receive).granted < least)
			least = *comm_inside(pair.receive).granted;
		if (round == DEPTH / 2)
			assert_int_equal(*comm_inside(pair.receive).granted, DEPTH - 1);
	}
	/* It held four, the next message came, and all others were granted at once. */
	assert_int_equal(least, 4);
	for (i = 0; i < DEPTH; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

/*
 * Without recovery a sender's write is complete when the socket has it. CLOSED carries their
 * number, and the receiver keeps its memory until all have come.
 */
static void test_close_waits_for_writes(void **state)
{
	uint64_t start_ms;
	struct transfer t;
	struct pair pair;

	(void)state;
	assert_int_equal(mesh_net_open(&pair.net), 0);
	pair.net->process->config.recovery = 0;
	pair_connect(&pair);
	transfer_open(&pair, &t, LARGE, LARGE);
	receive_post(&pair, &t);
	send_post(&pair, &t, LARGE);
	transfer_finish(&t, LARGE);
	assert_int_equal(*comm_inside(pair.send).writes_started,
			 *comm_inside(pair.receive).writes_arrived);
	receive_post(&pair, &t);
	/* As if one more were in a socket, and never arrived. */
	(*comm_inside(pair.send).writes_started)++;
	mesh_process_lock(pair.receive->process); /* the engine reads it */
	pair.receive->process->config.dead_peer_timeout_s = 1;
	mesh_process_unlock(pair.receive->process);
	log_capture_start();
	start_ms = mesh_clock_ms();
	mesh_comm_quiesce(pair.receive);
	assert_true(mesh_clock_ms() - start_ms >= 1000);
	assert_true(log_captured(MESH_LOG_WARN, "nothing has moved between the two on lo for 1 s"));
	log_capture_stop();
	transfer_close(&pair, &t);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grants_behind_the_answer),
		cmocka_unit_test(test_grants_travel_together),
		cmocka_unit_test(test_close_waits_for_writes),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
