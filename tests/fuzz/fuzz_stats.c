/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_stats.c - pages of counters with arbitrary content. */
#include <stdint.h>
#include <string.h>

#include "common/stats_folders.h"
#include "wire/stats.h"

#include "fuzz_text.h"

static struct mesh_stats_page page;

static void decode(const uint8_t *bytes, size_t size)
{
	struct mesh_addr local, remote;

	if (stats_page_decode(bytes, size, &page))
		return;
	for (uint32_t i = 0; i < page.header.num_circuits; i++) {
		const struct mesh_stats_circuit *circuit = &page.circuits[i];

		if (circuit->state == MESH_STATS_FREE)
			continue;
		fuzz_check(strlen(circuit->origin) < sizeof(circuit->origin) &&
			   strlen(circuit->target) < sizeof(circuit->target) &&
			   strlen(circuit->nic_up) < sizeof(circuit->nic_up) &&
			   strlen(circuit->nic_down) < sizeof(circuit->nic_down));
	}
	for (uint32_t i = 0; i < page.header.num_entries; i++) {
		const struct mesh_stats_entry *entry = &page.entries[i];

		if (entry->state == MESH_STATS_FREE)
			continue;
		stats_entry_addresses(entry, &local, &remote);
		fuzz_check(strlen(entry->nic) < sizeof(entry->nic) &&
			   strlen(entry->peer) < sizeof(entry->peer) &&
			   mesh_provider_id_text((enum mesh_provider_id)entry->provider));
	}
}

static void right(uint8_t *bytes, size_t size)
{
	const struct mesh_stats_header header = {
		.magic = MESH_STATS_MAGIC,
		.version = MESH_STATS_VERSION,
		.header_size = sizeof(struct mesh_stats_header),
		.entry_size = sizeof(struct mesh_stats_entry),
		.circuit_size = sizeof(struct mesh_stats_circuit),
	};

	memcpy(bytes, &header, offsetof(struct mesh_stats_header, num_entries));
	memcpy(bytes + offsetof(struct mesh_stats_header, circuit_size), &header.circuit_size,
	       sizeof(header.circuit_size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_twice(data, size, sizeof(struct mesh_stats_header), right, decode);
	return 0;
}
