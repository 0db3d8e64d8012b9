/* SPDX-License-Identifier: Apache-2.0 */
/* Moves numbered messages over one raw_link in one of five mappings, and checks their bytes. */
#ifndef MESH_BENCH_RAW_FLOW_H
#define MESH_BENCH_RAW_FLOW_H

#include <sched.h>

#include "raw_link.h"
#include "stamp.h"

#define RAW_CTRL_SIZE 64
/* Posted control buffers: a peer has one grant or credit for each message in flight, and DONE. */
#define RAW_CTRL_COUNT (RAW_MAX_WINDOW + 2)
#define RAW_CQ_BATCH 16
#define RAW_PAGE 4096
#define RAW_YIELD_POLLS 256 /* unless --yield says otherwise */
/* rxm over verbs injects up to 16384 bytes, by a copy that large messages should not pay for. */
#define RAW_INJECT_MAX 256

enum raw_mode {
	RAW_STREAM,
	RAW_PINGPONG,
	RAW_IDLE
};
enum raw_kind {
	RAW_TX,
	RAW_RX,
	RAW_CTRL
};
enum raw_control_type {
	RAW_GRANT_MESSAGE = 1,
	RAW_CREDIT_MESSAGE,
	RAW_DONE_MESSAGE
};

/* Receiver to sender. Small enough to be injected by every provider (rxm's limit is 64 bytes). */
struct raw_control {
	uint32_t type;
	uint32_t seq; /* grant: the message it is for; credit: messages consumed so far */
	uint64_t addr;
	uint64_t key;
};

struct raw_slot {
	struct fi_context2 context; /* first: what the CQ gives back is the slot */
	enum raw_kind kind;
	bool busy;
	uint32_t index;
	uint32_t seq;
	char *buf;  /* what libfabric sends or fills */
	char *user; /* what the application sees; the same memory unless the mapping copies */
};

struct raw_grant {
	bool valid;
	uint32_t seq;
	uint64_t addr;
	uint64_t key;
};

struct raw_flow;

/* One method to carry a message. Every call may return -FI_EAGAIN. */
struct raw_mapping {
	const char *name;
	bool control_at_sender; /* the sender of a stream posts control buffers */
	bool control_both_ways; /* and in pingpong both ends do */
	bool copies;		/* data goes through buffers of the transport at both ends */
	bool (*may_send)(const struct raw_flow *flow, uint32_t seq);
	ssize_t (*send)(struct raw_flow *flow, struct raw_slot *slot);
	ssize_t (*expect)(struct raw_flow *flow, struct raw_slot *slot);
};

struct raw_flow {
	struct raw_link *link;
	const struct raw_params *params;
	const struct raw_mapping *mapping;
	size_t size;
	bool inject; /* this size goes out with an inject call: no completion */
	bool full_check;
	uint32_t tx_next; /* next message to send */
	uint32_t tx_done;
	uint32_t rx_next; /* next message to receive that is not posted or granted yet */
	uint32_t rx_done;
	uint32_t credit; /* messages that the peer consumed, by its credits (mapping `write`) */
	uint32_t credit_sent;
	bool peer_done;
	int error;
	uint64_t progress_ns; /* when the idle deadline began */
	uint32_t idle;
	struct raw_slot tx[RAW_MAX_WINDOW];
	struct raw_slot rx[RAW_MAX_WINDOW];
	struct raw_slot ctrl[RAW_CTRL_COUNT];
	struct raw_grant grants[RAW_MAX_WINDOW];
};

static inline size_t raw_round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/*
 * Arena: control buffers, receive slots, transmit slots, and both once more for the user's side of
 * a mapping that copies. Both ends compute the same layout.
 */
#define RAW_ARENA_AREAS 4

static size_t raw_rx_offset(void)
{
	return raw_round_up((size_t)RAW_CTRL_COUNT * RAW_CTRL_SIZE, RAW_PAGE);
}

static size_t raw_slot_offset(const struct raw_flow *flow, uint32_t index)
{
	return raw_rx_offset() + raw_round_up(flow->size, 64) * index;
}

/* --- contents --- */

static void raw_stamp(const struct raw_flow *flow, struct raw_slot *slot)
{
	stamp_put((uint8_t *)slot->user, flow->size, slot->seq,
		  flow->full_check ? STAMP_ALL : STAMP_PAGES);
}

static bool raw_stamp_is_right(const struct raw_flow *flow, const struct raw_slot *slot)
{
	return stamp_is_right((const uint8_t *)slot->user, flow->size, slot->seq,
			      flow->full_check ? STAMP_ALL : STAMP_PAGES);
}

