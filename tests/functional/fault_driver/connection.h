/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - commands that open and close the plugin, listeners and comms, as NCCL does. */
#ifndef FAULT_DRIVER_CONNECTION_H
#define FAULT_DRIVER_CONNECTION_H

#include <dlfcn.h>

#include "driver.h"

/* Pause between two calls of connect or accept. NCCL has none; on two CPUs the peer needs it. */
#define RETRY_US 200

__attribute__((format(printf, 5, 6))) static void log_line(enum nccl_level level,
							   unsigned long flags, const char *file,
							   int line, const char *format, ...)
{
	static const char *const names[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
	char text[1024];
	va_list args;

	if (level == NCCL_LEVEL_TRACE)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("%s %s\n", names[level], text);
}

/* load FILE: the plugin, as NCCL loads it. */
static int command_load(struct driver *d, int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return wrong("%s", dlerror());
	d->net = dlsym(library, NCCL_NET_SYMBOL_NEWEST);
	return d->net ? OUTCOME_OK : wrong("%s", dlerror());
}

/* Of the context in use. A command beside the rest has that of the thread that began it. */
static _Thread_local int context_used;

/* init N: opens context N, which is in use from now on. */
static int command_init(struct driver *d, int argc, char **argv)
{
	struct nccl_comm_config config = {.traffic_class = NCCL_UNDEFINED};
	int result, devices = 0;

	context_used = slot(argv[1]) % 8;
	result = d->net->init(&d->contexts[context_used], 1, &config, log_line, NULL);
	if (result)
		return result;
	result = d->net->devices(&devices);
	return result ? result : devices ? OUTCOME_OK : wrong("no devices");
}

static int command_use(struct driver *d, int argc, char **argv)
{
	context_used = slot(argv[1]) % 8;
	return OUTCOME_OK;
}

/* device N: of the context in use; 0 at first. */
static int command_device(struct driver *d, int argc, char **argv)
{
	d->devices[context_used] = slot(argv[1]);
	return OUTCOME_OK;
}

static int command_finalize(struct driver *d, int argc, char **argv)
{
	int n = slot(argv[1]) % 8;
	void *context = d->contexts[n];

	d->contexts[n] = NULL;
	return d->net->finalize(context);
}

/* listen L FILE: the handle appears in FILE, whole. */
static int command_listen(struct driver *d, int argc, char **argv)
{
	char handle[NCCL_HANDLE_SIZE] = {0};
	int n = slot(argv[1]), result;

	result = d->net->listen(d->contexts[context_used], d->devices[context_used], handle,
				&d->listeners[n]);
	if (result)
		return result;
	if (!d->listeners[n])
		return wrong("listen gave no listener");
	if (file_write(argv[2], handle, sizeof(handle)))
		return wrong("cannot write %s", argv[2]);
	return OUTCOME_OK;
}

/* The plugin keeps its state in the handle: with FILE.begun connect goes on. */
static int handle_keep(const char *file, const char *handle)
{
	char name[256];

	snprintf(name, sizeof(name), "%s.begun", file);
	return file_write(name, handle, NCCL_HANDLE_SIZE);
}

/* Calls connect at most @calls times; OUTCOME_LATE if there is neither comm nor error. */
static int connect_try(struct driver *d, int n, const char *file, uint64_t calls)
{
	uint64_t deadline = clock_ms() + d->limit_ms;
	struct nccl_device_handle *device = NULL;
	char handle[NCCL_HANDLE_SIZE];
	bool lent = descriptor_lend(d);
	int result = file_read(file, handle, sizeof(handle));

	descriptor_return(d, lent);
	if (result)
		return wrong("cannot read %s", file);
	d->comms[n] = (struct comm){.sending = true};
	for (; calls && clock_ms() < deadline; calls--) {
		result = d->net->connect(d->contexts[context_used], d->devices[context_used],
					 handle, &d->comms[n].comm, &device);
		if (result && d->comms[n].comm)
			return wrong("connect gave an error and a comm");
		if (result || d->comms[n].comm)
			return result;
		pause_us(RETRY_US);
	}
	return handle_keep(file, handle) ? wrong("cannot write %s.begun", file) : OUTCOME_LATE;
}

/* connect C FILE */
static int command_connect(struct driver *d, int argc, char **argv)
{
	return connect_try(d, slot(argv[1]), argv[2], UINT64_MAX);
}

/*
 * connect-calls C FILE N: begins to connect, and stops if there is no comm after N calls; then
 * FILE.begun is a handle with which connect goes on.
 */
static int command_connect_calls(struct driver *d, int argc, char **argv)
{
	int outcome = connect_try(d, slot(argv[1]), argv[2], number(argv[3]));

	return outcome == OUTCOME_LATE ? OUTCOME_OK : outcome;
}

/* accept C L */
static int command_accept(struct driver *d, int argc, char **argv)
{
	uint64_t deadline = clock_ms() + d->limit_ms;
	struct nccl_device_handle *device = NULL;
	int n = slot(argv[1]), result;

	d->comms[n] = (struct comm){.sending = false};
	while (clock_ms() < deadline) {
		result = d->net->accept(d->listeners[slot(argv[2])], &d->comms[n].comm, &device);
		if (result && d->comms[n].comm)
			return wrong("accept gave an error and a comm");
		if (result || d->comms[n].comm)
			return result;
		pause_us(RETRY_US);
	}
	return OUTCOME_LATE;
}

static int command_close_listen(struct driver *d, int argc, char **argv)
{
	return d->net->close_listen(d->listeners[slot(argv[1])]);
}

/* close C: also a comm that was never made, as NCCL does. */
static int command_close(struct driver *d, int argc, char **argv)
{
	struct comm *comm = &d->comms[slot(argv[1])];
	void *closing = comm->comm;

	comm->comm = NULL;
	return comm->sending ? d->net->close_send(closing) : d->net->close_receive(closing);
}

#endif
