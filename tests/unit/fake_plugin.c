/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_plugin.c - a small NCCL net plugin on TCP over loopback, in the two newest ABI versions. It
 * breaks NCCL's contract on demand, so that tests can prove that a fault is seen.
 *
 *   FAKE_PLUGIN_FAULT  one of the names in fake_faults.h; not set: it behaves
 *   FAKE_PLUGIN_AFTER  messages before the fault shows (default 5)
 *   FAKE_PLUGIN_QUIET  set: logs no path line
 *
 * A message is 8 bytes of size and the bytes. Only test() and isend() move data; there is no
 * thread. isend answers NULL now and then, as plugins do whose peer is not ready.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nccl/net_abi.h>

#include "fake_faults.h"

#define HANDLE_MAGIC 0x66616b65u /* "fake" */
#define LATE_US 2000

/* Set by init. */
static nccl_logger logger;
static enum fault fault;
static long fault_after;
static atomic_long num_messages;
static char context;

struct request {
	struct comm *comm;
	uint8_t *data;
	size_t size; /* sent, or room for a receive */
	size_t moved;
	uint64_t header; /* size on the wire */
	size_t header_moved;
	bool optional, complete;
};

/* Requests are a ring: [tail, head) are in use, in order. */
struct comm {
	int fd;
	bool sender;
	unsigned int calls;
	struct request requests[NCCL_REQUESTS_MAX];
	uint64_t head, tail;
};

struct handle {
	uint32_t magic;
	uint16_t port;
	struct comm *connecting; /* the sender's, between two calls of connect */
};

static enum nccl_result lost(const char *words, int number)
{
	logger(NCCL_LEVEL_WARN, NCCL_SUBSYSTEM_NET, __FILE__, __LINE__, "%s %d", words, number);
	return NCCL_RESULT_REMOTE_ERROR;
}

static bool is_due(enum fault which)
{
	return fault == which && atomic_load(&num_messages) >= fault_after;
}

static enum nccl_result init(void **ctx, uint64_t comm_id, struct nccl_comm_config *config,
			     nccl_logger log, nccl_profiler profiler)
{
	*ctx = &context;
	logger = log;
	fault = fault_named(getenv("FAKE_PLUGIN_FAULT"));
	fault_after = getenv("FAKE_PLUGIN_AFTER") ? atol(getenv("FAKE_PLUGIN_AFTER")) : 5;
	return fault == FAULT_INIT_ERROR ? NCCL_RESULT_SYSTEM_ERROR : NCCL_RESULT_SUCCESS;
}

static enum nccl_result devices(int *num_devices)
{
	*num_devices = fault == FAULT_NO_DEVICE ? 0 : 2;
	return NCCL_RESULT_SUCCESS;
}

static const char *device_name(int dev)
{
	return dev ? "fake1" : "fake0";
}

#define PROPERTIES(v, more)                                                                        \
	static enum nccl_result properties_##v(int dev, struct nccl_net_properties_##v *p)         \
	{                                                                                          \
		p->identity.name = (char *)(uintptr_t)device_name(dev);                            \
		p->identity.pci_path = NULL;                                                       \
		p->identity.guid = (uint64_t)dev;                                                  \
		p->pointer_support = NCCL_POINTER_HOST;                                            \
		p->link.speed = 10000;                                                             \
		p->link.port = 1;                                                                  \
		p->link.latency = 0;                                                               \
		p->link.max_comms = 65536;                                                         \
		if (fault != FAULT_UNSET_PROPERTY)                                                 \
			p->link.max_receives = 1;                                                  \
		p->device.type = NCCL_DEVICE_HOST;                                                 \
		p->device.version = NCCL_DEVICE_NO_VERSION;                                        \
		p->registration_is_global = 0;                                                     \
		p->force_flush = 0;                                                                \
		p->members.num_devs = 1;                                                           \
		p->members.devs[0] = dev;                                                          \
		p->limits.max_p2p_bytes = NCCL_MESSAGE_BYTES_MAX;                                  \
		p->limits.max_coll_bytes = NCCL_MESSAGE_BYTES_MAX;                                 \
		p->max_multi_request_size = 1;                                                     \
		more;                                                                              \
		return NCCL_RESULT_SUCCESS;                                                        \
	}

PROPERTIES(v11, (void)0)
PROPERTIES(v12, p->rail_id = p->plane_id = NCCL_UNDEFINED)

/* --- connections --- */

static struct comm *comm_new(int fd, bool sender)
{
	struct comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	comm->fd = fd;
	comm->sender = sender;
	return comm;
}

static enum nccl_result fake_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct handle handle = {.magic = HANDLE_MAGIC};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (ctx != &context || fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    listen(fd, 1) || getsockname(fd, (struct sockaddr *)&address, &size))
		return NCCL_RESULT_SYSTEM_ERROR;
	handle.port = address.sin_port;
	memcpy(opaque, &handle, sizeof(handle));
	*listen_comm = comm_new(fd, false);
	return *listen_comm ? NCCL_RESULT_SUCCESS : NCCL_RESULT_SYSTEM_ERROR;
}