/* --- the mappings --- */

static inline uint64_t raw_send_flags(const struct raw_flow *flow)
{
	return FI_COMPLETION | (flow->params->delivery_complete ? FI_DELIVERY_COMPLETE : 0);
}

static bool raw_always(const struct raw_flow *flow, uint32_t seq)
{
	(void)flow;
	(void)seq;
	return true;
}

static ssize_t raw_tagged_send(struct raw_flow *flow, struct raw_slot *slot)
{
	struct raw_link *link = flow->link;
	struct iovec iov = {.iov_base = slot->buf, .iov_len = flow->size};
	struct fi_msg_tagged msg = {.msg_iov = &iov,
				    .desc = &link->desc,
				    .iov_count = 1,
				    .addr = link->peer,
				    .tag = slot->seq,
				    .context = &slot->context};

	if (flow->inject)
		return fi_tinject(link->ep, slot->buf, flow->size, link->peer, slot->seq);
	if (flow->params->delivery_complete)
		return fi_tsendmsg(link->ep, &msg, raw_send_flags(flow));
	return fi_tsend(link->ep, slot->buf, flow->size, link->desc, link->peer, slot->seq,
			&slot->context);
}

static ssize_t raw_tagged_expect(struct raw_flow *flow, struct raw_slot *slot)
{
	return fi_trecv(flow->link->ep, slot->buf, flow->size, flow->link->desc, FI_ADDR_UNSPEC,
			slot->seq, 0, &slot->context);
}

static ssize_t raw_msg_send(struct raw_flow *flow, struct raw_slot *slot)
{
	struct raw_link *link = flow->link;
	struct iovec iov = {.iov_base = slot->buf, .iov_len = flow->size};
	struct fi_msg msg = {.msg_iov = &iov,
			     .desc = &link->desc,
			     .iov_count = 1,
			     .addr = link->peer,
			     .context = &slot->context};

	if (flow->inject)
		return fi_inject(link->ep, slot->buf, flow->size, link->peer);
	if (flow->params->delivery_complete)
		return fi_sendmsg(link->ep, &msg, raw_send_flags(flow));
	return fi_send(link->ep, slot->buf, flow->size, link->desc, link->peer, &slot->context);
}

static ssize_t raw_msg_expect(struct raw_flow *flow, struct raw_slot *slot)
{
	return fi_recv(flow->link->ep, slot->buf, flow->size, flow->link->desc, FI_ADDR_UNSPEC,
		       &slot->context);
}

/* The immediate is the message's number: 32 bits, because verbs has no more. */
static ssize_t raw_put_data(struct raw_flow *flow, struct raw_slot *slot, uint64_t addr,
			    uint64_t key)
{
	struct raw_link *link = flow->link;
	struct iovec iov = {.iov_base = slot->buf, .iov_len = flow->size};
	struct fi_rma_iov target = {.addr = addr, .len = flow->size, .key = key};
	struct fi_msg_rma msg = {.msg_iov = &iov,
				 .desc = &link->desc,
				 .iov_count = 1,
				 .addr = link->peer,
				 .rma_iov = &target,
				 .rma_iov_count = 1,
				 .context = &slot->context,
				 .data = slot->seq};

	if (flow->inject)
		return fi_inject_writedata(link->ep, slot->buf, flow->size, slot->seq, link->peer,
					   addr, key);
	if (flow->params->delivery_complete)
		return fi_writemsg(link->ep, &msg, raw_send_flags(flow) | FI_REMOTE_CQ_DATA);
	return fi_writedata(link->ep, slot->buf, flow->size, link->desc, slot->seq, link->peer,
			    addr, key, &slot->context);
}

/* In pingpong the answer is the credit. */
static bool raw_write_may_send(const struct raw_flow *flow, uint32_t seq)
{
	return flow->params->mode == RAW_PINGPONG || seq - flow->credit < flow->params->window;
}

static ssize_t raw_write_send(struct raw_flow *flow, struct raw_slot *slot)
{
	const struct raw_hello *peer = &flow->link->theirs;

	return raw_put_data(flow, slot, peer->base + raw_slot_offset(flow, slot->index), peer->key);
}

static ssize_t raw_write_expect(struct raw_flow *flow, struct raw_slot *slot)
{
	(void)flow;
	(void)slot;
	return 0;
}

static bool raw_grant_may_send(const struct raw_flow *flow, uint32_t seq)
{
	const struct raw_grant *grant = &flow->grants[seq % flow->params->window];

	return grant->valid && grant->seq == seq;
}

