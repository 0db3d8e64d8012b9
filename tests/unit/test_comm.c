/* SPDX-License-Identifier: Apache-2.0 */
/* test_comm.c - a comm over a provider that does what we say: its segments, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <mesh/mesh/place.h>
#include <mesh/mesh/rdma_error.h>
#include <mesh/transport/comm.h>
#include <mesh/transport/listener.h>
#include <mesh/transport/node.h>
#include <mesh/transport/protocol.h>

#include "fake_fabric.h"
#include "log_capture.h"

#define MESSAGE ((size_t)512 << 10)

static char memory[MESSAGE];
static struct mesh_node node;
static struct mesh_net net;
static struct mesh_peer peer;
static struct mesh_domain *domain;

static void opened(enum mesh_provider_id provider)
{
	struct sockaddr_storage name;
	size_t len;

	domain = fake_domain_open(provider);
	mesh_addr_parse("10.7.0.2", &peer.address.addr);
	len = mesh_addr_to_sockaddr(&peer.address.addr, 4321, &name);
	assert_int_equal(mesh_remote_open(domain, &name, len, &peer.remote), 0);
	peer.domain = domain;
	peer.state = MESH_PEER_UP;
}

static int setup(void **state)
{
	(void)state;
	fake_reset();
	memset(&node, 0, sizeof(node));
	memset(&peer, 0, sizeof(peer));
	mesh_lock_init(&node.lock);
	node.config.dead_peer_timeout_s = 1;
	node.config.segment_bytes = MESSAGE;
	node.counters = &node.own_counters;
	node.engine.wake_fd = -1;
	net.node = &node;
	peer.node = &node;
	peer.watch.fd = -1;
	log_capture_start();
	opened(MESH_PROVIDER_TCP);
	return 0;
}

static int teardown(void **state)
{
	log_capture_stop();
	mesh_remote_close(domain, peer.remote);
	mesh_domain_close(domain);
	mesh_lock_destroy(&node.lock);
	return fake_teardown(state);
}

static struct mesh_comm *comm_open(bool sending)
{
	struct mesh_comm *comm = NULL;

	mesh_lock_take(&node.lock);
	assert_int_equal(mesh_comm_open(&net, sending, &peer, 1, 1, &comm), 0);
	mesh_lock_release(&node.lock);
	return comm;
}

/* Closing left it, because a provider might still use it; ours will not. */
static void left_free(struct mesh_comm *comm)
{
	mesh_lock_destroy(&comm->lock);
	free(comm);
}

/* The control connection has ended. */
static void peer_lose(void)
{
	mesh_lock_take(&node.lock);
	peer.state = MESH_PEER_LOST;
	mesh_lock_release(&node.lock);
}

/* The peer grants room for its @seq-th receive. */
static void grant(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_GRANT, .count = 1, .paths = 1, .seq = seq};
	const struct mesh_grant granted = {.size = MESSAGE};

	mesh_lock_take(&domain->lock);
	mesh_send_message(&comm->paths[0].sink, &header, &granted);
	mesh_lock_release(&domain->lock);
}

static void message_post(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_registration *registration;
	struct mesh_request *request;

	if (LIST_EMPTY(&comm->registrations))
		assert_int_equal(mesh_registration_open(comm, memory, MESSAGE, &registration), 0);
	registration = LIST_FIRST(&comm->registrations);
	assert_int_equal(mesh_comm_send(comm, memory, MESSAGE, registration, &request), 0);
	assert_non_null(request);
	grant(comm, seq);
}

/* ---- segments ------------------------------------------------------------------------------- */

/* Whole lines, and none longer than the provider's largest write, which may end within a line. */
static void test_odd_segment_limit(void **state)
{
	const size_t limit = MESSAGE / 4 + 100;
	size_t sum = 0;
	struct mesh_comm *comm;
	int i;

	(void)state;
	domain->segment_max = limit;
	fake.writes_end_with = -1;
	comm = comm_open(true);
	message_post(comm, 0);
	for (i = 0; i < fake.writes.num; i++) {
		assert_true(fake.writes.posts[i].size <= limit);
		assert_int_equal(fake.writes.posts[i].size % MESH_LINE_BYTES, 0);
		sum += fake.writes.posts[i].size;
	}
	assert_int_equal(sum, MESSAGE);
	peer_lose();
	mesh_comm_close(comm);
}

/* A second domain, as far as a comm that sends nothing needs it. */
static struct mesh_domain *domain_copy(void)
{
	struct mesh_domain *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	*copy = *domain;
	mesh_lock_init(&copy->lock);
	mesh_lock_init(&copy->transmit_lock);
	TAILQ_INIT(&copy->waiters);
	return copy;
}

