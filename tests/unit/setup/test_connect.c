/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect.c - connect() towards a listener that the test plays; and accept(). */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/threads.h"
#include "setup/connect.h"
#include "setup/connecting.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/openings.h"
#include "setup/setup.h"

#include "log_capture.h"

#define LIMIT_MS 20000
#define COOKIE 0x1234
#define LISTEN_ID 9

static struct mesh_net *net;
static struct mesh_listener *listener;
static int server; /* the listener's socket */
static uint8_t bytes[MESH_HANDLE_BYTES];

/* A handle of a listener at 127.0.0.1, on this node: connectors use it only there. */
static void handle_make(uint64_t cookie)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	socklen_t len = sizeof(name);
	struct mesh_handle handle;

	assert_int_equal(getsockname(server, (struct sockaddr *)&name, &len), 0);
	memset(&handle, 0, sizeof(handle));
	handle.node_id = net->process->node_id;
	handle.cookie = cookie;
	handle.listen_id = LISTEN_ID;
	strcpy(handle.node, "far-end");
	handle.control_port = ntohs(name.sin_port);
	handle.num_endpoints = 1;
	handle.endpoints[0] = net->process->endpoints[0];
	mesh_handle_encode(&handle, bytes);
}

static uint64_t connect_id_of(const void *handle_bytes)
{
	struct mesh_handle handle;

	assert_int_equal(mesh_handle_decode(handle_bytes, &handle), 0);
	return handle.connect_id;
}

static int setup(void **state)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	const struct timeval limit = {.tv_sec = LIMIT_MS / 1000};
	uint8_t ours[MESH_HANDLE_BYTES];

	(void)state;
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(mesh_net_listen(net, 0, ours, &listener), 0);
	mesh_lock_take(&net->process->lock);
	mesh_opening_need(net->process, 0, false); /* so that the first connect begins at once */
	mesh_lock_release(&net->process->lock);
	mesh_threads_await();
	server = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(server >= 0);
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(server, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(server, 8), 0);
	handle_make(COOKIE);
	log_capture_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (server >= 0)
		close(server);
	mesh_listener_close(listener);
	mesh_net_close(net);
	log_capture_stop();
	return 0;
}

static int try_once(struct mesh_net *of, uint8_t *handle)
{
	struct mesh_comm *comm = NULL;
	int ret = mesh_net_connect(of, 0, handle, &comm);

	assert_null(comm);
	return ret;
}

/* Calls connect() until it fails, and returns how. */
static int fails_with(void)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	int ret = 0;

	while (!ret) {
		assert_true(mesh_clock_ms() < deadline);
		ret = try_once(net, bytes);
	}
	assert_true(connect_id_of(bytes) == 0); /* a new attempt may use it again */
	assert_true(LIST_EMPTY(&net->setup->connects));
	return ret;
}

/* What the listener would see: a connection, and its HELLO. */
static int hello_accept(struct mesh_frame *hello)
{
	int fd = accept(server, NULL, NULL);
	uint8_t got[sizeof(*hello)];
	size_t have = 0;
	int taken = 0;

	assert_true(fd >= 0);
	while (!taken) {
		assert_int_equal(recv(fd, got + have, 1, 0), 1);
		taken = mesh_frame_decode(got, ++have, hello);
		assert_true(taken >= 0);
	}
	assert_int_equal(hello->header.type, MESH_FRAME_HELLO);
	return fd;
}

static void refuse(int fd, enum mesh_refusal refusal)
{
	struct mesh_frame frame;
	size_t size;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = refusal;
	size = mesh_frame_finish(&frame, MESH_FRAME_REFUSE);
	assert_int_equal(send(fd, &frame, size, MSG_NOSIGNAL), size);
}

/* ---- the handle ---------------------------------------------------------------------------- */

static void test_foreign_handle(void **state)
{
	(void)state;
	bytes[0] ^= 1;
	assert_int_equal(try_once(net, bytes), -EPROTO);
	assert_true(log_captured(MESH_LOG_WARN, "a handle that is not this plugin's"));
	bytes[0] ^= 1;
	bytes[4] ^= 1;
	assert_int_equal(try_once(net, bytes), -EPROTONOSUPPORT);
	assert_true(log_captured(MESH_LOG_WARN, "another version of this plugin"));
}

