/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_setting.c - NCCL's settings as NCCL would see them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/nccl_setting.h"

/* NCCL reads files of any size; this is far more than anybody writes. */
#define CONF_MAX 65536

bool nccl_conf_find(const char *text, const char *name, char *value, size_t size)
{
	size_t len = strlen(name), value_len;
	const char *line = text;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		line += strspn(line, " \t");
		if (strncmp(line, name, len) || line[len] != '=')
			continue;
		line += len + 1;
		value_len = strcspn(line, "\r\n");
		while (value_len && strchr(" \t", line[value_len - 1]))
			value_len--;
		if (value_len >= size)
			return false;
		memcpy(value, line, value_len);
		value[value_len] = '\0';
		return true;
	}
	return false;
}

static bool file_find(const struct mesh_sysfs *files, const char *path, const char *name,
		      struct nccl_setting *setting)
{
	char text[CONF_MAX];

	while (*path == '/')
		path++;
	if (mesh_sysfs_read(files, text, sizeof(text), "%s", path) ||
	    !nccl_conf_find(text, name, setting->value, sizeof(setting->value)))
		return false;
	snprintf(setting->origin, sizeof(setting->origin), "/%s", path);
	return true;
}

bool nccl_setting_find(const struct mesh_sysfs *files, const char *name,
		       struct nccl_setting *setting)
{
	const char *value = getenv(name), *conf = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
	char path[PATH_MAX];

	if (value) {
		if (snprintf(setting->value, sizeof(setting->value), "%s", value) >=
		    (int)sizeof(setting->value))
			return false;
		strcpy(setting->origin, "the environment");
		return true;
	}
	if (conf && *conf)
		return file_find(files, conf, name, setting) ||
		       file_find(files, "etc/nccl.conf", name, setting);
	if (home && snprintf(path, sizeof(path), "%s/.nccl.conf", home) < (int)sizeof(path) &&
	    file_find(files, path, name, setting))
		return true;
	return file_find(files, "etc/nccl.conf", name, setting);
}
