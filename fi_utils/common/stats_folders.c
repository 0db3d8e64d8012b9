/* SPDX-License-Identifier: Apache-2.0 */
/* stats_folders.c - reads the pages of counters of all processes, in the folders of all users. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "common/stats_folders.h"
#include "system/stats_file.h"

/* Attempts to copy a page while its entries change. */
#define READ_ATTEMPTS 50

/* ---- the folders of all users ---------------------------------------------------------------- */

typedef void folder_visitor(void *arg, const char *path, int folder_fd, uid_t owner);

/* Returns 1, or a negative errno. */
static int folder_visit(const char *path, uid_t owner, folder_visitor *visit, void *arg)
{
	int fd = mesh_stats_folder_open(path, owner);

	if (fd < 0)
		return fd;
	visit(arg, path, fd, owner);
	close(fd);
	return 1;
}

/* Visits each user's folder. Its owner must match the user id in its name; others are forged. */
static int root_visit(folder_visitor *visit, void *arg)
{
	DIR *root = opendir(MESH_STATS_ROOT);
	int ret, count = -ENOENT;
	struct dirent *entry;
	char path[PATH_MAX], end;
	uint32_t uid;

	if (!root)
		return -errno;
	while ((entry = readdir(root))) {
		if (sscanf(entry->d_name, MESH_STATS_PREFIX "%10" SCNu32 "%c", &uid, &end) != 1)
			continue;
		mesh_stats_folder_of(uid, path);
		ret = folder_visit(path, uid, visit, arg);
		if (ret >= 0)
			count = (count < 0 ? 0 : count) + ret;
		else if (count < 0)
			count = ret;
	}
	closedir(root);
	return count;
}

int stats_folders_visit(const char *setting, bool make,
			void (*visit)(void *arg, const char *path, int folder_fd, uid_t owner),
			void *arg)
{
	struct stat stat_of;
	char path[PATH_MAX];
	int fd;

	if (make && (!*setting || access(setting, F_OK))) {
		fd = mesh_stats_folder_make(setting, path);
		if (fd < 0)
			return fd;
		close(fd);
	}
	if (!*setting)
		return root_visit(visit, arg);
	if (stat(setting, &stat_of))
		return -errno;
	return folder_visit(setting, stat_of.st_uid, visit, arg);
}

/* ---- a page ---------------------------------------------------------------------------------- */

static bool entry_accept(struct mesh_stats_entry *entry)
{
	if (entry->state == MESH_STATS_FREE)
		return true;
	return entry->state <= MESH_STATS_CLOSED && entry->sending <= 1 &&
	       entry->via < MESH_STATS_VIAS && entry->provider <= MESH_PROVIDER_ID_MAX &&
	       (entry->family == MESH_FAMILY_IPV4 || entry->family == MESH_FAMILY_IPV6) &&
	       mesh_text_accept(entry->nic, sizeof(entry->nic)) &&
	       mesh_text_accept(entry->peer, sizeof(entry->peer));
}

static bool circuit_accept(struct mesh_stats_circuit *circuit)
{
	if (circuit->state == MESH_STATS_FREE)
		return true;
	return circuit->state <= MESH_STATS_CLOSED &&
	       mesh_text_accept(circuit->origin, sizeof(circuit->origin)) &&
	       mesh_text_accept(circuit->target, sizeof(circuit->target)) &&
	       mesh_text_accept(circuit->nic_up, sizeof(circuit->nic_up)) &&
	       mesh_text_accept(circuit->nic_down, sizeof(circuit->nic_down));
}

static int header_accept(struct mesh_stats_header *header, size_t size)
{
	if (header->magic != MESH_STATS_MAGIC)
		return -EPROTO;
	if (header->version != MESH_STATS_VERSION)
		return -EPROTONOSUPPORT;
	if (header->header_size != sizeof(struct mesh_stats_header) ||
	    header->entry_size != sizeof(struct mesh_stats_entry) ||
	    header->circuit_size != sizeof(struct mesh_stats_circuit) ||
	    header->num_entries > MESH_STATS_PATHS || header->num_circuits > MESH_STATS_CIRCUITS ||
	    size < sizeof(*header) + header->num_entries * sizeof(struct mesh_stats_entry) +
			    header->num_circuits * sizeof(struct mesh_stats_circuit))
		return -EPROTO;
	if (!mesh_text_accept(header->node, sizeof(header->node)) ||
	    !mesh_text_accept(header->program, sizeof(header->program)))
		return -EPROTO;
	return header->sequence & 1 ? -EAGAIN : 0;
}

