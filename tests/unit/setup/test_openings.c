/* SPDX-License-Identifier: Apache-2.0 */
/* test_openings.c - libfabric opens a domain slowly, and NCCL's calls do not wait. */
#include <pthread.h>

#include "base/clock.h"
#include "base/threads.h"
#include "setup/connecting.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/nics.h"
#include "setup/setup.h"

#include "fake_fabric.h"
#include "log_capture.h"
#include "namespace.h"
#include "stranger_fixture.h"

/* Whatever takes longer than this has failed, or hangs. */
#define LIMIT_S 60

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held while the provider is slow */
static struct mesh_net *net;
static struct mesh_listener *listener;
static struct mesh_comm *comm;
static uint8_t handle[MESH_HANDLE_BYTES];

static void gate_pass(enum fake_call call)
{
	if (call != FAKE_DOMAIN)
		return;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* The NICs are read again when the plugin opens again; that would open what has failed. */
static void reading_await(void)
{
	const struct mesh_nic_watch *watch = net->setup->nic_watch;
	bool done = false;

	while (!done) {
		mesh_lock_take(&net->process->lock);
		done = watch->state == MESH_NIC_WATCH_RESTS;
		mesh_lock_release(&net->process->lock);
	}
}

void tests_setup(void)
{
	static const struct fake_offer offers[] = {
		{"net", "lo", "127.0.0.1"}, {"tcp", "lo", "127.0.0.1"}, {NULL, NULL, NULL}};

	fake_reset();
	fake.offers = offers;
	fake.before = gate_pass;
	log_capture_start();
	pthread_mutex_lock(&gate);
	alarm(LIMIT_S); /* a call that waits for the provider never ends */
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(mesh_net_listen(net, 0, handle, &listener), 0);
	reading_await();
}

void tests_teardown(void)
{
	mesh_listener_close(listener);
	mesh_net_close(net);
	alarm(0);
	fake_teardown();
}

/* Calls connect() until it returns more than "not ready". */
static int connect_result(void)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_S * 1000;
	bool waits = true;
	int ret = 0;

	while (waits && !ret) {
		assert_true(mesh_clock_ms() < deadline_ms);
		ret = mesh_net_connect(net, 0, handle, &comm);
		assert_null(comm);
		mesh_lock_take(&net->process->lock);
		waits = LIST_EMPTY(&net->setup->connects) ||
			LIST_FIRST(&net->setup->connects)->dials[0].state <= MESH_DIAL_OPENING;
		mesh_lock_release(&net->process->lock);
	}
	return ret;
}

/* Listen has returned already. The rest is not ready, and goes on when the domain is open. */
TEST(slow_domain)
{
	assert_int_equal(mesh_net_connect(net, 0, handle, &comm), 0);
	assert_null(comm);
	assert_int_equal(mesh_listener_accept(listener, &comm), 0);
	assert_null(comm);
	assert_null(net->process->domains[0]);
	pthread_mutex_unlock(&gate);
	assert_int_equal(connect_result(), 0);
	assert_non_null(net->process->domains[0]);
	assert_int_equal(net->process->num_endpoints, 1);
}

/*
 * The provider is slower than NCCL may be kept waiting: closing ends without it. What the thread
 * uses is closed behind it, and until then nothing is opened in its place.
 */
TEST(never_ends)
{
	mesh_listener_close(listener);
	listener = NULL;
	net->process->config.connect_timeout_s = 1;
	mesh_net_close(net);
	assert_int_equal(log_captured_times(MESH_LOG_WARN, "has not ended within 5 s"), 1);
	assert_int_equal(mesh_net_open(&net), -EBUSY);
	pthread_mutex_unlock(&gate);
	assert_int_equal(mesh_net_open(&net), 0);
	mesh_threads_await();
	assert_non_null(net->process->domains[0]);
	assert_int_equal(fake.open[FAKE_DOMAIN], 1);
}

void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
	namespace_ip("link set lo up");
}
