/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer.c - the life of a peer by the clock: deadlines, retries, loss, and notifications. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_end.h"
#include "control/peer_greeting.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "setup/listener.h"
#include "transport/comm_open.h"
#include "transport/rejoin.h"

#include "log_capture.h"
#include "peers_fixture.h"

/*
 * All in milliseconds; those of peer.c. START lies before every reading of the real clock, which
 * counts from boot: what an attempt schedules by that clock must not be due in a test's time.
 */
#define START 1000
#define SILENCE 10000
#define SILENCE_MEMORY 30000
#define GREETING 3000
#define GRACE 500

static void is(enum mesh_peer_state state, bool incoming)
{
	peer->state = state;
	peer->incoming = incoming;
	peer->started_ms = peer->state_ms = START;
	peer->users = 1;
	mesh_peer_urgent_set(peer, state == MESH_PEER_GREETING);
}

static void tick(uint64_t after_ms)
{
	mesh_peer_tick(peer, START + after_ms);
}

static struct mesh_comm *comm_open(bool sending, int path)
{
	struct mesh_comm *comm = NULL;

	assert_int_equal(mesh_comm_open(&fixture.net, sending, &fixture.peers[path], 1, 1, &comm),
			 0);
	return comm;
}

/* ---- deadlines ----------------------------------------------------------------------------- */

static void test_stranger_who_says_nothing(void **state)
{
	(void)state;
	is(MESH_PEER_HELLO, true);
	tick(SILENCE);
	assert_int_equal(peer->state, MESH_PEER_HELLO);
	tick(SILENCE + 1);
	assert_int_equal(peer->state, MESH_PEER_LOST);
	assert_true(log_captured(MESH_LOG_INFO, "connected to the control port and sent nothing"));
}

/* The limit is that of its own connection attempt. */
static void test_stranger_whose_greeting_is_lost(void **state)
{
	(void)state;
	is(MESH_PEER_GREETING, true);
	tick(6000 + SILENCE);
	assert_int_equal(peer->state, MESH_PEER_GREETING);
	tick(6000 + SILENCE + 1);
	assert_int_equal(peer->state, MESH_PEER_LOST);
	assert_true(log_captured(MESH_LOG_INFO, "greeting did not arrive through the fabric"));
}

static void test_hello_is_not_answered(void **state)
{
	(void)state;
	is(MESH_PEER_HELLO, false);
	tick(SILENCE);
	assert_int_equal(peer->state, MESH_PEER_HELLO);
	tick(SILENCE + 1);
	assert_int_equal(peer->state, MESH_PEER_RETRY);
	assert_int_equal(peer->failed_in, MESH_PEER_HELLO);
	assert_non_null(strstr(peer->reason, "accepts the connection and sends nothing"));
}

/* An attempt that failed leaves nothing behind for the next. */
static void test_greeting_is_not_answered(void **state)
{
	(void)state;
	is(MESH_PEER_GREETING, false);
	peer->in_size = peer->out_size = 5;
	peer->out = malloc(peer->out_size);
	tick(GREETING);
	assert_int_equal(peer->state, MESH_PEER_GREETING);
	assert_true(peer->urgent);
	tick(GREETING + 1);
	assert_int_equal(peer->state, MESH_PEER_RETRY);
	assert_non_null(strstr(peer->reason, "does not answer on port 4321"));
	assert_int_equal(peer->in_size, 0);
	assert_int_equal(peer->out_size, 0);
	assert_true(peer->remote->lost);
	assert_int_equal(fixture.setup.process.own_counters.retries, 1);
}

static void test_greeting_is_answered(void **state)
{
	(void)state;
	is(MESH_PEER_GREETING, false);
	strcpy(peer->reason, "an attempt before this one failed");
	tick(0);
	assert_int_equal(peer->state, MESH_PEER_GREETING);
	atomic_store(&peer->greeted, true);
	tick(0);
	assert_int_equal(peer->state, MESH_PEER_UP);
	assert_string_equal(peer->reason, "");
	assert_int_equal(fixture.setup.process.own_counters.peers_up, 1);
	tick(100000);
	assert_int_equal(peer->state, MESH_PEER_UP);
}

static void test_greeting_cannot_be_sent(void **state)
{
	(void)state;
	is(MESH_PEER_GREETING, false);
	atomic_store(&peer->greet_error, -EIO);
	tick(0);
	assert_int_equal(peer->state, MESH_PEER_RETRY);
	assert_non_null(strstr(peer->reason, "tcp could not send to it"));
	assert_int_equal(atomic_load(&peer->greet_error), 0);
}

