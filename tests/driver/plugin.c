/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - dlopen, the logger and profiler callbacks, and what NCCL demands of properties. */
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

#define DEFAULT_FILE "libnccl-net-mesh.so"
#define LINE_MAX_BYTES 2048
/* NCCL copies the last part of pciPath into char[16] (xml.cc, nvmlwrap.h). */
#define BUS_ID_MAX 15

/* NCCL's logger has no argument of ours, so these cannot be elsewhere. Set before init. */
static int logger_rank, logger_verbose;
static _Thread_local struct plugin_words *capture;

/* Its threads log, too. */
static pthread_mutex_t warning_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_warning[PLUGIN_WARNING_MAX];
static unsigned long num_warnings;

void plugin_capture(struct plugin_words *words)
{
	capture = words;
}

unsigned long plugin_last_warning(char *text)
{
	unsigned long n;

	pthread_mutex_lock(&warning_lock);
	memcpy(text, last_warning, sizeof(last_warning));
	n = num_warnings;
	pthread_mutex_unlock(&warning_lock);
	return n;
}

static void keep_warning(const char *text)
{
	if (capture)
		snprintf(capture->warning, PLUGIN_WARNING_MAX, "%.*s", PLUGIN_WARNING_MAX - 1,
			 text);
	pthread_mutex_lock(&warning_lock);
	snprintf(last_warning, PLUGIN_WARNING_MAX, "%.*s", PLUGIN_WARNING_MAX - 1, text);
	num_warnings++;
	pthread_mutex_unlock(&warning_lock);
}

static void logger(enum nccl_level level, unsigned long flags, const char *file, int line,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

static void logger(enum nccl_level level, unsigned long flags, const char *file, int line,
		   const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	int saved_errno = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (capture)
		paths_take_line(&capture->paths, text);
	if (level == NCCL_LEVEL_WARN)
		keep_warning(text);
	if (level == NCCL_LEVEL_WARN)
		fprintf(stderr, "rank %d: plugin warning: %s (%s:%d)\n", logger_rank, text,
			file ? file : "?", line);
	else if (level == NCCL_LEVEL_INFO && logger_verbose >= 1)
		fprintf(stderr, "rank %d: plugin info: %s\n", logger_rank, text);
	else if (level != NCCL_LEVEL_INFO && logger_verbose >= 2)
		fprintf(stderr, "rank %d: plugin trace: %s\n", logger_rank, text);
	errno = saved_errno;
}

/* As NCCL without a profiler plugin: nothing. */
static enum nccl_result profiler(void **event, int type, void *profiler_handle, int64_t plugin_id,
				 void *extra)
{
	/* Type 0 is start: NCCL dereferences the handle there. */
	if (type == 0 && !profiler_handle)
		fprintf(stderr,
			"rank %d: the plugin called the profiler with a NULL handle; NCCL would "
			"crash\n",
			logger_rank);
	return NCCL_RESULT_SUCCESS;
}

/* Beside this program, as built, or in lib/ beside its folder, as installed. */
static bool default_path(char *path, size_t size)
{
	static const char *const places[] = {"", "../lib/", "../lib64/"};
	char exe[PATH_MAX];
	const char *folder;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return false;
	exe[n] = '\0';
	folder = dirname(exe);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		n = snprintf(path, size, "%s/%s%s", folder, places[i], DEFAULT_FILE);
		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return true;
	}
	return false;
}

static int open_library(struct plugin *plugin, const char *path, char *error)
{
	const char *reason;

	if (path)
		snprintf(plugin->file, sizeof(plugin->file), "%s", path);
	else if (!default_path(plugin->file, sizeof(plugin->file)))
		snprintf(plugin->file, sizeof(plugin->file), "%s", DEFAULT_FILE);
	/* NCCL's flags (os/linux.cc): an unresolved symbol means not loaded. */
	plugin->library = dlopen(plugin->file, RTLD_NOW | RTLD_LOCAL);
	if (plugin->library)
		return 0;
	reason = dlerror();
	snprintf(error, PLUGIN_ERROR_MAX, "the plugin cannot be loaded: %s%s",
		 reason ? reason : "no reason given", path ? "" : " (give its path with --plugin)");
	return -ENOENT;
}

static int take_table(struct plugin *plugin, int abi, struct activity *activity, char *error)
{
	int newest = abi ? abi : ADAPTER_ABI_NEWEST, oldest = abi ? abi : ADAPTER_ABI_OLDEST;
	const char *missing;
	const void *table;

	for (int version = newest; version >= oldest; version--) {
		table = dlsym(plugin->library, adapter_symbol(version));
		if (!table)
			continue;
		adapter_bind(&plugin->adapter, version, table, activity);
		missing = adapter_missing(&plugin->adapter);
		if (!missing)
			return 0;
		snprintf(error, PLUGIN_ERROR_MAX, "%s: %s has no %s", plugin->file,
			 adapter_symbol(version), missing);
		return -EINVAL;
	}
	if (abi)
		snprintf(error, PLUGIN_ERROR_MAX, "%s does not export %s", plugin->file,
			 adapter_symbol(abi));
	else
		snprintf(error, PLUGIN_ERROR_MAX, "%s exports no ncclNetPlugin_v%d to _v%d",
			 plugin->file, ADAPTER_ABI_OLDEST, ADAPTER_ABI_NEWEST);
	return -EINVAL;
}

