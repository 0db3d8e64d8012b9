/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_probe.c - loads a net plugin the way NCCL does, and tells what it is. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mesh/base/clock.h>

#include "plugin_probe.h"

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

/* Never returns. */
__attribute__((noreturn)) static void child_run(const char *name, struct plugin_probe *probe,
						int fd)
{
	int null = open("/dev/null", O_RDWR);
	const char *error;
	void *library;

	/* Whatever ends us, Ctrl-C too, ends it; and a plugin's constructor may print. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* NCCL's flags (os/linux.cc) */
	if (library) {
		library_look(library, probe);
	} else {
		error = dlerror();
		snprintf(probe->error, sizeof(probe->error), "%s", error ? error : "dlopen failed");
	}
	all_write(fd, probe, sizeof(*probe));
	_exit(0);
}

/* Reads the child's whole answer; false if it ended or took too long. */
static bool answer_read(int fd, struct plugin_probe *probe)
{
	uint64_t end = mesh_clock_ms() + PROBE_TIMEOUT_MS, now;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(*probe) && (now = mesh_clock_ms()) < end) {
		if (poll(&poll_fd, 1, (int)(end - now)) <= 0)
			continue;
		n = read(fd, (char *)probe + len, sizeof(*probe) - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len == sizeof(*probe);
}

/* The child was foreign code: its texts end, whatever it wrote. */
static void answer_trim(struct plugin_probe *probe)
{
	int version;

	probe->path[sizeof(probe->path) - 1] = '\0';
	probe->error[sizeof(probe->error) - 1] = '\0';
	for (version = 0; version <= NCCL_ABI_MAX; version++)
		probe->names[version][sizeof(probe->names[version]) - 1] = '\0';
}

int plugin_probe(const char *name, struct plugin_probe *probe)
{
	int fds[2], status;
	bool answered;
	pid_t child;

	memset(probe, 0, sizeof(*probe));
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child)
		child_run(name, probe, fds[1]);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return -errno;
	}
	answered = answer_read(fds[0], probe);
	close(fds[0]);
	if (!answered)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!answered) {
		memset(probe, 0, sizeof(*probe));
		snprintf(probe->error, sizeof(probe->error), "%s", "loading it never ended");
		if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			snprintf(probe->error, sizeof(probe->error),
				 "loading it ended the process (%s)", strsignal(WTERMSIG(status)));
	}
	answer_trim(probe);
	return 0;
}
