/* SPDX-License-Identifier: Apache-2.0 */
/* noise.h - commands that send what no peer sends: changed handles, and noise. */
#ifndef FAULT_DRIVER_NOISE_H
#define FAULT_DRIVER_NOISE_H

#include <poll.h>
#include <sys/socket.h>

#include "base/random.h"
#include "wire/frame.h"
#include "wire/handle.h"
#include "wire/message.h"

#include "driver.h"

/* Bytes of the checksum in a handle (handle.c): it covers all before it. */
#define CHECKSUM_OFFSET 116
#define VERSION_OFFSET 4

/* ---- handles --------------------------------------------------------------------------- */

static void handle_sign(uint8_t *bytes)
{
	uint32_t checksum = mesh_checksum(bytes, CHECKSUM_OFFSET);

	memcpy(bytes + CHECKSUM_OFFSET, &checksum, sizeof(checksum));
}

static int handle_change(uint8_t *bytes, const char *change, uint64_t value)
{
	struct mesh_handle handle;

	if (mesh_handle_decode(bytes, &handle))
		return wrong("the handle to change is not valid");
	if (!strcmp(change, "cookie"))
		handle.cookie ^= 1ull << value;
	else if (!strcmp(change, "listener"))
		handle.listen_id += (uint32_t)value;
	else if (!strcmp(change, "port"))
		handle.control_port = (uint16_t)value;
	if (strcmp(change, "flip") && strcmp(change, "cut") && strcmp(change, "zero"))
		mesh_handle_encode(&handle, bytes);
	if (!strcmp(change, "flip"))
		bytes[value / 8] ^= (uint8_t)(1 << value % 8);
	else if (!strcmp(change, "cut"))
		memset(bytes + value, 0, NCCL_HANDLE_SIZE - value);
	else if (!strcmp(change, "zero"))
		memset(bytes, 0, NCCL_HANDLE_SIZE);
	else if (!strcmp(change, "version"))
		bytes[VERSION_OFFSET] = (uint8_t)value;
	else if (!strcmp(change, "foreign"))
		for (size_t i = 0; i < NCCL_HANDLE_SIZE; i++)
			bytes[i] = (uint8_t)(value * 31 + i * 7);
	if (!strcmp(change, "version"))
		handle_sign(bytes);
	return OUTCOME_OK;
}

/* forge FILE NEW CHANGE VALUE: a handle that differs; the checksum is right where it can be. */
static int command_forge(struct driver *d, int argc, char **argv)
{
	uint8_t bytes[NCCL_HANDLE_SIZE];
	int outcome;

	if (file_read(argv[1], bytes, sizeof(bytes)))
		return wrong("cannot read %s", argv[1]);
	outcome = handle_change(bytes, argv[3], number(argv[4]));
	if (!outcome && file_write(argv[2], bytes, sizeof(bytes)))
		return wrong("cannot write %s", argv[2]);
	return outcome;
}

/* ---- strangers ------------------------------------------------------------------------- */

/* The first address of the handle, with its control port or its endpoint's. */
static int stranger_connect(const char *file, const char *port_name)
{
	struct sockaddr_storage sockaddr;
	uint8_t bytes[NCCL_HANDLE_SIZE];
	struct mesh_handle handle;
	uint16_t port;
	socklen_t len;
	int fd;

	if (file_read(file, bytes, sizeof(bytes)) || mesh_handle_decode(bytes, &handle))
		return -EINVAL;
	port = strcmp(port_name, "control") ? handle.endpoints[0].port : handle.control_port;
	len = mesh_addr_to_sockaddr(&handle.endpoints[0].addr, port, &sockaddr);
	fd = socket(sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&sockaddr, len))
		return fd;
	close(fd);
	return -ECONNREFUSED;
}

