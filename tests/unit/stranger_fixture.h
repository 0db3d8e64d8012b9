/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stranger_fixture.h - a listener of this process, and a stranger at its control port that sends
 * what a test chooses. Set NCCL_MESH_NICS to "=lo" before.
 */
#ifndef MESH_TESTS_STRANGER_FIXTURE_H
#define MESH_TESTS_STRANGER_FIXTURE_H

#include <netinet/in.h>

#include "setup/listener.h"
#include "setup/setup.h"
#include "wire/frame.h"

#include "unit.h"

/* Seconds after which reading fails the test. */
#define STRANGER_LIMIT_S 20

struct stranger_fixture {
	struct mesh_net *net;
	struct mesh_listener *listener;
	struct mesh_handle handle;
	int fd; /* the stranger's end of the last control connection; -1 if there is none */
};

extern struct stranger_fixture stranger;

/** A test's setup: the listener, and a log without earlier lines, captured; and teardown. */
void stranger_setup(void);
void stranger_teardown(void);

/** 127.0.0.1 with @port. */
struct sockaddr_in stranger_loopback(uint16_t port);

/** Another control connection; the test owns the one before. */
void stranger_dial(void);

/** The HELLO of a peer whose endpoint has this name, which is admitted. */
struct mesh_frame stranger_hello(struct sockaddr_in name);

/** Sends a frame of the stranger's. */
void stranger_send(struct mesh_frame *frame, enum mesh_frame_type type);

/** Until the plugin has disconnected the stranger, which it has answered nothing. */
void stranger_hung_up(void);

/** The next frame to the stranger, which has to be of this type. */
struct mesh_frame stranger_frame_read(enum mesh_frame_type type);

/** Exchanges HELLO, as a peer at 127.0.0.1. */
void stranger_introduced(void);

/** A CONNECT for path @path of @num_paths; @comm: the stranger's id of it. */
struct mesh_frame stranger_connect_make(uint32_t comm, int path, int num_paths);

/** Sends CONNECT, which is refused for this reason. */
void stranger_connect_refused(struct mesh_frame request, enum mesh_refusal refusal);

/** NCCL takes the next comm, which is complete. */
struct mesh_comm *stranger_accepted(void);

#endif
