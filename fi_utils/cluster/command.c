/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - starts the program in Python that drives other nodes over ssh (program/). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "common/output.h"

/* From the folder of fi_mesh: in the build folder, and where `scons install` puts it. */
static const char *const places[] = {"cluster", "../share/nccl-net-mesh/cluster"};

/* Finds the program's folder, and fi_mesh itself; both PATH_MAX bytes. False if it is missing. */
static bool program_find(char *folder, char *self)
{
	ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);
	char path[PATH_MAX];
	const char *slash;
	size_t i;

	if (len <= 0)
		return false;
	self[len] = '\0';
	slash = strrchr(self, '/');
	for (i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(path, sizeof(path), "%.*s%s/__main__.py", (int)(slash + 1 - self),
			     self, places[i]) >= (int)sizeof(path) ||
		    access(path, R_OK))
			continue;
		path[strlen(path) - strlen("/__main__.py")] = '\0';
		strcpy(folder, path);
		return true;
	}
	return false;
}

/* -B: the folder belongs to a package, and gets no compiled files. */
static int program_start(const char *name, int argc, char **argv)
{
	char folder[PATH_MAX], self[PATH_MAX];
	/* What stands before the arguments is five words; execvp() changes none of them. */
	char python[] = "python3", no_files[] = "-B", command[16];
	char **args = calloc((size_t)argc + 6, sizeof(*args));
	int i, num = 0;

	if (!args)
		return output_failure(program_invocation_short_name, -ENOMEM);
	if (!program_find(folder, self)) {
		fprintf(stderr,
			"fi_mesh %s: share/nccl-net-mesh/cluster is missing: install the "
			"whole package\n",
			name);
		free(args);
		return COMMAND_PROBLEM;
	}
	snprintf(command, sizeof(command), "%s", name);
	args[num++] = python;
	args[num++] = no_files;
	args[num++] = folder;
	args[num++] = self;
	args[num++] = command;
	for (i = 1; i < argc; i++)
		args[num++] = argv[i];
	args[num] = NULL;
	execvp(args[0], args);
	fprintf(stderr, "fi_mesh %s: cannot start python3: %s; install Python 3\n", name,
		strerror(errno));
	free(args);
	return COMMAND_PROBLEM;
}

int command_up(int argc, char **argv)
{
	return program_start("up", argc, argv);
}

int command_down(int argc, char **argv)
{
	return program_start("down", argc, argv);
}

int command_check_all(int argc, char **argv)
{
	return program_start("check", argc, argv);
}

bool check_all_is_wanted(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--all"))
			return true;
	return false;
}
