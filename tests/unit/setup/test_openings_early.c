/* SPDX-License-Identifier: Apache-2.0 */
/* test_openings_early.c - which NICs are opened before a connection needs them. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/threads.h"
#include "fabric/provider.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "system/carrier.h"

#include "log_capture.h"
#include "namespace.h"
#include "stranger_fixture.h"

#define NICS 3
/* Whatever takes longer than this hangs. */
#define LIMIT_S 60

static struct mesh_net *net;
static bool small = true; /* endpoints with tcp */

bool __wrap_mesh_tcp_endpoints_are_small(void);

bool __wrap_mesh_tcp_endpoints_are_small(void)
{
	return small;
}

/* NCCL_MESH_MAX_PATHS is read once, when the process is first initialised. */
static void paths_set(uint32_t paths)
{
	assert_int_equal(mesh_net_open(&net), 0);
	mesh_threads_await();
	net->process->config.max_paths = paths;
	mesh_net_close(net);
}

static bool is_closed(int dev)
{
	bool closed;

	mesh_threads_await();
	mesh_lock_take(&net->process->lock);
	closed = net->process->dev_states[dev] == MESH_DEV_CLOSED;
	mesh_lock_release(&net->process->lock);
	return closed;
}

static void all_are(bool closed)
{
	int dev;

	assert_int_equal(net->process->num_nics, NICS);
	for (dev = 0; dev < NICS; dev++)
		assert_int_equal(is_closed(dev), closed);
}

/* Init does not wait for them, and connections find them open. */
static void test_few_are_opened(void **state)
{
	(void)state;
	alarm(LIMIT_S);
	assert_int_equal(mesh_net_open(&net), 0);
	all_are(false);
	mesh_net_close(net);
	alarm(0);
}

/* Not even the one that NCCL listens on: its peers may use another, and a cable may be away. */
static void stay_closed(void)
{
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;

	alarm(LIMIT_S);
	assert_int_equal(mesh_net_open(&net), 0);
	all_are(true);
	assert_int_equal(mesh_net_listen(net, 1, handle, &listener), 0);
	all_are(true);
	mesh_listener_close(listener);
	mesh_net_close(net);
	alarm(0);
}

/* Three take 51 MB there, which a process that never connects would pay. */
static void test_large_stay_closed(void **state)
{
	(void)state;
	small = false;
	stay_closed();
	small = true;
}

/* The process may not use all of them. */
static void test_more_than_paths_stay_closed(void **state)
{
	(void)state;
	paths_set(NICS - 1);
	stay_closed();
	paths_set(NICS);
}

/* Their neighbours are not known yet. */
static void test_link_local_stay_closed(void **state)
{
	struct mesh_addr *source, before;

	(void)state;
	assert_int_equal(mesh_net_open(&net), 0);
	source = (struct mesh_addr *)(uintptr_t)&net->process->nics[1]->source;
	before = *source;
	mesh_threads_await();
	mesh_net_close(net);
	mesh_addr_parse("fe80::1/64", source);
	assert_int_equal(mesh_net_open(&net), 0);
	all_are(true);
	mesh_net_close(net);
	*source = before;
}

static void carrier_await(bool up)
{
	static const struct mesh_nic nic = {.netdev = "n1"};

	namespace_ip("link set x1 %s", up ? "up" : "down");
	while (mesh_carrier_is_up(&nic) != up)
		usleep(1000);
}

/* It had one when the process was first initialised, and is opened when it has it again. */
static void test_no_carrier(void **state)
{
	(void)state;
	alarm(LIMIT_S);
	assert_int_equal(mesh_net_open(&net), 0);
	mesh_threads_await();
	mesh_net_close(net);
	carrier_await(false);
	assert_int_equal(mesh_net_open(&net), 0);
	assert_false(is_closed(0));
	assert_true(is_closed(1));
	carrier_await(true);
	mesh_net_close(net);
	assert_int_equal(mesh_net_open(&net), 0);
	all_are(false);
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
	paths_set(NICS - 1); /* none is opened at init */
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
		cmocka_unit_test(test_few_are_opened),
		cmocka_unit_test(test_large_stay_closed),
		cmocka_unit_test(test_more_than_paths_stay_closed),
		cmocka_unit_test(test_link_local_stay_closed),
		cmocka_unit_test(test_no_carrier),
		cmocka_unit_test(test_strangers_open_none),
	};

	if (!namespace_enter())
		return 77;
	namespace_ip("link set lo up"); /* on which a client here reaches the NICs */
	namespace_nics(NICS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
