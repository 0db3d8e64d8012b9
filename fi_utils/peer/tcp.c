/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - measures one link through TCP if libfabric does not work, so that there is a figure for
 * the cable.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

#include "common/interrupt.h"
#include "peer/checker.h"
#include "peer/figures.h"
#include "peer/stream.h"
#include "peer/tcp.h"
#include "peer/wire.h"

#define ANSWER_MS 5000
#define ECHOES 200

static int latency_measure(struct peer_link *link)
{
	struct peer_stream *stream = &link->stream;
	uint64_t times[ECHOES], started, byte = 0;
	char why[MESH_CHECK_TEXT_MAX];
	struct mesh_check_frame frame;
	int i, ret;

	for (i = 0; i < ECHOES; i++) {
		started = mesh_clock_ns();
		ret = peer_stream_send_opaque(stream, MESH_CHECK_ECHO, ++stream->number, &byte,
					      sizeof(byte));
		if (!ret)
			ret = peer_stream_await(stream, MESH_CHECK_ECHO, stream->number,
						mesh_clock_ms() + ANSWER_MS, NULL, &frame, why);
		if (ret)
			return ret;
		times[i] = mesh_clock_ns() - started;
	}
	link->numbers.half_rtt_us = (double)peer_half_rtt(times, ECHOES) / 1000;
	return 0;
}

/* Waits until the queue is empty. */
static int stream_drain(struct peer_stream *stream, uint64_t deadline_ms)
{
	int ret = peer_stream_flush(stream);

	while (!ret && stream->out_size) {
		ret = interrupt_wait(stream->fd, POLLOUT, deadline_ms);
		if (!ret)
			ret = peer_stream_flush(stream);
	}
	return ret;
}

static int bandwidth_forth(struct peer_link *link)
{
	static const uint8_t zeros[MESH_CHECK_PAYLOAD_MAX];
	uint64_t until_ms = mesh_clock_ms() + link->checker->options->ms, started = mesh_clock_ns();
	struct mesh_check_frame frame;
	char why[MESH_CHECK_TEXT_MAX];
	int ret = 0;

	while (!ret && mesh_clock_ms() < until_ms) {
		ret = stream_drain(&link->stream, until_ms + ANSWER_MS);
		if (!ret)
			ret = peer_stream_send_opaque(&link->stream, MESH_CHECK_BULK, 0, zeros,
						      sizeof(zeros));
	}
	memset(&frame, 0, sizeof(frame));
	if (!ret)
		ret = peer_stream_ask(&link->stream, &frame, MESH_CHECK_BULK_END,
				      MESH_CHECK_BULK_END, ANSWER_MS, NULL, why);
	if (!ret)
		link->numbers.to_gbps = peer_gbps(frame.bulk.bytes, mesh_clock_ns() - started);
	return ret;
}

/* Counts the bytes up to BULK_END. */
static int bulk_receive(struct peer_stream *stream, uint64_t deadline_ms, uint64_t *bytes)
{
	struct mesh_check_frame frame;
	int ret = 0;

	*bytes = 0;
	while (!ret && mesh_clock_ms() < deadline_ms) {
		ret = peer_stream_next(stream, &frame);
		if (ret == -EAGAIN)
			ret = interrupt_wait(stream->fd, POLLIN, deadline_ms);
		else if (!ret && frame.header.type == MESH_CHECK_BULK_END)
			return 0;
		else if (!ret && frame.header.type == MESH_CHECK_BULK)
			*bytes += frame.header.length;
		else if (!ret)
			ret = -EPROTO;
	}
	return ret ? ret : -ETIMEDOUT;
}

static int bandwidth_back(struct peer_link *link)
{
	uint64_t bytes, started = mesh_clock_ns();
	struct mesh_check_frame frame;
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.bulk.ms = link->checker->options->ms;
	ret = peer_stream_send(&link->stream, &frame, MESH_CHECK_BULK_ASK, ++link->stream.number);
	if (!ret)
		ret = bulk_receive(&link->stream, mesh_clock_ms() + frame.bulk.ms + ANSWER_MS,
				   &bytes);
	if (!ret)
		link->numbers.from_gbps = peer_gbps(bytes, mesh_clock_ns() - started);
	return ret;
}

int peer_tcp_measure(struct peer_link *link)
{
	int ret = latency_measure(link);

	if (!ret)
		ret = bandwidth_forth(link);
	if (!ret)
		ret = bandwidth_back(link);
	return ret;
}