static ssize_t raw_grant_send(struct raw_flow *flow, struct raw_slot *slot)
{
	struct raw_grant *grant = &flow->grants[slot->index];
	ssize_t ret = raw_put_data(flow, slot, grant->addr, grant->key);

	if (!ret)
		grant->valid = false;
	return ret;
}

static ssize_t raw_control_send(struct raw_flow *flow, const struct raw_control *control)
{
	return fi_inject(flow->link->ep, control, sizeof(*control), flow->link->peer);
}

static ssize_t raw_grant_expect(struct raw_flow *flow, struct raw_slot *slot)
{
	const struct raw_hello *mine = &flow->link->mine;
	const struct raw_control grant = {
		.type = RAW_GRANT_MESSAGE,
		.seq = slot->seq,
		.key = mine->key,
		.addr = mine->base + raw_slot_offset(flow, slot->index),
	};

	return raw_control_send(flow, &grant);
}

static const struct raw_mapping raw_mappings[] = {
	{"tagged", true, true, false, raw_always, raw_tagged_send, raw_tagged_expect},
	{"msg", true, false, false, raw_always, raw_msg_send, raw_msg_expect},
	{"eager", true, false, true, raw_always, raw_msg_send, raw_msg_expect},
	{"write", true, true, false, raw_write_may_send, raw_write_send, raw_write_expect},
	{"grant", true, true, false, raw_grant_may_send, raw_grant_send, raw_grant_expect},
};

#define RAW_MAPPING_COUNT (sizeof(raw_mappings) / sizeof(raw_mappings[0]))

/* --- completions --- */

static int raw_post_control(struct raw_flow *flow, struct raw_slot *slot)
{
	struct raw_link *link = flow->link;
	ssize_t ret = fi_recv(link->ep, slot->buf, RAW_CTRL_SIZE, link->desc, FI_ADDR_UNSPEC,
			      &slot->context);

	return ret ? raw_failed("fi_recv of a control buffer", ret) : 0;
}

static int raw_control_arrived(struct raw_flow *flow, struct raw_slot *slot)
{
	struct raw_control control;
	struct raw_grant *grant;

	memcpy(&control, slot->buf, sizeof(control));
	switch (control.type) {
	case RAW_GRANT_MESSAGE:
		grant = &flow->grants[control.seq % flow->params->window];
		*grant = (struct raw_grant){true, control.seq, control.addr, control.key};
		break;
	case RAW_CREDIT_MESSAGE:
		flow->credit = control.seq;
		break;
	case RAW_DONE_MESSAGE:
		flow->peer_done = true;
		break;
	default:
		fprintf(stderr, "fabric_raw: control message of unknown type %u\n", control.type);
		return -EPROTO;
	}
	return raw_post_control(flow, slot);
}