static void test_greeting_fails_on_the_way(void **state)
{
	(void)state;
	is(MESH_PEER_HELLO, false);
	mesh_peer_greet(peer);
	assert_int_equal(peer->state, MESH_PEER_GREETING);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GREET), 1);
	fake_complete_error(fake.sends.posts[0].context, FI_EHOSTUNREACH);
	fixture_poll();
	peer->state_ms = START;
	tick(0);
	assert_int_equal(peer->state, MESH_PEER_RETRY);
	assert_non_null(strstr(peer->reason, "could not send to it"));
}

static void greeting_deliver(struct mesh_peer *to, enum mesh_message_type type)
{
	const struct mesh_message_header header = {.type = (uint8_t)type};

	mesh_lock_take(&to->domain->lock);
	to->sink.message(&to->sink, &header, NULL);
	mesh_lock_release(&to->domain->lock);
}

/* Both ends greet: the connector and the listener each need the other's answer. */
static void test_greetings_of_the_right_kind(void **state)
{
	struct mesh_peer *other = get(99, 5);

	(void)state;
	greeting_deliver(other, MESH_MESSAGE_GREET);
	greeting_deliver(other, MESH_MESSAGE_DATA);
	assert_false(atomic_load(&other->greeted));
	greeting_deliver(other, MESH_MESSAGE_GREET_REPLY);
	assert_true(atomic_load(&other->greeted));
	atomic_store(&other->greeted, false);
	other->incoming = true;
	greeting_deliver(other, MESH_MESSAGE_GREET_REPLY);
	assert_false(atomic_load(&other->greeted));
	greeting_deliver(other, MESH_MESSAGE_GREET);
	assert_true(atomic_load(&other->greeted));
	mesh_peer_free(other);
}

/* It is up when the answer to its greeting is sent, which needs a buffer. */
static void test_greeting_waits_for_a_buffer(void **state)
{
	struct mesh_buffer *buffer, *taken = NULL;
	int i;

	(void)state;
	is(MESH_PEER_GREETING, true);
	for (i = 0; (buffer = mesh_remote_buffer_get(peer->domain, peer->remote)); i++)
		taken = buffer;
	assert_non_null(taken);
	atomic_store(&peer->greeted, true);
	tick(0);
	assert_int_equal(peer->state, MESH_PEER_GREETING);
	mesh_buffer_put(taken);
	tick(0);
	assert_int_equal(peer->state, MESH_PEER_UP);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GREET_REPLY), 1);
}

/* What the provider still has points to the peer: until then it stays. */
static void test_greeting_keeps_its_peer(void **state)
{
	struct mesh_peer *other = get(99, 5);

	(void)state;
	assert_int_equal(mesh_remote_open(other->domain, peer->remote->name, peer->remote->name_len,
					  &other->remote),
			 0);
	other->state = MESH_PEER_HELLO;
	mesh_peer_greet(other);
	mesh_peer_put(other);
	other->silent_ms = 0;
	mesh_peer_tick(other, START);
	assert_ptr_equal(LIST_FIRST(&fixture.setup.process.peers), other);
	fixture_sends_complete();
	mesh_peer_tick(other, START);
	assert_ptr_not_equal(LIST_FIRST(&fixture.setup.process.peers), other);
}

/* An attempt clears the reason of the last one only if it gets further. */
static void test_reason_stays(void **state)
{
	(void)state;
	is(MESH_PEER_GREETING, false);
	tick(GREETING + 1);
	peer->retry_ms = START;
	peer->silent_ms = peer->first_refused_ms = 5;
	tick(GREETING + 2); /* this address is not ours, so the attempt ends at once */
	assert_int_equal(peer->silent_ms, 5); /* no answer since */
	assert_int_equal(peer->first_refused_ms, 0);
	assert_int_equal(peer->state, MESH_PEER_RETRY);
	assert_non_null(strstr(peer->reason, "did this NIC lose its address"));
	assert_int_equal(peer->failed_in, MESH_PEER_CONNECTING);
	assert_int_equal(fixture.setup.process.own_counters.retries, 2);
}

static void test_retry_in_time(void **state)
{
	(void)state;
	is(MESH_PEER_RETRY, false);
	peer->retry_ms = START + 250;
	tick(249);
	assert_int_equal(fixture.setup.process.own_counters.retries, 0);
	peer->refusal = MESH_REFUSAL_VERSION; /* its refusal remains */
	tick(250);
	assert_int_equal(fixture.setup.process.own_counters.retries, 0);
	peer->refusal = 0;
	tick(250);
	assert_int_equal(fixture.setup.process.own_counters.retries, 1);
}