int plugin_load(struct plugin *plugin, const char *path, int abi, struct activity *activity,
		char *error)
{
	int rc;

	memset(plugin, 0, sizeof(*plugin));
	rc = open_library(plugin, path, error);
	if (rc)
		return rc;
	rc = take_table(plugin, abi, activity, error);
	if (rc)
		dlclose(plugin->library);
	return rc;
}

static int bad_property(int dev, char *error, const char *words)
{
	snprintf(error, PLUGIN_ERROR_MAX, "getProperties of device %d: %s", dev, words);
	return -EINVAL;
}

/* What NCCL checks, and what makes it overrun a buffer if it is wrong. */
static int judge(const struct nccl_net_properties_newest *p, int abi, int dev, char *error)
{
	const char *last = p->identity.pci_path ? strrchr(p->identity.pci_path, '/') : NULL;

	if (!p->identity.name || !p->identity.name[0] || strlen(p->identity.name) > 255)
		return bad_property(dev, error, "the name is empty or too long");
	if (last && strlen(last + 1) > BUS_ID_MAX)
		return bad_property(dev, error,
				    "the last part of pciPath has more than 15 characters");
	if (!(p->pointer_support & NCCL_POINTER_HOST))
		return bad_property(dev, error, "ptrSupport lacks host memory");
	if (p->device.type != NCCL_DEVICE_HOST)
		return bad_property(dev, error, "netDeviceType is not HOST");
	if (p->link.max_receives < 1 || p->link.max_comms < 1)
		return bad_property(dev, error, "maxRecvs or maxComms is less than 1");
	if (p->members.num_devs < 1 || p->members.num_devs > (abi == 12 ? 8 : 4))
		return bad_property(dev, error, "vProps.ndevs is out of range");
	if (!p->limits.max_p2p_bytes || p->limits.max_p2p_bytes > NCCL_PROPERTY_BYTES_MAX ||
	    !p->limits.max_coll_bytes || p->limits.max_coll_bytes > NCCL_PROPERTY_BYTES_MAX)
		return bad_property(dev, error, "maxP2pBytes or maxCollBytes is out of range");
	return 0;
}

static int read_properties(const struct plugin *plugin, int dev,
			   struct nccl_net_properties_newest *properties, char *error)
{
	char unset[ADAPTER_UNSET_MAX], words[ADAPTER_UNSET_MAX + 40];
	enum nccl_result result = adapter_properties(&plugin->adapter, dev, properties, unset);

	if (result)
		return bad_property(dev, error, adapter_result_text(result));
	if (unset[0]) {
		snprintf(words, sizeof(words), "these fields were not written: %s", unset);
		return bad_property(dev, error, words);
	}
	return judge(properties, plugin->adapter.abi, dev, error);
}

/* NCCL merges NICs by name, and takes an equal guid and port for one physical port. */
static int judge_together(const struct nccl_net_properties_newest *all, int n, char *error)
{
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < i; j++) {
			if (!strcmp(all[i].identity.name, all[j].identity.name))
				return bad_property(i, error, "another device has the same name");
		}
	}
	return 0;
}

static int start_devices(struct plugin *plugin, char *error)
{
	struct nccl_net_properties_newest all[PLUGIN_DEVICES_MAX];
	int rc = 0, n = -1;
	enum nccl_result result = adapter_devices(&plugin->adapter, &n);

	if (result || n <= 0) {
		snprintf(error, PLUGIN_ERROR_MAX, "devices(): %s, %d devices",
			 adapter_result_text(result), n);
		return -ENODEV;
	}
	if (n > PLUGIN_DEVICES_MAX)
		n = PLUGIN_DEVICES_MAX;
	plugin->num_devices = n;
	for (int dev = 0; dev < n && !rc; dev++)
		rc = read_properties(plugin, dev, &all[dev], error);
	return rc ? rc : judge_together(all, n, error);
}

int plugin_start(struct plugin *plugin, int rank, int verbose, char *error)
{
	enum nccl_result result;
	int rc;

	logger_rank = rank;
	logger_verbose = verbose;
	result = adapter_init(&plugin->adapter, 0x6d657368ull, logger, profiler);
	if (result) {
		snprintf(error, PLUGIN_ERROR_MAX, "init() of plugin %s returned %s",
			 plugin->adapter.plugin_name, adapter_result_text(result));
		rc = -EIO;
		goto close_library;
	}
	rc = start_devices(plugin, error);
	if (!rc)
		return 0;
	adapter_finalize(&plugin->adapter);
close_library:
	dlclose(plugin->library);
	return rc;
}

int plugin_stop(struct plugin *plugin, char *error)
{
	enum nccl_result result = adapter_finalize(&plugin->adapter);

	if (result) {
		snprintf(error, PLUGIN_ERROR_MAX, "finalize() returned %s",
			 adapter_result_text(result));
		return -EIO;
	}
#ifndef __SANITIZE_ADDRESS__
	/* The leak report could not name the functions of a library that was unloaded. */
	dlclose(plugin->library);
#endif
	return 0;
}