static int raw_data_arrived(struct raw_flow *flow, struct raw_slot *slot, uint32_t seq)
{
	if (!slot->busy || slot->seq != seq) {
		fprintf(stderr, "fabric_raw: message %u came, slot waits for %u\n", seq, slot->seq);
		return -EPROTO;
	}
	if (flow->mapping->copies)
		memcpy(slot->user, slot->buf, flow->size);
	if (!raw_stamp_is_right(flow, slot)) {
		fprintf(stderr, "fabric_raw: wrong bytes in message %u of %zu bytes\n", seq,
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

	if (entry->flags & FI_REMOTE_WRITE) {
		const uint32_t seq = (uint32_t)entry->data;

		return raw_data_arrived(flow, &flow->rx[seq % flow->params->window], seq);
	}
	switch (slot->kind) {
	case RAW_TX:
		slot->busy = false;
		flow->tx_done++;
		return 0;
	case RAW_RX:
		return raw_data_arrived(flow, slot, slot->seq);
	case RAW_CTRL:
		return raw_control_arrived(flow, slot);
	}
	return -EPROTO;
}

static int raw_completion_error(struct raw_flow *flow)
{
	struct fi_cq_err_entry err = {0};
	const struct raw_slot *slot;

	if (fi_cq_readerr(flow->link->cq, &err, 0) < 0)
		return -EIO;
	slot = err.op_context;
	fprintf(stderr, "fabric_raw: %s %u failed: %s (%d, provider's %d)\n",
		!slot		       ? "operation"
		: slot->kind == RAW_TX ? "send"
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

/* Starts the next message. -FI_EAGAIN when no slot, grant, credit or room is there. */
static int raw_send_next(struct raw_flow *flow)
{
	struct raw_slot *slot = &flow->tx[flow->tx_next % flow->params->window];
	ssize_t ret;

	if (slot->busy || !flow->mapping->may_send(flow, flow->tx_next))
		return -FI_EAGAIN;
	slot->seq = flow->tx_next;
	raw_stamp(flow, slot);
	if (flow->mapping->copies)
		memcpy(slot->buf, slot->user, flow->size);
	ret = flow->mapping->send(flow, slot);
	if (ret)
		return ret == -FI_EAGAIN ? (int)ret : raw_failed("send", ret);
	slot->busy = !flow->inject;
	flow->tx_done += flow->inject;
	flow->tx_next++;
	return 0;
}

/* Posts or grants receives up to `ahead` messages beyond the ones consumed, and not past `end`. */
static int raw_fill_receives(struct raw_flow *flow, uint32_t ahead, uint32_t end)
{
	while (flow->rx_next < end && flow->rx_next - flow->rx_done < ahead) {
		struct raw_slot *slot = &flow->rx[flow->rx_next % flow->params->window];
		ssize_t ret;

		if (slot->busy)
			return 0;
		slot->seq = flow->rx_next;
		if (flow->full_check)
			memset(slot->user, 0xa5, flow->size);
		ret = flow->mapping->expect(flow, slot);
		if (ret == -FI_EAGAIN)
			return 0;
		if (ret)
			return raw_failed("receive", ret);
		slot->busy = true;
		flow->rx_next++;
	}
	return 0;
}

static uint32_t raw_receive_window(const struct raw_flow *flow)
{
	return flow->params->late ? 1 : flow->params->window;
}

/* Reports free slots to the sender of mapping `write`, a quarter of the window at once. */
static int raw_send_credit(struct raw_flow *flow, uint32_t end)
{
	const uint32_t batch = flow->rx_next == end ? 1 : (flow->params->window + 3) / 4;
	const struct raw_control credit = {.type = RAW_CREDIT_MESSAGE,
					   .seq = flow->rx_next - flow->params->window};
	ssize_t ret;

	if (flow->mapping->may_send != raw_write_may_send || flow->rx_next < flow->params->window)
		return 0;
	if (credit.seq - flow->credit_sent < batch)
		return 0;
	ret = raw_control_send(flow, &credit);
	if (!ret)
		flow->credit_sent = credit.seq;
	return ret && ret != -FI_EAGAIN ? raw_failed("credit", ret) : 0;
}

static void raw_slot_init(struct raw_slot *slot, enum raw_kind kind, uint32_t index, char *buf)
{
	memset(slot, 0, sizeof(*slot));
	slot->kind = kind;
	slot->index = index;
	slot->buf = slot->user = buf;
}

/* Prepares for `size`; nothing may be outstanding but the control buffers. */
static void raw_flow_reset(struct raw_flow *flow, size_t size, bool full_check)
{
	const struct raw_params *params = flow->params;
	const uint32_t n = params->window;
	char *arena = flow->link->arena;
	uint32_t i;

	flow->size = size;
	flow->full_check = full_check;
	flow->inject = params->inject && !params->delivery_complete && size <= RAW_INJECT_MAX &&
		       size <= flow->link->info->tx_attr->inject_size;
	flow->tx_next = flow->tx_done = flow->rx_next = flow->rx_done = 0;
	flow->credit = flow->credit_sent = 0;
	flow->peer_done = false;
	flow->idle = 0;
	memset(flow->grants, 0, sizeof(flow->grants));
	for (i = 0; i < n; i++) {
		raw_slot_init(&flow->rx[i], RAW_RX, i, arena + raw_slot_offset(flow, i));
		raw_slot_init(&flow->tx[i], RAW_TX, i, arena + raw_slot_offset(flow, n + i));
		if (!flow->mapping->copies)
			continue;
		flow->rx[i].user = arena + raw_slot_offset(flow, 2 * n + i);
		flow->tx[i].user = arena + raw_slot_offset(flow, 3 * n + i);
	}
}

/* Posts this end's control buffers, if the mapping has control messages towards it. */
static int raw_flow_start(struct raw_flow *flow, bool is_client)
{
	const struct raw_mapping *mapping = flow->mapping;
	const bool stream = flow->params->mode == RAW_STREAM;
	uint32_t i;
	int ret;

	if (!(stream ? is_client && mapping->control_at_sender : mapping->control_both_ways))
		return 0;
	for (i = 0; i < RAW_CTRL_COUNT; i++) {
		raw_slot_init(&flow->ctrl[i], RAW_CTRL, i,
			      flow->link->arena + (size_t)i * RAW_CTRL_SIZE);
		ret = raw_post_control(flow, &flow->ctrl[i]);
		if (ret)
			return ret;
	}
	return 0;
}

#endif
