/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - settings of the plugin in the files that NCCL reads. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nccl_setting.h"
#include "config/files.h"
#include "system/sysfs.h"

#define PREFIX "NCCL_MESH_"
/* There are fewer settings; lines beyond that many are left out. */
#define TAKEN_MAX 64
#define NAME_MAX_BYTES 64

/* What came from a file; the process is the command. */
static struct {
	char name[NAME_MAX_BYTES];
	char origin[PATH_MAX + 32];
} taken[TAKEN_MAX];
static int num_taken;

/* Takes one line, as NCCL does: behind the environment, and behind earlier lines. */
static int line_take(const char *path, const struct nccl_conf_line *line)
{
	char value[NCCL_CONF_VALUE_MAX + 1];
	size_t len = line->value_len;

	if (line->name_len >= NAME_MAX_BYTES || line->name_len <= strlen(PREFIX) ||
	    memcmp(line->name, PREFIX, strlen(PREFIX)) || num_taken == TAKEN_MAX)
		return 0;
	if (len > NCCL_CONF_VALUE_MAX)
		len = NCCL_CONF_VALUE_MAX;
	memcpy(value, line->value, len);
	value[len] = '\0';
	snprintf(taken[num_taken].name, NAME_MAX_BYTES, "%.*s", (int)line->name_len, line->name);
	if (getenv(taken[num_taken].name))
		return 0;
	if (setenv(taken[num_taken].name, value, 0))
		return -errno;
	snprintf(taken[num_taken].origin, sizeof(taken[num_taken].origin), "%s, line %d", path,
		 line->number);
	num_taken++;
	return 0;
}

int config_files_take(void)
{
	struct nccl_conf_files list;
	struct mesh_sysfs root;
	int i, number, ret;

	num_taken = 0;
	ret = mesh_sysfs_open("/", &root);
	if (ret)
		return ret;
	nccl_conf_files_list(false, &list);
	for (i = 0; i < list.num && !ret; i++) {
		char *text = nccl_conf_read(&root, list.paths[i]);
		const char *at = text;
		struct nccl_conf_line line;

		number = 0;
		while (text && !ret && nccl_conf_next(&at, &number, &line))
			ret = line_take(list.paths[i], &line);
		free(text);
	}
	mesh_sysfs_close(&root);
	return ret;
}

const char *config_origin(const char *name)
{
	const char *text = getenv(name);
	int i;

	for (i = 0; i < num_taken; i++)
		if (!strcmp(taken[i].name, name))
			return text && *text ? taken[i].origin : NULL;
	return text && *text ? "the environment" : NULL;
}
