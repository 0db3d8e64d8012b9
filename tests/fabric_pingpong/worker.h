/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the threads that call the plugin. The service thread loads it, sets up and tears
 * down; a progress thread moves the data. They stand for NCCL's two proxy threads. They talk to
 * the rest of the program through mailboxes only.
 */
#ifndef PINGPONG_WORKER_H
#define PINGPONG_WORKER_H

#include "activity.h"
#include "frame.h"
#include "options.h"
#include "plugin.h"

struct worker {
	const struct options *options;
	struct plugin plugin; /* loaded, not started */
	const char *hosts[OPTIONS_RANKS_MAX];
	struct activity *activity;
	struct mailbox *inbox, *outbox;
	pthread_t thread;
	atomic_bool ended;
};

/** Starts the service thread. Returns 0 or a negative errno. */
int worker_start(struct worker *worker);

/** Asks it to stop and waits up to @timeout_ms. Returns 0, or -ETIMEDOUT: it is still running. */
int worker_stop(struct worker *worker, int timeout_ms);

#endif
