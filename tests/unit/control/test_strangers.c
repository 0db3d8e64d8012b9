/* SPDX-License-Identifier: Apache-2.0 */
/* test_strangers.c - the control connection with a client that violates the protocol. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/version.h"
#include "setup/listener.h"
#include "system/node.h"
#include "wire/handle.h"

#include "comm_inside.h"
#include "log_capture.h"
#include "stranger_fixture.h"
#include "transport/comm_life.h"

#define STRANGERS_MAX 256 /* control.c */
/* An id that does not exist here. */
#define NO_COMM 0x3fff

static atomic_bool route_is_away; /* when it is asked for the next time */

bool __real_mesh_route_leads(struct mesh_routes *routes, const struct mesh_addr *from,
			     unsigned int ifindex, const struct mesh_addr *to);

bool __wrap_mesh_route_leads(struct mesh_routes *routes, const struct mesh_addr *from,
			     unsigned int ifindex, const struct mesh_addr *to)
{
	return !atomic_exchange(&route_is_away, false) &&
	       __real_mesh_route_leads(routes, from, ifindex, to);
}

static void setup(void)
{
	stranger_setup();
	stranger_dial();
}

TESTS_USE(setup, stranger_teardown);

/* The engine works under this lock: what it did with a connection is over, and can be seen. */
static uint64_t refused_count(void)
{
	uint64_t count;

	mesh_lock_take(&stranger.net->process->lock);
	count = stranger.net->process->counters->refused;
	mesh_lock_release(&stranger.net->process->lock);
	return count;
}

/* ---- frames -------------------------------------------------------------------------------- */

/* It disconnects, and logs this reason. */
static void hung_up(const char *why)
{
	stranger_hung_up();
	refused_count();
	assert_true(log_captured(MESH_LOG_INFO, why));
}

/* Of a peer at 127.0.0.1. */
static struct mesh_frame hello_make(void)
{
	return stranger_hello(stranger_loopback(9));
}

/* ---- HELLO --------------------------------------------------------------------------------- */

TEST(hello_is_answered)
{
	struct mesh_frame frame = hello_make();
	const struct mesh_process *process = stranger.net->process;

	stranger_send(&frame, MESH_FRAME_HELLO);
	frame = stranger_frame_read(MESH_FRAME_HELLO);
	assert_true(frame.hello.node_id == process->node_id);
	assert_true(frame.hello.process_id == process->process_id);
	assert_true(frame.hello.cookie == 0 && frame.hello.listen_id == 0);
	assert_true(!frame.hello.secret[0] && !frame.hello.secret[1]);
	assert_int_equal(frame.hello.num_nics, process->num_endpoints);
	assert_int_equal(frame.hello.eager_limit, process->config.eager_limit_bytes);
	assert_int_equal(frame.hello.mtu, process->table.nics[0].mtu);
	assert_int_equal(refused_count(), 0);
	frame = hello_make();
	stranger_send(&frame, MESH_FRAME_HELLO);
	hung_up("sent HELLO twice");
}

/* One answer of the kernel decides: a route may come back before it is asked once more. */
TEST(route_comes_back)
{
	struct mesh_frame frame = hello_make();

	frame.hello.routed = 1;
	atomic_store(&route_is_away, true);
	stranger_send(&frame, MESH_FRAME_HELLO);
	assert_int_equal(stranger_frame_read(MESH_FRAME_REFUSE).refuse.refusal, MESH_REFUSAL_ROUTE);
	hung_up(mesh_refusal_text(MESH_REFUSAL_ROUTE));
}

