/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - lanes over a net plugin, set up and used as NCCL's proxy does. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "bench.h"
#include "lane_tcp.h"
#include "stamp.h"

/* NCCL hands test an array of so many. */
#define TEST_SIZES 64
#define SETUP_LIMIT_NS (120 * NS_PER_S)

/* NCCL hands over a profiler's event with each message. */
static const char profiler_event;
#define PROFILER ((void *)(uintptr_t)&profiler_event)

static void must(enum nccl_result result, const char *call)
{
	if (result)
		fatal("%s() returned %s", call, adapter_result_text(result));
}

/* --- set-up --- */

static void lane_register(struct lane *lane)
{
	must(adapter_reg_mr(lane->adapter, lane->comm, lane->memory, lane->bytes, NCCL_POINTER_HOST,
			    &lane->registration),
	     "regMr");
	if (!lane->listener)
		return;
	must(adapter_close_listen(lane->adapter, lane->listener), "closeListen");
	lane->listener = NULL;
}

/* One call of connect or accept. Returns true if the lane is there now. */
static bool lane_poll(struct lane *lane, uint8_t *handle)
{
	if (lane->comm)
		return false;
	if (lane->sending)
		must(adapter_connect(lane->adapter, 0, handle, &lane->comm), "connect");
	else
		must(adapter_accept(lane->adapter, lane->listener, &lane->comm), "accept");
	if (!lane->comm)
		return false;
	lane_register(lane);
	return true;
}

static void lane_prepare(struct lane *lane, const struct adapter *adapter, bool sending,
			 unsigned int slots, size_t slot_bytes)
{
	lane->sending = sending;
	lane->adapter = adapter;
	lane->fd = lane->listen_fd = -1;
	lane->slots = slots;
	lane->slot_bytes = slot_bytes;
	lane->bytes = slots * slot_bytes;
	lane->memory =
		mmap(NULL, lane->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lane->memory == MAP_FAILED)
		fatal("no memory for a staging buffer of %zu bytes", lane->bytes);
}

/* All connects and accepts in turn, never waiting in one (proxy.cc). */
static void poll_all(struct lane *sends, struct lane *receives, unsigned int num_sends,
		     unsigned int num_receives, uint8_t *handles)
{
	uint64_t limit = now_ns() + SETUP_LIMIT_NS;
	unsigned int missing = num_sends + num_receives;

	while (missing) {
		for (unsigned int i = 0; i < num_sends; i++)
			missing -= lane_poll(&sends[i], handles + (size_t)i * LANE_HANDLE_BYTES);
		for (unsigned int i = 0; i < num_receives; i++)
			missing -= lane_poll(&receives[i], NULL);
		if (now_ns() > limit)
			fatal("%u comms are not connected after 120 s", missing);
	}
}

void lanes_open(struct lane_maker *maker, struct meet *meet, int next, int previous,
		struct lane *sends, struct lane *receives, unsigned int count, unsigned int slots,
		size_t slot_bytes)
{
	size_t size = (size_t)count * LANE_HANDLE_BYTES;
	uint8_t *mine = calloc(1, size), *all = calloc((size_t)meet->ranks, size);
	unsigned int num_sends = next < 0 ? 0 : count, num_receives = previous < 0 ? 0 : count;

	if (!mine || !all)
		fatal("no memory for %u handles", count);
	for (unsigned int i = 0; i < num_sends; i++)
		lane_prepare(&sends[i], &maker->plugin.adapter, true, slots, slot_bytes);
	for (unsigned int i = 0; i < num_receives; i++) {
		lane_prepare(&receives[i], &maker->plugin.adapter, false, slots, slot_bytes);
		if (maker->address)
			lane_tcp_listen(&receives[i], maker->address, mine + i * LANE_HANDLE_BYTES);
		else
			must(adapter_listen(&maker->plugin.adapter, 0, mine + i * LANE_HANDLE_BYTES,
					    &receives[i].listener),
			     "listen");
	}
	meet_gather(meet, mine, size, all);
	if (maker->address)
		lanes_tcp_connect(sends, receives, num_sends, num_receives,
				  num_sends ? all + (size_t)next * size : NULL);
	else
		poll_all(sends, receives, num_sends, num_receives,
			 num_sends ? all + (size_t)next * size : NULL);
	free(mine);
	free(all);
}

