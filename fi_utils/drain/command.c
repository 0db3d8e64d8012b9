/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - `fi_mesh drain` and `fi_mesh undrain`: mark a NIC for the plugin, and wait until no
 * process uses it.
 */
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "system/stats_file.h"

#include "commands.h"
#include "common/interrupt.h"
#include "common/options.h"
#include "common/output.h"
#include "common/stats_folders.h"

#define TIMEOUT_S 30
/* Between two looks at the processes' pages. */
#define LOOK_MS 50
/* What is in flight on a cable arrives within this: a pull of it may repeat less. */
#define IN_FLIGHT_MS 200

static const char drain_usage[] =
	"usage: fi_mesh drain [--timeout SECONDS] [--stats-dir DIR] NIC\n"
	"\n"
	"Takes a NIC of this node out of use, so that its cable can be pulled without a\n"
	"loss: connections with another path leave it. Waits until nothing is in flight\n"
	"there. It stays out of use, also for processes that start later, until\n"
	"`fi_mesh undrain NIC` or the next boot. Run as root it reaches the processes of\n"
	"all users that have one here.\n"
	"\n";

static const char drain_notes[] =
	"\n"
	"Exit status: 0 nothing uses the NIC; 1 something still does, with what it is, or\n"
	"the folder of the counters cannot be used; 2 usage error.\n";

static const char undrain_usage[] = "usage: fi_mesh undrain [--stats-dir DIR] NIC\n"
				    "\n"
				    "Uses a NIC again that `fi_mesh drain` has taken out of use.\n"
				    "\n";

static const char undrain_notes[] =
	"\n"
	"Exit status: 0 fine; 1 the folder of the counters cannot be used; 2 usage error.\n";

struct options {
	unsigned long timeout_s;
	const char *stats_dir;
};

#define STATS_DIR_ROW                                                                              \
	{                                                                                          \
		"stats-dir", 0, "DIR", "folder of the plugin's counters, as NCCL_MESH_STATS_DIR",  \
			OPTION_TEXT(struct options, stats_dir)                                     \
	}

static const struct option_row drain_rows[] = {
	{"timeout", 0, "SECONDS", "wait for so long (default 30; 0 to 3600)",
	 OPTION_NUMBER(struct options, timeout_s, 0, 3600)},
	STATS_DIR_ROW,
	{.name = NULL},
};

static const struct option_row undrain_rows[] = {
	STATS_DIR_ROW,
	{.name = NULL},
};

static const struct option_table drain_table = {"fi_mesh drain", drain_usage, drain_notes,
						drain_rows};
static const struct option_table undrain_table = {"fi_mesh undrain", undrain_usage, undrain_notes,
						  undrain_rows};

/* ---- the marks ------------------------------------------------------------------------------ */

struct marking {
	const char *netdev;
	bool marked;
	int error;
};

static void folder_mark(void *arg, const char *path, int folder_fd, uid_t owner)
{
	struct marking *marking = arg;
	int ret = mesh_drain_mark_set(folder_fd, marking->netdev, marking->marked);

	(void)owner;
	if (!ret)
		return;
	marking->error = ret;
	fprintf(stderr, "%s: cannot %s the mark of %s in %s: %s\n", program_invocation_short_name,
		marking->marked ? "make" : "remove", marking->netdev, path, strerror(-ret));
}

/* Returns an exit status. */
static int marks_set(const struct options *options, const char *netdev, bool marked)
{
	struct marking marking = {.netdev = netdev, .marked = marked};
	int ret = stats_folders_visit(options->stats_dir, marked, folder_mark, &marking);

	if (ret == -ENOENT && !marked)
		return COMMAND_FINE;
	if (ret < 0) {
		fprintf(stderr, "%s: cannot use the folder of the counters: %s\n",
			program_invocation_short_name, strerror(-ret));
		return COMMAND_PROBLEM;
	}
	return marking.error ? COMMAND_PROBLEM : COMMAND_FINE;
}

/* ---- what the processes do ------------------------------------------------------------------ */

