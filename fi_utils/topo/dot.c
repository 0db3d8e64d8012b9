/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c - a map for Graphviz: `fi_mesh topo --dot plan.json | neato -Tpdf`. */
#include "nic/nic_select.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

/* A quoted string of DOT; in the label of a record more characters are special. */
static void text_put(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\' || *text == '|' || *text == '<' || *text == '>' ||
		    *text == '{' || *text == '}')
			fputc('\\', file);
		fputc(*text, file);
	}
}

static void node_put(FILE *file, const struct topo_map *map, int node)
{
	const struct topo_node *at = &map->nodes[node];
	char addr[MESH_ADDR_TEXT_MAX];
	int i;

	fprintf(file, "  n%d [label=\"{", node);
	text_put(file, at->name);
	for (i = 0; i < at->num_nics; i++) {
		const struct topo_nic *nic = &map->nics[at->first_nic + i];

		fprintf(file, "|<p%d> ", i);
		text_put(file, nic->name);
		if (nic->addr.family != MESH_FAMILY_NONE)
			fprintf(file, " %s", mesh_addr_text_prefix(&nic->addr, addr));
	}
	fprintf(file, "}\"];\n");
}

static void end_put(FILE *file, const struct topo_map *map, int nic)
{
	int node = map->nics[nic].node;

	fprintf(file, "n%d:p%d", node, nic - map->nodes[node].first_nic);
}

static void link_put(FILE *file, const struct topo_map *map, int link, bool chosen)
{
	static const char *const styles[] = {
		[TOPO_PLANNED] = "color=\"#4a7bb5\"",
		[TOPO_UP] = "color=\"#2f9461\"",
		[TOPO_DOWN] = "color=\"#cf4238\", style=dashed",
	};
	const struct topo_link *at = &map->links[link];
	char subnet[MESH_ADDR_TEXT_MAX], rate[MESH_NIC_SPEED_TEXT_MAX];
	int speed = topo_link_rate(map, link), i;

	mesh_addr_text_prefix(&at->subnet, subnet);
	if (at->num == 2) {
		fprintf(file, "  ");
		end_put(file, map, map->members[at->first]);
		fprintf(file, " -- ");
		end_put(file, map, map->members[at->first + 1]);
		fprintf(file, " [label=\"%s%s%s\", %s%s];\n",
			speed ? mesh_nic_speed_text(speed, rate) : "", speed ? "\\n" : "", subnet,
			styles[topo_link_state(map, link)], chosen ? ", penwidth=4" : "");
		return;
	}
	fprintf(file, "  s%d [shape=box, style=rounded, label=\"switch\\n%s\"];\n", link, subnet);
	for (i = at->first; i < at->first + at->num; i++) {
		fprintf(file, "  ");
		end_put(file, map, map->members[i]);
		fprintf(file, " -- s%d [%s];\n", link, styles[map->nics[map->members[i]].state]);
	}
}

int topo_print_dot(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	int i;

	fprintf(file, "graph mesh {\n  layout=neato; overlap=false; splines=true;\n"
		      "  node [shape=record, fontname=\"sans-serif\"];\n"
		      "  edge [fontname=\"sans-serif\", fontsize=10];\n");
	for (i = 0; i < map->num_nodes; i++)
		node_put(file, map, i);
	for (i = 0; i < map->num_links; i++)
		link_put(file, map, i, pair && topo_path_has_link(map, pair, i));
	fprintf(file, "}\n");
	return 0;
}
