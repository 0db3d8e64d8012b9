/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_accept.c - what was sent, and closed, before accept() was polled: each version's table, over
 * the loopback interface. NCCL may be minutes late with accept().
 */
#include "base/clock.h"
#include "transport/comm.h"

#include "comm_inside.h"
#include "nccl_versions.h"
#include "unit.h"

/* Whatever takes longer than this has failed. */
#define LIMIT_MS 20000
#define ROUNDS 200
#define COMMS_MAX 64
#define MESSAGES_MAX 3
#define LARGE 100001
#define HANDLE_BYTES 128

/* One connection, with both of its ends here. */
struct link {
	uint8_t handle[HANDLE_BYTES];
	void *listen, *send, *receive, *from, *to;
	uint8_t out[MESSAGES_MAX][LARGE], in[LARGE];
	size_t sizes[MESSAGES_MAX];
	int messages;
};

static struct version versions[VERSIONS];
static void *contexts[VERSIONS]; /* NULL before v11 */
static struct link *links;
static uint32_t random_state = 1; /* of draw() */

static void __attribute__((format(printf, 5, 6)))
logger(enum nccl_level level, unsigned long flags, const char *file, int line, const char *format,
       ...)
{
}

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

/* ---- one step of a connection's life --------------------------------------------------- */

static void link_connect(const struct version *v, void *context, struct link *link, int messages)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;

	link->receive = link->send = NULL;
	link->messages = messages;
	assert_int_equal(v->listen(context, 0, link->handle, &link->listen), 0);
	while (!link->send) {
		assert_true(mesh_clock_ms() < deadline);
		assert_int_equal(v->connect(context, 0, link->handle, &link->send, NULL), 0);
	}
	assert_int_equal(
		v->reg_mr(link->send, link->out, sizeof(link->out), NCCL_POINTER_HOST, &link->from),
		0);
}

/* 0: no end yet; 1: done; -1: failed. */
static int state_of(const struct version *v, void *request, int *size)
{
	int done = 0;

	if (v->test(request, &done, size))
		return -1;
	return done;
}

static int end_of(const struct version *v, void *request, int *size)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	int state;

	while (!(state = state_of(v, request, size)))
		assert_true(mesh_clock_ms() < deadline);
	return state;
}

static void *message_send(const struct version *v, struct link *link, int i, size_t size)
{
	void *request;

	link->sizes[i] = size;
	for (size_t k = 0; k < size; k++)
		link->out[i][k] = (uint8_t)(draw(256));
	assert_int_equal(v->isend(link->send, link->out[i], size, 0, link->from, &request), 0);
	assert_non_null(request);
	return request;
}

static void link_close_send(const struct version *v, struct link *link)
{
	assert_int_equal(v->dereg_mr(link->send, link->from), 0);
	assert_int_equal(v->close_send(link->send), 0);
	link->send = NULL;
}

static void link_accept(const struct version *v, struct link *link)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;

	while (!link->receive) {
		assert_true(mesh_clock_ms() < deadline);
		assert_int_equal(v->accept(link->listen, &link->receive, NULL), 0);
	}
	assert_int_equal(
		v->reg_mr(link->receive, link->in, sizeof(link->in), NCCL_POINTER_HOST, &link->to),
		0);
}

static void *receive_post(const struct version *v, struct link *link)
{
	size_t size = sizeof(link->in);
	void *data = link->in, *request = NULL;
	int tag = 0;

	assert_int_equal(v->irecv(link->receive, 1, &data, &size, &tag, &link->to, &request), 0);
	assert_non_null(request);
	return request;
}

static void message_receive(const struct version *v, struct link *link, int i)
{
	void *request = receive_post(v, link);
	int size = -1;

	assert_int_equal(end_of(v, request, &size), 1);
	assert_int_equal(size, link->sizes[i]);
	assert_memory_equal(link->in, link->out[i], link->sizes[i]);
}

/* Nothing more arrives, and NCCL gets an error. */
static void link_is_over(const struct version *v, struct link *link)
{
	void *request = receive_post(v, link);
	int size;

	assert_int_equal(end_of(v, request, &size), -1);
}

static void link_close(const struct version *v, struct link *link)
{
	assert_int_equal(v->dereg_mr(link->receive, link->to), 0);
	assert_int_equal(v->close_receive(link->receive), 0);
	assert_int_equal(v->close_listen(link->listen), 0);
}

/* ---- the tests ----------------------------------------------------------------------- */

static void small_before_accept(const struct version *v, struct link *link)
{
	static const size_t sizes[] = {0, 1, 8, 127, 4096, 8191, 8192};
	void *requests[MESSAGES_MAX];
	int i, size;

	for (i = 0; i < link->messages; i++)
		requests[i] = message_send(v, link, i, sizes[draw(7)]);
	for (i = 0; i < link->messages; i++)
		assert_int_equal(end_of(v, requests[i], &size), 1);
	link_close_send(v, link);
}

