/* SPDX-License-Identifier: Apache-2.0 */
/* Moves numbered messages over one raw_link, with tags, and checks their bytes. */
#ifndef MESH_BENCH_RAW_FLOW_H
#define MESH_BENCH_RAW_FLOW_H

#include <sched.h>

#include "raw_link.h"
#include "stamp.h"

#define RAW_CQ_BATCH 16
#define RAW_PAGE 4096
#define RAW_YIELD_POLLS 256 /* unless --yield says otherwise */
/* rxm over verbs injects up to 16384 bytes, by a copy that large messages should not pay for. */
#define RAW_INJECT_MAX 256
/* Receive slots and transmit slots. */
#define RAW_ARENA_AREAS 2

enum raw_mode {
	RAW_STREAM,
	RAW_PINGPONG
};

struct raw_slot {
	struct fi_context2 context; /* first: what the CQ gives back is the slot */
	bool is_tx, busy;
	uint32_t seq;
	char *buf;
};

struct raw_flow {
	struct raw_link *link;
	const struct raw_params *params;
	size_t size;
	bool inject; /* this size goes out with an inject call: no completion */
	bool full_check;
	uint32_t tx_next; /* next message to send */
	uint32_t tx_done;
	uint32_t rx_next; /* next message to receive that is not posted yet */
	uint32_t rx_done;
	uint64_t progress_ns; /* when the idle deadline began */
	uint32_t idle;
	struct raw_slot tx[RAW_MAX_WINDOW];
	struct raw_slot rx[RAW_MAX_WINDOW];
};

static inline size_t raw_round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* --- completions --- */

static int raw_data_arrived(struct raw_flow *flow, struct raw_slot *slot)
{
	if (!stamp_is_right((const uint8_t *)slot->buf, flow->size, slot->seq,
			    flow->full_check ? STAMP_ALL : STAMP_PAGES)) {
		fprintf(stderr, "fabric_raw: wrong bytes in message %u of %zu bytes\n", slot->seq,
			flow->size);
		return -EBADMSG;
	}
	slot->busy = false;
	flow->rx_done++;
	return 0;
}

static int raw_completed(struct raw_flow *flow, const struct fi_cq_data_entry *entry)
{
	struct raw_slot *slot = entry->op_context;

	if (!slot->is_tx)
		return raw_data_arrived(flow, slot);
	slot->busy = false;
	flow->tx_done++;
	return 0;
}

static int raw_completion_error(struct raw_flow *flow)
{
	struct fi_cq_err_entry err = {0};
	const struct raw_slot *slot;

	if (fi_cq_readerr(flow->link->cq, &err, 0) < 0)
		return -EIO;
	slot = err.op_context;
	fprintf(stderr, "fabric_raw: %s %u failed: %s (%d, provider's %d)\n",
		!slot	      ? "operation"
		: slot->is_tx ? "send"
			      : "receive",
		slot ? slot->seq : 0, fi_strerror(err.err), err.err, err.prov_errno);
	return -err.err;
}

/*
 * A provider that reconnects without end reports no error for a dead peer, so a timeout decides. A
 * poller that has been idle for long yields: the peer may be waiting for this very core.
 */
static int raw_check_deadline(struct raw_flow *flow)
{
	if (++flow->idle % flow->params->yield_polls == 0)
		sched_yield();
	if (flow->idle % 65536)
		return 0;
	if (flow->idle == 65536) {
		flow->progress_ns = raw_now_ns();
		return 0;
	}
	if (raw_now_ns() - flow->progress_ns < RAW_DEADLINE_S * 1000000000ull)
		return 0;
	fprintf(stderr,
		"fabric_raw: nothing arrived for %d s (sent %u, completed %u, received %u)\n",
		RAW_DEADLINE_S, flow->tx_next, flow->tx_done, flow->rx_done);
	return -ETIMEDOUT;
}

/* Reads one batch of completions. Returns 0 or a negative errno. */
static int raw_poll(struct raw_flow *flow)
{
	struct fi_cq_data_entry entries[RAW_CQ_BATCH];
	ssize_t i, n = fi_cq_read(flow->link->cq, entries, RAW_CQ_BATCH);
	int ret;

	if (n == -FI_EAGAIN)
		return raw_check_deadline(flow);
	if (n == -FI_EAVAIL)
		return raw_completion_error(flow);
	if (n < 0)
		return raw_failed("fi_cq_read", n);
	flow->idle = 0;
	for (i = 0; i < n; i++) {
		ret = raw_completed(flow, &entries[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* --- what the runs are made of --- */

/* Starts the next message. -FI_EAGAIN when no slot or room is there. */
static int raw_send_next(struct raw_flow *flow)
{
	struct raw_slot *slot = &flow->tx[flow->tx_next % flow->params->window];
	struct raw_link *link = flow->link;
	ssize_t ret;

	if (slot->busy)
		return -FI_EAGAIN;
	slot->seq = flow->tx_next;
	stamp_put((uint8_t *)slot->buf, flow->size, slot->seq,
		  flow->full_check ? STAMP_ALL : STAMP_PAGES);
	if (flow->inject)
		ret = fi_tinject(link->ep, slot->buf, flow->size, link->peer, slot->seq);
	else
		ret = fi_tsend(link->ep, slot->buf, flow->size, link->desc, link->peer, slot->seq,
			       &slot->context);
	if (ret)
		return ret == -FI_EAGAIN ? (int)ret : raw_failed("send", ret);
	slot->busy = !flow->inject;
	flow->tx_done += flow->inject;
	flow->tx_next++;
	return 0;
}

/* Posts receives up to `ahead` messages beyond the ones consumed, and not past `end`. */
static int raw_fill_receives(struct raw_flow *flow, uint32_t ahead, uint32_t end)
{
	while (flow->rx_next < end && flow->rx_next - flow->rx_done < ahead) {
		struct raw_slot *slot = &flow->rx[flow->rx_next % flow->params->window];
		ssize_t ret;

		if (slot->busy)
			return 0;
		slot->seq = flow->rx_next;
		if (flow->full_check)
			memset(slot->buf, 0xa5, flow->size);
		ret = fi_trecv(flow->link->ep, slot->buf, flow->size, flow->link->desc,
			       FI_ADDR_UNSPEC, slot->seq, 0, &slot->context);
		if (ret == -FI_EAGAIN)
			return 0;
		if (ret)
			return raw_failed("receive", ret);
		slot->busy = true;
		flow->rx_next++;
	}
	return 0;
}

/* Prepares for `size`; nothing may be outstanding. */
static void raw_flow_reset(struct raw_flow *flow, size_t size, bool full_check)
{
	const size_t slot = raw_round_up(size, 64);
	const uint32_t n = flow->params->window;

	flow->size = size;
	flow->full_check = full_check;
	flow->inject = size <= RAW_INJECT_MAX && size <= flow->link->info->tx_attr->inject_size;
	flow->tx_next = flow->tx_done = flow->rx_next = flow->rx_done = 0;
	flow->idle = 0;
	for (uint32_t i = 0; i < n; i++) {
		flow->rx[i] = (struct raw_slot){.buf = flow->link->arena + slot * i};
		flow->tx[i] =
			(struct raw_slot){.buf = flow->link->arena + slot * (n + i), .is_tx = true};
	}
}

#endif