void lane_pair_open(struct lane *send, const struct adapter *from, struct lane *receive,
		    const struct adapter *to, unsigned int slots, size_t slot_bytes)
{
	uint8_t handle[LANE_HANDLE_BYTES] __attribute__((aligned(16))) = {0};

	lane_prepare(send, from, true, slots, slot_bytes);
	lane_prepare(receive, to, false, slots, slot_bytes);
	must(adapter_listen(to, 0, handle, &receive->listener), "listen");
	poll_all(send, receive, 1, 1, handle);
}

void lane_close(struct lane *lane)
{
	if (lane->fd >= 0) {
		lane_tcp_close(lane);
	} else if (lane->comm) {
		must(adapter_dereg_mr(lane->adapter, lane->comm, lane->registration), "deregMr");
		if (lane->sending)
			must(adapter_close_send(lane->adapter, lane->comm), "closeSend");
		else
			must(adapter_close_receive(lane->adapter, lane->comm), "closeRecv");
	}
	if (lane->memory)
		munmap(lane->memory, lane->bytes);
	memset(lane, 0, sizeof(*lane));
	lane->fd = -1;
}

/* --- messages --- */

bool lane_send(struct lane *lane, size_t size)
{
	void *request = NULL;
	uint8_t *slot = lane_slot(lane, lane->posted);

	if (lane->fd >= 0) {
		lane_tcp_start(lane, slot, size);
	} else {
		must(adapter_isend(lane->adapter, lane->comm, slot, size, 0, lane->registration,
				   PROFILER, &request),
		     "isend");
		if (!request)
			return false;
		lane->requests[lane->posted % lane->slots] = request;
	}
	lane->posted++;
	return true;
}

bool lane_receive(struct lane *lane, size_t size)
{
	void *request = NULL;
	uint8_t *slot = lane_slot(lane, lane->posted);

	if (lane->fd >= 0) {
		lane_tcp_start(lane, slot, size);
	} else {
		/* NCCL posts the whole slot, whatever the size of the message. */
		must(adapter_irecv(lane->adapter, lane->comm, slot, lane->slot_bytes, 0,
				   lane->registration, PROFILER, &request),
		     "irecv");
		if (!request)
			return false;
		lane->requests[lane->posted % lane->slots] = request;
	}
	lane->posted++;
	return true;
}

bool lane_test(struct lane *lane, size_t size)
{
	int done = 0, sizes[TEST_SIZES] = {0};

	if (lane->done == lane->posted)
		return false;
	if (lane->fd >= 0) {
		if (!lane_tcp_move(lane))
			return false;
		lane->done++;
		return true;
	}
	must(adapter_test(lane->adapter, lane->requests[lane->done % lane->slots], &done, sizes),
	     "test");
	if (!done)
		return false;
	if ((size_t)sizes[0] != size)
		fatal("test() reported %d bytes instead of %zu", sizes[0], size);
	lane->done++;
	return true;
}

/* --- streams --- */

void lane_check(const struct lane_stream *stream, const struct lane *lane, uint64_t index)
{
	if (!stamp_is_right(lane_slot(lane, index), stream->size, index, stream->step))
		fatal("wrong bytes in message %llu of %zu bytes", (unsigned long long)index,
		      stream->size);
}

bool lane_stream_pass(const struct lane_stream *stream, struct lane *lane, uint64_t end)
{
	if (lane->posted < end && lane->posted < lane->done + stream->window) {
		if (lane->sending)
			stamp_put(lane_slot(lane, lane->posted), stream->size, lane->posted,
				  stream->step);
		if (lane->sending ? lane_send(lane, stream->size)
				  : lane_receive(lane, stream->size))
			return true;
	}
	if (!lane_test(lane, stream->size))
		return false;
	if (!lane->sending)
		lane_check(stream, lane, lane->done - 1);
	return true;
}

void lanes_stream(const struct lane_stream *stream, struct lane *lanes, unsigned int num,
		  uint64_t count)
{
	uint64_t end = lanes[0].done + count, idle = 0;
	bool any, finished = false;

	while (!finished) {
		any = false;
		finished = true;
		for (unsigned int i = 0; i < num; i++) {
			any |= lane_stream_pass(stream, &lanes[i], end);
			finished &= lanes[i].done == end;
		}
		idle = any ? 0 : idle + 1;
		if (idle)
			bench_idle(idle, YIELD_SELDOM);
	}
}
