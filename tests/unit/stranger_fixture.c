/* SPDX-License-Identifier: Apache-2.0 */
/* stranger_fixture.c - a listener, and a stranger that connects to its control port. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/random.h"
#include "base/threads.h"
#include "setup/net.h"
#include "setup/nics.h"
#include "wire/handle.h"

#include "log_capture.h"
#include "stranger_fixture.h"

struct stranger_fixture stranger;

void stranger_setup(void)
{
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct mesh_process *process;

	stranger.fd = -1;
	assert_int_equal(mesh_net_open(&stranger.net), 0);
	assert_int_equal(mesh_net_listen(stranger.net, 0, bytes, &stranger.listener), 0);
	assert_int_equal(mesh_handle_decode(bytes, &stranger.handle), 0);
	process = stranger.net->process;
	mesh_lock_take(&process->lock);
	mesh_opening_need(process, 0); /* the first HELLO would open it */
	mesh_lock_release(&process->lock);
	mesh_threads_await();
	mesh_lock_take(&process->lock);
	memset(&process->limits, 0, sizeof(process->limits)); /* the node outlives a test */
	mesh_lock_release(&process->lock);
	log_capture_start();
}

void stranger_teardown(void)
{
	if (stranger.fd >= 0)
		close(stranger.fd);
	mesh_listener_close(stranger.listener);
	mesh_net_close(stranger.net);
}

struct sockaddr_in stranger_loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

void stranger_dial(void)
{
	const struct sockaddr_in to = stranger_loopback(stranger.handle.control_port);
	const struct timeval limit = {.tv_sec = STRANGER_LIMIT_S};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	stranger.fd = fd;
}

struct mesh_frame stranger_hello(struct sockaddr_in name)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.hello.node_id = 5;
	frame.hello.secret[0] = 6;
	frame.hello.process_id = mesh_process_id_of(mesh_one_way(frame.hello.secret));
	frame.hello.cookie = stranger.handle.cookie;
	frame.hello.listen_id = stranger.handle.listen_id;
	frame.hello.provider = (uint8_t)stranger.handle.endpoints[0].provider;
	frame.hello.name_len = sizeof(name);
	memcpy(frame.hello.endpoint_name, &name, sizeof(name));
	strcpy(frame.hello.node_name, "stranger");
	frame.hello.eager_limit = 100;
	return frame;
}

void stranger_send(struct mesh_frame *frame, enum mesh_frame_type type)
{
	size_t size = mesh_frame_finish(frame, type);

	assert_int_equal(send(stranger.fd, frame, size, MSG_NOSIGNAL), size);
}

void stranger_hung_up(void)
{
	char byte;
	ssize_t n = recv(stranger.fd, &byte, 1, 0);

	assert_true(!n || (n < 0 && errno == ECONNRESET));
}

struct mesh_frame stranger_frame_read(enum mesh_frame_type type)
{
	struct mesh_frame frame;
	uint8_t bytes[sizeof(frame)];
	size_t have = 0;
	int taken = 0;

	while (!taken) {
		assert_int_equal(recv(stranger.fd, bytes + have, 1, 0), 1);
		taken = mesh_frame_decode(bytes, ++have, &frame);
		assert_true(taken >= 0);
	}
	assert_int_equal(frame.header.type, type);
	return frame;
}

void stranger_introduced(void)
{
	struct mesh_frame frame = stranger_hello(stranger_loopback(9));

	stranger_send(&frame, MESH_FRAME_HELLO);
	stranger_frame_read(MESH_FRAME_HELLO);
}

struct mesh_frame stranger_connect_make(uint32_t comm, int path, int num_paths)
{
	static uint32_t tokens; /* one that has been seen with this key and comm is a repetition */
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = stranger.handle.cookie;
	frame.connect.listen_id = stranger.handle.listen_id;
	frame.connect.comm_key = 1234;
	frame.connect.comm = comm;
	frame.connect.token = ++tokens;
	frame.connect.path = (uint8_t)path;
	frame.connect.num_paths = (uint8_t)num_paths;
	return frame;
}

void stranger_connect_refused(struct mesh_frame request, enum mesh_refusal refusal)
{
	struct mesh_frame frame;

	stranger_send(&request, MESH_FRAME_CONNECT);
	frame = stranger_frame_read(MESH_FRAME_REFUSE);
	assert_int_equal(frame.refuse.refusal, refusal);
	assert_int_equal(frame.refuse.comm, request.connect.comm);
}

struct mesh_comm *stranger_accepted(void)
{
	struct mesh_comm *comm = NULL;

	assert_int_equal(mesh_listener_accept(stranger.listener, &comm), 0);
	assert_non_null(comm);
	return comm;
}
