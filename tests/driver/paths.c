/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - reads path lines and NIC counters. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "paths.h"

/* Copies the value of " key=value" up to the next blank; "" if it is not there or too long. */
static void take_value(const char *line, const char *key, char *value, size_t size)
{
	const char *at = strstr(line, key);
	size_t length;

	value[0] = '\0';
	if (!at)
		return;
	at += strlen(key);
	length = strcspn(at, " \t\n");
	if (length >= size)
		return;
	memcpy(value, at, length);
	value[length] = '\0';
}

static bool path_equal(const struct path *a, const struct path *b)
{
	return !strcmp(a->nic, b->nic) && !strcmp(a->local, b->local) &&
	       !strcmp(a->remote, b->remote) && !strcmp(a->via, b->via);
}

static void add(struct path_list *list, const struct path *path)
{
	for (size_t i = 0; i < list->num_paths; i++)
		if (path_equal(&list->paths[i], path))
			return;
	if (list->num_paths < PATHS_MAX)
		list->paths[list->num_paths++] = *path;
}

void paths_take_line(struct path_list *list, const char *line)
{
	const char *at = strstr(line, "path: from=");
	struct path path = {.nic = ""};

	if (!at)
		return;
	take_value(at, " nic=", path.nic, sizeof(path.nic));
	take_value(at, " local=", path.local, sizeof(path.local));
	take_value(at, " remote=", path.remote, sizeof(path.remote));
	take_value(at, " via=", path.via, sizeof(path.via));
	if (path.nic[0])
		add(list, &path);
}

void paths_merge(struct path_list *list, const struct path_list *more)
{
	for (size_t i = 0; i < more->num_paths; i++)
		add(list, &more->paths[i]);
}

static void set_text(json_t *object, const char *key, const char *text)
{
	json_t *value = text[0] ? json_string(text) : NULL;

	json_object_set_new(object, key, value ? value : json_null());
}

json_t *paths_json(const struct path_list *list)
{
	json_t *array = json_array(), *object;

	for (size_t i = 0; i < list->num_paths; i++) {
		object = json_object();
		set_text(object, "nic", list->paths[i].nic);
		set_text(object, "local", list->paths[i].local);
		set_text(object, "remote", list->paths[i].remote);
		set_text(object, "via", list->paths[i].via);
		json_array_append_new(array, object);
	}
	return array;
}

static bool read_tx_bytes(const char *nic, uint64_t *bytes)
{
	char path[512];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/tx_bytes", nic);
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fscanf(file, "%" SCNu64, bytes) == 1;
	fclose(file);
	return ok;
}

void nic_counters_read(struct nic_counters *counters)
{
	DIR *dir = opendir("/sys/class/net");
	struct dirent *entry;

	counters->num_nics = 0;
	if (!dir)
		return;
	while ((entry = readdir(dir)) && counters->num_nics < PATHS_NICS_MAX) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= IF_NAMESIZE)
			continue;
		if (!read_tx_bytes(entry->d_name, &counters->nics[counters->num_nics].tx_bytes))
			continue;
		strcpy(counters->nics[counters->num_nics++].nic, entry->d_name);
	}
	closedir(dir);
}

static uint64_t growth(const struct nic_counters *before, const char *nic, uint64_t now)
{
	for (size_t i = 0; i < before->num_nics; i++)
		if (!strcmp(before->nics[i].nic, nic) && now > before->nics[i].tx_bytes)
			return now - before->nics[i].tx_bytes;
	return 0;
}

void nic_counters_guess(const struct nic_counters *before, struct path_list *list)
{
	struct nic_counters after;
	struct path path = {.nic = ""};
	uint64_t most = 0, grown;

	nic_counters_read(&after);
	for (size_t i = 0; i < after.num_nics; i++) {
		grown = growth(before, after.nics[i].nic, after.nics[i].tx_bytes);
		if (grown <= most)
			continue;
		most = grown;
		snprintf(path.nic, sizeof(path.nic), "%s", after.nics[i].nic);
	}
	if (path.nic[0])
		add(list, &path);
}
