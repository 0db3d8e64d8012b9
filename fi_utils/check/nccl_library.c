/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_library.c - the NCCL or RCCL of this machine, what it wants of a plugin, what that has. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/nccl_library.h"
#include "common/child.h"

/* ---- what is in it ---------------------------------------------------------------------- */

/* The symbols that dlsym() is asked for stand in the library as texts (src/plugin/net of NCCL). */
static void asked_scan(const char *bytes, size_t size, struct nccl_library *library)
{
	static const char name[] = "ncclNetPlugin_v";
	const char *at = bytes, *end = bytes + size;
	unsigned int number;

	while ((at = memmem(at, (size_t)(end - at), name, sizeof(name) - 1))) {
		at += sizeof(name) - 1;
		for (number = 0; at < end && isdigit((unsigned char)*at) && number < 100; at++)
			number = 10 * number + (unsigned int)(*at - '0');
		if (number && number <= NCCL_ABI_MAX && at < end && !*at)
			library->asked |= UINT32_C(1) << number;
	}
}

/*
 * "NCCL version 2.28.3+cuda12.9", which it prints with NCCL_DEBUG=VERSION; RCCL's is "RCCL version
 * 2.18.3+hip6.0" or "RCCL version : 2.22.3" (init.cc).
 */
static void version_scan(const char *bytes, size_t size, struct nccl_library *library)
{
	static const char name[] = "CCL version ";
	const char *at = bytes, *end = bytes + size;
	size_t len;

	while ((at = memmem(at, (size_t)(end - at), name, sizeof(name) - 1))) {
		at += sizeof(name) - 1;
		if (end - at > 2 && !memcmp(at, ": ", 2))
			at += 2;
		for (len = 0; at + len < end && len < sizeof(library->version) - 1; len++)
			if (!isalnum((unsigned char)at[len]) && !memchr(".+-_", at[len], 4))
				break;
		if (!len || !isdigit((unsigned char)*at))
			continue; /* a format such as "NCCL version %s" */
		memcpy(library->version, at, len);
		library->version[len] = '\0';
		return;
	}
}

void nccl_library_scan(const void *bytes, size_t size, struct nccl_library *library)
{
	library->asked = 0;
	*library->version = '\0';
	asked_scan(bytes, size, library);
	version_scan(bytes, size, library);
}

/* One part of a version: one or two digits. sscanf() alone would take a sign or blanks as well. */
static bool version_part_read(const char **at, unsigned int *part)
{
	int len;

	if (!isdigit((unsigned char)**at) || sscanf(*at, "%2u%n", part, &len) != 1)
		return false;
	*at += len;
	return true;
}

int nccl_version_number(const char *version)
{
	unsigned int major, minor, patch;

	if (!version_part_read(&version, &major) || *version++ != '.' ||
	    !version_part_read(&version, &minor) || *version++ != '.' ||
	    !version_part_read(&version, &patch))
		return 0;
	return (int)(10000 * major + 100 * minor + patch);
}

const char *nccl_library_name(const struct nccl_library *library)
{
	return library->is_rccl ? "RCCL" : "NCCL";
}

/* NCCL's and RCCL's first versions with an ncclOpenNetPluginLib() that tries the value as it is. */
#define NCCL_PATHS_FROM 22100
#define RCCL_PATHS_FROM 22200

bool nccl_takes_paths(const struct nccl_library *library)
{
	int version = nccl_version_number(library->version);

	return !version || version >= (library->is_rccl ? RCCL_PATHS_FROM : NCCL_PATHS_FROM);
}

/* ---- where it is ------------------------------------------------------------------------ */

static bool file_take(const char *path, struct nccl_library *library)
{
	struct stat info;

	if (stat(path, &info) || !S_ISREG(info.st_mode))
		return false;
	return snprintf(library->path, sizeof(library->path), "%s", path) <
	       (int)sizeof(library->path);
}

static bool is_nccl(const char *path)
{
	return strstr(path, "libnccl.so") || strstr(path, "librccl.so");
}

