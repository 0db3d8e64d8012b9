/* SPDX-License-Identifier: Apache-2.0 */
/* test_link.c - peers that share a link: its members, and what is lost with it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/liveness.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "control/process_sockets.h"

#include "comm_fixture.h"
#include "log_capture.h"
#include "namespace.h"
#include "tcp_pair.h"

#define PROCESS 77

static struct mesh_peer *one, *other; /* the same process over two NICs */
static struct mesh_peer twin;	      /* over the first NIC, in the other direction */

static int links_setup(void **state)
{
	int i, ends[2];

	fixture_setup(state);
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	close(fixture.peers[0].watch.fd);
	close(fixture.frames);
	tcp_pair_open(ends);
	fixture.peers[0].watch.fd = ends[0];
	fixture.frames = ends[1];
	one = &fixture.peers[0];
	other = &fixture.peers[1];
	memset(&twin, 0, sizeof(twin));
	twin.process = one->process;
	twin.domain = one->domain;
	twin.address = one->address;
	twin.remote = one->remote;
	twin.watch.fd = -1;
	twin.state = MESH_PEER_UP;
	twin.incoming = true;
	for (i = 0; i < 2; i++)
		fixture.peers[i].address.nic = (uint8_t)(3 + i);
	fixture.setup.process.engine.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(fixture.setup.process.engine.epoll_fd >= 0);
	mesh_lock_take(&fixture.setup.process.lock);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, one, entry);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, other, entry);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, &twin, entry);
	mesh_peer_process_set(one, PROCESS);
	mesh_peer_process_set(other, PROCESS);
	mesh_peer_process_set(&twin, PROCESS);
	mesh_link_watch(one);
	mesh_link_watch(&twin);
	mesh_link_watch(other);
	return 0;
}