int stats_page_decode(const void *bytes, size_t size, struct mesh_stats_page *page)
{
	const char *entries = (const char *)bytes + sizeof(page->header);
	size_t entries_size;
	uint32_t i;
	int ret;

	if (size < sizeof(page->header))
		return -EPROTO;
	memset(page, 0, sizeof(*page));
	memcpy(&page->header, bytes, sizeof(page->header));
	ret = header_accept(&page->header, size);
	if (ret)
		return ret;
	entries_size = page->header.num_entries * sizeof(page->entries[0]);
	memcpy(page->entries, entries, entries_size);
	memcpy(page->circuits, entries + entries_size,
	       page->header.num_circuits * sizeof(page->circuits[0]));
	for (i = 0; i < page->header.num_entries; i++) {
		if (!entry_accept(&page->entries[i]))
			return -EPROTO;
	}
	for (i = 0; i < page->header.num_circuits; i++) {
		if (!circuit_accept(&page->circuits[i]))
			return -EPROTO;
	}
	return 0;
}

void stats_entry_addresses(const struct mesh_stats_entry *entry, struct mesh_addr *local,
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

/* ---- the pages of all processes -------------------------------------------------------------- */

struct reader {
	const char *folder;
	void (*visit)(void *arg, const struct stats_found *found);
	void *arg;
	struct stats_found *found;
	void *bytes; /* a copy of a page, not checked yet */
	int count, error;
};

/* Copies the page; its entries are whole if the sequence is the same before and after. */
static int page_copy(int fd, void *bytes, struct mesh_stats_page *page)
{
	const off_t at = offsetof(struct mesh_stats_header, sequence);
	uint32_t before, after;
	ssize_t size;

	if (pread(fd, &before, sizeof(before), at) != (ssize_t)sizeof(before))
		return -EPROTO;
	size = pread(fd, bytes, sizeof(*page), 0);
	if (size < 0)
		return -errno;
	if (pread(fd, &after, sizeof(after), at) != (ssize_t)sizeof(after))
		return -EPROTO;
	if (before != after)
		return -EAGAIN;
	return stats_page_decode(bytes, (size_t)size, page);
}

static void file_read(void *arg, const char *name, int fd)
{
	struct reader *reader = arg;
	struct stats_found *found = reader->found;
	struct stat stat_of;
	int attempt;

	snprintf(found->path, sizeof(found->path), "%.*s/%s", PATH_MAX - 80, reader->folder, name);
	found->uid = fstat(fd, &stat_of) ? 0 : stat_of.st_uid;
	found->error = -EAGAIN;
	for (attempt = 0; attempt < READ_ATTEMPTS && found->error == -EAGAIN; attempt++)
		found->error = page_copy(fd, reader->bytes, &found->page);
	reader->visit(reader->arg, found);
}

static void folder_read(void *arg, const char *path, int folder_fd, uid_t owner)
{
	struct reader *reader = arg;
	int ret;

	reader->folder = path;
	ret = mesh_stats_folder_walk(folder_fd, owner, file_read, reader);
	if (ret < 0)
		reader->error = ret;
	else
		reader->count += ret;
}

int stats_files_read(const char *setting, void (*visit)(void *arg, const struct stats_found *found),
		     void *arg)
{
	struct reader reader = {.visit = visit, .arg = arg};
	int ret = -ENOMEM;

	reader.found = calloc(1, sizeof(*reader.found));
	reader.bytes = malloc(sizeof(reader.found->page));
	if (reader.found && reader.bytes)
		ret = stats_folders_visit(setting, false, folder_read, &reader);
	free(reader.found);
	free(reader.bytes);
	if (ret > 0)
		ret = reader.count || !reader.error ? reader.count : reader.error;
	return ret;
}
