/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure_child.c - `fi_mesh serve-measure`: the child of `fi_mesh serve` that measures with one
 * checking node, and then ends. That node's frames are not trusted: see peer/wire.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#include "commands.h"
#include "common/interrupt.h"
#include "common/output.h"
#include "peer/end.h"
#include "peer/stream.h"
#include "peer/wire.h"
#include "serve/client.h"

/* Between two looks at a connection that is being made. */
#define CONNECT_PAUSE_MS 2

struct child {
	struct peer_stream stream;
	struct peer_end *end;
	uint32_t meet_number; /* of the MEET that is to be answered; 0: none */
	uint32_t run_number;  /* the same for RUN */
	bool up;	      /* both connections */
	bool ends;	      /* END was answered */
};

/* ---- answers ------------------------------------------------------------------------------ */

static int error_send(struct child *child, uint32_t number, int error)
{
	char words[MESH_CHECK_TEXT_MAX];

	if (error == -EPERM)
		snprintf(words, sizeof(words),
			 "NCCL_MESH_RELAY=off or NCCL_MESH_NEIGHBOURS=off is set there");
	else
		peer_end_words(words, sizeof(words));
	return peer_stream_send_error(&child->stream, number, error, words);
}

static int ran_send(struct child *child, uint32_t number, uint64_t bytes, uint64_t ns)
{
	struct mesh_check_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.measure.bytes = bytes;
	frame.measure.ns = ns;
	frame.measure.cpu_permille = (uint32_t)(1000 * peer_end_cpu_share(child->end));
	return peer_stream_send(&child->stream, &frame, MESH_CHECK_MEASURE_RAN, number);
}

static int met_send(struct child *child)
{
	struct mesh_check_frame frame;
	uint32_t number = child->meet_number;

	child->meet_number = 0;
	memset(&frame, 0, sizeof(frame));
	return peer_stream_send(&child->stream, &frame, MESH_CHECK_MEASURE_MET, number);
}

static int frame_answer(struct child *child, const struct mesh_check_frame *asked)
{
	uint32_t number = asked->header.number;

	switch (asked->header.type) {
	case MESH_CHECK_MEASURE_MEET:
		if (!number || child->meet_number)
			return -EPROTO;
		child->meet_number = number;
		peer_end_meet(child->end, asked->measure.handle);
		return 0;
	case MESH_CHECK_MEASURE_RUN:
		if (!number || child->run_number || peer_end_poll(child->end))
			return -EPROTO;
		child->run_number = number;
		peer_end_run(child->end, asked->measure.ms);
		return 0;
	case MESH_CHECK_MEASURE_END:
		child->ends = true;
		peer_end_hang_up(child->end);
		return ran_send(child, number, 0, 0);
	default:
		return -EPROTO;
	}
}

/* ---- the measurement ---------------------------------------------------------------------- */

/* Connects and answers pings, or sends. Returns 0, or a negative errno: it is over. */
static int end_advance(struct child *child)
{
	uint64_t bytes, ns;
	uint32_t number = child->run_number ? child->run_number : child->meet_number;
	int ret = child->run_number ? peer_end_step(child->end, &bytes, &ns)
				    : peer_end_poll(child->end);

	if (ret == -EAGAIN)
		return 0;
	child->up = !ret;
	if (ret) {
		if (number)
			error_send(child, number, ret);
		return ret;
	}
	if (child->run_number) {
		child->run_number = 0;
		return ran_send(child, number, bytes, ns);
	}
	return child->meet_number ? met_send(child) : 0;
}

static int frames_answer(struct child *child)
{
	struct mesh_check_frame frame;
	int ret = peer_stream_flush(&child->stream);

	if (!ret)
		ret = peer_stream_next(&child->stream, &frame);
	if (!ret)
		ret = frame_answer(child, &frame);
	return ret == -EAGAIN ? 0 : ret;
}

static int child_run(struct child *child, const char *nic, uint64_t job, uint32_t number)
{
	uint64_t until_ms = mesh_clock_ms() + SERVE_CLIENT_MS;
	struct mesh_check_frame frame;
	int ret;

	memset(&frame, 0, sizeof(frame));
	ret = peer_end_open(nic, job, frame.measure.handle, &child->end);
	if (ret) {
		error_send(child, number, ret);
		return ret;
	}
	ret = peer_stream_send(&child->stream, &frame, MESH_CHECK_MEASURE_READY, number);
	while (!ret && !child->ends && !interrupt_happened() && mesh_clock_ms() < until_ms) {
		ret = frames_answer(child);
		if (!ret && !child->ends)
			ret = end_advance(child);
		/* The plugin's own thread connects; messages are polled for. */
		if (!ret && !child->up)
			interrupt_wait(child->stream.fd, POLLIN,
				       mesh_clock_ms() + CONNECT_PAUSE_MS);
	}
	peer_end_close(child->end);
	return 0;
}

/* Our own parent's arguments; somebody else may try. */
static bool arguments_read(int argc, char **argv, int *fd, uint32_t *number, uint64_t *job)
{
	struct stat file;

	if (argc != 4 && argc != 5)
		return false;
	*fd = atoi(argv[1]);
	*number = (uint32_t)strtoul(argv[2], NULL, 10);
	*job = strtoull(argv[3], NULL, 10);
	return *fd > STDERR_FILENO && !fstat(*fd, &file) && S_ISSOCK(file.st_mode) &&
	       !fcntl(*fd, F_SETFD, FD_CLOEXEC);
}

int command_serve_measure(int argc, char **argv)
{
	struct child child = {.stream = {.fd = -1}};
	uint32_t number;
	uint64_t job;
	int fd, ret;

	if (!arguments_read(argc, argv, &fd, &number, &job)) {
		fprintf(stderr, "fi_mesh serve-measure: only `fi_mesh serve` runs this\n");
		return COMMAND_MISUSE;
	}
	interrupt_catch();
	if (peer_stream_open(&child.stream, fd))
		return COMMAND_PROBLEM;
	ret = child_run(&child, argc == 5 ? argv[4] : NULL, job, number);
	peer_stream_close(&child.stream);
	return ret ? COMMAND_PROBLEM : COMMAND_FINE;
}
