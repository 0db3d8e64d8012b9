/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_setting.c - NCCL's and RCCL's settings, from the environment and from their files. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/nccl_setting.h"

/* NCCL reads files of any size; this is far more than anybody writes. */
#define CONF_MAX ((size_t)1 << 20)

/* ---- the text of one file ---------------------------------------------------------------- */

static size_t shorter(size_t len)
{
	return len < NCCL_CONF_VALUE_MAX ? len : NCCL_CONF_VALUE_MAX;
}

bool nccl_conf_next(const char **at, int *number, struct nccl_conf_line *line)
{
	const char *begin, *equals;
	size_t len;

	while (**at) {
		begin = *at;
		len = strcspn(begin, "\n");
		*at += len + (begin[len] == '\n');
		++*number;
		equals = *begin == '#' ? NULL : memchr(begin, '=', len);
		if (!equals)
			continue;
		*line = (struct nccl_conf_line){
			.name = begin,
			.value = equals + 1,
			.name_len = shorter((size_t)(equals - begin)),
			.value_len = shorter((size_t)(begin + len - (equals + 1))),
			.number = *number,
		};
		return true;
	}
	return false;
}

static bool line_sets(const struct nccl_conf_line *line, const char *name)
{
	return line->name_len == strlen(name) && !memcmp(line->name, name, line->name_len);
}

int nccl_conf_find(const char *text, const char *name, char *value, size_t size)
{
	struct nccl_conf_line line;
	int number = 0;

	while (nccl_conf_next(&text, &number, &line)) {
		if (!line_sets(&line, name))
			continue;
		if (line.value_len >= size)
			return 0;
		memcpy(value, line.value, line.value_len);
		value[line.value_len] = '\0';
		return number;
	}
	return 0;
}

/* ---- all places, in NCCL's order --------------------------------------------------------- */

const char *nccl_conf_system_file(bool is_rccl)
{
	return is_rccl ? "/etc/rccl.conf" : "/etc/nccl.conf";
}

bool nccl_conf_home_file(bool is_rccl, char *path)
{
	const struct passwd *user;

	/* cppcheck-suppress getpwuidCalled ; one thread */
	user = getpwuid(getuid());
	return user && *user->pw_dir &&
	       snprintf(path, PATH_MAX, "%s/.%s.conf", user->pw_dir, is_rccl ? "rccl" : "nccl") <
		       PATH_MAX;
}

void nccl_conf_files_list(bool is_rccl, struct nccl_conf_files *list)
{
	const char *instead = getenv("NCCL_CONF_FILE");

	list->num = 0;
	if (instead && *instead) {
		if (snprintf(list->paths[0], PATH_MAX, "%s", instead) < PATH_MAX)
			list->num++;
	} else if (nccl_conf_home_file(is_rccl, list->paths[0])) {
		list->num++;
	}
	strcpy(list->paths[list->num++], nccl_conf_system_file(is_rccl));
}

char *nccl_conf_read(const struct mesh_sysfs *files, const char *path)
{
	char *text = malloc(CONF_MAX);

	while (*path == '/')
		path++;
	if (text && mesh_sysfs_read(files, text, CONF_MAX, "%s", path)) {
		free(text);
		text = NULL;
	}
	return text;
}

bool nccl_setting_find(const struct mesh_sysfs *files, bool is_rccl, const char *name,
		       struct nccl_setting *setting)
{
	const char *value = getenv(name);
	struct nccl_conf_files list;
	char *text;
	int i;

	if (value) {
		setting->line = 0;
		strcpy(setting->origin, "the environment");
		return snprintf(setting->value, sizeof(setting->value), "%s", value) <
		       (int)sizeof(setting->value);
	}
	nccl_conf_files_list(is_rccl, &list);
	for (i = 0; i < list.num; i++) {
		text = nccl_conf_read(files, list.paths[i]);
		setting->line =
			text ? nccl_conf_find(text, name, setting->value, sizeof(setting->value))
			     : 0;
		free(text);
		if (!setting->line)
			continue;
		strcpy(setting->origin, list.paths[i]);
		return true;
	}
	return false;
}