static void test_no_common_subnet(void **state)
{
	struct mesh_handle handle;

	(void)state;
	assert_int_equal(mesh_handle_decode(bytes, &handle), 0);
	assert_int_equal(mesh_addr_parse("10.255.254.253/30", &handle.endpoints[0].addr), 0);
	mesh_handle_encode(&handle, bytes);
	assert_int_equal(try_once(net, bytes), -ENETUNREACH);
	assert_true(log_captured(MESH_LOG_WARN,
				 "no common subnet, and no route between their mesh NICs. Here: "
				 "127.0.0.1/8 (lo); there: 10.255.254.253/30"));
	assert_true(log_captured(MESH_LOG_WARN, "cannot connect to node far-end (id "));
	assert_true(connect_id_of(bytes) == 0);
	assert_true(LIST_EMPTY(&net->setup->connects));
}

/* Another provider on the same subnet is reported as the cause. */
static void test_other_provider(void **state)
{
	struct mesh_handle handle;

	(void)state;
	assert_int_equal(mesh_handle_decode(bytes, &handle), 0);
	handle.endpoints[0].provider = MESH_PROVIDER_VERBS_RXM;
	mesh_handle_encode(&handle, bytes);
	assert_int_equal(try_once(net, bytes), -ENETUNREACH);
	assert_true(
		log_captured(MESH_LOG_WARN, "we use the provider tcp and it uses verbs;ofi_rxm"));
}

/* The buffer has the id of the attempt, which is trusted only with the same cookie and net. */
static void test_attempt_is_found_again(void **state)
{
	uint8_t other[MESH_HANDLE_BYTES];
	struct mesh_net *second;
	uint64_t id, others;

	(void)state;
	assert_int_equal(try_once(net, bytes), 0);
	id = connect_id_of(bytes);
	assert_true(id);
	assert_int_equal(try_once(net, bytes), 0);
	assert_true(connect_id_of(bytes) == id);
	memcpy(other, bytes, sizeof(other));
	mesh_handle_connect_id_set(other, 0); /* a second attempt with the same listener */
	assert_int_equal(try_once(net, other), 0);
	others = connect_id_of(other);
	assert_true(others && others != id);
	handle_make(COOKIE + 1);
	mesh_handle_connect_id_set(bytes, id);
	assert_int_equal(try_once(net, bytes), 0);
	assert_true(connect_id_of(bytes) != id);
	assert_int_equal(mesh_net_open(&second), 0);
	assert_int_equal(try_once(second, other), 0);
	assert_true(connect_id_of(other) != others);
	mesh_net_close(second); /* with what it left behind */
	assert_int_equal(try_once(net, bytes), 0);
}

/* ---- what the listener answers -------------------------------------------------------------- */

static void test_hello_has_the_cookie(void **state)
{
	struct mesh_frame hello;
	int fd;

	(void)state;
	assert_int_equal(try_once(net, bytes), 0);
	fd = hello_accept(&hello);
	assert_true(hello.hello.cookie == COOKIE);
	assert_int_equal(hello.hello.listen_id, LISTEN_ID);
	assert_true(hello.hello.process_id == net->process->process_id);
	close(fd);
}

static void test_refusals(void **state)
{
	static const struct {
		enum mesh_refusal refusal;
		const char *why;
	} cases[] = {
		{MESH_REFUSAL_VERSION, "another protocol version"},
		{MESH_REFUSAL_PROVIDER, "another libfabric provider"},
		{MESH_REFUSAL_COOKIE, "no such listener"},
	};
	struct mesh_frame hello;
	size_t i;
	int fd;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		log_capture_start();
		handle_make(COOKIE + i);
		assert_int_equal(try_once(net, bytes), 0);
		fd = hello_accept(&hello);
		refuse(fd, cases[i].refusal);
		assert_int_equal(fails_with(), -EPROTO);
		assert_true(log_captured(MESH_LOG_WARN, cases[i].why));
		close(fd);
	}
}

/* The first bytes of a HELLO of another version are answer enough. */
static void test_another_version(void **state)
{
	const size_t known = sizeof(struct mesh_frame_header) + MESH_HELLO_LISTENER_BYTES;
	struct mesh_frame hello;
	int fd;

	(void)state;
	assert_int_equal(try_once(net, bytes), 0);
	fd = hello_accept(&hello);
	hello.header.version++;
	strcpy(hello.hello.version, "7.8.9");
	assert_int_equal(send(fd, &hello, known, MSG_NOSIGNAL), known);
	assert_int_equal(fails_with(), -EPROTO);
	assert_true(log_captured(MESH_LOG_WARN, "it runs nccl-net-mesh 7.8.9 (protocol "));
	assert_true(log_captured(MESH_LOG_WARN, "and we run nccl-net-mesh "));
	close(fd);
}