/* ---- loss ---------------------------------------------------------------------------------- */

/* What it sent before gets time to arrive; then its comms fail, and those of other peers do not. */
static void test_lost_peer_is_buried(void **state)
{
	struct mesh_comm *its, *others;

	(void)state;
	is(MESH_PEER_UP, true);
	its = comm_open(false, 0);
	others = comm_open(false, 1);
	mesh_peer_lose(peer, "a test says so");
	assert_true(log_captured(MESH_LOG_WARN, "lost node b (10.7.0.2), reached from eth7"));
	assert_int_equal(fixture.setup.process.own_counters.peers_lost, 1);
	peer->lost_ms = START;
	tick(GRACE - 1);
	assert_int_equal(*comm_inside(its).error, 0);
	assert_true(peer->urgent);
	tick(GRACE);
	assert_int_equal(*comm_inside(its).error, -ECONNRESET);
	assert_int_equal(*comm_inside(others).error, 0);
	assert_true(peer->remote->lost);
	assert_false(peer->urgent);
	mesh_comm_free(its);
	mesh_comm_free(others);
}

/* Without its completion queue a NIC is useless: its waiters get an error, others continue. */
static void test_broken_queue(void **state)
{
	struct mesh_comm *comms[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fixture.peers[i].users = 1;
		comms[i] = comm_open(false, i);
	}
	fake_fail(FAKE_CQ_READ, 0, 2, -FI_EIO);
	for (i = 0; i < 2; i++)
		mesh_domain_poll(peer->domain);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "cannot read the completion queue"));
	for (i = 0; i < 2; i++)
		mesh_peer_tick(&fixture.peers[i], mesh_clock_ms());
	assert_int_equal(peer->state, MESH_PEER_LOST);
	assert_int_equal(fixture.peers[1].state, MESH_PEER_UP);
	mesh_peer_tick(peer, mesh_clock_ms() + GRACE);
	assert_int_equal(*comm_inside(comms[0]).error, -ECONNRESET);
	assert_int_equal(*comm_inside(comms[1]).error, 0);
	for (i = 0; i < 2; i++)
		mesh_comm_free(comms[i]);
}

/* There is no warning about a connection that is no longer needed. */
static void test_loss_of_an_unused_peer(void **state)
{
	struct mesh_comm *comm, *others;
	int i;

	(void)state;
	others = comm_open(false, 1);
	for (i = 0; i < 3; i++) {
		is(MESH_PEER_UP, true);
		comm = comm_open(false, 0);
		*comm_inside(comm).peer_end = i == 0 ? MESH_END_CLOSED : MESH_END_OPEN;
		*comm_inside(comm).closing = i == 1;
		if (i == 2) {
			mesh_comm_free(comm);
			peer->users = 0;
		}
		mesh_peer_lose(peer, "a test says so");
		assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
		if (i < 2)
			mesh_comm_free(comm);
	}
	assert_int_equal(fixture.setup.process.own_counters.peers_lost, 2);
	mesh_comm_free(others);
}

/* Two connections with one process, one in each direction: its end is reported once. */
static void test_loss_is_reported_once(void **state)
{
	struct mesh_comm *comms[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fixture.peers[i].incoming = i;
		mesh_peer_process_set(&fixture.peers[i], 7);
		comms[i] = comm_open(!i, i);
	}
	mesh_peer_lose(&fixture.peers[0], "first");
	fixture.peers[1].domain = fixture.peers[0].domain; /* the same link */
	mesh_peer_lose(&fixture.peers[1], "second");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	fixture.peers[1].domain = fixture.domains[1];
	for (i = 0; i < 2; i++)
		mesh_comm_free(comms[i]);
}

/* A client that knows a cookie can connect and leave any number of times; NCCL gets no comm. */
static void test_losses_before_accept(void **state)
{
	struct mesh_listener listener = {.net = &fixture.net};
	struct mesh_log_limit *limit = &fixture.setup.process.limits.unaccepted;
	int i;

	(void)state;
	LIST_INSERT_HEAD(&fixture.setup.listeners, &listener, entry);
	for (i = 0; i < 2; i++) {
		fixture.peers[i].incoming = true;
		listener.waiting[listener.num_waiting] = comm_open(false, i);
		listener.waiting[listener.num_waiting++]->waits = true;
	}
	for (i = 0; i < 20; i++) {
		is(MESH_PEER_UP, true);
		mesh_peer_lose(peer, "a stranger");
	}
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	limit->since_ms = 0; /* long ago */
	is(MESH_PEER_UP, true);
	mesh_peer_lose(peer, "a stranger");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 2);
	assert_true(log_captured(MESH_LOG_WARN, "a stranger (19 more such lines were left out)"));
	/* NCCL has accepted the other's. */
	listener.num_waiting = 1;
	listener.waiting[1]->waits = false;
	mesh_peer_lose(&fixture.peers[1], "a loss");
	assert_true(log_captured(MESH_LOG_WARN, "a loss"));
	LIST_REMOVE(&listener, entry);
	mesh_comm_free(listener.waiting[0]);
	mesh_comm_free(listener.waiting[1]);
}