/* Byte by byte: frames are put together again. */
TEST(hello_in_pieces)
{
	struct mesh_frame frame = hello_make();
	size_t size = mesh_frame_finish(&frame, MESH_FRAME_HELLO), i;
	const int on = 1;

	setsockopt(stranger.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (i = 0; i < size; i++)
		assert_int_equal(send(stranger.fd, (char *)&frame + i, 1, MSG_NOSIGNAL), 1);
	stranger_frame_read(MESH_FRAME_HELLO);
}

static void refused_with(struct mesh_frame *hello, enum mesh_refusal refusal, uint32_t detail)
{
	uint64_t before = refused_count();
	struct mesh_frame frame;

	stranger_send(hello, MESH_FRAME_HELLO);
	frame = stranger_frame_read(MESH_FRAME_REFUSE);
	assert_int_equal(frame.refuse.refusal, refusal);
	assert_int_equal(frame.refuse.comm, 0);
	assert_int_equal(frame.refuse.detail, detail);
	assert_true(refused_count() == before + 1);
}

/* It claims to be a process whose id it has learnt. */
TEST(wrong_secret)
{
	struct mesh_frame frame = hello_make();

	frame.hello.secret[1] ^= 1;
	refused_with(&frame, MESH_REFUSAL_COOKIE, stranger.handle.endpoints[0].provider);
}

/* Both the listener's number and its cookie must be right. */
TEST(wrong_cookie)
{
	const uint32_t provider = (uint32_t)stranger.handle.endpoints[0].provider;
	struct mesh_frame frame = hello_make();

	frame.hello.cookie ^= 1;
	refused_with(&frame, MESH_REFUSAL_COOKIE, provider);
	hung_up("is for another process");
}

TEST(wrong_provider)
{
	struct mesh_frame frame = hello_make();

	frame.hello.provider = MESH_PROVIDER_VERBS_RXM;
	refused_with(&frame, MESH_REFUSAL_PROVIDER,
		     (uint32_t)stranger.handle.endpoints[0].provider);
	hung_up("another libfabric provider");
}

TEST(wrong_version)
{
	struct mesh_frame frame = hello_make();
	size_t size = mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	char why[160];

	frame.header.version = MESH_PROTOCOL_VERSION + 1;
	strcpy(frame.hello.version, "7.8.9");
	memset(&frame.hello.node_id, 0xee, size - sizeof(frame.header) - MESH_HELLO_FROZEN_BYTES);
	assert_int_equal(send(stranger.fd, &frame, size, MSG_NOSIGNAL), size);
	frame = stranger_frame_read(MESH_FRAME_HELLO); /* which names our version */
	assert_string_equal(frame.hello.version, mesh_version());
	frame = stranger_frame_read(MESH_FRAME_REFUSE);
	assert_int_equal(frame.refuse.refusal, MESH_REFUSAL_VERSION);
	assert_int_equal(frame.refuse.detail, MESH_PROTOCOL_VERSION);
	snprintf(why, sizeof(why), "nccl-net-mesh 7.8.9 (protocol %d), and we run nccl-net-mesh %s",
		 MESH_PROTOCOL_VERSION + 1, mesh_version());
	hung_up(why);
	assert_true(refused_count() == 1);
}

TEST(noise)
{
	assert_int_equal(send(stranger.fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	hung_up("bytes that are not frames of this plugin");
	assert_true(refused_count() == 1);
}

/* Only the port is used, and only with the address of the TCP connection. */
TEST(endpoint_elsewhere)
{
	struct sockaddr_in name = stranger_loopback(9);

	for (int i = 0; i < 3; i++) {
		struct mesh_frame frame = hello_make();

		name = stranger_loopback(i == 1 ? 0 : 9);
		if (!i)
			name.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
		if (i == 2)
			name.sin_family = AF_UNIX;
		memcpy(frame.hello.endpoint_name, &name, sizeof(name));
		stranger_send(&frame, MESH_FRAME_HELLO);
		hung_up("endpoint name does not match");
		log_capture_start();
		close(stranger.fd);
		stranger_dial();
	}
}

/* The number of silent connections is limited: the oldest goes, and a peer is answered at once. */
TEST(too_many_strangers)
{
	int fds[STRANGERS_MAX], i;
	char byte;

	for (i = 0; i < STRANGERS_MAX; i++) { /* the first is there already */
		fds[i] = stranger.fd;
		stranger_dial();
	}
	stranger_introduced();
	assert_true(refused_count() == 1);
	assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
	for (i = 1; i < STRANGERS_MAX; i++) {
		assert_true(recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0);
		assert_int_equal(errno, EAGAIN);
	}
	for (i = 0; i < STRANGERS_MAX; i++)
		close(fds[i]);
}

/* ---- unexpected frames ----------------------------------------------------------------------- */

TEST(connect_before_hello)
{
	struct mesh_frame frame = stranger_connect_make(1, 0, 1);

	stranger_send(&frame, MESH_FRAME_CONNECT);
	hung_up("sent CONNECT before HELLO");
}

TEST(refusal_of_nothing)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = MESH_REFUSAL_COOKIE;
	stranger_send(&frame, MESH_FRAME_REFUSE);
	hung_up("sent REFUSE without a request");
}

/* They have no comm and are dropped. */
TEST(frames_for_no_comm)
{
	static const enum mesh_frame_type types[] = {MESH_FRAME_CLOSE, MESH_FRAME_ASK,
						     MESH_FRAME_PORT, MESH_FRAME_ACCEPT,
						     MESH_FRAME_WITHDRAW};
	struct mesh_frame frame;

	FOR_EACH(i, types) {
		memset(&frame, 0, sizeof(frame));
		frame.to_comm = NO_COMM;
		stranger_send(&frame, types[i]);
	}
	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = MESH_REFUSAL_COOKIE;
	frame.refuse.comm = NO_COMM;
	stranger_send(&frame, MESH_FRAME_REFUSE);
	stranger_introduced();
}

/* ---- CONNECT ------------------------------------------------------------------------------- */

TEST(connect_without_right)
{
	struct mesh_frame frame;

	stranger_introduced();
	frame = stranger_connect_make(7, 0, 1);
	frame.connect.cookie ^= 1;
	stranger_connect_refused(frame, MESH_REFUSAL_COOKIE);
	frame = stranger_connect_make(8, 0, 1);
	frame.connect.listen_id++;
	stranger_connect_refused(frame, MESH_REFUSAL_COOKIE);
	/* A second path of a comm that does not exist. */
	stranger_connect_refused(stranger_connect_make(9, 1, 2), MESH_REFUSAL_COOKIE);
}

/* NCCL gets a comm when all its paths exist; a wrong key, number or order adds none. */
TEST(paths_of_one_comm)
{
	struct mesh_comm *comm = NULL;
	struct mesh_frame frame;

	stranger_introduced();
	frame = stranger_connect_make(10, 0, 2);
	stranger_send(&frame, MESH_FRAME_CONNECT);
	frame = stranger_frame_read(MESH_FRAME_ACCEPT);
	assert_int_equal(frame.to_comm, 10);
	assert_int_equal(mesh_listener_accept(stranger.listener, &comm), 0);
	assert_null(comm);
	frame = stranger_connect_make(11, 1, 2);
	frame.connect.comm_key++;
	stranger_connect_refused(frame, MESH_REFUSAL_COOKIE);
	stranger_connect_refused(stranger_connect_make(11, 1, 3), MESH_REFUSAL_COOKIE);
	stranger_connect_refused(stranger_connect_make(11, 2, 3), MESH_REFUSAL_COOKIE);
	frame = stranger_connect_make(11, 1, 2);
	stranger_send(&frame, MESH_FRAME_CONNECT);
	frame = stranger_frame_read(MESH_FRAME_ACCEPT);
	assert_int_equal(frame.to_comm, 11);
	stranger_connect_refused(stranger_connect_make(11, 1, 2),
				 MESH_REFUSAL_COOKIE); /* it is there */
	comm = stranger_accepted();
	assert_int_equal(*comm_inside(comm).num_paths, 2);
	assert_int_equal(*comm_path(comm, 0).remote_id, 10);
	assert_int_equal(*comm_path(comm, 1).remote_id, 11);
	assert_int_equal(*comm_inside(comm).eager_limit, 100);
	close(stranger.fd); /* closing the comm does not wait */
	stranger.fd = -1;
	mesh_comm_close(comm);
}

/* A listener's queue is bounded; when it closes, the queued connectors are refused. */
TEST(listener_is_full)
{
	struct mesh_frame frame;

	stranger_introduced();
	for (int i = 0; i < MESH_LISTENER_QUEUE; i++) {
		frame = stranger_connect_make((uint32_t)i + 1, 0, 1);
		stranger_send(&frame, MESH_FRAME_CONNECT);
		stranger_frame_read(MESH_FRAME_ACCEPT);
	}
	stranger_connect_refused(stranger_connect_make(1000, 0, 1), MESH_REFUSAL_RESOURCES);
	mesh_listener_close(stranger.listener);
	stranger.listener = NULL;
	for (int i = 0; i < MESH_LISTENER_QUEUE; i++)
		assert_int_equal(stranger_frame_read(MESH_FRAME_CLOSE).to_comm, i + 1);
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	setenv("NCCL_MESH_DEAD_PEER_TIMEOUT", "2", 1);
}