/* Connect, send 0 to 3 messages, close, and only then accept and receive. */
TEST(close_before_accept)
{
	int round, n, i, k;

	for (round = 0; round < ROUNDS; round++) {
		const struct version *v = &versions[round % VERSIONS];
		void *context = contexts[round % VERSIONS];

		n = round < VERSIONS ? COMMS_MAX : 1 + (int)draw(16);
		for (i = 0; i < n; i++)
			link_connect(v, context, &links[i], (int)draw(MESSAGES_MAX + 1));
		for (i = 0; i < n; i++)
			small_before_accept(v, &links[i]);
		for (i = 0; i < n; i++) {
			link_accept(v, &links[i]);
			for (k = 0; k < links[i].messages; k++)
				message_receive(v, &links[i], k);
			link_is_over(v, &links[i]);
			link_close(v, &links[i]);
		}
	}
}

/* A large message waits for the receive, and so for accept(): what is done by then arrives. */
TEST(large_waits_for_accept)
{
	void *requests[MESSAGES_MAX], *receives[MESSAGES_MAX];
	struct link *link = &links[0];
	int round, i, size;

	for (round = 0; round < 3 * VERSIONS; round++) {
		const struct version *v = &versions[round % VERSIONS];

		link_connect(v, contexts[round % VERSIONS], link, 2);
		requests[0] = message_send(v, link, 0, 64);
		requests[1] = message_send(v, link, 1, LARGE - draw(1000));
		assert_int_equal(end_of(v, requests[0], &size), 1);
		link_accept(v, link);
		message_receive(v, link, 0);
		receives[0] = receive_post(v, link);
		receives[1] = receive_post(v, link);
		assert_int_equal(end_of(v, requests[1], &size), 1);
		link_close_send(v, link);
		assert_int_equal(end_of(v, receives[0], &size), 1);
		assert_int_equal(size, link->sizes[1]);
		for (i = 0; i < size; i++)
			assert_int_equal(link->in[i], link->out[1][i]);
		assert_int_equal(end_of(v, receives[1], &size), -1);
		link_close(v, link);
	}
}

/* NCCL aborts with a large message that was not received: those before it arrive. */
TEST(large_is_cancelled)
{
	struct link *link = &links[0];
	int round, size;

	for (round = 0; round < VERSIONS; round++) {
		const struct version *v = &versions[round];

		link_connect(v, contexts[round], link, 1);
		assert_int_equal(end_of(v, message_send(v, link, 0, 300), &size), 1);
		message_send(v, link, 1, LARGE);
		link_close_send(v, link);
		link_accept(v, link);
		message_receive(v, link, 0);
		link_is_over(v, link);
		link_close(v, link);
	}
}

/* All of them are in one listener's queue. */
TEST(one_listener_for_all)
{
	const struct version *v = &versions[VERSIONS - 1];
	struct link *first = &links[0];
	uint64_t deadline;

	link_connect(v, contexts[VERSIONS - 1], first, 0);
	link_close_send(v, first);
	for (int i = 1; i < COMMS_MAX; i++) {
		deadline = mesh_clock_ms() + LIMIT_MS;
		first->send = NULL;
		while (!first->send) {
			assert_true(mesh_clock_ms() < deadline);
			assert_int_equal(v->connect(contexts[VERSIONS - 1], 0, first->handle,
						    &first->send, NULL),
					 0);
		}
		assert_int_equal(v->close_send(first->send), 0);
	}
	for (int i = 0; i < COMMS_MAX; i++) {
		first->receive = NULL;
		link_accept(v, first);
		link_is_over(v, first);
		assert_int_equal(v->dereg_mr(first->receive, first->to), 0);
		assert_int_equal(v->close_receive(first->receive), 0);
	}
	assert_int_equal(v->close_listen(first->listen), 0);
}

/* The receiver closes: isend still gives a request, and test its error, as in NCCL's transports. */
TEST(receiver_closes_first)
{
	struct link *link = &links[0];
	uint64_t deadline;
	int round, size;

	for (round = 0; round < VERSIONS; round++) {
		const struct version *v = &versions[round];
		struct mesh_comm *comm;
		int error = 0;

		link_connect(v, contexts[round], link, 1);
		comm = link->send;
		link_accept(v, link);
		link_close(v, link);
		deadline = mesh_clock_ms() + LIMIT_MS;
		while (!error) {
			assert_true(mesh_clock_ms() < deadline);
			error = *comm_inside(comm).error;
		}
		assert_int_equal(end_of(v, message_send(v, link, 0, 64), &size), -1);
		link_close_send(v, link);
	}
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	versions_get(versions);
	for (int i = 0; i < VERSIONS; i++)
		assert_int_equal(versions[i].init(logger, &contexts[i]), 0);
	links = calloc(COMMS_MAX, sizeof(*links));
	assert_non_null(links);
}

void tests_end(void)
{
	for (int i = 0; i < VERSIONS; i++) {
		if (versions[i].finalize)
			versions[i].finalize(contexts[i]);
	}
	free(links);
}
