/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_frame.c - a foreign byte stream as frames of the control connection. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

#include "fuzz_text.h"

static void frame_use(const struct mesh_frame *frame)
{
	struct mesh_endpoint_addr endpoint;
	struct mesh_wire_nic wire;

	if (frame->header.type != MESH_FRAME_HELLO)
		return;
	fuzz_check(frame->hello.num_nics <= MESH_NICS_MAX &&
		   frame->hello.name_len <= MESH_ENDPOINT_NAME_MAX &&
		   strlen(frame->hello.node_name) < MESH_NODE_NAME_MAX);
	for (int i = 0; frame->hello.node_name[i]; i++)
		fuzz_check(frame->hello.node_name[i] >= ' ' && frame->hello.node_name[i] <= '~');
	for (int i = 0; i < frame->hello.num_nics; i++) {
		fuzz_check(!mesh_wire_nic_decode(&frame->hello.nics[i], &endpoint));
		mesh_wire_nic_encode(&endpoint, &wire);
	}
}

/* A whole frame must have been needed: one byte less is no frame yet. */
static void prefix_check(const uint8_t *bytes, size_t size)
{
	uint8_t *exact = malloc(size - 1);
	struct mesh_frame frame;

	if (!exact)
		return;
	memcpy(exact, bytes, size - 1);
	fuzz_check(!mesh_frame_decode(exact, size - 1, &frame));
	free(exact);
}

static void stream_decode(const uint8_t *bytes, size_t size)
{
	struct mesh_frame frame;
	int taken;

	while (size) {
		taken = mesh_frame_decode(bytes, size, &frame);
		if (taken <= 0) {
			fuzz_check(!taken || taken == -EPROTO || taken == -EPROTONOSUPPORT);
			return;
		}
		fuzz_check((size_t)taken <= size &&
			   (size_t)taken == sizeof(frame.header) + frame.header.length);
		frame_use(&frame);
		prefix_check(bytes, (size_t)taken);
		bytes += taken;
		size -= (size_t)taken;
	}
}

/* Type, length and the rest are the fuzzer's. */
static void right(uint8_t *bytes, size_t size)
{
	struct mesh_frame_header header = {.magic = MESH_FRAME_MAGIC,
					   .version = MESH_PROTOCOL_VERSION};

	memcpy(bytes, &header, offsetof(struct mesh_frame_header, type));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_twice(data, size, sizeof(struct mesh_frame_header), right, stream_decode);
	return 0;
}