/* The bytes that one client sends. Returns their number. */
static size_t stranger_words(const char *kind, int turn, uint8_t *bytes, size_t room)
{
	struct mesh_frame_header frame = {
		.magic = MESH_FRAME_MAGIC,
		.version = MESH_PROTOCOL_VERSION,
		.type = MESH_FRAME_HELLO,
		.length = (uint16_t)mesh_frame_hello_size(1),
	};

	for (size_t i = 0; i < room; i++)
		bytes[i] = (uint8_t)((i + 1) * 2654435761u * (unsigned int)(turn + 1) >> 13);
	if (!strcmp(kind, "nothing"))
		return 0;
	if (!strcmp(kind, "oversize"))
		frame.length = 65535;
	if (!strcmp(kind, "version"))
		frame.version++;
	if (strcmp(kind, "random"))
		memcpy(bytes, &frame, sizeof(frame));
	/* libfabric's own: version 3, a request, 256 bytes to follow (ofi_proto.h, xnet_cm.c). */
	if (!strcmp(kind, "handshake")) {
		memset(bytes, 0, room);
		bytes[0] = 3;
		bytes[2] = 1;
		return 32;
	}
	if (!strcmp(kind, "header"))
		return sizeof(frame) / 2;
	return strcmp(kind, "half") ? room : sizeof(frame) + 40;
}

/* noise FILE control|endpoint KIND COUNT: unknown clients that stay until hush. */
static int command_noise(struct driver *d, int argc, char **argv)
{
	uint64_t count = number(argv[4]), i;
	uint8_t bytes[4096];
	size_t size;
	int fd;

	for (i = 0; i < count && d->num_strangers < 4096; i++) {
		fd = stranger_connect(argv[1], argv[2]);
		if (fd < 0)
			return wrong("stranger %" PRIu64 " cannot connect: %s", i, strerror(-fd));
		d->strangers[d->num_strangers++] = fd;
		size = stranger_words(argv[3], (int)i, bytes, sizeof(bytes));
		/* The plugin may have disconnected by now, and is allowed to. */
		if (size && send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			continue;
	}
	return OUTCOME_OK;
}

/*
 * claim FILE OWN OTHER: a client that claims to be process OWN, which has lost its link to process
 * OTHER, the listener's, and connects anew. It stays until hush.
 */
static int command_claim(struct driver *d, int argc, char **argv)
{
	int fd = stranger_connect(argv[1], "control");
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct mesh_frame frame;
	size_t size;

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&own, &len))
		return wrong("the client cannot connect: %s", strerror(-fd));
	d->strangers[d->num_strangers++] = fd;
	memset(&frame, 0, sizeof(frame));
	frame.hello.node_id = 1;
	frame.hello.process_id = number(argv[2]);
	frame.hello.cookie = number(argv[3]);
	frame.hello.provider = MESH_PROVIDER_TCP;
	frame.hello.name_len = (uint8_t)len;
	memcpy(frame.hello.endpoint_name, &own, len); /* with its port, which nobody knows */
	frame.hello.eager_limit = 1024;
	size = mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	return send(fd, &frame, size, MSG_NOSIGNAL) == (ssize_t)size ? OUTCOME_OK
								     : wrong("no HELLO was sent");
}

/* disconnected COUNT: waits until the plugin has disconnected so many unknown clients. */
static int command_disconnected(struct driver *d, int argc, char **argv)
{
	uint64_t deadline = clock_ms() + d->limit_ms;
	struct pollfd poller;
	uint64_t count;
	int i;

	for (;;) {
		for (i = 0, count = 0; i < d->num_strangers; i++) {
			poller = (struct pollfd){.fd = d->strangers[i], .events = POLLRDHUP};
			count += poll(&poller, 1, 0) > 0;
		}
		if (count >= number(argv[1]))
			return OUTCOME_OK;
		if (clock_ms() > deadline)
			return wrong("only %" PRIu64 " unknown clients were disconnected", count);
		pause_us(20000);
	}
}

static int command_hush(struct driver *d, int argc, char **argv)
{
	while (d->num_strangers)
		close(d->strangers[--d->num_strangers]);
	return OUTCOME_OK;
}

#endif
