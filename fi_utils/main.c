/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fi_mesh: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

#include "command.h"

/* A new subcommand is one file, one prototype in command.h and one row here. */
static const struct command commands[] = {
	{"nics", command_nics, "list the NICs of this node, which carry the mesh, and why"},
	{"check", command_check, "find what keeps the mesh from working, and how to mend it"},
	{"plan", command_plan, "plan cables, addresses and configuration of a mesh"},
	{"topo", command_topo, "draw a mesh: text, Graphviz, JSON, SVG"},
	{NULL, NULL, NULL},
};

static void usage(FILE *file)
{
	const struct command *command;

	fprintf(file, "usage: fi_mesh COMMAND [OPTION...]\n\n");
	for (command = commands; command->name; command++)
		fprintf(file, "  %-10s %s\n", command->name, command->summary);
	fprintf(file, "\n`fi_mesh COMMAND --help` tells more. Exit status: 0 fine, 1 a problem was "
		      "found, 2 wrong use.\n");
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return COMMAND_MISUSE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return COMMAND_FINE;
	}
	for (command = commands; command->name; command++)
		if (!strcmp(argv[1], command->name))
			return command->run(argc - 1, argv + 1);
	fprintf(stderr, "fi_mesh: there is no command \"%s\"\n", argv[1]);
	usage(stderr);
	return COMMAND_MISUSE;
}