struct look {
	const char *netdev;
	bool report; /* print what still uses the NIC */
	unsigned int processes, left, used;
	unsigned int unseen; /* processes that may use it, for all that can be read */
};

/* Connections of one process with one node that still use the NIC. */
struct users {
	unsigned int used; /* without another path */
	unsigned int
		kept; /* through a relay, which does not leave the link: its circuits need it */
};

static const char *users_reason(const struct users *users)
{
	if (users->used)
		return "no other path reaches that node";
	return "the relay there keeps its path";
}

static void users_report(const struct look *look, const struct mesh_stats_page *page,
			 const char *peer, const struct users *users)
{
	unsigned int num = users->used + users->kept;

	if (look->report && num)
		fprintf(stderr, "%s: %s (pid %u): %u connection%s with node %s: %s\n", look->netdev,
			page->header.program, page->header.pid, num, num == 1 ? "" : "s", peer,
			users_reason(users));
}

/* True if an entry before this one has the same peer: it was reported with that. */
static bool was_reported(const struct look *look, const struct mesh_stats_page *page, int entry)
{
	int i;

	for (i = 0; i < entry; i++) {
		if (page->entries[i].state == MESH_STATS_OPEN &&
		    !strcmp(page->entries[i].nic, look->netdev) &&
		    !strcmp(page->entries[i].peer, page->entries[entry].peer))
			return true;
	}
	return false;
}

/* The open paths of one process over the NIC to the peer of entry @first. */
static void peer_look(struct look *look, const struct mesh_stats_page *page, int first)
{
	const struct mesh_stats_entry *entry;
	struct users users = {.used = 0};
	int i;

	for (i = first; i < MESH_STATS_PATHS; i++) {
		entry = &page->entries[i];
		if (entry->state != MESH_STATS_OPEN || strcmp(entry->nic, look->netdev) ||
		    strcmp(entry->peer, page->entries[first].peer))
			continue;
		if (!entry->down && entry->parked == MESH_STATS_IN_USE)
			users.used++;
		else if (!entry->down && entry->via == MESH_STATS_RELAY)
			users.kept++;
		else
			look->left++;
	}
	look->used += users.used + users.kept;
	users_report(look, page, page->entries[first].peer, &users);
}

static void circuits_look(struct look *look, const struct mesh_stats_page *page)
{
	const struct mesh_stats_circuit *circuit;
	int i;

	for (i = 0; i < MESH_STATS_CIRCUITS; i++) {
		circuit = &page->circuits[i];
		if (circuit->state != MESH_STATS_OPEN || (strcmp(circuit->nic_up, look->netdev) &&
							  strcmp(circuit->nic_down, look->netdev)))
			continue;
		look->used++;
		if (look->report)
			fprintf(stderr,
				"%s: %s (pid %u) relays a connection from node %s to node %s\n",
				look->netdev, page->header.program, page->header.pid,
				circuit->origin, circuit->target);
	}
}

/* A page has no room for all paths of a large job, and one of another version cannot be read. */
static void unseen_look(struct look *look, const struct stats_found *found)
{
	const struct mesh_stats_header *header = &found->page.header;

	if (!found->error && !header->counters.unlisted)
		return;
	look->unseen++;
	if (look->report && found->error)
		fprintf(stderr, "%s: cannot read what it uses: %s\n", found->path,
			strerror(-found->error));
	else if (look->report)
		fprintf(stderr, "%s: %s (pid %u) has more connections than are listed\n",
			look->netdev, header->program, header->pid);
}

static void process_look(void *arg, const struct stats_found *found)
{
	struct look *look = arg;
	unsigned int before = look->used + look->left;
	int i;

	unseen_look(look, found);
	if (found->error)
		return;
	for (i = 0; i < MESH_STATS_PATHS; i++) {
		if (found->page.entries[i].state == MESH_STATS_OPEN &&
		    !strcmp(found->page.entries[i].nic, look->netdev) &&
		    !was_reported(look, &found->page, i))
			peer_look(look, &found->page, i);
	}
	circuits_look(look, &found->page);
	look->processes += look->used + look->left > before;
}

