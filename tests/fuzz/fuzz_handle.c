/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_handle.c - 128 foreign bytes as a handle; what is read can be written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "nic/path_choice.h"
#include "wire/handle.h"

#include "fuzz_text.h"

/* Offset of the checksum in the wire format. */
#define CHECKSUM_OFFSET 116

static void round_trip(const struct mesh_handle *handle)
{
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct mesh_handle again;

	fuzz_check(mesh_handle_encode(handle, bytes) == handle->num_endpoints);
	fuzz_check(!mesh_handle_decode(bytes, &again) && !memcmp(&again, handle, sizeof(again)));
}

static void paths(const struct mesh_handle *handle)
{
	struct mesh_path_hints hints = {
		.local_nic = handle->dev,
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = true,
		.fallback = handle->listen_id & 1,
		.same_count = handle->listen_id & 2,
	};
	struct mesh_path_choice choice;

	mesh_path_choose(handle->endpoints, handle->num_endpoints, handle->endpoints,
			 handle->num_endpoints, &hints, &choice);
	for (int i = 0; i < choice.num_candidates; i++)
		fuzz_check(choice.candidates[i].local < handle->num_endpoints &&
			   choice.candidates[i].remote < handle->num_endpoints);
}

static void decode(const uint8_t *bytes)
{
	struct mesh_handle handle;

	if (mesh_handle_decode(bytes, &handle))
		return;
	fuzz_check(handle.num_endpoints >= 0 && handle.num_endpoints <= MESH_NICS_MAX);
	handle.foreign = false;
	round_trip(&handle);
	paths(&handle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = calloc(1, MESH_HANDLE_BYTES);
	uint32_t checksum;

	if (!bytes)
		return 0;
	memcpy(bytes, data, size < MESH_HANDLE_BYTES ? size : MESH_HANDLE_BYTES);
	decode(bytes);
	/* Once more with what a fuzzer does not guess: magic, version and checksum. */
	memcpy(bytes, "MESH", 4);
	bytes[4] = MESH_PROTOCOL_VERSION;
	checksum = mesh_checksum(bytes, CHECKSUM_OFFSET);
	memcpy(bytes + CHECKSUM_OFFSET, &checksum, sizeof(checksum));
	decode(bytes);
	free(bytes);
	return 0;
}
