/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - the life of a connection: buffer, listen, connect or accept, registration, close. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "comm.h"

#define PAGE ((size_t)4096)

void comm_describe(const struct comm *comm, char *text, size_t size)
{
	snprintf(text, size, "%s comm %u -> %u channel %u%s (dev %d)",
		 comm->sender ? "send" : "receive", comm->from, comm->to, comm->channel,
		 comm->reply ? " of replies" : "", comm->dev);
}

static int failed(struct comm *comm, const char *call, enum nccl_result result)
{
	char name[120];

	comm_describe(comm, name, sizeof(name));
	snprintf(comm->error, COMM_ERROR_MAX, "%s() of %s returned %s", call, name,
		 adapter_result_text(result));
	return -EIO;
}

/* As failed(), with the reason that the plugin logged while it was connecting. */
static int failed_to_connect(struct comm *comm, const char *call, enum nccl_result result)
{
	size_t used;

	failed(comm, call, result);
	used = strlen(comm->error);
	if (comm->words.warning[0])
		snprintf(comm->error + used, COMM_ERROR_MAX - used, ". The plugin's reason: %s",
			 comm->words.warning);
	return -EIO;
}

static int broken(struct comm *comm, const char *words)
{
	char name[120];

	comm_describe(comm, name, sizeof(name));
	snprintf(comm->error, COMM_ERROR_MAX, "%s: %s", name, words);
	return -EIO;
}

/* NCCL gets the three protocols' buffers as one allocation of pages. */
int comm_open(struct comm *comm, const struct options *options)
{
	size_t bytes[PHASE_PROTOCOLS], offset = 0;

	for (int i = 0; i < PHASE_PROTOCOLS; i++) {
		bytes[i] = phase_region_bytes((enum phase_protocol)i, options);
		offset += (bytes[i] + PAGE - 1) / PAGE * PAGE;
	}
	comm->memory_bytes = offset;
	comm->memory = mmap(NULL, comm->memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (comm->memory == MAP_FAILED) {
		comm->memory = NULL;
		snprintf(comm->error, COMM_ERROR_MAX, "no memory for a buffer of %zu bytes",
			 comm->memory_bytes);
		return -ENOMEM;
	}
	offset = 0;
	for (int i = 0; i < PHASE_PROTOCOLS; i++) {
		comm->regions[i].base = comm->memory + offset;
		comm->regions[i].bytes = bytes[i];
		offset += (bytes[i] + PAGE - 1) / PAGE * PAGE;
	}
	comm->stream = pattern_stream(comm->from, comm->to, comm->reply, comm->channel);
	return 0;
}

int comm_listen(struct comm *comm)
{
	enum nccl_result result;

	/* The buffer for a listen is zeroed (proxy.cc). */
	memset(comm->handle, 0, sizeof(comm->handle));
	comm->listen_comm = NULL;
	result = adapter_listen(comm->adapter, comm->dev, comm->handle, &comm->listen_comm);
	if (result)
		return failed(comm, "listen", result);
	if (!comm->listen_comm)
		return broken(comm, "listen() succeeded without a listen comm");
	comm->listening = true;
	return 0;
}

static int register_regions(struct comm *comm)
{
	enum nccl_result result;

	for (int i = 0; i < PHASE_PROTOCOLS; i++) {
		struct comm_region *region = &comm->regions[i];

		result = adapter_reg_mr(comm->adapter, comm->plugin_comm, region->base,
					region->bytes, NCCL_POINTER_HOST, &region->registration);
		if (result)
			return failed(comm, "regMr", result);
		region->registered = true;
	}
	return 0;
}

/* NCCL ends the listening after the buffers are registered; one accept for each listen. */
static int finish_accept(struct comm *comm)
{
	enum nccl_result result;

	result = adapter_close_listen(comm->adapter, comm->listen_comm);
	comm->listening = false;
	return result ? failed(comm, "closeListen", result) : 0;
}

/*
 * After an error NCCL closes what it was given, and then once more, with NULL or that pointer,
 * at teardown (net.cc, proxy.cc). Plugins are to leave NULL, and to bear it.
 */
static int setup_failed(struct comm *comm, const char *call, enum nccl_result result)
{
	failed_to_connect(comm, call, result);
	if (comm->plugin_comm)
		broken(comm, "connect() or accept() failed and left a comm that is not NULL; NCCL "
			     "would close it twice");
	else if (comm->sender)
		adapter_close_send(comm->adapter, NULL);
	else
		adapter_close_receive(comm->adapter, NULL);
	comm->plugin_comm = NULL;
	return -EIO;
}

int comm_poll_setup(struct comm *comm)
{
	enum nccl_result result;
	int rc;

	comm->plugin_comm = NULL;
	plugin_capture(&comm->words);
	if (comm->sender)
		result =
			adapter_connect(comm->adapter, comm->dev, comm->handle, &comm->plugin_comm);
	else
		result = adapter_accept(comm->adapter, comm->listen_comm, &comm->plugin_comm);
	plugin_capture(NULL);
	if (result)
		return setup_failed(comm, comm->sender ? "connect" : "accept", result);
	if (!comm->plugin_comm)
		return 0;
	comm->connected = true;
	rc = register_regions(comm);
	if (!rc && !comm->sender)
		rc = finish_accept(comm);
	return rc;
}

int comm_register_scratch(const struct comm *comm, void *memory, size_t bytes, char *error)
{
	void *registration = NULL;
	enum nccl_result result;
	char name[120];

	result = adapter_reg_mr(comm->adapter, comm->plugin_comm, memory, bytes, NCCL_POINTER_HOST,
				&registration);
	if (!result)
		result = adapter_dereg_mr(comm->adapter, comm->plugin_comm, registration);
	if (!result)
		return 0;
	comm_describe(comm, name, sizeof(name));
	snprintf(error, COMM_ERROR_MAX,
		 "regMr() or deregMr() of other memory besides the data of %s returned %s", name,
		 adapter_result_text(result));
	return -EIO;
}

static void free_memory(struct comm *comm)
{
	if (comm->memory)
		munmap(comm->memory, comm->memory_bytes);
	comm->memory = NULL;
}

int comm_close(struct comm *comm)
{
	enum nccl_result result, first = NCCL_RESULT_SUCCESS;
	const char *call = "deregMr";

	for (int i = 0; i < PHASE_PROTOCOLS; i++) {
		if (!comm->regions[i].registered)
			continue;
		result = adapter_dereg_mr(comm->adapter, comm->plugin_comm,
					  comm->regions[i].registration);
		comm->regions[i].registered = false;
		if (!first)
			first = result;
	}
	free_memory(comm);
	if (comm->connected) {
		if (comm->sender)
			result = adapter_close_send(comm->adapter, comm->plugin_comm);
		else
			result = adapter_close_receive(comm->adapter, comm->plugin_comm);
		comm->connected = false;
		if (result && !first) {
			first = result;
			call = comm->sender ? "closeSend" : "closeRecv";
		}
	}
	return first ? failed(comm, call, first) : 0;
}
