/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - a map as text: each node with its NICs and the other end of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/output.h"
#include "common/table.h"
#include "nic/nic_select.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"
#include "watch/sample.h"

/* Paths of all pairs are listed up to so many: 16 nodes have 120. */
#define LISTED_PATHS_MAX 120
/* NICs are listed up to so many, a screen or two; larger meshes have a line for each node. */
#define LISTED_NICS_MAX 256

/* What is at the other end: "b mesh0", "switch: b, c", "nothing". */
static void far_text(const struct topo_map *map, int nic, char *text, size_t size)
{
	const struct topo_nic *at = &map->nics[nic];
	const struct topo_link *link;
	const char *separator = "";
	int i;

	snprintf(text, size, "%s", *at->note ? at->note : "nothing");
	if (at->link < 0)
		return;
	link = &map->links[at->link];
	snprintf(text, size, "%s", link->num == 2 ? "" : "switch: ");
	for (i = link->first; i < link->first + link->num; i++) {
		const struct topo_nic *other = &map->nics[map->members[i]];

		if (map->members[i] == nic)
			continue;
		output_add(text, size, "%s%s %s", separator, map->nodes[other->node].name,
			   other->name);
		separator = ", ";
	}
	if (*at->note)
		output_add(text, size, " (%s)", at->note);
}

static enum output_style state_style(enum topo_state state)
{
	static const enum output_style styles[] = {
		[TOPO_PLANNED] = OUTPUT_PLAIN,
		[TOPO_UP] = OUTPUT_GOOD,
		[TOPO_DOWN] = OUTPUT_BAD,
	};

	return styles[state];
}

/* What the NIC moves now, behind the columns that are always there. */
static void rates_put(struct output_table *table, const struct topo_nic *nic)
{
	char text[WATCH_RATE_TEXT_MAX];

	output_table_text(table, nic->rates_known ? watch_rate_text(nic->sends, text) : "-");
	output_table_text(table, nic->rates_known ? watch_rate_text(nic->receives, text) : "-");
}

/* "a", or "a (east)". */
static void node_cell(struct output_table *table, const struct topo_node *node)
{
	output_table_cell(table, OUTPUT_STRONG, "%s%s%s%s", node->name, *node->site ? " (" : "",
			  node->site, *node->site ? ")" : "");
}

static void node_print(struct output_table *table, const struct topo_map *map, int node, bool rates)
{
	const struct topo_node *at = &map->nodes[node];
	char addr[MESH_ADDR_TEXT_MAX], rate[MESH_NIC_SPEED_TEXT_MAX], far[600];
	int i;

	if (!at->num_nics) {
		node_cell(table, at);
		for (i = 1; i < (rates ? 8 : 6); i++)
			output_table_text(table, "-");
	}
	for (i = at->first_nic; i < at->first_nic + at->num_nics; i++) {
		const struct topo_nic *nic = &map->nics[i];

		if (i == at->first_nic)
			node_cell(table, at);
		else
			output_table_cell(table, OUTPUT_STRONG, "%s", "");
		output_table_text(table, nic->name);
		output_table_text(table, nic->addr.family == MESH_FAMILY_NONE
						 ? "-"
						 : mesh_addr_text_prefix(&nic->addr, addr));
		output_table_text(table,
				  nic->rate_mbps ? mesh_nic_speed_text(nic->rate_mbps, rate) : "-");
		output_table_cell(table, state_style(nic->state), "%s",
				  topo_state_text(nic->state));
		if (rates)
			rates_put(table, nic);
		far_text(map, i, far, sizeof(far));
		output_table_text(table, far);
	}
}

static void nodes_print(FILE *file, const struct topo_map *map)
{
	static const char *const titles[] = {"NODE", "NIC",   "ADDRESS",
					     "RATE", "STATE", "CABLED TO"};
	static const char *const live[] = {"NODE",  "NIC",   "ADDRESS",	 "RATE",
					   "STATE", "SENDS", "RECEIVES", "CABLED TO"};
	bool rates = topo_map_has_rates(map);
	struct output_table *table = output_table_new(rates ? live : titles, rates ? 8 : 6);
	int i;

	for (i = 0; i < map->num_nodes; i++)
		node_print(table, map, i, rates);
	output_table_end(table, file, 0);
}