static int links_teardown(void **state)
{
	mesh_link_leave(one);
	mesh_link_leave(&twin);
	mesh_link_leave(other);
	assert_true(LIST_EMPTY(&fixture.setup.process.links));
	free(twin.out);
	close(fixture.setup.process.engine.epoll_fd);
	fixture.setup.process.engine.epoll_fd = -1;
	if (one->watch.fd < 0) /* the fixture closes it */
		one->watch.fd = dup(fixture.frames);
	mesh_process_sockets_free(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	return fixture_teardown(state);
}

static void test_members(void **state)
{
	struct mesh_peer stranger = twin;

	(void)state;
	assert_non_null(one->link);
	assert_ptr_equal(one->link, twin.link);
	assert_ptr_not_equal(one->link, other->link); /* another NIC */
	stranger.link = NULL;
	stranger.process_id = 0;
	mesh_peer_process_set(&stranger, PROCESS + 1);
	mesh_link_watch(&stranger);
	assert_ptr_not_equal(one->link, stranger.link);
	mesh_link_leave(&stranger);
	mesh_link_leave(&stranger); /* does nothing */
	mesh_peer_index_remove(&stranger);
}

static void test_lost_together(void **state)
{
	struct mesh_frame frame;

	(void)state;
	mesh_link_lose(&twin, "for a test", MESH_REFUSAL_NO_ANSWER);
	assert_int_equal(twin.state, MESH_PEER_LOST);
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_int_equal(other->state, MESH_PEER_UP);
	assert_null(one->link);
	assert_null(twin.link);
	assert_string_equal(one->reason, "for a test");
	frame = fixture_frame(MESH_FRAME_REFUSE);
	assert_int_equal(frame.refuse.refusal, MESH_REFUSAL_NO_ANSWER);
	assert_int_equal(frame.refuse.detail, 0);
}

/* The other process names one link over another. */
static void test_given_up(void **state)
{
	uint32_t name = mesh_link_name(other->address.nic, (uint8_t)other->domain->dev);

	(void)state;
	mesh_link_given_up(one, MESH_REFUSAL_NO_ANSWER, name + 1); /* it does not exist */
	assert_int_equal(other->state, MESH_PEER_UP);
	mesh_link_given_up(one, MESH_REFUSAL_NO_ANSWER, name);
	assert_int_equal(other->state, MESH_PEER_LOST);
	assert_int_equal(one->state, MESH_PEER_UP);
	mesh_link_given_up(one, MESH_REFUSAL_NO_DATA, 0);
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_int_equal(twin.state, MESH_PEER_LOST);
	assert_true(strstr(one->reason, "large frames"));
}

/* Without a waiter only a sent frame is pending, until it is acknowledged. */
static void test_pending(void **state)
{
	struct mesh_timers *timers = &fixture.setup.process.engine.timers;
	const struct mesh_timer *timer = &one->link->timer;
	uint64_t now = mesh_clock_ms();

	(void)state;
	assert_false(timer->set);
	mesh_link_sent(one);
	assert_true(timer->set);
	mesh_timers_run(timers, now + 100);
	assert_true(timer->set);
	mesh_timers_run(timers, now + 10000);
	assert_false(timer->set);
	assert_int_equal(one->state, MESH_PEER_UP);
}

/* A NIC has lost its carrier: its links are watched, although nothing waits. */
static void test_carrier_lost(void **state)
{
	uint64_t now = mesh_clock_ms();

	(void)state;
	mesh_links_want(&fixture.setup.process, other->domain, now + 10000);
	assert_false(one->link->timer.set);
	assert_true(other->link->timer.set);
	mesh_timers_run(&fixture.setup.process.engine.timers, now + 100);
	assert_int_equal(one->link->liveness.state, MESH_LIVENESS_IDLE);
	assert_int_equal(other->link->liveness.state, MESH_LIVENESS_WATCHED);
	assert_true(other->link->eager);
}

static void test_drained(void **state)
{
	uint64_t now = mesh_clock_ms();

	(void)state;
	assert_true(mesh_link_is_drained(one, now, now)); /* the provider has no sockets */
	mesh_link_leave(one);
	assert_true(mesh_link_is_drained(one, now, now));
	assert_true(mesh_link_is_fresh(one, now));
}

static void timer_ignore(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
}

/* A dead link is reported over another one, whose peer does not read and is lost as well. */
static void test_two_lost_in_one_tick(void **state)
{
	uint64_t now = mesh_clock_ms();
	struct mesh_timers *timers = &fixture.setup.process.engine.timers;
	struct mesh_liveness *liveness = &other->link->liveness;
	int ends[2];

	(void)state;
	if (!tcp_pair_has_info()) {
		skip();
		return;
	}
	mesh_link_leave(&twin);
	tcp_pair_open(ends);
	other->watch.fd = ends[0];
	liveness->limit_ms = 0;
	liveness->heard_ms = now;
	liveness->asked_ms = 1;
	liveness->state = MESH_LIVENESS_WATCHED;
	liveness->wanted_until_ms = now + 1000;
	one->out = calloc(1, MESH_PEER_OUT_MAX);
	one->out_size = MESH_PEER_OUT_MAX;
	mesh_link_sent(one);
	one->timer.expired = other->timer.expired = timer_ignore;
	mesh_timers_set(timers, &other->link->timer, now);
	mesh_timers_run(timers, now);
	assert_int_equal(other->state, MESH_PEER_LOST);
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_true(LIST_EMPTY(&fixture.setup.process.links));
	mesh_timers_run(timers, now + 10000);
	assert_null(timers->first); /* those of the links were removed */
	close(ends[1]);
}

/* An empty namespace, whose loopback interface works. False if that is not permitted. */
static bool loopback_enter(void)
{
	if (!namespace_enter())
		return false;
	namespace_ip("link set lo up");
	return true;
}

/* The verdict has the reason that the kernel knows. */
static void test_unreachable(void **state)
{
	int ends[2];

	(void)state;
	if (!tcp_pair_has_info() || !loopback_enter()) {
		skip();
		return;
	}
	tcp_pair_open(ends);
	tcp_pair_cut_off(ends);
	assert_int_equal(dup2(ends[0], one->watch.fd), one->watch.fd);
	mesh_link_timed_out(&twin, 0);
	assert_true(strstr(one->reason, "no answer for"));
	assert_true(strstr(one->reason, "Network is unreachable"));
	assert_string_equal(one->reason, twin.reason);
	close(ends[0]);
	close(ends[1]);
	assert_true(loopback_enter()); /* this one no longer has routes */
}

/* A peer of the link of @one whose socket is @fd, which it owns from now on. */
static struct mesh_peer *third_join(int fd)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *third;

	assert_int_equal(mesh_peer_accept(process, one->domain, fd, &one->address.addr), 0);
	third = LIST_FIRST(&process->peers);
	third->state = MESH_PEER_UP;
	third->process_id = PROCESS;
	mesh_link_join(third);
	assert_ptr_equal(third->link, one->link);
	return third;
}

