/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - the page of counters: the writer's entries, and the reader's checks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
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
	entry->relayed = link->relayed;
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

bool mesh_stats_same_link(const struct mesh_stats_entry *a, const struct mesh_stats_entry *b)
{
	return a->sending == b->sending && a->relayed == b->relayed && a->provider == b->provider &&
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
}

void mesh_stats_close(struct mesh_stats_page *page, struct mesh_counters *counters)
{
	struct mesh_stats_entry *entry, *sum;
	size_t offset = offsetof(struct mesh_stats_entry, counters);
	int i;

	entry = (struct mesh_stats_entry *)(void *)((char *)counters - offset);
	change_begin(page);
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

/* ---- reading --------------------------------------------------------------------------- */

static bool entry_is_sound(const struct mesh_stats_entry *entry)
{
	if (entry->state == MESH_STATS_FREE)
		return true;
	return entry->state <= MESH_STATS_CLOSED && entry->sending <= 1 && entry->relayed <= 1 &&
	       entry->provider <= MESH_PROVIDER_ID_MAX &&
	       (entry->family == MESH_FAMILY_IPV4 || entry->family == MESH_FAMILY_IPV6) &&
	       mesh_text_ends(entry->nic, sizeof(entry->nic)) &&
	       mesh_text_ends(entry->peer, sizeof(entry->peer));
}

static int header_check(const struct mesh_stats_header *header, size_t size)
{
	if (header->magic != MESH_STATS_MAGIC)
		return -EPROTO;
	if (header->version != MESH_STATS_VERSION)
		return -EPROTONOSUPPORT;
	if (header->header_size != sizeof(struct mesh_stats_header) ||
	    header->entry_size != sizeof(struct mesh_stats_entry) ||
	    header->num_entries > MESH_STATS_PATHS ||
	    size < sizeof(*header) + header->num_entries * sizeof(struct mesh_stats_entry))
		return -EPROTO;
	if (!mesh_text_ends(header->node, sizeof(header->node)) ||
	    !mesh_text_ends(header->program, sizeof(header->program)))
		return -EPROTO;
	return header->sequence & 1 ? -EAGAIN : 0;
}

int mesh_stats_decode(const void *bytes, size_t size, struct mesh_stats_page *page)
{
	const size_t entry_size = sizeof(struct mesh_stats_entry);
	const char *entries = (const char *)bytes + sizeof(struct mesh_stats_header);
	struct mesh_stats_header header;
	struct mesh_stats_entry entry;
	uint32_t i;
	int ret;

	if (size < sizeof(header))
		return -EPROTO;
	memcpy(&header, bytes, sizeof(header));
	ret = header_check(&header, size);
	if (ret)
		return ret;
	for (i = 0; i < header.num_entries; i++) {
		memcpy(&entry, entries + i * entry_size, entry_size);
		if (!entry_is_sound(&entry))
			return -EPROTO;
	}
	memset(page, 0, sizeof(*page));
	page->header = header;
	memcpy(page->entries, entries, header.num_entries * entry_size);
	mesh_text_clean(page->header.node);
	mesh_text_clean(page->header.program);
	for (i = 0; i < header.num_entries; i++) {
		if (page->entries[i].state == MESH_STATS_FREE)
			continue; /* entry_is_sound() did not check its texts */
		mesh_text_clean(page->entries[i].nic);
		mesh_text_clean(page->entries[i].peer);
	}
	return 0;
}

void mesh_stats_addresses(const struct mesh_stats_entry *entry, struct mesh_addr *local,
			  struct mesh_addr *remote)
{
	memset(local, 0, sizeof(*local));
	local->family = (enum mesh_family)entry->family;
	local->prefix_len = local->family == MESH_FAMILY_IPV4 ? 32 : 128;
	*remote = *local;
	local->scope_id = entry->local_scope;
	memcpy(local->bytes, entry->local, sizeof(entry->local));
	memcpy(remote->bytes, entry->remote, sizeof(entry->remote));
}
