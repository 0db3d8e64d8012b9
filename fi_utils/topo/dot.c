/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c - a map for Graphviz: `fi_mesh topo --dot plan.json | neato -Tpdf`. */
#include <stdlib.h>

#include "nic/nic_select.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"
#include "watch/sample.h"

/* Up to this many paths are listed below the drawing: 5 nodes have 10. */
#define LISTED_PATHS_MAX 10

/* A quoted string of DOT; in the label of a record more characters are special. */
static void text_put(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\' || *text == '|' || *text == '<' || *text == '>' ||
		    *text == '{' || *text == '}')
			fputc('\\', file);
		if (*text == '&')
			fputs("&amp;", file);
		else
			fputc(*text, file);
	}
}

/* ---- boxes -------------------------------------------------------------------------------- */

/* What the NIC moves now: U+2191 and U+2193, arrows up and down. */
static void nic_rates_put(FILE *file, const struct topo_nic *nic)
{
	char sends[WATCH_RATE_TEXT_MAX], receives[WATCH_RATE_TEXT_MAX];

	if (nic->rates_known)
		fprintf(file, " \xe2\x86\x91%s \xe2\x86\x93%s", watch_rate_text(nic->sends, sends),
			watch_rate_text(nic->receives, receives));
}

static void nic_put(FILE *file, const struct topo_nic *nic, int port)
{
	char addr[MESH_ADDR_TEXT_MAX];

	fprintf(file, "|<p%d> ", port);
	text_put(file, nic->name);
	if (nic->addr.family != MESH_FAMILY_NONE)
		fprintf(file, " %s", mesh_addr_text_prefix(&nic->addr, addr));
	if (nic->state == TOPO_DOWN)
		fputs(" down", file);
	nic_rates_put(file, nic);
}

static void node_put(FILE *file, const struct topo_map *map, int node)
{
	const struct topo_node *at = &map->nodes[node];
	int i;

	fprintf(file, "  n%d [label=\"{", node);
	text_put(file, at->name);
	for (i = 0; i < at->num_nics; i++)
		nic_put(file, &map->nics[at->first_nic + i], i);
	fputs("}\"];\n", file);
}

/* ---- cables ------------------------------------------------------------------------------- */

static void end_put(FILE *file, const struct topo_map *map, int nic)
{
	int node = map->nics[nic].node;

	fprintf(file, "n%d:p%d", node, nic - map->nodes[node].first_nic);
}

/* For a pointer that rests on the cable in a browser. */
static void ends_put(FILE *file, const struct topo_map *map, const struct topo_link *link)
{
	const struct topo_nic *nic;
	int i;

	fputs("edgetooltip=\"", file);
	for (i = link->first; i < link->first + link->num; i++) {
		nic = &map->nics[map->members[i]];
		if (i > link->first)
			fputs("\\n", file);
		text_put(file, map->nodes[nic->node].name);
		fputc(' ', file);
		text_put(file, nic->name);
		if (*nic->note) {
			fputs(": ", file);
			text_put(file, nic->note);
		}
	}
	fputs("\", ", file);
}

/* The rate, what passes over it now, and the subnet, a line each. */
static void link_label_put(FILE *file, const struct topo_map *map, int link)
{
	char subnet[MESH_ADDR_TEXT_MAX], speed[MESH_NIC_SPEED_TEXT_MAX], rate[WATCH_RATE_TEXT_MAX];
	int mbps = topo_link_rate(map, link);
	double bytes;

	fputs("label=\"", file);
	if (mbps)
		fprintf(file, "%s\\n", mesh_nic_speed_text(mbps, speed));
	if (topo_link_traffic(map, link, &bytes))
		fprintf(file, "now %s\\n", watch_rate_text(bytes, rate));
	fprintf(file, "%s\", ", mesh_addr_text_prefix(&map->links[link].subnet, subnet));
}

static void link_put(FILE *file, const struct topo_map *map, int link, bool chosen)
{
	static const char *const styles[] = {
		[TOPO_PLANNED] = "color=\"#4a7bb5\"",
		[TOPO_UP] = "color=\"#2f9461\"",
		[TOPO_DOWN] = "color=\"#cf4238\", style=dashed",
	};
	const struct topo_link *at = &map->links[link];
	int i;

	if (at->num == 2) {
		fputs("  ", file);
		end_put(file, map, map->members[at->first]);
		fputs(" -- ", file);
		end_put(file, map, map->members[at->first + 1]);
		fputs(" [", file);
		link_label_put(file, map, link);
		ends_put(file, map, at);
		fprintf(file, "%s%s];\n", styles[topo_link_state(map, link)],
			chosen ? ", penwidth=5" : "");
		return;
	}
	fprintf(file, "  s%d [shape=box, style=rounded, ", link);
	link_label_put(file, map, link);
	fprintf(file, "xlabel=\"switch, %d NICs\"];\n", at->num);
	for (i = at->first; i < at->first + at->num; i++) {
		fputs("  ", file);
		end_put(file, map, map->members[i]);
		fprintf(file, " -- s%d [%s%s];\n", link, styles[map->nics[map->members[i]].state],
			chosen ? ", penwidth=5" : "");
	}
}

/* ---- below the drawing -------------------------------------------------------------------- */

/* \l ends a line that begins on the left. */
static void path_put(FILE *file, const struct topo_map *map, const struct topo_path *path)
{
	char nics[200];

	text_put(file, map->nodes[path->from].name);
	fputs(" - ", file);
	text_put(file, map->nodes[path->to].name);
	fputs(": ", file);
	if (topo_path_exists(path))
		text_put(file, topo_path_text(map, path, nics, sizeof(nics)));
	fputs(" (", file);
	text_put(file, path->reason);
	fputs(")\\l", file);
}

static void legend_put(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	struct topo_path *paths = NULL;
	char text[400];
	long i, num = 0;

	fputs("  label=\"", file);
	text_put(file, topo_summary(map, text, sizeof(text)));
	fputs("\\l", file);
	if (pair)
		path_put(file, map, pair);
	else
		paths = topo_paths_find(map, LISTED_PATHS_MAX, &num);
	for (i = 0; paths && i < num; i++)
		path_put(file, map, &paths[i]);
	if (num && !paths)
		fprintf(file, "%s\\l", topo_pairs_summary(map, text, sizeof(text)));
	fputs("\";\n", file);
	free(paths);
}

int topo_print_dot(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	int i;

	fputs("graph mesh {\n"
	      "  layout=neato; overlap=false; splines=line; sep=\"+90,60\";\n"
	      "  fontname=\"sans-serif\"; labeljust=l;\n"
	      "  node [shape=record, fontname=\"sans-serif\"];\n"
	      "  edge [fontname=\"sans-serif\", fontsize=10, penwidth=2];\n",
	      file);
	legend_put(file, map, pair);
	for (i = 0; i < map->num_nodes; i++)
		node_put(file, map, i);
	for (i = 0; i < map->num_links; i++)
		link_put(file, map, i, pair && topo_path_has_link(map, pair, i));
	fputs("}\n", file);
	return 0;
}
