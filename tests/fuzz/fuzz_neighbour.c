/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_neighbour.c - a datagram from any host of a link as a question or an answer. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "wire/neighbour.h"

#include "fuzz_text.h"

/* What users of a decoded datagram rely on. */
static void neighbour_use(const struct mesh_neighbour *neighbour, size_t size)
{
	struct mesh_neighbour copy = {0};
	struct mesh_addr addr;
	char text[MESH_ADDR_TEXT_MAX];

	fuzz_check(size <= sizeof(*neighbour) && neighbour->nic < MESH_NICS_MAX &&
		   neighbour->num_processes <= MESH_NEIGHBOUR_PROCESSES_MAX);
	fuzz_text_printable(neighbour->netdev, sizeof(neighbour->netdev));
	fuzz_text_printable(neighbour->site, sizeof(neighbour->site));
	for (int i = 0; i < neighbour->num_addrs; i++) {
		mesh_neighbour_addr_get(&neighbour->addrs[i], &addr);
		mesh_addr_text_prefix(&addr, text);
		fuzz_check(mesh_neighbour_has_addr(neighbour, &addr) &&
			   mesh_neighbour_addr_add(&copy, &addr));
	}
	copy = *neighbour;
	fuzz_check(mesh_neighbour_finish(&copy, (enum mesh_neighbour_type)copy.type) == size &&
		   !memcmp(&copy, neighbour, sizeof(copy)));
}

static void datagram_decode(const uint8_t *bytes, size_t size)
{
	struct mesh_neighbour neighbour;
	int ret;

	memset(&neighbour, 0xa5, sizeof(neighbour));
	ret = mesh_neighbour_decode(bytes, size, &neighbour);
	fuzz_check(!ret || ret == -EPROTO || ret == -EPROTONOSUPPORT);
	if (ret != -EPROTO) {
		fuzz_text_printable(neighbour.product, sizeof(neighbour.product));
		fuzz_text_printable(neighbour.node, sizeof(neighbour.node));
	}
	if (!ret)
		neighbour_use(&neighbour, size);
}

struct head {
	uint32_t magic;
	uint8_t version, type;
	uint16_t length;
};

static void right(uint8_t *bytes, size_t size)
{
	struct head head = {MESH_NEIGHBOUR_MAGIC, MESH_NEIGHBOUR_VERSION, 0, (uint16_t)size};

	head.type = bytes[offsetof(struct mesh_neighbour, type)];
	memcpy(bytes, &head, sizeof(head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_twice(data, size, sizeof(struct head), right, datagram_decode);
	return 0;
}