/* How many other nodes share a link with @node. @seen: num_nodes zeros, and zeros again then. */
static int neighbours_count(const struct topo_map *map, int node, bool *seen)
{
	const struct topo_node *at = &map->nodes[node];
	int i, k, num = 0;

	for (i = at->first_nic; i < at->first_nic + at->num_nics; i++) {
		const struct topo_link *link;

		if (map->nics[i].link < 0)
			continue;
		link = &map->links[map->nics[i].link];
		for (k = link->first; k < link->first + link->num; k++) {
			num += !seen[map->nics[map->members[k]].node];
			seen[map->nics[map->members[k]].node] = true;
		}
	}
	num -= seen[node];
	memset(seen, 0, (size_t)map->num_nodes * sizeof(*seen));
	return num;
}

/* Not all NICs of a mesh that has thousands. Returns 0 or -ENOMEM. */
static int nodes_summary_print(FILE *file, const struct topo_map *map)
{
	static const char *const titles[] = {"NODE", "NICS", "WITHOUT LINK", "DOWN", "NEIGHBOURS"};
	bool *seen = calloc((size_t)map->num_nodes + 1, sizeof(*seen));
	struct output_table *table;
	int i, k;

	if (!seen)
		return -ENOMEM;
	table = output_table_new(titles, 5);
	for (i = 0; i < map->num_nodes; i++) {
		const struct topo_node *at = &map->nodes[i];
		int alone = 0, down = 0;

		for (k = at->first_nic; k < at->first_nic + at->num_nics; k++) {
			alone += map->nics[k].link < 0;
			down += map->nics[k].state == TOPO_DOWN;
		}
		node_cell(table, at);
		output_table_cell(table, OUTPUT_PLAIN, "%d", at->num_nics);
		output_table_cell(table, OUTPUT_PLAIN, "%d", alone);
		output_table_cell(table, down ? OUTPUT_BAD : OUTPUT_PLAIN, "%d", down);
		output_table_cell(table, OUTPUT_PLAIN, "%d", neighbours_count(map, i, seen));
	}
	output_table_end(table, file, 0);
	free(seen);
	return 0;
}

static void path_cells(struct output_table *table, const struct topo_map *map,
		       const struct topo_path *path)
{
	char text[300];

	output_table_text(table, map->nodes[path->from].name);
	output_table_text(table, map->nodes[path->to].name);
	output_table_cell(table, topo_path_exists(path) ? OUTPUT_PLAIN : OUTPUT_BAD, "%s",
			  topo_path_text(map, path, text, sizeof(text)));
	output_table_cell(table, OUTPUT_FAINT, "%s", path->reason);
}

static void paths_print(FILE *file, const struct topo_map *map, const struct topo_path *paths,
			long num)
{
	static const char *const titles[] = {"FROM", "TO", "PATH", "WHY"};
	struct output_table *table = output_table_new(titles, 4);
	long i;

	fprintf(file, "\n");
	for (i = 0; i < num; i++)
		path_cells(table, map, &paths[i]);
	output_table_end(table, file, 0);
}

int topo_print_text(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	struct topo_path *paths;
	char text[200];
	long num;

	fprintf(file, "%s%s%s\n\n", output_style(file, OUTPUT_STRONG),
		topo_summary(map, text, sizeof(text)), output_style(file, OUTPUT_PLAIN));
	if (map->num_nics <= LISTED_NICS_MAX)
		nodes_print(file, map);
	else if (nodes_summary_print(file, map))
		return -ENOMEM;
	if (pair) {
		paths_print(file, map, pair, 1);
		return 0;
	}
	paths = topo_paths_find(map, LISTED_PATHS_MAX, &num);
	if (paths)
		paths_print(file, map, paths, num);
	else
		fprintf(file, "\n%s\n", topo_pairs_summary(map, text, sizeof(text)));
	free(paths);
	return 0;
}