/* Entries of LD_PRELOAD are separated by blanks or colons. */
static bool preload_take(struct nccl_library *library)
{
	const char *list = getenv("LD_PRELOAD");
	char path[PATH_MAX];
	size_t len;

	for (; list && *list; list += len + (list[len] != '\0')) {
		len = strcspn(list, " :");
		if (snprintf(path, sizeof(path), "%.*s", (int)len, list) >= (int)sizeof(path))
			continue;
		if (is_nccl(path) && file_take(path, library))
			return true;
	}
	return false;
}

static bool folder_take(const char *folder, int len, struct nccl_library *library)
{
	static const char *const names[] = {"libnccl.so.2", "librccl.so.1"};
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (snprintf(path, sizeof(path), "%.*s/%s", len, folder, names[i]) <
			    (int)sizeof(path) &&
		    file_take(path, library))
			return true;
	return false;
}

static bool library_path_take(struct nccl_library *library)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	size_t len;

	for (; list && *list; list += len + (list[len] != '\0')) {
		len = strcspn(list, ":;");
		if (len && folder_take(list, (int)len, library))
			return true;
	}
	return false;
}

static bool pattern_take(const char *prefix, const char *pattern, struct nccl_library *library)
{
	char path[PATH_MAX];
	bool found = false;
	glob_t matches;
	size_t i;

	if (!prefix || snprintf(path, sizeof(path), "%s%s", prefix, pattern) >= (int)sizeof(path) ||
	    glob(path, 0, NULL, &matches))
		return false;
	for (i = 0; i < matches.gl_pathc && !found; i++)
		found = file_take(matches.gl_pathv[i], library);
	globfree(&matches);
	return found;
}

/* pip's nvidia-nccl package, and the RCCL inside torch. */
static bool python_take(const char *prefix, struct nccl_library *library)
{
	static const char *const patterns[] = {
		"/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
		"/lib/python3*/*-packages/torch/lib/librccl.so*",
		"/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2",
	};
	size_t i;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (pattern_take(prefix, patterns[i], library))
			return true;
	return false;
}

static bool anywhere_take(struct nccl_library *library)
{
	static const char *const folders[] = {
		"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu",
		"/usr/lib64",
		"/usr/local/lib",
		"/usr/local/cuda/lib64",
		"/opt/rocm/lib",
	};
	const char *home = getenv("HOME"), *vllm = getenv("VLLM_NCCL_SO_PATH");
	size_t i;

	if ((vllm && file_take(vllm, library)) || preload_take(library) ||
	    library_path_take(library) || python_take(getenv("VIRTUAL_ENV"), library) ||
	    python_take(getenv("CONDA_PREFIX"), library) ||
	    pattern_take(home, "/.local/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
			 library) ||
	    python_take("/usr/local", library) || python_take("/usr", library))
		return true;
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (folder_take(folders[i], (int)strlen(folders[i]), library))
			return true;
	return false;
}

/* Sets path and is_rccl. */
static bool library_locate(const char *file, struct nccl_library *library)
{
	const char *slash;

	memset(library, 0, sizeof(*library));
	if (file ? !file_take(file, library) : !anywhere_take(library))
		return false;
	slash = strrchr(library->path, '/');
	library->is_rccl = strstr(slash ? slash : library->path, "rccl");
	return true;
}

bool nccl_library_is_rccl(const char *file)
{
	struct nccl_library library;

	return library_locate(file, &library) && library.is_rccl;
}

int nccl_library_find(const char *file, struct nccl_library *library)
{
	struct stat info;
	void *bytes;
	int fd, ret = 0;

	if (!library_locate(file, library))
		return -ENOENT;
	fd = open(library->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info)) {
		ret = -errno;
	} else if (info.st_size) {
		bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes == MAP_FAILED) {
			ret = -errno;
		} else {
			nccl_library_scan(bytes, (size_t)info.st_size, library);
			munmap(bytes, (size_t)info.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

/* ---- plugins ---------------------------------------------------------------------------- */

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
		snprintf(probe->error, sizeof(probe->error), "loading it did not return");
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
