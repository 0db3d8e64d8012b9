/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fi_mesh: finds the subcommand and runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

#include "base/log.h"
#include "base/version.h"
#include "wire/protocol.h"

#include "commands.h"
#include "common/output.h"

struct command {
	const char *name;
	/* argv[0] is the subcommand's name; returns an exit status. */
	int (*run)(int argc, char **argv);
	const char *summary; /* one line for `fi_mesh --help`; NULL: not for users */
};

/* A new subcommand is a folder with command.c, a line in commands.h, and one row here. */
static const struct command commands[] = {
	{"nics", command_nics, "list the NICs of this node, which carry the mesh, and why"},
	{"check", command_check, "find what keeps the mesh from working, and how to fix it"},
	{"enable", command_enable, "make NCCL use the plugin, through its configuration file"},
	{"disable", command_disable, "take that back"},
	{"neighbours", command_neighbours,
	 "show which node is at the end of each link, and what is wrong"},
	{"plan", command_plan, "plan cables, addresses and configuration of a mesh"},
	{"up", command_up, "find the cables between nodes, configure all, check the links"},
	{"down", command_down, "undo what `fi_mesh up` has changed"},
	{"topo", command_topo, "draw a mesh: text, Graphviz, JSON, SVG"},
	{"serve", command_serve, "answer `check --peer` and `neighbours` of other nodes"},
	{"serve-measure", command_serve_measure, NULL}, /* a child of serve */
	{"watch", command_watch, "show the traffic of each NIC and to each peer; is it RDMA?"},
	{"drain", command_drain, "take a NIC out of use, so that its cable can be pulled"},
	{"undrain", command_undrain, "use it again"},
	{"config", command_config, "list the settings, NCCL_MESH_*, and their values here"},
	{NULL, NULL, NULL},
};

static void usage(FILE *file)
{
	const struct command *command;

	fprintf(file, "usage: fi_mesh COMMAND [OPTION...]\n\n");
	for (command = commands; command->name; command++)
		if (command->summary)
			fprintf(file, "  %-10s %s\n", command->name, command->summary);
	fprintf(file, "\n`fi_mesh COMMAND --help` has more, `fi_mesh --version` the protocol "
		      "version.\nExit status: 0 fine, 1 a problem was found, 2 usage error.\n");
}

/* These must be the same on all nodes, and belong into a bug report. */
static void version_print(void)
{
	const uint32_t libfabric = fi_version();

	printf("fi_mesh of nccl-net-mesh %s, protocol version %d, libfabric %u.%u\n",
	       mesh_version(), MESH_PROTOCOL_VERSION, FI_MAJOR(libfabric), FI_MINOR(libfabric));
}

/*
 * Resets SIGINT and SIGTERM: Debian's libfabric loads libinfinipath, whose constructor makes Ctrl-C
 * exit with status 1, which means "a problem was found" here. We have not set a handler yet.
 */
static void foreign_handlers_remove(void)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct sigaction action;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &action) && action.sa_handler != SIG_IGN)
			signal(signals[i], SIG_DFL);
}

/* Prints the log of the plugin's code in the form of the subcommand's messages. */
static void log_print(enum mesh_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level == MESH_LOG_WARN)
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

/* getopt() begins its messages with argv[0]. */
static int command_run(const struct command *command, int argc, char **argv)
{
	static char name[32]; /* errno.h's variable keeps it */

	snprintf(name, sizeof(name), "fi_mesh %s", command->name);
	argv[0] = program_invocation_short_name = name;
	mesh_log_sink_set(log_print);
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct command *command;

	foreign_handlers_remove();
	if (argc < 2) {
		usage(stderr);
		return COMMAND_MISUSE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return COMMAND_FINE;
	}
	if (!strcmp(argv[1], "--version")) {
		version_print();
		return COMMAND_FINE;
	}
	for (command = commands; command->name; command++)
		if (!strcmp(argv[1], command->name))
			return command_run(command, argc - 1, argv + 1);
	fprintf(stderr, "fi_mesh: unknown command \"%s\"\n", argv[1]);
	usage(stderr);
	return COMMAND_MISUSE;
}
