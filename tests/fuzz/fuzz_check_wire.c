/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_check_wire.c - frames and datagrams of an untrusted `fi_mesh check` or serve. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "peer/wire.h"

static void text_use(const char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		abort();
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			abort(); /* it is printed */
}

/* What users of a decoded frame rely on. */
static void frame_use(const struct mesh_check_frame *frame)
{
	struct mesh_addr addr;

	if (frame->header.length > MESH_CHECK_PAYLOAD_MAX)
		abort();
	if (frame->header.version != MESH_CHECK_VERSION && frame->header.type != MESH_CHECK_ERROR)
		abort(); /* only ERROR is the same in all versions */
	if (frame->header.type == MESH_CHECK_HELLO) {
		text_use(frame->hello.node, sizeof(frame->hello.node));
		text_use(frame->hello.site, sizeof(frame->hello.site));
		for (uint32_t i = 0; i < frame->hello.num_nics; i++) {
			char text[MESH_ADDR_TEXT_MAX];

			text_use(frame->hello.nics[i].netdev, MESH_CHECK_NETDEV_MAX);
			mesh_check_nic_addr(&frame->hello.nics[i], &addr);
			mesh_addr_text_prefix(&addr, text);
		}
	}
	if (frame->header.type == MESH_CHECK_ERROR)
		text_use(frame->error.text, sizeof(frame->error.text));
}

static void stream_decode(const uint8_t *bytes, size_t size)
{
	struct mesh_check_frame frame;
	size_t at = 0;
	int ret;

	while ((ret = mesh_check_decode(bytes + at, size - at, &frame)) > 0) {
		if ((size_t)ret > size - at)
			abort();
		frame_use(&frame);
		at += (size_t)ret;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mesh_check_header header = {.magic = MESH_CHECK_MAGIC,
					   .version = MESH_CHECK_VERSION};
	struct mesh_check_probe probe;
	uint8_t *exact = malloc(size + 1);

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	stream_decode(exact, size);
	mesh_check_probe_decode(exact, size, &probe);
	/* Once more with magic and version right: the rest is the fuzzer's. */
	if (size >= sizeof(header)) {
		memcpy(exact, &header, offsetof(struct mesh_check_header, type));
		stream_decode(exact, size);
	}
	free(exact);
	return 0;
}
