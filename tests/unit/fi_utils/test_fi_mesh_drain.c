/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_drain.c - what `fi_mesh drain` makes of the pages of the processes. */
#include "commands.h"
#include "common/output.h"
#include "system/stats_file.h"

#include "printed.h"
#include "unit.h"

#define NIC "lo" /* each machine has it */

static char folder[] = "/tmp/test_fi_mesh_drain.XXXXXX";
static struct mesh_stats_file file; /* this process's page */
static struct mesh_counters *path;  /* of its only path */

static void path_open(enum mesh_stats_via via)
{
	struct mesh_stats_link link = {.nic = NIC, .peer = "c", .via = via};

	assert_int_equal(mesh_addr_parse("10.1.0.1", &link.local), 0);
	assert_int_equal(mesh_addr_parse("10.1.0.2", &link.remote), 0);
	path = mesh_stats_open(file.page, &link, 1);
	assert_non_null(path);
}

void tests_setup(void)
{
	strcpy(strrchr(folder, '.'), ".XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mesh_stats_file_open(folder, 1, "a", &file), 0);
}

void tests_teardown(void)
{
	mesh_drain_mark_set(file.folder_fd, NIC, false);
	mesh_stats_file_close(&file);
	assert_int_equal(rmdir(folder), 0);
}

/* Fails the test unless the command exits with @status and says @part. */
static void assert_drain(int status, const char *part)
{
	char arguments[100];

	snprintf(arguments, sizeof(arguments), "--timeout 0 --stats-dir %s " NIC, folder);
	COMMAND_ROWS(command_drain, {arguments, status});
	assert_has(status ? command_errors : printed(), part);
}

TEST(states)
{
	assert_drain(COMMAND_FINE, "lo is drained: 0 connections of 0 processes use other paths");
	path_open(MESH_STATS_DIRECT);
	assert_drain(COMMAND_PROBLEM, "1 connection with node c: no other path reaches that node");
	mesh_stats_parked_set(path, MESH_STATS_DRAINED);
	assert_drain(COMMAND_FINE, "lo is drained: 1 connection of 1 process uses other paths");
}

/* A relay keeps its circuits on the link, so that never ends. */
TEST(through_a_relay)
{
	path_open(MESH_STATS_RELAY);
	mesh_stats_parked_set(path, MESH_STATS_DRAINED);
	assert_drain(COMMAND_PROBLEM, "1 connection with node c: the relay there keeps its path");
}

/* What is not seen may use the NIC. */
TEST(not_all_is_seen)
{
	path_open(MESH_STATS_DIRECT);
	mesh_stats_parked_set(path, MESH_STATS_DRAINED);
	file.page->header.counters.unlisted = 1;
	assert_drain(COMMAND_PROBLEM, "has more connections than are listed");
	file.page->header.counters.unlisted = 0;
	file.page->header.version++;
	assert_drain(COMMAND_PROBLEM, ": cannot read what it uses");
}
