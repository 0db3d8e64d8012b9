/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_opener.c - opens a net plugin by NCCL's rules, and says which it is. It needs the C library
 * only, so that it runs in the root of any distribution.
 *
 * Usage: nccl_opener [--before-2.21] [--rccl]
 * Reads the configuration files (NCCL: src/misc/param.cc), then tries the names of NCCL_NET_PLUGIN
 * (src/plugin/plugin_open.cc, before 2.21 src/net.cc). Prints "FILE NAME_OF_TABLE", then the
 * settings NCCL_NET, NCCL_NET_PLUGIN_REF_COUNT and NCCL_SOCKET_IFNAME, each as it has become.
 * Exit status 0; 1 if there is no plugin, with the loader's words.
 */
#include <dlfcn.h>
#include <link.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name that a table of any version begins with. */
struct table {
	const char *name;
};

static const char *const versions[] = {
	"ncclNetPlugin_v12", "ncclNetPlugin_v11", "ncclNetPlugin_v10", "ncclNetPlugin_v9",
	"ncclNetPlugin_v8",  "ncclNetPlugin_v7",  "ncclNetPlugin_v6",
};

static void file_apply(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *equals;
	size_t size = 0;
	ssize_t len;

	while (file && (len = getline(&line, &size, file)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		equals = *line == '#' ? NULL : strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		setenv(line, equals + 1, 0);
	}
	free(line);
	if (file)
		fclose(file);
}

static void files_apply(const char *library)
{
	const char *instead = getenv("NCCL_CONF_FILE");
	const struct passwd *user = getpwuid(getuid());
	char path[4096];

	if (instead && *instead) {
		file_apply(instead);
	} else if (user) {
		snprintf(path, sizeof(path), "%s/.%s.conf", user->pw_dir, library);
		file_apply(path);
	}
	snprintf(path, sizeof(path), "/etc/%s.conf", library);
	file_apply(path);
}

/* True if it has a table of NCCL's, which is printed. */
static bool plugin_show(void *handle)
{
	const struct table *table = NULL;
	struct link_map *map;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && !table; i++)
		table = dlsym(handle, versions[i]);
	if (table && !dlinfo(handle, RTLD_DI_LINKMAP, &map))
		printf("%s %s\n", map->l_name, table->name);
	return table;
}

static bool file_try(const char *file)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	return handle && plugin_show(handle);
}

/* One name of the list. @is_old: NCCL before 2.21 and RCCL before 2.22 take no path. */
static bool name_try(const char *library, const char *name, bool is_old)
{
	char file[4096];

	if (!is_old && file_try(name))
		return true;
	snprintf(file, sizeof(file), "lib%s-net-%s.so", library, name);
	return file_try(file);
}

static bool list_try(const char *library, bool is_old)
{
	const char *list = getenv("NCCL_NET_PLUGIN");
	char file[4096], *copy = strdup(list ? list : ""), *rest = copy, *name;
	bool found = false;

	while (copy && !found && (name = strsep(&rest, ",")))
		found = *name && name_try(library, name, is_old);
	free(copy);
	if (list)
		return found;
	snprintf(file, sizeof(file), "lib%s-net.so", library);
	return file_try(file);
}

int main(int argc, char **argv)
{
	static const char *const shown[] = {"NCCL_NET", "NCCL_NET_PLUGIN_REF_COUNT",
					    "NCCL_SOCKET_IFNAME"};
	const char *library = "nccl";
	bool is_old = false;

	for (; argc > 1; argc--) {
		if (!strcmp(argv[argc - 1], "--rccl"))
			library = "rccl";
		else if (!strcmp(argv[argc - 1], "--before-2.21"))
			is_old = true;
		else
			return 2;
	}
	files_apply(library);
	if (!list_try(library, is_old))
		return 1;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		printf("%s=%s\n", shown[i], getenv(shown[i]) ? getenv(shown[i]) : "(not set)");
	return 0;
}
