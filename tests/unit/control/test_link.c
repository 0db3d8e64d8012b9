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
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/liveness.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "control/peer_send.h"
#include "control/process_sockets.h"

#include "comm_fixture.h"
#include "log_capture.h"
#include "namespace.h"
#include "tcp_pair.h"

#define PROCESS 77
#define IDLE_S 600 /* NCCL_MESH_DEAD_PEER_TIMEOUT: nothing is looked at by itself during a test */

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
	fixture.setup.process.config.dead_peer_timeout_s = IDLE_S;
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

static void given_up(enum mesh_refusal refusal, uint32_t name, uint32_t id)
{
	const struct mesh_frame_refuse refuse = {
		.refusal = refusal,
		.detail = name,
		.peer_id = id,
	};

	mesh_link_given_up(one, &refuse);
}

/* The other process names one link over another. */
static void test_given_up(void **state)
{
	uint32_t name = mesh_link_name(other->address.nic, (uint8_t)other->domain->dev, 0);

	(void)state;
	other->remote_id = 31;
	given_up(MESH_REFUSAL_NO_ANSWER, name + 1, 31); /* it does not exist */
	given_up(MESH_REFUSAL_NO_ANSWER,
		 mesh_link_name(other->address.nic, (uint8_t)other->domain->dev, 1),
		 31);				 /* another lane, whose ids are its own */
	given_up(MESH_REFUSAL_BROKEN, name, 30); /* it is back since */
	assert_int_equal(other->state, MESH_PEER_UP);
	given_up(MESH_REFUSAL_NO_ANSWER, name, 31);
	assert_int_equal(other->state, MESH_PEER_LOST);
	assert_int_equal(one->state, MESH_PEER_UP);
	given_up(MESH_REFUSAL_NO_DATA, 0, 0);
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_int_equal(twin.state, MESH_PEER_LOST);
	assert_true(strstr(one->reason, "large frames"));
}

/* Each peer of a lost link is named over the other link. */
static void test_others_are_notified(void **state)
{
	struct mesh_frame frame;

	(void)state;
	one->sink.id = 5;
	twin.sink.id = 6;
	mesh_link_leave(one);
	mesh_link_leave(&twin);
	one->domain = fixture.domains[1]; /* read by the fixture: the link that goes on */
	mesh_link_watch(one);
	mesh_link_watch(&twin);
	mesh_link_lose(&twin, "for a test", MESH_REFUSAL_BROKEN);
	frame = fixture_frame(MESH_FRAME_REFUSE);
	assert_int_equal(frame.refuse.peer_id, 6);
	assert_int_equal(frame.refuse.detail,
			 mesh_link_name((uint8_t)twin.domain->dev, twin.address.nic, 0));
	assert_true(fixture_no_frame());
	assert_int_equal(one->state, MESH_PEER_UP);
	one->domain = fixture.domains[0];
}

static bool goes_on;

static bool user_resumes(struct mesh_peer_user *user)
{
	(void)user;
	return goes_on;
}

/* A wrong verdict costs little where comms go on without the link. */
static void test_limit_of_silence(void **state)
{
	static const struct mesh_peer_user_ops ops = {.resumes = user_resumes};
	struct mesh_peer_user user = {.ops = &ops};
	struct mesh_timer *timer = &twin.link->timer;

	(void)state;
	fixture.setup.process.config.dead_peer_timeout_s = 7;
	LIST_INSERT_HEAD(&twin.user_list, &user, entry);
	mesh_link_want(&twin, mesh_clock_ms() + 60000);
	timer->expired(timer, mesh_clock_ms());
	assert_int_equal(twin.link->liveness.limit_ms, 7000);
	goes_on = true;
	twin.link->waited_until_ms = 0;
	timer->expired(timer, mesh_clock_ms());
	assert_int_equal(twin.link->liveness.limit_ms, 7000); /* nothing waits */
	mesh_link_want(&twin, mesh_clock_ms() + 60000);
	timer->expired(timer, mesh_clock_ms());
	assert_int_equal(twin.link->liveness.limit_ms, 3000);
	fixture.setup.process.config.dead_peer_timeout_s = 2;
	timer->expired(timer, mesh_clock_ms());
	assert_int_equal(twin.link->liveness.limit_ms, 2000);
	LIST_REMOVE(&user, entry);
	goes_on = false;
}

/* Without a waiter only a sent frame is pending, until it is acknowledged. */
static void test_pending(void **state)
{
	struct mesh_timers *timers = &fixture.setup.process.engine.timers;
	const uint64_t period_ms = IDLE_S * 1000 / 2;
	const struct mesh_timer *timer = &one->link->timer;
	uint64_t now = mesh_clock_ms();

	(void)state;
	assert_int_equal(timer->due_ms % period_ms, 0); /* the same for all links */
	assert_in_range(timer->due_ms, now, now + period_ms);
	mesh_link_sent(one);
	assert_in_range(timer->due_ms, now, now + 1000);
	mesh_timers_run(timers, now + 100);
	assert_in_range(timer->due_ms, now, now + 1000);
	mesh_timers_run(timers, now + 10000); /* it is acknowledged */
	assert_int_equal(timer->due_ms % period_ms, 0);
	assert_true(timer->due_ms > now + 10000);
	assert_int_equal(one->state, MESH_PEER_UP);
}

