/* SPDX-License-Identifier: Apache-2.0 */
/* test_fence.c - how long the loss of a peer waits for the polls after its fence. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/peer_fence.h"
#include "transport/cut.h"

#include "comm_fixture.h"
#include "fake_clock.h"
#include "log_capture.h"
#include "namespace.h"
#include "tcp_pair.h"

/* What a thread waits at most that holds process->lock, in milliseconds. */
#define LIMIT_MS 3000
/* What one poll of the provider reads. */
#define READ_BYTES 1000

bool __real_mesh_domain_poll(struct mesh_domain *domain);
bool __wrap_mesh_domain_poll(struct mesh_domain *domain);

static int busy_polls; /* so many attempts find that another thread polls, and stays there */
static struct mesh_comm *watched; /* is to have an error at each poll; or NULL */
static int connection = -1;	  /* the provider's, or -1 */
static ssize_t bytes_read;	  /* by the provider */
static int sending = -1;	  /* an end that sends as much as is read; or -1 */

static void provider_reads(void)
{
	char bytes[READ_BYTES] = {0};
	ssize_t n = recv(connection, bytes, sizeof(bytes), MSG_DONTWAIT);

	bytes_read += n > 0 ? n : 0;
	if (n > 0 && sending >= 0)
		assert_int_equal(send(sending, bytes, (size_t)n, 0), n);
}

bool __wrap_mesh_domain_poll(struct mesh_domain *domain)
{
	fake_clock_us += 1000;
	provider_reads();
	assert_true(!watched || *comm_inside(watched).error);
	return --busy_polls < 0 && __real_mesh_domain_poll(domain);
}

/* Returns how long the fence took, in milliseconds. */
static uint64_t fence(int busy)
{
	struct mesh_process *process = &fixture.setup.process;
	uint64_t begin_ms, end_ms;

	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	mesh_lock_take(&process->lock);
	busy_polls = busy;
	begin_ms = mesh_clock_ms();
	assert_true(mesh_peer_fence(&fixture.peers[0]));
	end_ms = mesh_clock_ms();
	busy_polls = 0;
	mesh_lock_release(&process->lock);
	return end_ms - begin_ms;
}

/* A verbs NIC that is connecting polls again after 2 s. */
static void test_polls_come_late(void **state)
{
	(void)state;
	assert_in_range(fence(2000), 2000, LIMIT_MS);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

static void test_polls_never_come(void **state)
{
	(void)state;
	assert_in_range(fence(100000), 2000, LIMIT_MS);
	assert_true(log_captured(MESH_LOG_WARN, "could not be polled"));
}

/* A comm that is cut off returns its memory to NCCL: it waits as well. */
static void test_cut_off_waits(void **state)
{
	struct mesh_comm *comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	uint64_t begin_ms = mesh_clock_ms();

	(void)state;
	busy_polls = 2000;
	mesh_comm_cut_off(comm, MESH_CUT_SILENT);
	assert_in_range(mesh_clock_ms() - begin_ms, 2000, LIMIT_MS);
	busy_polls = 0;
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	fixture_comm_close(comm);
}

/*
 * One that owes the receiver messages goes on until it is cut off. Then no path of it may get
 * another peer, as those of comms without an error do: the fence uses the remotes that it has.
 */
static void test_cut_off_while_it_delivers(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	mesh_comm_lock(comm);
	comm->closing = true;
	assert_true(mesh_comm_delivers(comm));
	mesh_comm_unlock(comm);
	watched = comm;
	mesh_comm_cut_off(comm, MESH_CUT_STUCK);
	watched = NULL;
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	fixture_comm_close(comm);
}

/* ---- what had come before -------------------------------------------------------------------- */

static int address_socket(const char *text, uint16_t port, struct sockaddr_storage *name,
			  socklen_t *len)
{
	struct mesh_addr addr;

	mesh_addr_parse(text, &addr);
	*len = (socklen_t)mesh_addr_to_sockaddr(&addr, port, name);
	return socket(AF_INET, SOCK_STREAM, 0);
}

/* The provider's connection with the first peer; returns the peer's end of it. */
static int connection_open(void)
{
	struct sockaddr_storage ours, theirs;
	socklen_t ours_len, theirs_len;
	int listener, end;

	if (!tcp_pair_has_info() || !namespace_enter())
		skip();
	namespace_ip("address add 10.7.0.1/24 dev lo");
	namespace_ip("address add 10.7.0.2/24 dev lo");
	namespace_ip("link set lo up");
	listener = address_socket("10.7.0.2", 4321, &theirs, &theirs_len);
	assert_int_equal(bind(listener, (struct sockaddr *)&theirs, theirs_len), 0);
	assert_int_equal(listen(listener, 1), 0);
	connection = address_socket("10.7.0.1", 0, &ours, &ours_len);
	assert_int_equal(bind(connection, (struct sockaddr *)&ours, ours_len), 0);
	assert_int_equal(connect(connection, (struct sockaddr *)&theirs, theirs_len), 0);
	end = accept(listener, NULL, NULL);
	assert_true(end >= 0);
	close(listener);
	return end;
}

/* The first peer's process has sent @count bytes, and is lost; with @flood it goes on sending. */
static void fence_after(size_t count, bool flood)
{
	static char bytes[100 * READ_BYTES];
	int end = connection_open();

	bytes_read = 0;
	assert_in_range(count, 1, sizeof(bytes));
	assert_int_equal(send(end, bytes, count, 0), count);
	if (flood)
		sending = end;
	else
		close(end);
	fence(0);
	sending = -1;
	if (flood)
		close(end);
	close(connection);
	connection = -1;
}

/* Its process may have ended, and cannot send again what our kernel has acknowledged. */
static void test_what_had_come_is_read(void **state)
{
	(void)state;
	fence_after(50 * READ_BYTES + 1, false);
	assert_int_equal(bytes_read, 50 * READ_BYTES + 1);
}

/* Not what comes meanwhile. */
static void test_what_comes_is_not_read(void **state)
{
	(void)state;
	fence_after(10 * READ_BYTES, true);
	assert_in_range(bytes_read, 10 * READ_BYTES, 12 * READ_BYTES);
}

/* A provider that reads no more is waited for, for a moment. */
static void test_nothing_is_read(void **state)
{
	int end = connection_open(), kept = connection;

	(void)state;
	assert_int_equal(send(end, "x", 1, 0), 1);
	connection = -1;
	assert_in_range(fence(0), 0, 700);
	close(end);
	close(kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_polls_come_late),	  TEST(test_polls_never_come),
		TEST(test_cut_off_waits),	  TEST(test_cut_off_while_it_delivers),
		TEST(test_what_had_come_is_read), TEST(test_what_comes_is_not_read),
		TEST(test_nothing_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
