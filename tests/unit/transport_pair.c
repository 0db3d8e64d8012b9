/* SPDX-License-Identifier: Apache-2.0 */
/* transport_pair.c - both ends of a connection in one process, over the loopback interface. */
#include "base/clock.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "transport/comm_life.h"
#include "transport/data.h"

#include "transport_pair.h"

void pattern_fill(uint8_t *data, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(seed * 151 + i * 7 + (i >> 8));
}

void pair_connect(struct pair *pair)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;

	pair->send = pair->receive = NULL;
	assert_int_equal(mesh_net_listen(pair->net, 0, handle, &listener), 0);
	while (!pair->send || !pair->receive) {
		assert_true(mesh_clock_ms() < deadline);
		if (!pair->send)
			assert_int_equal(mesh_net_connect(pair->net, 0, handle, &pair->send), 0);
		if (!pair->receive)
			assert_int_equal(mesh_listener_accept(listener, &pair->receive), 0);
	}
	mesh_listener_close(listener);
}

void pair_open(struct pair *pair)
{
	assert_int_equal(mesh_net_open(&pair->net), 0);
	pair_connect(pair);
}

void pair_close(struct pair *pair)
{
	mesh_comm_close(pair->send);
	mesh_comm_close(pair->receive);
	mesh_net_close(pair->net);
}

void request_finish(struct mesh_request *request, size_t expected)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	int64_t size = MESH_REQUEST_PENDING;

	while (size == MESH_REQUEST_PENDING) {
		assert_true(mesh_clock_ms() < deadline);
		size = mesh_request_test(request);
	}
	assert_int_equal(size, expected);
}

void transfer_open(struct pair *pair, struct transfer *transfer, size_t size, size_t room)
{
	memset(transfer, 0, sizeof(*transfer));
	transfer->source = malloc(size + 1);
	transfer->target = malloc(room + 1);
	memset(transfer->target, 0xee, room + 1);
	assert_int_equal(
		mesh_registration_open(pair->send, transfer->source, size, &transfer->from), 0);
	assert_int_equal(
		mesh_registration_open(pair->receive, transfer->target, room, &transfer->to), 0);
}

void transfer_close(struct pair *pair, struct transfer *transfer)
{
	mesh_registration_close(pair->send, transfer->from);
	mesh_registration_close(pair->receive, transfer->to);
	free(transfer->source);
	free(transfer->target);
}

void message_move(struct pair *pair, size_t size, size_t room, bool late)
{
	struct transfer t;

	transfer_open(pair, &t, size, room);
	pattern_fill(t.source, size, (uint32_t)size);
	if (!late)
		assert_int_equal(mesh_comm_receive(pair->receive, t.target, room, t.to, &t.receive),
				 0);
	assert_int_equal(mesh_comm_send(pair->send, t.source, size, t.from, &t.send), 0);
	assert_non_null(t.send);
	if (late)
		assert_int_equal(mesh_comm_receive(pair->receive, t.target, room, t.to, &t.receive),
				 0);
	request_finish(t.receive, size);
	request_finish(t.send, size);
	assert_memory_equal(t.source, t.target, size);
	assert_int_equal(t.target[size], 0xee);
	transfer_close(pair, &t);
}
