/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_addr.c - address texts and socket addresses; what is read is written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nic/addr.h"

#include "fuzz_text.h"

static void text_round_trip(const struct mesh_addr *addr)
{
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr again;

	fuzz_check(strlen(mesh_addr_text_prefix(addr, text)) < sizeof(text));
	/* A scope id is written for people and not read again. */
	fuzz_check(addr->scope_id ||
		   (!mesh_addr_parse(text, &again) && !memcmp(&again, addr, sizeof(again))));
}

static void sockaddr_round_trip(const struct mesh_addr *addr)
{
	struct sockaddr_storage storage;
	struct mesh_addr again;
	uint16_t port;
	socklen_t len;

	len = mesh_addr_to_sockaddr(addr, 4711, &storage);
	fuzz_check(!mesh_addr_from_sockaddr((struct sockaddr *)&storage, len, &again, &port) &&
		   port == 4711 && mesh_addr_equal(&again, addr));
}

static void addr_use(const struct mesh_addr *addr)
{
	fuzz_check(addr->prefix_len <= 8 * mesh_addr_size(addr->family));
	fuzz_check(mesh_addr_same_subnet(addr, addr) && mesh_addr_in_subnet(addr, addr));
	mesh_addr_is_link_local(addr);
	mesh_addr_is_loopback(addr);
	text_round_trip(addr);
	sockaddr_round_trip(addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct sockaddr *sockaddr = malloc(size ? size : 1);
	struct mesh_addr addr;
	uint16_t port;

	if (text) {
		if (!mesh_addr_parse(text, &addr))
			addr_use(&addr);
	}
	if (sockaddr) {
		memcpy(sockaddr, data, size);
		if (!mesh_addr_from_sockaddr(sockaddr, size, &addr, &port))
			addr_use(&addr);
	}
	free(text);
	free(sockaddr);
	return 0;
}