/* The engine's event, once the kernel has ended the connection. */
static void end_handle(struct mesh_peer *third)
{
	struct pollfd event = {.fd = third->watch.fd, .events = POLLIN};

	assert_int_equal(poll(&event, 1, 30000), 1);
	third->watch.ready(&third->watch, EPOLLIN | EPOLLHUP | EPOLLERR);
	assert_int_equal(third->state, MESH_PEER_LOST);
}

/* The kernel's own limit ends one connection while there is no network: the link is lost. */
static void test_network_goes(void **state)
{
	int ends[2], limit_ms = 1;
	struct mesh_peer *third;

	(void)state;
	if (!tcp_pair_has_info() || !loopback_enter()) {
		skip();
		return;
	}
	tcp_pair_open(ends);
	third = third_join(ends[0]);
	tcp_pair_cut_off(ends);
	assert_int_equal(
		setsockopt(ends[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms)), 0);
	end_handle(third);
	assert_true(strstr(third->reason, "no answer for"));
	assert_true(strstr(third->reason, "Network is unreachable"));
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_string_equal(one->reason, third->reason);
	assert_int_equal(other->state, MESH_PEER_UP);
	mesh_peer_free(third);
	close(ends[1]);
}

/* The peer's process has closed one connection: it has ended, and all of them are lost. */
static void test_process_closes(void **state)
{
	struct mesh_peer *third;
	int ends[2];

	(void)state;
	tcp_pair_open(ends);
	third = third_join(ends[0]);
	close(ends[1]);
	end_handle(third);
	assert_true(strstr(third->reason, "its process ended"));
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_string_equal(one->reason, third->reason);
	mesh_peer_free(third);
}

/* An attempt of another process that ends before it is up says nothing about the process. */
static void test_attempt_is_over(void **state)
{
	struct mesh_frame frame = {.refuse.refusal = MESH_REFUSAL_LEFT};
	struct mesh_peer *third;
	int ends[2];

	(void)state;
	tcp_pair_open(ends);
	third = third_join(ends[0]);
	mesh_link_leave(third);
	third->state = MESH_PEER_GREETING;
	close(ends[1]);
	end_handle(third);
	assert_int_equal(one->state, MESH_PEER_UP);
	mesh_peer_free(third);
	/* One that is up here may not be up there. */
	tcp_pair_open(ends);
	third = third_join(ends[0]);
	assert_true(send(ends[1], &frame, mesh_frame_finish(&frame, MESH_FRAME_REFUSE), 0) > 0);
	close(ends[1]);
	end_handle(third);
	assert_int_equal(one->state, MESH_PEER_UP);
	mesh_peer_free(third);
}

/* A connector that ends an attempt whose other end may be up says so. */
static void test_attempt_ends_in_words(void **state)
{
	struct mesh_frame frame;
	int ends[2];

	(void)state;
	tcp_pair_open(ends);
	assert_int_equal(dup2(ends[0], one->watch.fd), one->watch.fd);
	mesh_link_leave(one);
	one->state = MESH_PEER_GREETING;
	one->incoming = false;
	mesh_peer_retry(one, "no answer");
	assert_true(recv(ends[1], &frame, sizeof(frame), 0) > 0);
	assert_int_equal(frame.header.type, MESH_FRAME_REFUSE);
	assert_int_equal(frame.refuse.refusal, MESH_REFUSAL_LEFT);
	close(ends[0]);
	close(ends[1]);
}

/* The kernel has ended a connection with an error, or there is no route to a host. */
static void test_ended_by_kernel(void **state)
{
	(void)state;
	mesh_link_timed_out(other, -ENETUNREACH);
	assert_true(strstr(other->reason, "Network is unreachable"));
	mesh_link_timed_out(one, -EHOSTUNREACH); /* a neighbour that does not answer ARP */
	assert_true(strstr(one->reason, "cable pulled"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, links_setup, links_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_members),
		TEST(test_lost_together),
		TEST(test_given_up),
		TEST(test_pending),
		TEST(test_drained),
		TEST(test_ended_by_kernel),
		TEST(test_process_closes),
		TEST(test_attempt_is_over),
		TEST(test_attempt_ends_in_words),
		TEST(test_two_lost_in_one_tick),
		TEST(test_carrier_lost),
		/* Last: they enter other namespaces. */
		TEST(test_unreachable),
		TEST(test_network_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
