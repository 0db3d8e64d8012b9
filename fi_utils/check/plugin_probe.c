/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_probe.c - loads a net plugin as NCCL does, and reads its tables. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/nccl_library.h"
#include "check/plugin_probe.h"
#include "common/child.h"

#define PROBE_TIMEOUT_MS 20000

static void library_look(void *library, struct plugin_probe *probe)
{
	struct link_map *map = NULL;
	char symbol[32];
	/* Every version of the table begins with its name (nccl_net.h). */
	const char *const *table;
	int version;

	if (dlinfo(library, RTLD_DI_LINKMAP, &map) || !map)
		return;
	snprintf(probe->path, sizeof(probe->path), "%s", map->l_name);
	for (version = 1; version <= NCCL_ABI_MAX; version++) {
		snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
		table = dlsym(library, symbol);
		if (!table)
			continue;
		probe->exported |= UINT32_C(1) << version;
		snprintf(probe->names[version], sizeof(probe->names[version]), "%s",
			 *table ? *table : "");
	}
}

static void all_write(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;
	ssize_t n;

	while (size) {
		n = write(fd, at, size);
		if (n <= 0)
			return;
		at += n;
		size -= (size_t)n;
	}
}

/* In the child. */
static void plugin_load(void *arg)
{
	/* A plugin's constructor may print: the answer goes to another descriptor. */
	int answer = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	struct plugin_probe probe;
	const char *error;
	void *library;

	dup2(STDERR_FILENO, STDOUT_FILENO);
	memset(&probe, 0, sizeof(probe));
	library = dlopen(arg, RTLD_NOW | RTLD_LOCAL); /* NCCL's flags (os/linux.cc) */
	if (library) {
		library_look(library, &probe);
	} else {
		error = dlerror();
		snprintf(probe.error, sizeof(probe.error), "%s", error ? error : "dlopen failed");
	}
	all_write(answer, &probe, sizeof(probe));
}

/* The child ran foreign code: terminate its texts, whatever it wrote. */
static void answer_trim(struct plugin_probe *probe)
{
	int version;

	probe->path[sizeof(probe->path) - 1] = '\0';
	probe->error[sizeof(probe->error) - 1] = '\0';
	for (version = 0; version <= NCCL_ABI_MAX; version++)
		probe->names[version][sizeof(probe->names[version]) - 1] = '\0';
}

/* Why there is no answer. */
static void silence_explain(int error, int status, struct plugin_probe *probe)
{
	if (error == -ETIMEDOUT)
		snprintf(probe->error, sizeof(probe->error), "loading it never ended");
	else if (WIFSIGNALED(status))
		snprintf(probe->error, sizeof(probe->error), "loading it ended the process (%s)",
			 strsignal(WTERMSIG(status)));
	else
		snprintf(probe->error, sizeof(probe->error),
			 "loading it ended the process (exit status %d)", WEXITSTATUS(status));
}

int plugin_probe(const char *name, struct plugin_probe *probe)
{
	struct child_result result;
	int ret = child_run(plugin_load, (void *)name, PROBE_TIMEOUT_MS, &result);

	memset(probe, 0, sizeof(*probe));
	if (ret && ret != -ETIMEDOUT)
		return ret;
	if (!ret && result.size == sizeof(*probe)) {
		memcpy(probe, result.output, sizeof(*probe));
		answer_trim(probe);
	} else {
		silence_explain(ret, result.status, probe);
	}
	free(result.output);
	return 0;
}
