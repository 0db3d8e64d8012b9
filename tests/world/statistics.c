/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.c - the plugin's counters, and the world's own. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/stats.h"

#include "statistics.h"
#include "world.h"

/* Each path counts its share of a message, in whole bytes. */
#define SHARES_LOST 4

uint64_t statistics_relayed_bytes;

/* ---- the page ------------------------------------------------------------------------------ */

void statistics_folder_make(struct statistics *statistics, const char *parent, char node)
{
	strcpy(statistics->folder, "/dev/shm/world-XXXXXX");
	statistics->is_own_folder = !parent;
	if (parent)
		snprintf(statistics->folder, sizeof(statistics->folder), "%s/%c", parent, node);
	else if (!mkdtemp(statistics->folder))
		world_die("cannot make a folder in /dev/shm");
	setenv("NCCL_MESH_STATS_DIR", statistics->folder, 1);
}

static void page_map(struct statistics *statistics, int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY);
	void *page = mmap(NULL, sizeof(*statistics->page), PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || page == MAP_FAILED)
		world_die("cannot map %s/%s", statistics->folder, name);
	close(fd);
	unlinkat(folder, name, 0);
	statistics->page = page;
}

void statistics_open(struct statistics *statistics)
{
	DIR *folder = statistics->page ? NULL : opendir(statistics->folder);
	struct dirent *entry;

	while (folder && !statistics->page && (entry = readdir(folder))) {
		if (strstr(entry->d_name, ".mesh"))
			page_map(statistics, dirfd(folder), entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (statistics->page && statistics->is_own_folder)
		rmdir(statistics->folder); /* the plugin makes it again */
}

void statistics_begin(struct statistics *statistics)
{
	struct statistics begun = {.is_own_folder = statistics->is_own_folder};

	memcpy(begun.folder, statistics->folder, sizeof(begun.folder));
	*statistics = begun;
	statistics_open(statistics);
}

/* ---- what it says -------------------------------------------------------------------------- */

static void expect(bool holds, const char *node, const char *what, uint64_t is, uint64_t should)
{
	if (!holds)
		world_die("%s counts %lu %s, where the world has seen %lu", node, is, what, should);
}

/* The sum of one direction, of which no path may be open any more. */
static struct mesh_counters paths_sum(const struct mesh_stats_page *page, const char *node,
				      bool sending)
{
	struct mesh_counters sum = {0};
	const struct mesh_stats_entry *entry;

	for (entry = page->entries; entry < page->entries + MESH_STATS_PATHS; entry++) {
		if (entry->state == MESH_STATS_OPEN)
			world_die("%s counts a path after finalize", node);
		if (entry->state != MESH_STATS_CLOSED || entry->sending != sending)
			continue;
		sum.messages += entry->counters.messages;
		sum.bytes += entry->counters.bytes;
		sum.errors += entry->counters.errors;
		sum.losses += entry->counters.losses;
		sum.resent += entry->counters.resent;
	}
	return sum;
}

static void sent_check(const struct mesh_counters *sent, const struct statistics_messages *seen,
		       const char *node)
{
	uint64_t once = sent->bytes - sent->resent;

	expect(sent->messages >= seen->done, node, "messages sent", sent->messages, seen->done);
	expect(once >= seen->done_bytes, node, "bytes sent once", once, seen->done_bytes);
	expect(once <= seen->posted_bytes, node, "bytes sent once", once, seen->posted_bytes);
}

/* What is sent twice may arrive twice. */
static void received_check(const struct mesh_counters *received,
			   const struct statistics_messages *seen, const char *node)
{
	expect(received->messages >= seen->done, node, "messages received", received->messages,
	       seen->done);
	expect(received->bytes + SHARES_LOST * seen->done >= seen->done_bytes, node,
	       "bytes received", received->bytes, seen->done_bytes);
}

static void quiet_check(const struct mesh_counters *counters,
			const struct statistics_messages *seen, const char *node)
{
	expect(counters->messages == seen->done, node, "messages", counters->messages, seen->done);
	expect(counters->bytes <= seen->done_bytes, node, "bytes", counters->bytes,
	       seen->done_bytes);
	expect(!counters->errors, node, "errors", counters->errors, 0);
	expect(!counters->losses, node, "losses", counters->losses, 0);
	expect(!counters->resent, node, "bytes sent again", counters->resent, 0);
}

static void process_check(const struct mesh_process_counters *counters,
			  const struct statistics *seen, const char *node, bool quiet)
{
	uint64_t failed = counters->comms_failed;

	expect(counters->comms_opened >= seen->comms, node, "comms", counters->comms_opened,
	       seen->comms);
	expect(failed >= seen->failed, node, "failed comms", failed, seen->failed);
	expect(failed <= seen->failed + seen->doomed, node, "failed comms", failed,
	       seen->failed + seen->doomed);
	expect(counters->peers_lost <= counters->peers_up, node, "lost peers", counters->peers_lost,
	       counters->peers_up);
	expect(!counters->unlisted, node, "paths without an entry", counters->unlisted, 0);
	if (!quiet)
		return;
	expect(counters->comms_opened == seen->comms, node, "comms", counters->comms_opened,
	       seen->comms);
	expect(!counters->peers_lost, node, "lost peers", counters->peers_lost, 0);
	expect(!counters->retries, node, "retries", counters->retries, 0);
	expect(!counters->refused, node, "refused", counters->refused, 0);
}

static void circuits_check(const struct mesh_stats_page *page, const char *node)
{
	const struct mesh_stats_circuit *circuit;

	for (circuit = page->circuits; circuit < page->circuits + MESH_STATS_CIRCUITS; circuit++) {
		if (circuit->state == MESH_STATS_OPEN)
			world_die("%s counts a circuit after finalize", node);
		if (circuit->state == MESH_STATS_FREE)
			continue; /* added to another one */
		expect(!circuit->counters.used, node, "slots in use after finalize",
		       circuit->counters.used, 0);
		expect(!circuit->counters.memory, node, "bytes of circuits after finalize",
		       circuit->counters.memory, 0);
		statistics_relayed_bytes += circuit->counters.bytes + circuit->counters.copied;
	}
}

void statistics_check(struct statistics *statistics, const char *node, bool quiet)
{
	const struct mesh_stats_page *page = statistics->page;
	struct mesh_counters sent, received;

	if (!page)
		return; /* it has not started */
	sent = paths_sum(page, node, true);
	received = paths_sum(page, node, false);
	sent_check(&sent, &statistics->sent, node);
	received_check(&received, &statistics->received, node);
	if (quiet) {
		quiet_check(&sent, &statistics->sent, node);
		quiet_check(&received, &statistics->received, node);
	}
	process_check(&page->header.counters, statistics, node, quiet);
	circuits_check(page, node);
	munmap((void *)(uintptr_t)page, sizeof(*page));
	statistics->page = NULL;
}
