/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - the page of counters: its entries. */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "wire/stats.h"

/* Between these two calls the sequence is odd, so a reader retries. */
static void change_begin(struct mesh_stats_page *page)
{
	uint32_t *sequence = &page->header.sequence;

	__atomic_store_n(sequence, *sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void change_end(struct mesh_stats_page *page)
{
	uint32_t *sequence = &page->header.sequence;

	__atomic_store_n(sequence, *sequence + 1, __ATOMIC_RELEASE);
}

const char *mesh_stats_via_text(uint8_t via)
{
	static const char *const texts[MESH_STATS_VIAS] = {
		[MESH_STATS_DIRECT] = "direct",
		[MESH_STATS_ROUTED] = "routed",
		[MESH_STATS_RELAY] = "relay",
	};

	return via < MESH_STATS_VIAS ? texts[via] : "?";
}

void mesh_stats_init(struct mesh_stats_page *page, uint64_t node_id, uint32_t pid, const char *node,
		     const char *program, uint64_t now_ms)
{
	struct mesh_stats_header *header = &page->header;

	memset(page, 0, sizeof(*page));
	header->magic = MESH_STATS_MAGIC;
	header->version = MESH_STATS_VERSION;
	header->header_size = sizeof(page->header);
	header->entry_size = sizeof(page->entries[0]);
	header->num_entries = MESH_STATS_PATHS;
	header->circuit_size = sizeof(page->circuits[0]);
	header->num_circuits = MESH_STATS_CIRCUITS;
	header->pid = pid;
	header->node_id = node_id;
	header->started_ms = now_ms;
	snprintf(header->node, sizeof(header->node), "%s", node);
	snprintf(header->program, sizeof(header->program), "%s", program);
}

/* ---- entries of either kind ----------------------------------------------------------------- */

static uint32_t *state_of(void *entry)
{
	return entry;
}

bool mesh_stats_is_same(const void *a, const void *b)
{
	return !memcmp((const char *)a + MESH_STATS_KEY, (const char *)b + MESH_STATS_KEY,
		       MESH_STATS_KEY_END - MESH_STATS_KEY);
}

void mesh_stats_add(void *sum, const void *from)
{
	const uint64_t *more = from;
	uint64_t *counter = sum;
	size_t i;

	for (i = 0; i < sizeof(struct mesh_counters) / sizeof(*counter); i++)
		mesh_count(&counter[i], more[i]);
}

/* A free one of these, which is counted if there is none. */
static void *entry_find(struct mesh_stats_page *page, void *entries, int num)
{
	char *entry = entries;

	for (; num--; entry += MESH_STATS_ENTRY_BYTES) {
		if (*state_of(entry) == MESH_STATS_FREE)
			return entry;
	}
	mesh_count(&page->header.counters.unlisted, 1);
	return NULL;
}

/* @counters: of one of these; it becomes a part of the sum of its kind, or the first one there. */
static void entry_close(struct mesh_stats_page *page, void *entries, int num, void *counters)
{
	const size_t offset = offsetof(struct mesh_stats_entry, counters);
	char *entry = (char *)counters - offset, *sum = entries;

	change_begin(page);
	while (num && (*state_of(sum) != MESH_STATS_CLOSED || !mesh_stats_is_same(sum, entry))) {
		sum += MESH_STATS_ENTRY_BYTES;
		num--;
	}
	if (num) {
		mesh_stats_add(sum + offset, counters);
		state_of(sum)[1]++; /* paths or circuits */
	}
	*state_of(entry) = num ? MESH_STATS_FREE : MESH_STATS_CLOSED;
	change_end(page);
}

/* ---- paths ---------------------------------------------------------------------------------- */

static void entry_fill(struct mesh_stats_entry *entry, const struct mesh_stats_link *link)
{
	memset(entry, 0, sizeof(*entry));
	entry->sending = link->sending;
	entry->via = (uint8_t)link->via;
	entry->provider = (uint8_t)link->provider;
	entry->family = (uint8_t)link->local.family;
	entry->local_scope = link->local.scope_id;
	memcpy(entry->local, link->local.bytes, sizeof(entry->local));
	memcpy(entry->remote, link->remote.bytes, sizeof(entry->remote));
	snprintf(entry->nic, sizeof(entry->nic), "%s", link->nic);
	snprintf(entry->peer, sizeof(entry->peer), "%s", link->peer);
}

struct mesh_counters *mesh_stats_open(struct mesh_stats_page *page,
				      const struct mesh_stats_link *link, uint64_t now_ms)
{
	struct mesh_stats_entry *entry = entry_find(page, page->entries, MESH_STATS_PATHS);

	if (!entry)
		return NULL;
	change_begin(page);
	entry_fill(entry, link);
	entry->paths = 1;
	entry->opened_ms = now_ms;
	entry->state = MESH_STATS_OPEN;
	change_end(page);
	return &entry->counters;
}

static struct mesh_stats_entry *entry_of(struct mesh_counters *counters)
{
	return mesh_container_of(counters, struct mesh_stats_entry, counters);
}

void mesh_stats_down_set(struct mesh_counters *counters, bool down)
{
	__atomic_store_n(&entry_of(counters)->down, down, __ATOMIC_RELAXED);
}

void mesh_stats_parked_set(struct mesh_counters *counters, enum mesh_stats_parked parked)
{
	__atomic_store_n(&entry_of(counters)->parked, (uint8_t)parked, __ATOMIC_RELAXED);
}

void mesh_stats_close(struct mesh_stats_page *page, struct mesh_counters *counters)
{
	mesh_stats_down_set(counters, false);
	mesh_stats_parked_set(counters, MESH_STATS_IN_USE);
	entry_close(page, page->entries, MESH_STATS_PATHS, counters);
}

/* ---- circuits ------------------------------------------------------------------------------ */

struct mesh_circuit_counters *mesh_stats_circuit_open(struct mesh_stats_page *page,
						      const char *origin, const char *target,
						      const char *nic_up, const char *nic_down,
						      uint64_t now_ms)
{
	struct mesh_stats_circuit *circuit = entry_find(page, page->circuits, MESH_STATS_CIRCUITS);

	if (!circuit)
		return NULL;
	change_begin(page);
	memset(circuit, 0, sizeof(*circuit));
	snprintf(circuit->origin, sizeof(circuit->origin), "%s", origin);
	snprintf(circuit->target, sizeof(circuit->target), "%s", target);
	snprintf(circuit->nic_up, sizeof(circuit->nic_up), "%s", nic_up);
	snprintf(circuit->nic_down, sizeof(circuit->nic_down), "%s", nic_down);
	circuit->circuits = 1;
	circuit->opened_ms = now_ms;
	circuit->state = MESH_STATS_OPEN;
	change_end(page);
	return &circuit->counters;
}

void mesh_stats_circuit_close(struct mesh_stats_page *page, struct mesh_circuit_counters *counters)
{
	counters->memory = counters->slots = counters->used = 0;
	entry_close(page, page->circuits, MESH_STATS_CIRCUITS, counters);
}
