/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two_communicators.c - one of two ranks that share two communicators, as a process of NCCL does:
 * each communicator has a context, a thread that sets up and one that moves data.
 *
 * Usage: two_communicators PLUGIN FOLDER RANK. The ranks leave each other their handles in FOLDER.
 * TWO_COMMUNICATORS_FAULT=1 makes the last message of communicator 1 wrong in one bit.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nccl/net_newest.h>

#include "rank.h"

#define COMMUNICATORS 2
#define MESSAGES 300 /* of communicator 0; 1 has twice as many and outlives it */
#define SLOTS 8	     /* outstanding */
#define SLOT_BYTES 200000
#define TIMEOUT_S 60

struct side {
	void *comm, *registration, *requests[SLOTS];
	uint8_t *data; /* SLOTS * SLOT_BYTES */
	uint32_t posted, done;
};

struct communicator {
	const struct nccl_net_newest *net;
	const char *folder;
	int rank, id, dev;
	uint32_t messages;
	bool fault;
	void *context, *listener;
	uint8_t handle[NCCL_HANDLE_SIZE];
	struct side send, receive;
};

__attribute__((format(printf, 5, 6))) static void log_line(enum nccl_level level,
							   unsigned long flags, const char *file,
							   int line, const char *format, ...)
{
	va_list args;

	(void)flags, (void)file, (void)line;
	if (level != NCCL_LEVEL_WARN)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* NCCL's threads spin, too; the processors here are few. */
static void pause_until(time_t deadline, const char *what, int id)
{
	if (time(NULL) > deadline)
		die("communicator %d: no end of %s within %d s", id, what, TIMEOUT_S);
	sched_yield();
}

/* ---- handles --------------------------------------------------------------------------- */

static void handle_name(const struct communicator *c, int rank, char *name, size_t size)
{
	snprintf(name, size, "%s/handle-%d-of-%d", c->folder, c->id, rank);
}

static void handle_publish(const struct communicator *c, const void *handle)
{
	char name[512];

	handle_name(c, c->rank, name, sizeof(name));
	file_write(name, handle, NCCL_HANDLE_SIZE);
}

static void handle_take(struct communicator *c)
{
	time_t deadline = time(NULL) + TIMEOUT_S;
	char name[512];

	handle_name(c, !c->rank, name, sizeof(name));
	while (!file_read(name, c->handle, sizeof(c->handle)))
		pause_until(deadline, "waiting for the other rank", c->id);
}

/* ---- data ------------------------------------------------------------------------------ */

/* Small and large ones in turn. */
static size_t message_size(const struct communicator *c, uint32_t seq)
{
	static const size_t sizes[] = {8, 5000, 199999, 0, 65536, 129};

	return sizes[(seq + (uint32_t)c->id) % (sizeof(sizes) / sizeof(sizes[0]))];
}

/* What a byte must be: it names communicator, sender, message and offset. */
static uint8_t pattern(const struct communicator *c, int sender, uint32_t seq, size_t offset)
{
	uint64_t word = (uint64_t)c->id << 60 | (uint64_t)sender << 56 | (uint64_t)seq << 32 |
			offset / 8;

	return (uint8_t)((word * 0x9e3779b97f4a7c15u) >> (8 * (offset % 8)));
}

static void message_make(const struct communicator *c, uint32_t seq, uint8_t *data)
{
	size_t i, size = message_size(c, seq);

	for (i = 0; i < size; i++)
		data[i] = pattern(c, c->rank, seq, i);
	if (c->fault && seq == c->messages - 1 && size)
		data[size / 2] ^= 1;
}

static void message_check(const struct communicator *c, uint32_t seq, const uint8_t *data, int got)
{
	size_t i, size = message_size(c, seq);

	if ((size_t)got != size)
		die("communicator %d: message %u has %d bytes, not %zu", c->id, seq, got, size);
	for (i = 0; i < size; i++) {
		if (data[i] != pattern(c, !c->rank, seq, i))
			die("communicator %d: byte %zu of message %u is wrong", c->id, i, seq);
	}
}

static void post_one(struct communicator *c, struct side *side)
{
	uint32_t slot = side->posted % SLOTS;
	void *data = side->data + (size_t)slot * SLOT_BYTES, *profiler = NULL;
	size_t room = SLOT_BYTES;
	int tag = 0;

	if (side->posted == c->messages || side->posted - side->done == SLOTS)
		return;
	side->requests[slot] = NULL;
	if (side == &c->send) {
		message_make(c, side->posted, data);
		CALL(c->net->isend(side->comm, data, message_size(c, side->posted), tag,
				   side->registration, NULL, &side->requests[slot]));
	} else {
		memset(data, 0xee, SLOT_BYTES);
		CALL(c->net->irecv(side->comm, 1, &data, &room, &tag, &side->registration,
				   &profiler, &side->requests[slot]));
	}
	side->posted += !!side->requests[slot];
}

/* Only the oldest is tested, as NCCL does. */
static bool reap_one(struct communicator *c, struct side *side)
{
	uint32_t slot = side->done % SLOTS;
	int done = 0, size = -1;

	if (side->done == side->posted)
		return false;
	CALL(c->net->test(side->requests[slot], &done, &size));
	if (!done)
		return false;
	if (side == &c->receive)
		message_check(c, side->done, side->data + (size_t)slot * SLOT_BYTES, size);
	side->done++;
	return true;
}

static void *data_main(void *arg)
{
	struct communicator *c = arg;
	time_t deadline = time(NULL) + TIMEOUT_S;
	bool moved;

	while (c->send.done < c->messages || c->receive.done < c->messages) {
		post_one(c, &c->receive);
		post_one(c, &c->send);
		moved = reap_one(c, &c->receive);
		moved |= reap_one(c, &c->send);
		if (!moved)
			pause_until(deadline, "the messages", c->id);
	}
	return NULL;
}

/* ---- set-up ---------------------------------------------------------------------------- */

static void connect_both(struct communicator *c)
{
	time_t deadline = time(NULL) + TIMEOUT_S;
	struct nccl_device_handle *device;

	while (!c->send.comm || !c->receive.comm) {
		if (!c->send.comm)
			CALL(c->net->connect(c->context, c->dev, c->handle, &c->send.comm,
					     &device));
		if (!c->receive.comm)
			CALL(c->net->accept(c->listener, &c->receive.comm, &device));
		pause_until(deadline, "connecting", c->id);
	}
}

static void side_register(struct communicator *c, struct side *side)
{
	side->data = malloc((size_t)SLOTS * SLOT_BYTES);
	if (!side->data)
		die("out of memory");
	CALL(c->net->reg_mr(side->comm, side->data, (size_t)SLOTS * SLOT_BYTES, NCCL_POINTER_HOST,
			    &side->registration));
}

static void side_close(struct communicator *c, struct side *side)
{
	CALL(c->net->dereg_mr(side->comm, side->registration));
	CALL(side == &c->send ? c->net->close_send(side->comm) : c->net->close_receive(side->comm));
	free(side->data);
}

static void *communicator_main(void *arg)
{
	struct nccl_comm_config config = {.traffic_class = NCCL_UNDEFINED};
	uint8_t handle[NCCL_HANDLE_SIZE] = {0};
	struct communicator *c = arg;
	int num_devices = 0;
	pthread_t thread;

	CALL(c->net->init(&c->context, 0x77u + (uint64_t)c->id, &config, log_line, NULL));
	CALL(c->net->devices(&num_devices));
	c->dev = c->id % num_devices;
	CALL(c->net->listen(c->context, c->dev, handle, &c->listener));
	handle_publish(c, handle);
	handle_take(c);
	connect_both(c);
	CALL(c->net->close_listen(c->listener));
	side_register(c, &c->send);
	side_register(c, &c->receive);
	if (pthread_create(&thread, NULL, data_main, c) || pthread_join(thread, NULL))
		die("cannot run a thread");
	side_close(c, &c->send);
	side_close(c, &c->receive);
	CALL(c->net->finalize(c->context));
	printf("  rank %d, communicator %d: %u messages each way are right\n", c->rank, c->id,
	       c->messages);
	return NULL;
}

int main(int argc, char **argv)
{
	struct communicator communicators[COMMUNICATORS];
	pthread_t threads[COMMUNICATORS];
	const struct nccl_net_newest *net;
	void *library;
	int i;

	if (argc != 4)
		die("usage: two_communicators PLUGIN FOLDER RANK");
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		die("%s", dlerror());
	net = dlsym(library, NCCL_NET_SYMBOL_NEWEST);
	if (!net)
		die("%s", dlerror());
	memset(communicators, 0, sizeof(communicators));
	for (i = 0; i < COMMUNICATORS; i++) {
		struct communicator *c = &communicators[i];

		c->net = net;
		c->folder = argv[2];
		c->rank = atoi(argv[3]);
		c->id = i;
		c->messages = MESSAGES * (uint32_t)(i + 1);
		c->fault = i == 1 && getenv("TWO_COMMUNICATORS_FAULT");
		if (pthread_create(&threads[i], NULL, communicator_main, c))
			die("cannot start a thread");
	}
	for (i = 0; i < COMMUNICATORS; i++)
		pthread_join(threads[i], NULL);
	dlclose(library);
	return 0;
}
