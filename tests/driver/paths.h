/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - which way a comm goes: from the plugin's log line, or else from the NICs' counters. */
#ifndef DRIVER_PATHS_H
#define DRIVER_PATHS_H

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATHS_MAX 64
#define PATHS_NICS_MAX 128

struct path {
	char nic[64];
	char local[80], remote[80]; /* addresses; "" where not known */
	char via[160];		    /* "direct", or the nodes between; "" where not known */
};

struct path_list {
	struct path paths[PATHS_MAX];
	size_t num_paths;
};

/**
 * Adds what a log line says, if it holds
 *   path: from=<node> to=<node> nic=<netdev> local=<addr> remote=<addr> via=<direct|node...>
 * A path that is in the list already is not added again.
 */
void paths_take_line(struct path_list *list, const char *line);

/** Adds the paths of @more that @list lacks. */
void paths_merge(struct path_list *list, const struct path_list *more);

/** A new JSON array of the paths. */
json_t *paths_json(const struct path_list *list);

/* tx_bytes of all NICs at one moment. */
struct nic_counters {
	struct {
		char nic[IF_NAMESIZE];
		uint64_t tx_bytes;
	} nics[PATHS_NICS_MAX];
	size_t num_nics;
};

/** Reads /sys/class/net. */
void nic_counters_read(struct nic_counters *counters);

/** Adds the NIC that sent most since @before as a path of which only the NIC is known. */
void nic_counters_guess(const struct nic_counters *before, struct path_list *list);

#endif
