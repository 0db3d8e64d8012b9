/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - the page of counters: its entries. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
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

static struct mesh_stats_entry *entry_free(struct mesh_stats_page *page)
{
	int i;

	for (i = 0; i < MESH_STATS_PATHS; i++)
		if (page->entries[i].state == MESH_STATS_FREE)
			return &page->entries[i];
	return NULL;
}

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
	struct mesh_stats_entry *entry = entry_free(page);

	if (!entry) {
		mesh_count(&page->header.counters.unlisted, 1);
		return NULL;
	}
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
	size_t offset = offsetof(struct mesh_stats_entry, counters);

	return (struct mesh_stats_entry *)(void *)((char *)counters - offset);
}

void mesh_stats_down_set(struct mesh_counters *counters, bool down)
{
	__atomic_store_n(&entry_of(counters)->down, down, __ATOMIC_RELAXED);
}

void mesh_stats_parked_set(struct mesh_counters *counters, enum mesh_stats_parked parked)
{
	__atomic_store_n(&entry_of(counters)->parked, (uint8_t)parked, __ATOMIC_RELAXED);
}

bool mesh_stats_same_link(const struct mesh_stats_entry *a, const struct mesh_stats_entry *b)
{
	return a->sending == b->sending && a->via == b->via && a->provider == b->provider &&
	       a->family == b->family && a->local_scope == b->local_scope &&
	       !memcmp(a->local, b->local, sizeof(a->local)) &&
	       !memcmp(a->remote, b->remote, sizeof(a->remote)) && !strcmp(a->nic, b->nic) &&
	       !strcmp(a->peer, b->peer);
}

void mesh_counters_add(struct mesh_counters *sum, const struct mesh_counters *from)
{
	mesh_count(&sum->messages, from->messages);
	mesh_count(&sum->bytes, from->bytes);
	mesh_count(&sum->segments, from->segments);
	mesh_count(&sum->small, from->small);
	mesh_count(&sum->busy, from->busy);
	mesh_count(&sum->errors, from->errors);
	mesh_count(&sum->losses, from->losses);
	mesh_count(&sum->resent, from->resent);
}

void mesh_stats_close(struct mesh_stats_page *page, struct mesh_counters *counters)
{
	struct mesh_stats_entry *entry = entry_of(counters), *sum;
	int i;

	change_begin(page);
	entry->down = 0;
	entry->parked = MESH_STATS_IN_USE;
	for (i = 0; i < MESH_STATS_PATHS; i++) {
		sum = &page->entries[i];
		if (sum->state == MESH_STATS_CLOSED && mesh_stats_same_link(sum, entry))
			break;
	}
	if (i < MESH_STATS_PATHS) {
		mesh_counters_add(&sum->counters, counters);
		sum->paths++;
		entry->state = MESH_STATS_FREE;
	} else {
		entry->state = MESH_STATS_CLOSED; /* the first of its link */
	}
	change_end(page);
}

/* ---- circuits ------------------------------------------------------------------------------ */

struct mesh_circuit_counters *mesh_stats_circuit_open(struct mesh_stats_page *page,
						      const char *origin, const char *target,
						      const char *nic_up, const char *nic_down,
						      uint64_t now_ms)
{
	struct mesh_stats_circuit *circuit = page->circuits;

	while (circuit < page->circuits + MESH_STATS_CIRCUITS && circuit->state != MESH_STATS_FREE)
		circuit++;
	if (circuit == page->circuits + MESH_STATS_CIRCUITS) {
		mesh_count(&page->header.counters.unlisted, 1);
		return NULL;
	}
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

bool mesh_stats_same_circuit(const struct mesh_stats_circuit *a, const struct mesh_stats_circuit *b)
{
	return !strcmp(a->origin, b->origin) && !strcmp(a->target, b->target) &&
	       !strcmp(a->nic_up, b->nic_up) && !strcmp(a->nic_down, b->nic_down);
}

void mesh_circuit_counters_add(struct mesh_circuit_counters *sum,
			       const struct mesh_circuit_counters *from)
{
	mesh_count(&sum->bytes, from->bytes);
	mesh_count(&sum->segments, from->segments);
	mesh_count(&sum->messages, from->messages);
	mesh_count(&sum->copied, from->copied);
}

void mesh_stats_circuit_close(struct mesh_stats_page *page, struct mesh_circuit_counters *counters)
{
	size_t offset = offsetof(struct mesh_stats_circuit, counters);
	struct mesh_stats_circuit *circuit = (void *)((char *)counters - offset), *sum;
	int i;

	change_begin(page);
	for (i = 0; i < MESH_STATS_CIRCUITS; i++) {
		sum = &page->circuits[i];
		if (sum->state == MESH_STATS_CLOSED && mesh_stats_same_circuit(sum, circuit))
			break;
	}
	if (i < MESH_STATS_CIRCUITS) {
		mesh_circuit_counters_add(&sum->counters, counters);
		sum->circuits++;
		circuit->state = MESH_STATS_FREE;
	} else {
		circuit->state = MESH_STATS_CLOSED; /* the first between these nodes */
		counters->memory = 0;
		counters->slots = 0;
		counters->used = 0;
	}
	change_end(page);
}
