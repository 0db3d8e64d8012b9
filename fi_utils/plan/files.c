/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - the configuration files of a plan, printed or written into a folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/progress.h"
#include "plan/formats.h"
#include "plan/json.h"
#include "plan/plan.h"

/* The path of a file on the node; @port is used where each port has a file. */
static void file_path(const struct plan_format *format, const char *port, char *path, size_t size)
{
	const char *place = strstr(format->path, "%s");

	if (place)
		snprintf(path, size, "%.*s%s%s", (int)(place - format->path), format->path, port,
			 place + 2);
	else
		snprintf(path, size, "%s", format->path);
}

void plan_files_print(FILE *file, const struct mesh_plan *plan, const struct plan_ports *ports,
		      const struct plan_format *format, int node)
{
	const struct plan_port *own = ports->ports + ports->first[node];
	int num = ports->first[node + 1] - ports->first[node];
	int step = strstr(format->path, "%s") ? 1 : num, i;
	char path[256];

	for (i = 0; i < num; i += step) {
		file_path(format, plan_port_name(plan, &own[i]), path, sizeof(path));
		/* The first line of a script must stay the first one. */
		if (format->mode != 0755)
			fprintf(file, "%s# %s: %s\n", i ? "\n" : "", plan->nodes[node].name, path);
		format->write(file, plan, own + i, step);
	}
}

/* Makes the folders that @path lies in. */
static int folders_make(char *path)
{
	char *slash;
	int ret = 0;

	for (slash = strchr(path + 1, '/'); slash && !ret; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0777) && errno != EEXIST)
			ret = -errno;
		*slash = '/';
	}
	return ret;
}

static FILE *file_make(char *path, unsigned int mode)
{
	FILE *file;
	int fd;

	if (folders_make(path))
		return NULL;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return NULL;
	file = fdopen(fd, "w");
	if (!file)
		close(fd);
	return file;
}

static int write_failed(const char *path, int error)
{
	fprintf(stderr, "fi_mesh plan: cannot write %s: %s\n", path, strerror(error));
	return -error;
}

static int file_end(FILE *file, const char *path)
{
	int ret = file_close(file);

	return ret ? write_failed(path, -ret) : 0;
}

static int node_write(const char *folder, const struct mesh_plan *plan,
		      const struct plan_ports *ports, const struct plan_format *format, int node)
{
	const struct plan_port *own = ports->ports + ports->first[node];
	int num = ports->first[node + 1] - ports->first[node];
	int step = strstr(format->path, "%s") ? 1 : num, i, ret;
	char on_node[256], path[4096];
	FILE *file;

	for (i = 0; i < num; i += step) {
		file_path(format, plan_port_name(plan, &own[i]), on_node, sizeof(on_node));
		if ((size_t)snprintf(path, sizeof(path), "%s/%s/%s%s", folder,
				     plan->nodes[node].name, format->name, on_node) >= sizeof(path))
			return write_failed(folder, ENAMETOOLONG);
		file = file_make(path, format->mode);
		if (!file)
			return write_failed(path, errno);
		format->write(file, plan, own + i, step);
		ret = file_end(file, path);
		if (ret)
			return ret;
	}
	return 0;
}

static int json_write(const char *folder, const struct mesh_plan *plan)
{
	char path[4096];
	FILE *file;
	int ret;

	if ((size_t)snprintf(path, sizeof(path), "%s/plan.json", folder) >= sizeof(path))
		return write_failed(folder, ENAMETOOLONG);
	file = file_make(path, 0666);
	if (!file)
		return write_failed(path, errno);
	ret = output_json_print("fi_mesh plan", file, plan_json(plan)) ? -EIO : 0;
	return file_end(file, path) || ret ? -EIO : 0;
}

static int entry_is_content(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* Old files among new ones are a risk: a user who copies the folder to a node copies both. */
static int folder_check(const char *folder)
{
	struct dirent **entries;
	int i, num = scandir(folder, &entries, entry_is_content, alphasort);

	if (num < 0)
		return errno == ENOENT ? 0 : write_failed(folder, errno);
	for (i = 0; i < num; i++)
		free(entries[i]);
	free(entries);
	if (!num)
		return 0;
	fprintf(stderr, "fi_mesh plan: %s is not empty: remove it, or name another folder\n",
		folder);
	return -ENOTEMPTY;
}

static int entry_remove(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

static int nodes_write(const char *folder, const struct mesh_plan *plan,
		       const struct plan_ports *ports, const struct plan_format *format)
{
	int node, i, ret = 0;

	for (node = 0; node < plan->topology.num_nodes && !ret; node++) {
		for (i = 0; plan_formats[i] && !ret; i++)
			if (!format || format == plan_formats[i])
				ret = node_write(folder, plan, ports, plan_formats[i], node);
		if (interrupt_happened())
			ret = -EINTR;
	}
	return ret;
}

int plan_files_write(const char *folder, const struct mesh_plan *plan,
		     const struct plan_ports *ports, const struct plan_format *format)
{
	struct progress *progress;
	int ret = folder_check(folder);

	if (ret)
		return ret;
	interrupt_catch();
	progress = progress_begin("writing the files of %d nodes", plan->topology.num_nodes);
	ret = json_write(folder, plan);
	if (!ret)
		ret = nodes_write(folder, plan, ports, format);
	progress_end(progress);
	if (ret) /* all files in it are ours: it was empty */
		nftw(folder, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	if (ret == -EINTR)
		fprintf(stderr, "fi_mesh plan: interrupted; %s was removed\n", folder);
	return ret;
}
