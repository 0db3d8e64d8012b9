/* SPDX-License-Identifier: Apache-2.0 */
/* test_openings_early.c - none of several NICs is opened before a connection needs it. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "setup/listener.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "setup/threads.h"

#include "log_capture.h"
#include "namespace.h"
#include "stranger_fixture.h"

#define NICS 3
/* Whatever takes longer than this hangs. */
#define LIMIT_S 60

static struct mesh_net *net;

static bool is_closed(int dev)
{
	bool closed;

	mesh_threads_await();
	mesh_lock_take(&net->process->lock);
	closed = net->process->dev_states[dev] == MESH_DEV_CLOSED;
	mesh_lock_release(&net->process->lock);
	return closed;
}

/* Not even the one that NCCL listens on: its peers may use another, and a cable may be away. */
static void test_several_stay_closed(void **state)
{
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	int dev;

	(void)state;
	alarm(LIMIT_S);
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(net->process->num_nics, NICS);
	for (dev = 0; dev < NICS; dev++)
		assert_true(is_closed(dev));
	assert_int_equal(mesh_net_listen(net, 1, handle, &listener), 0);
	for (dev = 0; dev < NICS; dev++)
		assert_true(is_closed(dev));
	mesh_listener_close(listener);
	mesh_net_close(net);
	alarm(0);
}

/* A client connects to the control port of the first NIC. Returns its address. */
static struct sockaddr_in dial(void)
{
	struct sockaddr_in nic = stranger_loopback(stranger.handle.control_port);

	nic.sin_addr.s_addr = inet_addr("10.1.0.1");
	stranger.fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(stranger.fd >= 0);
	assert_int_equal(connect(stranger.fd, (struct sockaddr *)&nic, sizeof(nic)), 0);
	nic.sin_port = htons(9);
	return nic;
}

/* Until the plugin has taken a connection, or opened a NIC. */
static void taken_await(void)
{
	const struct mesh_process *process = net->process;
	bool taken = false;

	while (!taken) {
		mesh_lock_take(&net->process->lock);
		taken = process->num_strangers || process->dev_states[0] != MESH_DEV_CLOSED;
		mesh_lock_release(&net->process->lock);
	}
}

/* Sends a HELLO that is refused, and changed by @change. */
static void refused(void (*change)(struct mesh_frame_hello *hello))
{
	struct mesh_frame frame = stranger_hello(dial());
	char byte;

	change(&frame.hello);
	stranger_send(&frame, MESH_FRAME_HELLO);
	while (recv(stranger.fd, &byte, sizeof(byte), 0) > 0)
		; /* REFUSE */
	close(stranger.fd);
	assert_true(is_closed(0));
}

static void other_job(struct mesh_frame_hello *hello)
{
	hello->cookie ^= 1;
}

static void other_provider(struct mesh_frame_hello *hello)
{
	hello->provider = MESH_PROVIDER_VERBS_RXM;
}

static void other_tuner(struct mesh_frame_hello *hello)
{
	hello->tuner = 1;
}

/* It costs 70 to 134 MB with ofi_rxm, which whoever reaches the port could make us spend. */
static void test_strangers_open_none(void **state)
{
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	struct mesh_frame frame;
	char byte;

	(void)state;
	alarm(LIMIT_S);
	log_capture_start();
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(mesh_net_listen(net, 1, handle, &listener), 0);
	assert_int_equal(mesh_handle_decode(handle, &stranger.handle), 0);
	dial();
	taken_await();
	assert_true(is_closed(0));
	close(stranger.fd);
	dial();
	assert_int_equal(send(stranger.fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	stranger_hung_up();
	close(stranger.fd);
	assert_true(is_closed(0));
	refused(other_job);
	refused(other_provider);
	refused(other_tuner);
	/* A peer is answered when its domain is open. */
	frame = stranger_hello(dial());
	stranger_send(&frame, MESH_FRAME_HELLO);
	assert_int_equal(recv(stranger.fd, &byte, sizeof(byte), 0), 1);
	assert_non_null(net->process->domains[0]);
	close(stranger.fd);
	mesh_listener_close(listener);
	mesh_net_close(net);
	log_capture_stop();
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_stay_closed),
		cmocka_unit_test(test_strangers_open_none),
	};

	if (!namespace_enter())
		return 77;
	namespace_ip("link set lo up"); /* on which a client here reaches the NICs */
	namespace_nics(NICS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