static int connect_start(struct handle *handle)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = handle->port};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno != EINPROGRESS))
		return -errno;
	handle->connecting = comm_new(fd, true);
	return handle->connecting ? 0 : -ENOMEM;
}

/* The first call starts, the second one is done: loopback connects at once. */
static enum nccl_result fake_connect(void *ctx, int dev, void *opaque, void **send_comm,
				     struct nccl_device_handle **device)
{
	struct handle handle;

	*send_comm = NULL;
	if (ctx != &context)
		return NCCL_RESULT_INVALID_ARGUMENT;
	memcpy(&handle, opaque, sizeof(handle));
	if (fault == FAULT_CONNECT_ERROR || handle.magic != HANDLE_MAGIC)
		return lost("fake: refused by port", handle.port);
	if (fault == FAULT_NEVER_CONNECT)
		return NCCL_RESULT_SUCCESS;
	if (!handle.connecting) {
		if (connect_start(&handle))
			return NCCL_RESULT_SYSTEM_ERROR;
		memcpy(opaque, &handle, sizeof(handle));
		return NCCL_RESULT_SUCCESS;
	}
	if (!getenv("FAKE_PLUGIN_QUIET"))
		logger(NCCL_LEVEL_INFO, NCCL_SUBSYSTEM_NET, __FILE__, __LINE__,
		       "path: from=%s to=%s nic=%s local=%s remote=%s via=%s", "fake", "fake",
		       device_name(dev), "127.0.0.1", "127.0.0.1", "direct");
	*send_comm = handle.connecting;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result fake_accept(void *listen_comm, void **receive_comm,
				    struct nccl_device_handle **device)
{
	struct comm *listener = listen_comm;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	*receive_comm = NULL;
	if (fault == FAULT_ACCEPT_ERROR)
		return NCCL_RESULT_REMOTE_ERROR;
	if (fd < 0)
		return NCCL_RESULT_SUCCESS;
	*receive_comm = comm_new(fd, false);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result register_memory(void *comm, void *data, size_t size, int type,
					void **registration)
{
	*registration = NULL;
	if (fault == FAULT_REGISTER_ERROR || type != NCCL_POINTER_HOST)
		return NCCL_RESULT_SYSTEM_ERROR;
	*registration = malloc(1);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result deregister(void *comm, void *registration)
{
	free(registration);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result close_listen(void *opaque)
{
	struct comm *comm = opaque;

	if (!comm)
		return NCCL_RESULT_SUCCESS;
	close(comm->fd);
	free(comm);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result close_comm(void *opaque)
{
	close_listen(opaque);
	return fault == FAULT_CLOSE_ERROR ? NCCL_RESULT_SYSTEM_ERROR : NCCL_RESULT_SUCCESS;
}

static enum nccl_result finalize(void *ctx)
{
	if (ctx != &context || fault == FAULT_FINALIZE_ERROR)
		return NCCL_RESULT_INTERNAL_ERROR;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result set_attributes(void *ctx, struct nccl_net_attributes *attributes)
{
	return ctx == &context && attributes ? NCCL_RESULT_SUCCESS : NCCL_RESULT_INVALID_ARGUMENT;
}

/* --- data --- */

/* As much of a part of a message as the socket takes or gives. Returns false at an error. */
static bool move_part(struct comm *comm, uint8_t *data, size_t size, size_t *moved)
{
	ssize_t n;

	while (*moved < size) {
		if (comm->sender)
			n = send(comm->fd, data + *moved, size - *moved, MSG_NOSIGNAL);
		else
			n = recv(comm->fd, data + *moved, size - *moved, 0);
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		*moved += (size_t)n;
	}
	return true;
}

struct late_copy {
	uint8_t *data, *bytes;
	size_t size;
};

static void *copy_late(void *arg)
{
	struct late_copy *late = arg;

	usleep(LATE_US);
	memcpy(late->data, late->bytes, late->size);
	free(late->bytes);
	free(late);
	return NULL;
}

/* Takes the bytes out of the buffer again and brings them a little later. */
static void make_late(struct request *request)
{
	struct late_copy *late = calloc(1, sizeof(*late));
	pthread_t thread;

	if (!late)
		return;
	late->data = request->data;
	late->size = request->header;
	late->bytes = malloc(late->size + 1);
	if (!late->bytes)
		abort();
	memcpy(late->bytes, request->data, late->size);
	memset(request->data, 0, late->size);
	if (!pthread_create(&thread, NULL, copy_late, late))
		pthread_detach(thread);
}

static void damage(struct request *request)
{
	size_t size = request->header;

	if (request->comm->sender && is_due(FAULT_CHANGE_SENT) && size > 8)
		request->data[8] ^= 1;
	if (request->comm->sender)
		return;
	if (is_due(FAULT_FLIP) && size)
		request->data[size / 2] ^= 0x10;
	else if (is_due(FAULT_LOST_BYTES) && size)
		memset(request->data, 0xc3, size);
	else if (is_due(FAULT_SCRIBBLE))
		request->data[size] = 0;
	else if (is_due(FAULT_CRASH))
		abort();
	else if (fault == FAULT_EARLY && request->optional && size)
		make_late(request);
}

/* Moves the oldest requests that are not complete. Returns false at an error. */
static bool progress(struct comm *comm)
{
	struct request *request;

	for (uint64_t i = comm->tail; i < comm->head; i++) {
		request = &comm->requests[i % NCCL_REQUESTS_MAX];
		if (request->complete)
			continue;
		if (!move_part(comm, (uint8_t *)&request->header, sizeof(request->header),
			       &request->header_moved))
			return false;
		if (request->header_moved < sizeof(request->header))
			return true;
		if (request->header > request->size)
			return false;
		if (!move_part(comm, request->data, request->header, &request->moved))
			return false;
		if (request->moved < request->header)
			return true;
		request->complete = true;
		damage(request);
		atomic_fetch_add(&num_messages, 1);
	}
	return true;
}

static struct request *request_new(struct comm *comm, void *data, size_t size)
{
	struct request *request;

	if (comm->head - comm->tail == NCCL_REQUESTS_MAX)
		return NULL;
	request = &comm->requests[comm->head++ % NCCL_REQUESTS_MAX];
	memset(request, 0, sizeof(*request));
	request->comm = comm;
	request->data = data;
	request->size = size;
	return request;
}

static enum nccl_result isend(void *send_comm, void *data, size_t size, int tag, void *registration,
			      void *profiler_handle, void **out)
{
	struct comm *comm = send_comm;
	struct request *request;

	if (!registration || !profiler_handle)
		return NCCL_RESULT_INVALID_ARGUMENT;
	if (comm->calls++ % 4 == 0) {
		if (!is_due(FAULT_STALE_REQUEST))
			*out = NULL;
		return NCCL_RESULT_SUCCESS;
	}
	while (is_due(FAULT_HANG))
		pause();
	request = request_new(comm, data, size);
	if (request)
		request->header = size;
	*out = request;
	return progress(comm) ? NCCL_RESULT_SUCCESS : NCCL_RESULT_REMOTE_ERROR;
}

static enum nccl_result irecv(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
			      void **registrations, void **profiler_handles, void **out)
{
	bool optional = *out == (void *)NCCL_REQUEST_OPTIONAL_COMPLETION;
	struct request *request;

	if (n != 1 || !registrations[0])
		return NCCL_RESULT_INVALID_ARGUMENT;
	request = request_new(receive_comm, data[0], sizes[0]);
	if (request)
		request->optional = optional;
	*out = request;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result iflush(void *receive_comm, int n, void **data, int *sizes,
			       void **registrations, void **out)
{
	*out = NULL;
	return NCCL_RESULT_SUCCESS;
}

/* NCCL tests the oldest request only, so it is the one at the tail. */
static enum nccl_result test(void *opaque, int *done, int *sizes)
{
	struct request *request = opaque;
	struct comm *comm = request->comm;

	if (request != &comm->requests[comm->tail % NCCL_REQUESTS_MAX])
		return NCCL_RESULT_INVALID_USAGE;
	if (is_due(FAULT_TEST_ERROR) || !progress(comm))
		return lost("fake: lost descriptor", comm->fd);
	if (is_due(FAULT_UNSET_DONE))
		return NCCL_RESULT_SUCCESS;
	*done = request->complete && !(is_due(FAULT_NEVER_COMPLETE) && !comm->sender);
	if (!*done)
		return NCCL_RESULT_SUCCESS;
	if (sizes)
		sizes[0] = (int)request->header;
	if (sizes && is_due(FAULT_WRONG_SIZE) && !comm->sender && sizes[0])
		sizes[0]--;
	if (sizes && fault == FAULT_EARLY && request->optional)
		sizes[0] = 0;
	comm->tail++;
	return NCCL_RESULT_SUCCESS;
}

/* --- tables --- */

#define TABLE(version)                                                                             \
	const struct nccl_net_##version ncclNetPlugin_##version = {                                \
		.name = "fake",                                                                    \
		.init = init,                                                                      \
		.devices = devices,                                                                \
		.get_properties = properties_##version,                                            \
		.listen = fake_listen,                                                             \
		.connect = fake_connect,                                                           \
		.accept = fake_accept,                                                             \
		.reg_mr = register_memory,                                                         \
		.dereg_mr = deregister,                                                            \
		.isend = isend,                                                                    \
		.irecv = irecv,                                                                    \
		.iflush = iflush,                                                                  \
		.test = test,                                                                      \
		.close_send = close_comm,                                                          \
		.close_receive = close_comm,                                                       \
		.close_listen = close_listen,                                                      \
		.finalize = finalize,                                                              \
		.set_attributes = set_attributes,                                                  \
	}

TABLE(v11);
TABLE(v12);
