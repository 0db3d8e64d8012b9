/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - reads the names of nodes and ports for `fi_mesh plan`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "plan/cable_list.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/topology.h"

static int refuse(const char *text, const char *why)
{
	fprintf(stderr, "fi_mesh plan: \"%.100s\": %s\n", text, why);
	return -EINVAL;
}

static int node_append(struct plan_nodes *nodes, const char *name)
{
	struct mesh_plan_node *grown;

	if (!mesh_node_name_valid(name))
		return refuse(name, "a node's name has up to 64 letters, digits, '.', '-' and '_'");
	if (nodes->num_nodes == MESH_TOPOLOGY_NODES_MAX)
		return refuse(name, "too many nodes");
	grown = mesh_array_room(nodes->nodes, (size_t)nodes->num_nodes, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	nodes->nodes = grown;
	grown += nodes->num_nodes++;
	*grown = (struct mesh_plan_node){.num_ports = 0};
	snprintf(grown->name, sizeof(grown->name), "%s", name);
	return 0;
}

/* "node[001-128]": adds each; @open points to the bracket. */
static int range_add(struct plan_nodes *nodes, const char *text, const char *open)
{
	int first, last, number, digits = 0, digits_last = 0, end = 0, ret = 0;
	char name[MESH_PLAN_NAME_MAX + 16];

	if (sscanf(open, "[%n%5d%n-%n%5d]%n", &digits, &first, &digits_last, &number, &last, &end) <
		    2 ||
	    !end || open[1] < '0' || open[1] > '9' || open[number] < '0' || open[number] > '9')
		return refuse(text, "a range is written node[1-8] or node[01-16]");
	digits = digits_last - digits;
	if (first > last || last - first >= MESH_TOPOLOGY_NODES_MAX)
		return refuse(text, "a range counts upward, and has at most 1,024 nodes");
	for (number = first; number <= last && !ret; number++) {
		snprintf(name, sizeof(name), "%.*s%0*d%s", (int)(open - text), text, digits, number,
			 open + end);
		ret = node_append(nodes, name);
	}
	return ret;
}

int plan_nodes_add(struct plan_nodes *nodes, const char *text)
{
	char *copy = strdup(text), *rest = copy, *name;
	const char *open;
	int ret = copy ? 0 : -ENOMEM;

	while (!ret && (name = strsep(&rest, ","))) {
		if (strlen(name) >= MESH_PLAN_NAME_MAX)
			ret = refuse(name, "too long for the name of a node");
		else if ((open = strchr(name, '[')))
			ret = range_add(nodes, name, open);
		else
			ret = node_append(nodes, name);
	}
	free(copy);
	return ret;
}

int plan_nodes_check(const struct plan_nodes *nodes)
{
	const char *repeated =
		mesh_name_repeated(nodes->nodes, sizeof(*nodes->nodes), nodes->num_nodes);

	return repeated ? refuse(repeated, "two nodes have this name") : 0;
}

/* The node of that name; NULL if there is none. */
static struct mesh_plan_node *node_find(const struct plan_nodes *nodes, const char *name)
{
	int i;

	for (i = 0; i < nodes->num_nodes; i++)
		if (!strcmp(nodes->nodes[i].name, name))
			return &nodes->nodes[i];
	return NULL;
}

int plan_nodes_add_listed(struct plan_nodes *nodes, const struct mesh_cable_list *list)
{
	const char *name;
	int i, ret = 0;

	for (i = 0; i < 2 * list->num_cables && !ret; i++) {
		name = list->cables[i / 2].ends[i % 2].node;
		if (!node_find(nodes, name))
			ret = node_append(nodes, name);
	}
	return ret;
}

static int ports_add(struct mesh_plan_node *node, const char *list)
{
	char *copy = strdup(list), *rest = copy, *name;
	int ret = copy ? 0 : -ENOMEM;

	while (!ret && (name = strsep(&rest, ",")))
		ret = mesh_plan_port_add(node, name);
	node->ports_named = true;
	free(copy);
	return ret;
}

int plan_nodes_ports(struct plan_nodes *nodes, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	int i, ret = 0;

	for (i = 0; i < nodes->num_nodes && !ret; i++) {
		struct mesh_plan_node *node = &nodes->nodes[i];

		if (!equals && !node->ports_named)
			ret = ports_add(node, text);
		if (!equals || strlen(node->name) != len || memcmp(node->name, text, len))
			continue;
		return node->ports_named ? refuse(text, "the ports of this node are named already")
					 : ports_add(node, equals + 1);
	}
	return equals ? refuse(text, "no node has this name") : ret;
}

static int site_set(struct plan_nodes *nodes, const char *name, const char *site)
{
	struct mesh_plan_node *node = node_find(nodes, name);

	if (!node)
		return refuse(name, "no node has this name");
	if (*node->site)
		return refuse(name, "this node has a site already");
	snprintf(node->site, sizeof(node->site), "%s", site);
	return 0;
}

int plan_nodes_site(struct plan_nodes *nodes, const char *text)
{
	const char *equals = strchr(text, '=');
	struct plan_nodes named = {.num_nodes = 0};
	char site[MESH_PLAN_NAME_MAX] = "";
	int i, ret;

	if (!equals || equals - text >= MESH_SITE_NAME_MAX)
		return refuse(text,
			      "a site is written NAME=NODES, with a name of up to 15 characters");
	memcpy(site, text, (size_t)(equals - text));
	if (!mesh_node_name_valid(site))
		return refuse(text, "a site's name has letters, digits, '.', '-' and '_'");
	ret = plan_nodes_add(&named, equals + 1);
	for (i = 0; i < named.num_nodes && !ret; i++)
		ret = site_set(nodes, named.nodes[i].name, site);
	plan_nodes_free(&named);
	return ret;
}

void plan_nodes_free(struct plan_nodes *nodes)
{
	mesh_plan_nodes_free(nodes->nodes, nodes->num_nodes);
	*nodes = (struct plan_nodes){.num_nodes = 0};
}
