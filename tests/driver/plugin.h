/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - finds and loads a net plugin as NCCL does, and hears what it logs. */
#ifndef DRIVER_PLUGIN_H
#define DRIVER_PLUGIN_H

#include "adapter.h"
#include "paths.h"

#define PLUGIN_ERROR_MAX 800
#define PLUGIN_DEVICES_MAX 64
#define PLUGIN_WARNING_MAX 600

struct plugin {
	void *library;
	struct adapter adapter;
	int num_devices;
	char file[512]; /* what was given to dlopen */
};

/**
 * Loads the plugin and takes the table of @abi, or of the newest one that it has for 0.
 *
 * @path: what --plugin says; NULL for libnccl-net-mesh.so beside this program, in ../lib or
 *        ../lib64, or by the loader
 * @error: says why it failed, PLUGIN_ERROR_MAX bytes
 *
 * Returns 0, or a negative errno.
 */
int plugin_load(struct plugin *plugin, const char *path, int abi, struct activity *activity,
		char *error);

/**
 * Calls init, devices and getProperties and judges the answers as NCCL would.
 *
 * @rank: for the lines that the plugin logs; @verbose: 0 warnings, 1 INFO, 2 TRACE
 */
int plugin_start(struct plugin *plugin, int rank, int verbose, char *error);

/** finalize and dlclose. Returns 0, or -EIO with @error. */
int plugin_stop(struct plugin *plugin, char *error);

/* What the plugin logged about one connection. */
struct plugin_words {
	struct path_list paths;
	char warning[PLUGIN_WARNING_MAX]; /* the last one; "" if there was none */
};

/**
 * Until the next call, what the plugin logs from this thread goes to @words, too (NULL: nowhere).
 */
void plugin_capture(struct plugin_words *words);

/**
 * Copies the last warning that the plugin logged from any thread (PLUGIN_WARNING_MAX bytes, "" if
 * there was none). Any thread may call this.
 *
 * Returns the number of warnings so far.
 */
unsigned long plugin_last_warning(char *text);

#endif
