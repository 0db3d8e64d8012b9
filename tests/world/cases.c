/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c - lets the events of a case happen, and runs each case in a process of its own. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

/* A cable that is not used carries less than this, and one that is used carries more. */
#define DATA_BYTES (256 << 10)

/* What cables have carried at the moments of events. */
static struct moment {
	uint64_t ms, bytes[WORLD_CABLES_MAX];
} before, latest;

static void carried_look(const struct event *event)
{
	uint64_t bytes, least = DATA_BYTES;

	if (event->ms != latest.ms) { /* the first one at this moment */
		before = latest;
		latest.ms = event->ms;
		for (int i = 0; i < world.num_cables; i++)
			latest.bytes[i] = world.cables[i].bytes;
	}
	bytes = latest.bytes[event->which] - before.bytes[event->which];
	if (event->how > 1)
		least = (uint64_t)event->how * 125 * (latest.ms - before.ms);
	if (event->what == CARRIED && (bytes > least) != !!event->how)
		world_die("cable %d has carried %lu bytes", event->which, bytes);
}

void event_happen(const struct event *event)
{
	struct world_node *node = &world.nodes[event->which];
	struct world_cable *cable = &world.cables[event->which];

	switch (event->what) {
	case CABLE:
		world_cable_set(event->which, (enum world_cable_state)event->how);
		break;
	case RESET:
		world_cable_reset(event->which);
		break;
	case RATE:
		world_say("cable %d has %d Mbit/s", event->which, event->how);
		cable->mbps = (uint64_t)event->how;
		break;
	case DELAY:
		world_say("cable %d takes %d ms", event->which, event->how);
		cable->delay_ns = (uint64_t)event->how * WORLD_MS;
		break;
	case PLUG:
		world_say("a cable joins %s", node->name);
		world_cable_add(node, &world.nodes[event->how], 100, 20);
		break;
	case ADDRESS:
		world_address_set(node, event->how < 0 ? -1 - event->how : event->how,
				  event->how >= 0);
		break;
	case CLOSED_PORT:
		node->closed_port = (uint16_t)event->how;
		break;
	case FREEZE:
		world_freeze(node, event->how);
		break;
	case DESCRIPTORS:
		world_descriptors_limit(node, event->how);
		break;
	case KILL:
		play_kill(event->which);
		break;
	case START:
		play_restart(event->which);
		break;
	case DRAIN:
	case UNDRAIN:
		play_drain(event->which, event->how, event->what == DRAIN);
		break;
	case REST:
		play_rest(event->how);
		break;
	case ABORT:
		play_abort(event->which, event->how);
		break;
	case CARRIED:
	case END:
		break;
	}
	carried_look(event);
	play_look();
}

void case_end(void)
{
	if (rank_expects)
		world_die("no log has said: %s", rank_expects);
	_exit(0);
}

void case_run(const struct test_case *test)
{
	const struct event *event = test->events;
	uint64_t begin_ns;

	play.gap_ns = test->gap_ms * WORLD_MS;
	play.quiet = test->events[0].what == END;
	play.settings = test->settings;
	play.absent = test->absent;
	if (test->message_kib)
		rank_message_bytes = (size_t)test->message_kib << 10;
	rank_expects = test->says;
	rank_excludes = test->says_not;
	play_begin(1, test->cabling);
	do
		play_turn();
	while (!play_is_connected());
	begin_ns = world.now_ns;
	play.ends = rank_fails = test->fails_until_ms;
	play.fails_from_ns = begin_ns + test->fails_from_ms * WORLD_MS;
	play.fails_until_ns = begin_ns + test->fails_until_ms * WORLD_MS;
	do {
		while (world.now_ns < begin_ns + event->ms * WORLD_MS)
			play_turn();
		event_happen(event);
	} while ((event++)->what != END);
	if (rank_fails)
		play_check_failed(test->says, test->lines);
	play_end(1);
	case_end();
}

static int file_remove(const char *path, const struct stat *stat, int type, struct FTW *place)
{
	return remove(path);
}

/* Each case in a process of its own. Returns whether it passes. */
static bool case_passes(const char *name, void (*run)(int i), int i)
{
	char folder[] = "/dev/shm/world-XXXXXX";
	int status = 1;
	pid_t pid;

	printf("%s: ", name);
	fflush(stdout);
	play.folder = mkdtemp(folder);
	pid = fork();
	if (!pid)
		run(i);
	if (waitpid(pid, &status, 0) != pid)
		status = 1;
	nftw(folder, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	return !status;
}

static bool is_named(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return true;
	}
	return argc == 1;
}

int cases_main(int argc, char **argv, const char *(*name)(int i), void (*run)(int i))
{
	int i, status = 0;

	for (i = 0; name(i); i++) {
		if (is_named(name(i), argc, argv) && !case_passes(name(i), run, i))
			status = 1;
	}
	return status;
}