/* A refused cookie of another user of the same link does not affect ours. */
static void test_refusal_of_another(void **state)
{
	uint8_t old[MESH_HANDLE_BYTES];
	struct mesh_frame hello;
	int fd;

	(void)state;
	memcpy(old, bytes, sizeof(old));
	assert_int_equal(try_once(net, old), 0);
	fd = hello_accept(&hello);
	assert_true(hello.hello.cookie == COOKIE);
	handle_make(COOKIE + 1);
	assert_int_equal(try_once(net, bytes), 0); /* waits for the same peer */
	refuse(fd, MESH_REFUSAL_COOKIE);
	close(fd);
	while (!try_once(net, old))
		continue;
	assert_int_equal(try_once(net, bytes), 0);
	fd = hello_accept(&hello); /* it sends its own HELLO */
	assert_true(hello.hello.cookie == COOKIE + 1);
	refuse(fd, MESH_REFUSAL_COOKIE);
	assert_int_equal(fails_with(), -EPROTO);
	close(fd);
}

/* The only attempt there is, as if its time were over. */
static void attempt_ages(void)
{
	struct mesh_process *process = net->process;

	mesh_lock_take(&process->lock);
	LIST_FIRST(&net->setup->connects)->deadline_ms = mesh_clock_ms();
	mesh_lock_release(&process->lock);
}

/* A connection that the peer closes is retried until the deadline. */
static void test_no_answer_in_time(void **state)
{
	struct mesh_frame hello;
	int fd;

	(void)state;
	assert_int_equal(try_once(net, bytes), 0);
	fd = hello_accept(&hello);
	close(fd);
	fd = hello_accept(&hello);
	assert_true(hello.hello.cookie == COOKIE);
	assert_int_equal(try_once(net, bytes), 0);
	attempt_ages();
	assert_int_equal(fails_with(), -ETIMEDOUT);
	assert_true(log_captured(MESH_LOG_WARN, "gave up connecting from lo (127.0.0.1)"));
	close(fd);
}

/* As if the only attempt's next deadline had come, once it is over. False if there is none. */
static bool deadline_comes(void)
{
	struct mesh_process *process = net->process;
	struct mesh_connect *attempt;
	bool there;

	mesh_lock_take(&process->lock);
	attempt = LIST_FIRST(&net->setup->connects);
	there = attempt != NULL;
	if (there && attempt->over_ms)
		mesh_engine_timer_set(&process->engine, &attempt->timer, 0);
	mesh_lock_release(&process->lock);
	return there;
}

/* NCCL does not ask for the result: the memory is freed, and a later call starts again. */
static void test_abandoned(void **state)
{
	uint64_t limit_ms = mesh_clock_ms() + LIMIT_MS;

	(void)state;
	assert_int_equal(try_once(net, bytes), 0);
	attempt_ages();
	while (deadline_comes())
		assert_true(mesh_clock_ms() < limit_ms);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "gave up connecting"));
	assert_int_not_equal(connect_id_of(bytes), 0);
	assert_int_equal(try_once(net, bytes), 0);
	assert_true(deadline_comes());
}

/* Since when each attempt was refused; 0 if not. @ms: makes that so much longer ago. */
static uint64_t refused_ms(uint64_t ms)
{
	struct mesh_process *process = net->process;
	struct mesh_peer *peer;
	uint64_t since;

	mesh_lock_take(&process->lock);
	peer = LIST_FIRST(&net->setup->connects)->peers[0];
	since = peer->first_refused_ms;
	peer->first_refused_ms -= ms;
	mesh_lock_release(&process->lock);
	return since;
}

/* True if the first peer waits for its next attempt, and does not count as silent. */
static bool is_quiet_in_retry(void)
{
	struct mesh_process *process = net->process;
	struct mesh_peer *peer;
	bool quiet;

	mesh_lock_take(&process->lock);
	peer = LIST_FIRST(&net->setup->connects)->peers[0];
	quiet = peer->state == MESH_PEER_RETRY && !peer->silent_ms;
	mesh_lock_release(&process->lock);
	return quiet;
}

static uint64_t retries_count(void)
{
	uint64_t count;

	mesh_lock_take(&net->process->lock);
	count = net->process->counters->retries;
	mesh_lock_release(&net->process->lock);
	return count;
}

/* A process may be starting: the kernel's refusal counts after three seconds of nothing else. */
static void test_no_listener(void **state)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS, since, retries;

	(void)state;
	close(server);
	server = -1;
	assert_int_equal(try_once(net, bytes), 0);
	while (!(since = refused_ms(0)))
		assert_true(mesh_clock_ms() < deadline);
	while (!is_quiet_in_retry()) /* the kernel did answer */
		assert_true(mesh_clock_ms() < deadline);
	retries = retries_count();
	while (retries_count() < retries + 2)
		assert_true(mesh_clock_ms() < deadline);
	assert_true(refused_ms(3001) == since);
	assert_int_equal(fails_with(), -ECONNREFUSED);
	assert_true(log_captured(MESH_LOG_WARN, "its process has ended, or a firewall refuses"));
}