/* What one path cannot do, the comm does not, whichever path came first. */
static void test_limits_of_paths(void **state)
{
	struct mesh_domain *other = domain_copy();
	struct mesh_domain *domains[] = {domain, other};
	struct mesh_comm *comm;
	int first;

	(void)state;
	other->sizes_travel = false;
	other->segment_max = MESSAGE / 4 + 100;
	for (first = 0; first < 2; first++) {
		peer.domain = domains[first];
		comm = comm_open(true);
		assert_int_equal(comm->sizes_travel, !first);
		mesh_lock_take(&node.lock);
		peer.domain = domains[!first];
		assert_int_equal(mesh_comm_path_add(comm, &peer), 0);
		mesh_lock_release(&node.lock);
		assert_false(comm->sizes_travel);
		assert_int_equal(comm->segment_max, MESSAGE / 4);
		peer_lose();
		mesh_comm_close(comm);
	}
	peer.domain = domain;
	mesh_lock_destroy(&other->lock);
	mesh_lock_destroy(&other->transmit_lock);
	free(other);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* What never ends takes nobody's room on the way to that endpoint, whether it ends after all. */
static void test_unfinished_writes(void **state)
{
	struct mesh_comm *stuck = comm_open(true), *other = comm_open(true);
	const struct mesh_pace *pace = &peer.remote->flow->pace;
	uint32_t i;

	(void)state;
	for (i = 0; i < MESH_PACE_WINDOW_MIN / MESSAGE; i++)
		message_post(stuck, i);
	message_post(other, 0);
	assert_int_equal(fake.writes.num, i); /* the other waits for room */
	peer_lose();
	mesh_comm_close(stuck);
	assert_true(log_captured(MESH_LOG_INFO, "keeps 4 operations that never ended"));
	assert_int_equal(fake.writes.num, i + 1);
	assert_int_equal(mesh_pace_in_flight(pace), MESSAGE);
	fake_complete(&fake.writes.posts[0]);
	mesh_domain_poll(domain);
	assert_int_equal(mesh_pace_in_flight(pace), MESSAGE);
	fake_complete(&fake.writes.posts[i]);
	mesh_domain_poll(domain);
	assert_int_equal(mesh_pace_in_flight(pace), 0);
	mesh_comm_close(other);
	left_free(stuck);
}

/* Completes while a comm gives its peer back: its paths are closed by then. */
static const struct fake_post *ends_late;

void __real_mesh_peer_put(struct mesh_peer *given);
void __wrap_mesh_peer_put(struct mesh_peer *given);

void __wrap_mesh_peer_put(struct mesh_peer *given)
{
	__real_mesh_peer_put(given);
	if (!ends_late)
		return;
	fake_complete(ends_late);
	ends_late = NULL;
	mesh_domain_poll(domain);
}

/* Another thread that polls may be in the callback of an operation which ends during the close. */
static void test_write_ends_in_close(void **state)
{
	struct mesh_comm *comm = comm_open(true);

	(void)state;
	message_post(comm, 0);
	peer_lose();
	ends_late = &fake.writes.posts[0];
	mesh_comm_close(comm);
	assert_null(ends_late);
	assert_true(log_captured(MESH_LOG_INFO, "keeps 1 operations that never ended"));
	left_free(comm);
}

/* On verbs, where a fence is a short write. */
static int fences_posted(void)
{
	int i, count = 0;

	for (i = 0; i < fake.writes.num; i++)
		count += fake.writes.posts[i].size == sizeof(uint64_t);
	return count;
}

static void reopened_on_verbs(void)
{
	mesh_remote_close(domain, peer.remote);
	mesh_domain_close(domain);
	opened(MESH_PROVIDER_VERBS_RXM);
}

/* A sender whose writes do not end cuts its peer off once: closing takes no longer than that. */
static void test_sender_fences_once(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	reopened_on_verbs();
	comm = comm_open(true);
	message_post(comm, 0);
	assert_int_equal(fake.writes.num, 1);
	peer_lose();
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	mesh_comm_close(comm);
	assert_int_equal(fences_posted(), 1);
	fake_complete(&fake.writes.posts[0]);
	mesh_domain_poll(domain);
	left_free(comm);
}

/* A receiver that could still be written to does so once, too. */
static void test_receiver_fences_once(void **state)
{
	struct mesh_registration *registration;
	struct mesh_request *request;
	struct mesh_comm *comm;

	(void)state;
	reopened_on_verbs();
	comm = comm_open(false);
	assert_int_equal(mesh_registration_open(comm, memory, MESSAGE, &registration), 0);
	assert_int_equal(mesh_comm_receive(comm, memory, MESSAGE, registration, &request), 0);
	assert_int_equal(fake.sends.num, 1); /* the grant, which does not end */
	peer_lose();
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	mesh_comm_close(comm);
	assert_int_equal(fences_posted(), 1);
	fake_complete(&fake.sends.posts[0]);
	mesh_domain_poll(domain);
	left_free(comm);
}

/* A message of the peer's, which came before its receive. */
static void data_arrive(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_DATA, .seq = seq, .length = sizeof(uint64_t)};
	const uint64_t payload = 7;

	mesh_lock_take(&domain->lock);
	mesh_receive_message(&comm->paths[0].sink, &header, &payload);
	mesh_lock_release(&domain->lock);
}

/* CLOSE may overtake what was sent before it: a listener keeps the comm until that is here. */
static void test_close_overtakes_message(void **state)
{
	const struct mesh_frame_comm asks = {.sent = 1};
	struct mesh_listener listener = {.net = &net, .num_waiting = 1};
	struct mesh_comm *comm = comm_open(false), *accepted;

	(void)state;
	listener.waiting[0] = comm;
	mesh_lock_take(&node.lock);
	mesh_comm_close_asked(comm, &asks);
	mesh_listener_tick(&listener);
	assert_int_equal(listener.num_waiting, 1);
	mesh_lock_release(&node.lock);
	data_arrive(comm, 0);
	mesh_lock_take(&node.lock);
	mesh_comm_tick(comm);
	mesh_listener_tick(&listener);
	mesh_lock_release(&node.lock);
	assert_int_equal(mesh_listener_accept(&listener, &accepted), 0);
	assert_ptr_equal(accepted, comm);
	mesh_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_odd_segment_limit),	    TEST(test_limits_of_paths),
		TEST(test_unfinished_writes),	    TEST(test_write_ends_in_close),
		TEST(test_sender_fences_once),	    TEST(test_receiver_fences_once),
		TEST(test_close_overtakes_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