/* ---- finding and forgetting ---------------------------------------------------------------- */

/* One connection for all users of a link; none that has ended, or is another's. */
static void test_peer_is_shared(void **state)
{
	struct mesh_peer *other;
	int i;

	(void)state;
	is(MESH_PEER_UP, false);
	peer->control_port = 40;
	mesh_peer_index_add(peer);
	peer->cookie = 1;
	assert_ptr_equal(get(40, 2), peer);
	assert_int_equal(peer->users, 2);
	assert_true(peer->cookie == 1); /* what let it in */
	peer->state = MESH_PEER_HELLO;
	assert_ptr_equal(get(40, 2), peer);
	assert_true(peer->cookie == 2);
	for (i = 0; i < 4; i++) {
		if (i == 1)
			mesh_peer_index_remove(peer); /* an incoming one */
		else if (i == 2)
			mesh_peer_index_add(peer);
		is(i == 0 ? MESH_PEER_LOST : MESH_PEER_UP, i == 1);
		peer->refusal = i == 2 ? MESH_REFUSAL_COOKIE : 0;
		other = get(i == 3 ? 41 : 40, 5);
		assert_ptr_not_equal(other, peer);
		assert_int_equal(other->users, 1);
		assert_true(other->cookie == 5);
		mesh_peer_free(other);
	}
}

/* After a timeout the next connections wait less, for a while. */
static void test_silence_is_remembered(void **state)
{
	struct mesh_peer *other = get(99, 5);

	(void)state;
	assert_true(other->silent_ms);
	mesh_peer_put(other);
	assert_int_equal(other->users, 0);
	mesh_peer_tick(other, other->silent_ms + SILENCE_MEMORY - 1);
	assert_ptr_equal(LIST_FIRST(&fixture.setup.process.peers), other);
	assert_ptr_equal(get(99, 5), other);
	mesh_peer_tick(other, other->silent_ms + SILENCE_MEMORY + 1); /* it has a user */
	assert_ptr_equal(LIST_FIRST(&fixture.setup.process.peers), other);
	mesh_peer_put(other);
	mesh_peer_tick(other, other->silent_ms + SILENCE_MEMORY + 1);
	assert_ptr_not_equal(LIST_FIRST(&fixture.setup.process.peers), other);
}

/* A refused cookie concerns its user only; other refusals concern all users. */
static void test_who_is_refused(void **state)
{
	(void)state;
	assert_false(mesh_peer_refuses(peer, 1));
	peer->sent_cookie = 1;
	peer->refusal = MESH_REFUSAL_COOKIE;
	assert_true(mesh_peer_refuses(peer, 1));
	assert_false(mesh_peer_refuses(peer, 2));
	peer->refusal = MESH_REFUSAL_VERSION;
	assert_true(mesh_peer_refuses(peer, 2));
}

/* Others cannot greet in its name, because they cannot guess the token. */
static void test_token_is_random(void **state)
{
	struct mesh_peer *one = get(98, 5), *other = get(99, 5);

	(void)state;
	assert_int_not_equal(one->sink.token, other->sink.token);
	mesh_peer_free(one);
	mesh_peer_free(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stranger_who_says_nothing),
		TEST(test_stranger_whose_greeting_is_lost),
		TEST(test_hello_is_not_answered),
		TEST(test_greeting_is_not_answered),
		TEST(test_greeting_is_answered),
		TEST(test_greeting_cannot_be_sent),
		TEST(test_greeting_fails_on_the_way),
		TEST(test_greetings_of_the_right_kind),
		TEST(test_greeting_waits_for_a_buffer),
		TEST(test_greeting_keeps_its_peer),
		TEST(test_reason_stays),
		TEST(test_retry_in_time),
		TEST(test_lost_peer_is_buried),
		TEST(test_broken_queue),
		TEST(test_loss_of_an_unused_peer),
		TEST(test_loss_is_reported_once),
		TEST(test_losses_before_accept),
		TEST(test_peer_is_shared),
		TEST(test_silence_is_remembered),
		TEST(test_who_is_refused),
		TEST(test_token_is_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
