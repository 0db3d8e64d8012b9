/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - the poll loop of the main thread, and how a run ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "clock.h"
#include "control.h"
#include "coordinator.h"
#include "report.h"
#include "rendezvous.h"
#include "worker.h"

#define TICK_MS 100
/* A rank, or rank 0, that is silent for longer is lost; --timeout where that is shorter. */
#define SILENCE_MAX_S 30
/* For the words of a thread that is asked to stop, and for the last frames. */
#define LAST_WORDS_MS 2000
#define STOP_MS 5000
/* A plugin's function that has run for so long when nothing moves is what hangs. */
#define STUCK_NS (NS_PER_S / 2)

struct control {
	struct options *options;
	struct link link; /* to rank 0's hub */
	struct mailbox inbox, outbox;
	struct activity activity;
	struct activity_watch watch;
	struct worker worker;
	bool worker_running;
	bool hung;	 /* said so already */
	char *welcome;	 /* holds the host names */
	struct hub *hub; /* rank 0 only */
	struct coordinator coordinator;
	bool ended;
	int status;
};

static uint32_t silence_s(const struct options *options)
{
	return options->timeout_s < SILENCE_MAX_S ? options->timeout_s + 1 : SILENCE_MAX_S;
}

static void end(struct control *c, int status, const char *why)
{
	if (c->ended)
		return;
	c->ended = true;
	c->status = status;
	if (why)
		fprintf(stderr, "fabric_pingpong: rank %d is exiting: %s\n", c->options->rank, why);
}

/* "host=a\nhost=b\n" and then options; the names stay in the text. */
static int take_hosts(struct control *c, char **rest)
{
	char *at = c->welcome, *newline;

	for (int rank = 0; rank < c->options->world; rank++) {
		newline = strchr(at, '\n');
		if (strncmp(at, "host=", 5) || !newline)
			return -EPROTO;
		*newline = '\0';
		mesh_text_clean(at);
		c->worker.hosts[rank] = at + 5;
		at = newline + 1;
	}
	*rest = at;
	return 0;
}

static void on_welcome(struct control *c, const struct frame *frame)
{
	char *shared;

	if (c->worker_running)
		return;
	free(c->welcome);
	c->welcome = strdup((const char *)frame->body);
	if (!c->welcome || take_hosts(c, &shared) || options_apply_shared(c->options, shared)) {
		end(c, 1, "cannot parse the answer of rank 0: is it another version?");
		return;
	}
	c->worker.options = c->options;
	c->worker.activity = &c->activity;
	c->worker.inbox = &c->inbox;
	c->worker.outbox = &c->outbox;
	if (worker_start(&c->worker))
		end(c, 1, "cannot start a thread");
	else
		c->worker_running = true;
}

static void on_frame(struct control *c, struct frame *frame)
{
	switch (frame->type) {
	case FRAME_WELCOME:
		on_welcome(c, frame);
		break;
	case FRAME_PING:
		frame->to = frame->from;
		frame->from = (uint16_t)c->options->rank;
		link_send(&c->link, frame);
		break;
	case FRAME_ABORT:
		end(c, 1, (const char *)frame->body);
		break;
	case FRAME_EXIT:
		end(c, frame->size == 1 && frame->body[0] == 1 ? 0 : 1, NULL);
		break;
	default:
		mailbox_put(&c->inbox, frame);
		return;
	}
	free(frame);
}

static void read_link(struct control *c)
{
	int ended = link_fill(&c->link), rc;
	struct frame *frame;

	for (;;) {
		rc = link_next(&c->link, &frame);
		if (rc || !frame)
			break;
		on_frame(c, frame);
	}
	if (rc)
		end(c, 1, "what listens on MASTER_ADDR and MASTER_PORT is not fabric_pingpong");
	else if (ended)
		end(c, 1, "rank 0 is gone: its process ended or the connection broke");
	else if (now_ns() - c->link.heard_ns > silence_s(c->options) * NS_PER_S)
		end(c, 1, "rank 0 no longer answers");
}

static void write_link(struct control *c)
{
	struct frame *frame;
	uint64_t events;

	if (read(c->outbox.event, &events, sizeof(events)) > 0) {
		while ((frame = mailbox_take(&c->outbox))) {
			link_send(&c->link, frame);
			free(frame);
		}
	}
	if (link_flush(&c->link))
		end(c, 1, "the connection to rank 0 broke");
}

static void fail(struct control *c, const char *why)
{
	struct frame *frame =
		frame_new_text(FRAME_FAIL, (uint16_t)c->options->rank, FRAME_COORDINATOR, 0, why);

	link_send(&c->link, frame);
	free(frame);
}

/* Nothing moves: asks the worker to stop, so that it says where it was, and gives up. */
static void report_hang(struct control *c, uint64_t idle_ns)
{
	const char *stuck = activity_watch_stuck(&c->watch, &c->activity, STUCK_NS);
	char where[ACTIVITY_STEP_MAX + ACTIVITY_DETAILS_MAX], words[sizeof(where) + 200];
	uint64_t until = now_ns() + LAST_WORDS_MS * NS_PER_MS;

	atomic_store(&c->activity.stop, true);
	while (!stuck && !atomic_load(&c->worker.ended) && !activity_has_details(&c->activity) &&
	       now_ns() < until)
		poll(NULL, 0, 10);
	activity_describe(&c->activity, where, sizeof(where));
	snprintf(words, sizeof(words), "no progress for %.0f s. %s%s%s%s", (double)idle_ns / 1e9,
		 stuck ? "The plugin's " : "", stuck ? stuck : "",
		 stuck ? "() has not returned. " : "", where);
	c->hung = true;
	fail(c, words);
}

