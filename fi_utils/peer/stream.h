/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - frames of wire.h on one TCP connection. Nothing here waits, except
 * peer_stream_await(), which has a deadline.
 */
#ifndef MESH_FI_UTILS_PEER_STREAM_H
#define MESH_FI_UTILS_PEER_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"

#include "peer/wire.h"

/* One whole frame of the largest size fits; an outgoing one, and an answer behind it. */
#define PEER_STREAM_IN_MAX (sizeof(struct mesh_check_header) + MESH_CHECK_PAYLOAD_MAX)
#define PEER_STREAM_OUT_MAX (2 * PEER_STREAM_IN_MAX)

/* Within this a peer answers a question that is answered at once. */
#define PEER_ANSWER_MS 5000

struct peer_stream {
	int fd;	     /* -1: closed; owned */
	uint8_t *in; /* PEER_STREAM_IN_MAX; owned */
	size_t in_size;
	size_t in_taken; /* bytes of the frame that was returned last */
	uint8_t *out;	 /* PEER_STREAM_OUT_MAX; owned */
	size_t out_size;
	uint32_t number; /* of the latest question */
};

/** Takes @fd (connected or connecting, non-blocking). Returns 0 or -ENOMEM; then @fd is closed. */
int peer_stream_open(struct peer_stream *stream, int fd);

void peer_stream_close(struct peer_stream *stream);

/**
 * Queues a frame and writes what the socket accepts.
 *
 * Returns 0; -ENOBUFS if there is no room for it; another negative errno if the connection has
 * ended.
 */
int peer_stream_send(struct peer_stream *stream, struct mesh_check_frame *frame,
		     enum mesh_check_type type, uint32_t number);

/** Sends an ERROR: @error, a negative errno, and @text, or what strerror(3) has if that is "". */
int peer_stream_send_error(struct peer_stream *stream, uint32_t number, int error,
			   const char *text);

/**
 * After peer_stream_next() returned -EPROTONOSUPPORT: answers the frame of another version with an
 * ERROR that names both versions. The peer's code can read it.
 */
void peer_stream_refuse_version(struct peer_stream *stream);

/** The version of the frames that come in; 0: none has come. */
uint8_t peer_stream_version(const struct peer_stream *stream);

/** Writes what is queued. Returns 0 or a negative errno. */
int peer_stream_flush(struct peer_stream *stream);

/**
 * Returns the next whole frame; reads from the socket if necessary.
 *
 * @frame: written on success
 *
 * Returns 0; -EAGAIN if none is there yet; -ECONNRESET if the peer has closed; another negative
 * errno.
 */
int peer_stream_next(struct peer_stream *stream, struct mesh_check_frame *frame);

/**
 * Waits for the answer to question @number of this @type.
 *
 * @text: MESH_CHECK_TEXT_MAX bytes; the text of an ERROR, else ""
 *
 * Returns 0; -ETIMEDOUT at @deadline_ms (mesh_clock_ms()); -EINTR if Ctrl-C came; the ERROR's
 * number; -EPROTO for any other frame; another negative errno.
 */
int peer_stream_await(struct peer_stream *stream, enum mesh_check_type type, uint32_t number,
		      uint64_t deadline_ms, struct mesh_check_frame *frame, char *text);

/** Makes progress while an answer is awaited; an error ends the wait. */
typedef int (*peer_stream_poll)(void *arg);

/**
 * As peer_stream_await(), but calls @poll(@arg) all the time while it waits.
 *
 * Returns also what @poll returns, if that is neither 0 nor -EAGAIN.
 */
int peer_stream_await_polling(struct peer_stream *stream, enum mesh_check_type type,
			      uint32_t number, uint64_t deadline_ms, peer_stream_poll poll,
			      void *arg, struct mesh_check_frame *frame, char *text);

/**
 * Sends a question and waits for the answer.
 *
 * @frame: its content is sent as @question; on success it then has the @answer
 * @ms: for the answer
 *
 * All else as peer_stream_send() and peer_stream_await().
 */
int peer_stream_ask(struct peer_stream *stream, struct mesh_check_frame *frame,
		    enum mesh_check_type question, enum mesh_check_type answer, uint32_t ms,
		    char *text);

/**
 * Starts to connect to @remote from @local's address; NULL: the kernel's routes decide. Returns a
 * non-blocking descriptor, or a negative errno.
 */
int peer_socket_connect(const struct mesh_addr *local, const struct mesh_addr *remote,
			uint16_t port);

/** A listening socket, or a negative errno. */
int peer_socket_listen(const struct mesh_addr *local, uint16_t port);

#endif
