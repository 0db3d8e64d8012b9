/* SPDX-License-Identifier: Apache-2.0 */
/* own_plugin.c - finds the plugin that was built or installed together with this program. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/own_plugin.h"

/* Debian's name of this machine's kind, as a folder of libraries. */
#ifdef __aarch64__
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

static bool has_plugin(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/" OWN_PLUGIN_FILE, folder) < (int)sizeof(path) &&
	       !access(path, R_OK);
}

bool own_plugin_folder(bool installed, char *folder)
{
	/* From the program's folder; Debian's packages install into the second one. */
	static const char *const places[] = {"", ("../lib/" MULTIARCH), "../lib", "../lib64"};
	char program[PATH_MAX], place[PATH_MAX], found[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash;
	size_t i;

	if (len <= 0)
		return false;
	program[len] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	for (i = installed ? 1 : 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(place, sizeof(place), "%s%s", program, places[i]) <
			    (int)sizeof(place) &&
		    realpath(place, found) && has_plugin(found)) {
			strcpy(folder, found);
			return true;
		}
	}
	return false;
}

bool own_plugin_is_named(const char *value)
{
	const char *slash = strrchr(value, '/');
	const char *file = slash ? slash + 1 : value;

	return !strcmp(value, OWN_PLUGIN_NAME) || !strcmp(file, OWN_PLUGIN_FILE) ||
	       !strcmp(file, OWN_PLUGIN_FILE_RCCL);
}