static void watch(struct control *c)
{
	uint64_t idle_ns;

	if (!c->worker_running || c->hung)
		return;
	idle_ns = activity_watch_look(&c->watch, &c->activity);
	if (idle_ns > c->options->timeout_s * NS_PER_S)
		report_hang(c, idle_ns);
}

static void wait_for_something(struct control *c)
{
	struct pollfd fds[HUB_POLL_MAX + 2] = {
		{.fd = c->link.fd,
		 .events = (short)(link_pending(&c->link) ? POLLIN | POLLOUT : POLLIN)},
		{.fd = c->outbox.event, .events = POLLIN},
	};
	int n = 2;

	if (c->hub)
		n += hub_poll_set(c->hub, fds + 2);
	poll(fds, (nfds_t)n, TICK_MS);
}

static void loop(struct control *c)
{
	while (!c->ended) {
		wait_for_something(c);
		if (c->hub) {
			hub_service(c->hub);
			coordinator_tick(&c->coordinator);
		}
		read_link(c);
		write_link(c);
		watch(c);
	}
}

/* The others must hear how it ended before rank 0 goes. */
static void flush_hub(struct control *c)
{
	uint64_t until = now_ns() + LAST_WORDS_MS * NS_PER_MS;
	struct pollfd fds[HUB_POLL_MAX];
	int n;

	coordinator_abort(&c->coordinator, "rank 0 ended");
	while (now_ns() < until) {
		hub_service(c->hub);
		if (!hub_pending(c->hub))
			return;
		n = hub_poll_set(c->hub, fds);
		poll(fds, (nfds_t)n, TICK_MS);
	}
}

static int say_hello(struct control *c)
{
	uint8_t body[8 + 256] = {0};
	struct frame *frame;

	frame_put_u32(body, FRAME_VERSION);
	frame_put_u32(body + 4, (uint32_t)c->options->world);
	if (gethostname((char *)body + 8, sizeof(body) - 9))
		return -errno;
	frame = frame_new(FRAME_HELLO, (uint16_t)c->options->rank, FRAME_COORDINATOR, 0, body,
			  8 + strlen((char *)body + 8));
	link_send(&c->link, frame);
	free(frame);
	return 0;
}

/* Rank 0 is a rank like the others; its connection to the hub is a socket pair. */
static int open_hub(struct control *c)
{
	struct hub_events events = coordinator_events(&c->coordinator);
	int listener = rendezvous_listen(c->options), ends[2];

	if (listener < 0)
		return listener;
	c->hub = malloc(sizeof(*c->hub));
	if (!c->hub || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		perror("fabric_pingpong");
		free(c->hub);
		close(listener);
		c->hub = NULL;
		return -ENOMEM;
	}
	hub_open(c->hub, listener, c->options->world, silence_s(c->options), &events);
	coordinator_open(&c->coordinator, c->options, c->hub);
	hub_adopt(c->hub, ends[0]);
	link_open(&c->link, ends[1]);
	return 0;
}

static int open_link(struct control *c)
{
	int fd;

	if (!c->options->rank)
		return open_hub(c);
	fd = rendezvous_connect(c->options);
	if (fd < 0)
		return fd;
	link_open(&c->link, fd);
	return 0;
}

/* Returns the exit status. */
static int finish(struct control *c)
{
	int rc = 0;

	if (c->hub)
		flush_hub(c);
	if (c->worker_running)
		rc = worker_stop(&c->worker, STOP_MS);
	if (c->hub) {
		if (!report_settle(c->coordinator.report))
			c->status = 1;
		if (report_print(c->coordinator.report, c->options))
			c->status = 1;
		hub_close(c->hub);
		coordinator_close(&c->coordinator);
		free(c->hub);
	}
	if (rc) {
		/* A thread is inside the plugin and will not come back. */
		fflush(stderr);
		_exit(1);
	}
	link_close(&c->link);
	mailbox_destroy(&c->inbox);
	mailbox_destroy(&c->outbox);
	activity_destroy(&c->activity);
	free(c->welcome);
	return c->status;
}

/* Before the ranks meet: a rank whose plugin does not load has nothing to wait for. */
static int load_plugin(struct control *c)
{
	char error[PLUGIN_ERROR_MAX];
	int rc = plugin_load(&c->worker.plugin, c->options->plugin, c->options->abi, &c->activity,
			     error);

	if (rc)
		fprintf(stderr, "fabric_pingpong: rank %d is exiting: %s\n", c->options->rank,
			error);
	return rc;
}

int control_run(struct options *options)
{
	struct control *c = calloc(1, sizeof(*c));
	int status = 1;

	if (!c || mailbox_init(&c->inbox, false) || mailbox_init(&c->outbox, true)) {
		perror("fabric_pingpong");
		free(c);
		return 1;
	}
	c->options = options;
	activity_init(&c->activity);
	activity_watch_init(&c->watch, &c->activity);
	if (!load_plugin(c) && !open_link(c) && !say_hello(c)) {
		loop(c);
		status = finish(c);
	}
	free(c);
	return status;
}