/* One attempt that is not refused restarts the time. */
static void test_listener_comes_up_late(void **state)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct mesh_frame hello;
	const int on = 1;
	int fd;

	(void)state;
	assert_int_equal(getsockname(server, (struct sockaddr *)&name, &len), 0);
	close(server);
	assert_int_equal(try_once(net, bytes), 0);
	while (!refused_ms(0))
		assert_true(mesh_clock_ms() < deadline);
	server = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(server, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(server, 8), 0);
	fd = hello_accept(&hello);
	assert_true(refused_ms(0) == 0);
	mesh_lock_take(&net->process->lock);
	assert_true(LIST_FIRST(&net->setup->connects)->peers[0]->silent_ms == 0);
	mesh_lock_release(&net->process->lock);
	close(fd);
}

/* The kernels of both ends detect a lost peer, whether data is sent or not. */
static void kernel_watches(const struct mesh_peer *peer)
{
	int on = 0, timeout_ms = 0, idle_s = 0, count = 0, fd = peer->watch.fd;
	socklen_t len = sizeof(int);

	getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len);
	getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &len);
	getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &len);
	getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, &len);
	assert_true(on);
	assert_int_equal(timeout_ms, 10000);
	assert_int_equal(idle_s + count, 10);
}

static void test_kernel_keeps_watch(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(net->process->control_port)};
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	struct mesh_frame hello;
	struct mesh_peer *peer;
	int fd, stranger, seen = 0;

	(void)state;
	assert_int_equal(try_once(net, bytes), 0);
	fd = hello_accept(&hello);
	stranger = socket(AF_INET, SOCK_STREAM, 0);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(stranger, (struct sockaddr *)&to, sizeof(to)), 0);
	while (seen != 3) {
		assert_true(mesh_clock_ms() < deadline);
		mesh_lock_take(&net->process->lock);
		LIST_FOREACH(peer, &net->process->peers, entry) {
			if (peer->state != MESH_PEER_HELLO)
				continue;
			kernel_watches(peer);
			seen |= 1 << peer->incoming;
		}
		mesh_lock_release(&net->process->lock);
	}
	close(stranger);
	close(fd);
}

/* ---- listen and accept ----------------------------------------------------------------------- */

static void test_listen(void **state)
{
	struct mesh_listener *other = NULL;
	struct mesh_handle handle;

	(void)state;
	assert_int_equal(mesh_net_listen(net, -1, bytes, &other), -EINVAL);
	assert_int_equal(mesh_net_listen(net, mesh_net_num_nics(), bytes, &other), -EINVAL);
	assert_null(other);
	assert_true(log_captured(MESH_LOG_WARN, "listens on NIC 1, but there are 1"));
	assert_int_equal(mesh_net_listen(net, 0, bytes, &other), 0);
	assert_int_equal(mesh_handle_decode(bytes, &handle), 0);
	assert_int_equal(handle.total_nics, 1);
	assert_int_equal(handle.num_endpoints, 1);
	assert_int_equal(handle.control_port, net->process->control_port);
	assert_true(handle.cookie == other->cookie && handle.cookie != listener->cookie);
	assert_true(handle.listen_id == other->id && handle.listen_id != listener->id);
	mesh_listener_close(other);
}

static void test_no_connector(void **state)
{
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_comm *comm = NULL;

	(void)state;
	assert_int_equal(mesh_listener_accept(listener, &comm), 0);
	assert_null(comm);
	assert_in_range(listener->wait.deadline_ms, begin_ms + 600000, mesh_clock_ms() + 600000);
	assert_int_equal(mesh_listener_accept(listener, &comm), 0);
	listener->wait.deadline_ms = mesh_clock_ms();
	assert_int_equal(mesh_listener_accept(listener, &comm), -ETIMEDOUT);
	assert_null(comm);
	assert_true(log_captured(MESH_LOG_WARN, "no rank connected within 600 s"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_foreign_handle),
		TEST(test_no_common_subnet),
		TEST(test_other_provider),
		TEST(test_attempt_is_found_again),
		TEST(test_hello_has_the_cookie),
		TEST(test_refusals),
		TEST(test_another_version),
		TEST(test_refusal_of_another),
		TEST(test_no_answer_in_time),
		TEST(test_no_listener),
		TEST(test_listener_comes_up_late),
		TEST(test_kernel_keeps_watch),
		TEST(test_listen),
		TEST(test_no_connector),
		TEST(test_abandoned),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