/* A NIC has lost its carrier: its links are watched, although nothing waits. */
static void test_carrier_lost(void **state)
{
	uint64_t now = mesh_clock_ms();

	(void)state;
	mesh_links_want(&fixture.setup.process, other->domain, now + 10000);
	assert_true(one->link->timer.due_ms > now);
	assert_true(other->link->timer.due_ms <= now);
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
	fixture.setup.process.config.dead_peer_timeout_s = 1;
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
	mesh_peer_use(one);
	mesh_peer_tick(one, now);
	assert_int_equal(other->state, MESH_PEER_LOST);
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_true(LIST_EMPTY(&fixture.setup.process.links));
	mesh_timers_run(timers, now + 10000);
	assert_null(timers->first); /* those of the links were removed */
	close(ends[1]);
}

/* All that the other end can read of @one's control connection; returns the errno at its end. */
static int end_read(void)
{
	char bytes[4096];
	ssize_t n;

	while ((n = recv(fixture.frames, bytes, sizeof(bytes), 0)) > 0)
		;
	return n ? errno : 0;
}

/* The caller may be in the midst of its comms: the link is lost after that, in both directions. */
static void test_full_queue(void **state)
{
	struct mesh_frame frame = {.close.to_comm = 1};

	(void)state;
	one->out = calloc(1, MESH_PEER_OUT_MAX);
	one->out_size = MESH_PEER_OUT_MAX;
	mesh_peer_send(one, &frame, MESH_FRAME_CLOSE);
	assert_int_equal(one->state, MESH_PEER_UP);
	mesh_peer_use(one);
	mesh_peer_tick(one, mesh_clock_ms());
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_int_equal(twin.state, MESH_PEER_LOST);
	assert_int_equal(other->state, MESH_PEER_UP);
	assert_true(strstr(twin.reason, "does not read its control connection"));
	assert_int_equal(end_read(), ECONNRESET); /* in order: our process would have ended */
}

/* Two thousand connections over relays begin, and the process there does not run for a moment. */
static void test_long_queue(void **state)
{
	const int room = 4096;
	struct mesh_frame frame;
	int i;

	(void)state;
	assert_int_equal(setsockopt(one->watch.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (i = 0; i < 2048; i++) {
		memset(&frame, 0, sizeof(frame));
		mesh_peer_send(one, &frame, MESH_FRAME_OPEN);
	}
	mesh_peer_tick(one, mesh_clock_ms());
	assert_true(one->out_size > 0);
	assert_int_equal(one->state, MESH_PEER_UP);
}

/* The REFUSE waits behind other frames: it is no longer sent. */
static void test_unsent_refusal(void **state)
{
	(void)state;
	test_long_queue(state);
	mesh_link_lose(&twin, "for a test", MESH_REFUSAL_BROKEN);
	assert_int_equal(end_read(), ECONNRESET);
}

/* Whatever ends a connection that is up, it never looks like the end of our process. */
static void test_end_without_refusal(void **state)
{
	(void)state;
	mesh_peer_lose(one, "for a test");
	assert_int_equal(end_read(), ECONNRESET);
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

/* Nothing waits: the kernel's keep-alive finds the silence, and it counts from its question on. */
static void test_idle_silence(void **state)
{
	struct mesh_liveness *liveness = &one->link->liveness;
	const struct timespec pause = {.tv_nsec = 10000000};
	struct mesh_tcp_look look = {.probes = 0};
	struct mesh_timer *timer = &one->link->timer;
	uint64_t from_ms, asked_ms;

	(void)state;
	if (!tcp_pair_has_info()) {
		skip();
		return;
	}
	one->process->config.dead_peer_timeout_s = 2; /* the kernel asks after 1 s */
	mesh_link_keepalives_set(one->link);
	timer->expired(timer, mesh_clock_ms());
	assert_int_equal(liveness->state, MESH_LIVENESS_IDLE);
	from_ms = mesh_clock_ms();
	assert_in_range(timer->due_ms, from_ms, from_ms + 1000);
	tcp_pair_silence(fixture.frames);
	while (!look.probes && mesh_clock_ms() < from_ms + 30000) {
		nanosleep(&pause, NULL);
		assert_int_equal(mesh_tcp_look(one->watch.fd, &look), 0);
	}
	assert_true(look.probes);
	one->link->idle_ms = 0;
	timer->expired(timer, mesh_clock_ms());
	assert_int_equal(liveness->state, MESH_LIVENESS_WATCHED);
	asked_ms = liveness->asked_ms;
	assert_in_range(asked_ms, from_ms - 100, mesh_clock_ms() + 100);
	/* The watch lasts as long as the silence, though nothing waits. */
	while (one->state == MESH_PEER_UP && mesh_clock_ms() < from_ms + 30000) {
		nanosleep(&pause, NULL);
		timer->expired(timer, mesh_clock_ms());
	}
	assert_int_equal(one->state, MESH_PEER_LOST);
	assert_true(strstr(one->reason, "no answer for 2 s"));
	assert_true(mesh_clock_ms() >= asked_ms + 2000);
}

/* A peer of the link of @one whose socket is @fd, which it owns from now on. */
static struct mesh_peer *third_join(int fd)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *third;

	assert_int_equal(mesh_peer_accept(process, 0, fd, &one->address.addr), 0);
	third = LIST_FIRST(&process->peers);
	third->domain = one->domain;
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
		TEST(test_others_are_notified),
		TEST(test_limit_of_silence),
		TEST(test_pending),
		TEST(test_drained),
		TEST(test_ended_by_kernel),
		TEST(test_process_closes),
		TEST(test_attempt_is_over),
		TEST(test_attempt_ends_in_words),
		TEST(test_full_queue),
		TEST(test_long_queue),
		TEST(test_unsent_refusal),
		TEST(test_end_without_refusal),
		TEST(test_two_lost_in_one_tick),
		TEST(test_carrier_lost),
		TEST(test_idle_silence),
		/* Last: they enter other namespaces. */
		TEST(test_unreachable),
		TEST(test_network_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
