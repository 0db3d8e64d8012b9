/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh topo`: draws a mesh from a plan or from reports of the nodes. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "common/file.h"
#include "common/options.h"
#include "common/output.h"
#include "common/progress.h"
#include "plan/cable_list.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

#define WHO "fi_mesh topo"

static const char usage_text[] =
	"usage: fi_mesh topo [--dot | --json | --svg] [--pair A,B] [--rates | FILE...]\n"
	"\n"
	"Draws a mesh: nodes, NICs, cables with rate and subnet, their state, and the\n"
	"path that the plugin takes between any two nodes, with the reason.\n"
	"\n"
	"Without a FILE it draws the mesh that this node belongs to: it asks the\n"
	"neighbours on the mesh NICs, and from node to node those behind them. A node\n"
	"answers while a job or `fi_mesh serve` runs on it.\n"
	"\n"
	"  FILE  a plan (fi_mesh plan --json), or reports of nodes (fi_mesh nics --json,\n"
	"        followed by fi_mesh watch --json --count 1 for the rates): files named\n"
	"        NODE.json, or a folder of them; - is standard input\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Reports of three nodes, over ssh:\n"
	"  for node in a b c; do ssh $node fi_mesh nics --json >reports/$node.json; done\n"
	"With their rates, also of cables that do not end here:\n"
	"  ssh $node 'fi_mesh nics --json; fi_mesh watch --json --count 1' \\\n"
	"      >reports/$node.json\n"
	"\n"
	"Exit status: 0 drawn, 1 a NIC is down or a file cannot be used, 2 usage error.\n";

enum format {
	FORMAT_TEXT,
	FORMAT_DOT,
	FORMAT_JSON,
	FORMAT_SVG,
};

static int (*const printers[])(FILE *file, const struct topo_map *map,
			       const struct topo_path *pair) = {
	[FORMAT_TEXT] = topo_print_text,
	[FORMAT_DOT] = topo_print_dot,
	[FORMAT_JSON] = topo_print_json,
	[FORMAT_SVG] = topo_print_svg,
};

struct options {
	int format;
	const char *pair;
	bool rates;
};

static const struct option_row option_rows[] = {
	{"dot", 0, NULL, "for Graphviz", OPTION_CONSTANT(struct options, format, FORMAT_DOT)},
	{"json", 0, NULL, "for programs", OPTION_CONSTANT(struct options, format, FORMAT_JSON)},
	{"svg", 0, NULL, "a picture", OPTION_CONSTANT(struct options, format, FORMAT_SVG)},
	{"pair", 0, "A,B", "highlight the path between these two nodes",
	 OPTION_TEXT(struct options, pair)},
	{"rates", 0, NULL, "also what this node's NICs move now, measured for a second",
	 OPTION_FLAG(struct options, rates)},
	{.name = NULL},
};

static const struct option_table option_table = {WHO, usage_text, notes_text, option_rows};

/* Returns an exit status, or -1 to go on. */
static int options_parse(int argc, char **argv, struct options *options, int *files)
{
	int status;

	*options = (struct options){.format = FORMAT_TEXT};
	status = option_table_parse(&option_table, argc, argv, options, files);
	if (status >= 0)
		return status;
	if (options->rates && *files < argc)
		return arguments_misuse(WHO,
					"--rates measures this node, so it takes no FILE; reports "
					"may have rates of their own");
	return -1;
}

static int document_load(const char *path, struct topo_map *map)
{
	size_t size;
	char *text = file_read(WHO, path, &size);
	int ret;

	if (!text)
		return -EIO;
	ret = topo_document_read(map, text, size, path);
	free(text);
	return ret;
}

static int json_entry(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && dot != entry->d_name && !strcmp(dot, ".json");
}

/* Reads all *.json of a folder, eth2 before eth10. */
static int folder_load(const char *folder, struct topo_map *map)
{
	struct dirent **entries;
	int i, ret = 0, num = scandir(folder, &entries, json_entry, versionsort);
	char path[PATH_MAX];

	if (num < 0) {
		ret = -errno;
		fprintf(stderr, WHO ": cannot read %s: %s\n", folder, strerror(-ret));
		return ret;
	}
	if (!num) {
		fprintf(stderr, WHO ": %s holds no .json files\n", folder);
		ret = -ENOENT;
	}
	for (i = 0; i < num; i++) {
		if (!ret && snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name) >=
				    (int)sizeof(path)) {
			fprintf(stderr, WHO ": the path of %s is too long\n", entries[i]->d_name);
			ret = -ENAMETOOLONG;
		}
		if (!ret)
			ret = document_load(path, map);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

static int files_load(int num, char **paths, struct topo_map *map)
{
	struct stat info;
	int i, ret = 0;

	for (i = 0; i < num && !ret; i++) {
		if (!stat(paths[i], &info) && S_ISDIR(info.st_mode))
			ret = folder_load(paths[i], map);
		else
			ret = document_load(paths[i], map);
	}
	return ret ? ret : topo_map_join(map);
}

/* Reads "A,B". Returns an exit status, or -1 to go on. */
static int pair_find(const struct topo_map *map, const char *text, struct topo_path *path)
{
	const char *comma = strchr(text, ',');
	char first[MESH_PLAN_NAME_MAX];
	int from, to;

	if (!comma || (size_t)(comma - text) >= sizeof(first)) {
		fprintf(stderr, WHO ": --pair takes two nodes, such as a,b\n");
		return COMMAND_MISUSE;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(comma - text), text);
	from = topo_map_node_find(map, first);
	to = topo_map_node_find(map, comma + 1);
	if (from < 0 || to < 0 || from == to) {
		fprintf(stderr, WHO ": --pair: \"%.130s\" does not name two nodes of this mesh\n",
			text);
		return COMMAND_MISUSE;
	}
	topo_path_find(map, from, to, path);
	return -1;
}

/* Returns an exit status. */
static int map_show(const struct options *options, const struct topo_map *map)
{
	struct topo_path path;
	int i, ret, status = -1;

	if (options->pair)
		status = pair_find(map, options->pair, &path);
	if (status >= 0)
		return status;
	ret = printers[options->format](stdout, map, options->pair ? &path : NULL);
	if (ret)
		return output_failure(WHO, ret);
	for (i = 0; i < map->num_nics; i++)
		if (map->nics[i].state == TOPO_DOWN)
			return COMMAND_PROBLEM;
	return COMMAND_FINE;
}

int command_topo(int argc, char **argv)
{
	struct topo_map map = {.planned = false};
	struct progress *progress;
	struct options options;
	int status, ret, files;

	status = options_parse(argc, argv, &options, &files);
	if (status >= 0)
		return status;
	progress = progress_begin(files < argc ? "reading the mesh" : "asking the neighbours");
	ret = files < argc ? files_load(argc - files, argv + files, &map)
			   : topo_ask(&map, options.rates);
	progress_end(progress);
	status = ret ? output_failure(WHO, ret) : map_show(&options, &map);
	topo_map_free(&map);
	return output_finish(WHO, status);
}
