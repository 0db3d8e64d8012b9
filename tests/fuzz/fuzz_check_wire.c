/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_check_wire.c - frames and datagrams of an untrusted `fi_mesh check` or serve. */
#include <stdint.h>
#include <string.h>

#include "peer/wire.h"

#include "fuzz_text.h"

/* What users of a decoded frame rely on. */
static void frame_use(const struct mesh_check_frame *frame)
{
	struct mesh_addr addr;

	fuzz_check(frame->header.length <= MESH_CHECK_PAYLOAD_MAX);
	/* Only ERROR is the same in all versions. */
	fuzz_check(frame->header.version == MESH_CHECK_VERSION ||
		   frame->header.type == MESH_CHECK_ERROR);
	if (frame->header.type == MESH_CHECK_HELLO) {
		fuzz_text_printable(frame->hello.node, sizeof(frame->hello.node));
		fuzz_text_printable(frame->hello.site, sizeof(frame->hello.site));
		for (uint32_t i = 0; i < frame->hello.num_nics; i++) {
			char text[MESH_ADDR_TEXT_MAX];

			fuzz_text_printable(frame->hello.nics[i].netdev, MESH_CHECK_NETDEV_MAX);
			mesh_check_nic_addr(&frame->hello.nics[i], &addr);
			mesh_addr_text_prefix(&addr, text);
		}
	}
	if (frame->header.type == MESH_CHECK_ERROR)
		fuzz_text_printable(frame->error.text, sizeof(frame->error.text));
}

static void stream_decode(const uint8_t *bytes, size_t size)
{
	struct mesh_check_frame frame;
	struct mesh_check_probe probe;
	size_t at = 0;
	int ret;

	mesh_check_probe_decode(bytes, size, &probe);
	while ((ret = mesh_check_decode(bytes + at, size - at, &frame)) > 0) {
		fuzz_check((size_t)ret <= size - at);
		frame_use(&frame);
		at += (size_t)ret;
	}
}

/* The rest is the fuzzer's. */
static void right(uint8_t *bytes, size_t size)
{
	struct mesh_check_header header = {.magic = MESH_CHECK_MAGIC,
					   .version = MESH_CHECK_VERSION};

	memcpy(bytes, &header, offsetof(struct mesh_check_header, type));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_twice(data, size, sizeof(struct mesh_check_header), right, stream_decode);
	return 0;
}