static struct look nic_look(const struct options *options, const char *netdev, bool report)
{
	struct look look = {.netdev = netdev, .report = report};

	stats_files_read(options->stats_dir, process_look, &look);
	return look;
}

/* Returns an exit status. */
static int drained_await(const struct options *options, const char *netdev)
{
	uint64_t end_ms = mesh_clock_ms() + options->timeout_s * 1000;
	struct look look = nic_look(options, netdev, false);

	while (look.used && mesh_clock_ms() < end_ms && !interrupt_happened()) {
		interrupt_wait(-1, 0, mesh_clock_ms() + LOOK_MS);
		look = nic_look(options, netdev, false);
	}
	/* What was posted last is on its way. */
	if (look.left && !look.used)
		interrupt_wait(-1, 0, mesh_clock_ms() + IN_FLIGHT_MS);
	if (look.used || look.unseen)
		look = nic_look(options, netdev, true);
	if (!look.used && look.unseen) {
		fprintf(stderr,
			"%s is marked, but %u process%s may still use it: wait some seconds before "
			"its cable is pulled\n",
			netdev, look.unseen, look.unseen == 1 ? "" : "es");
		return COMMAND_PROBLEM;
	}
	if (look.used) {
		fprintf(stderr,
			"%s is still in use: %u connection%s. It stays marked; `fi_mesh undrain "
			"%s` takes that back\n",
			netdev, look.used, look.used == 1 ? "" : "s", netdev);
		return COMMAND_PROBLEM;
	}
	printf("%s is drained: %u connection%s of %u process%s use%s other paths. Its cable may be "
	       "pulled; `fi_mesh undrain %s` uses it again\n",
	       netdev, look.left, look.left == 1 ? "" : "s", look.processes,
	       look.processes == 1 ? "" : "es", look.left == 1 ? "s" : "", netdev);
	return COMMAND_FINE;
}

/* ---- the commands --------------------------------------------------------------------------- */

/* Returns an exit status, or -1 to go on. */
static int arguments_take(const struct option_table *table, int argc, char **argv,
			  struct options *options, const char **netdev)
{
	static struct mesh_config config;
	int first, status;

	*options = (struct options){.timeout_s = TIMEOUT_S};
	*netdev = NULL;
	status = option_table_parse(table, argc, argv, options, &first);
	if (status >= 0)
		return status;
	if (first != argc - 1)
		return arguments_misuse(table->who, "name one NIC");
	*netdev = argv[first];
	if (!mesh_drain_netdev_is_valid(*netdev))
		return arguments_misuse(table->who, "\"%.40s\" cannot be the name of a NIC",
					*netdev);
	mesh_config_load(NULL, NULL, &config);
	if (!options->stats_dir && !strcmp(config.stats_dir, MESH_STATS_NONE)) {
		fprintf(stderr,
			"%s: NCCL_MESH_STATS_DIR is none, so the processes have no folder in which "
			"to see the mark: unset it, for them as well\n",
			table->who);
		return COMMAND_PROBLEM;
	}
	if (!options->stats_dir)
		options->stats_dir = config.stats_dir;
	return -1;
}

int command_drain(int argc, char **argv)
{
	struct options options;
	const char *netdev;
	int status = arguments_take(&drain_table, argc, argv, &options, &netdev);

	if (status >= 0)
		return status;
	if (!if_nametoindex(netdev)) {
		fprintf(stderr,
			"fi_mesh drain: there is no NIC %s here; `fi_mesh nics` lists them\n",
			netdev);
		return COMMAND_PROBLEM;
	}
	interrupt_catch();
	status = marks_set(&options, netdev, true);
	if (status == COMMAND_FINE)
		status = drained_await(&options, netdev);
	return output_finish(drain_table.who, status);
}

int command_undrain(int argc, char **argv)
{
	struct options options;
	const char *netdev;
	int status = arguments_take(&undrain_table, argc, argv, &options, &netdev);

	if (status >= 0)
		return status;
	return marks_set(&options, netdev, false);
}
