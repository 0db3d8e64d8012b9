/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - reads plans and reports of nodes, untrusted JSON, into a map. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "common/output.h"
#include "plan/cable_list.h"
#include "plan/shape.h"
#include "plan/topology.h"
#include "topo/map.h"

/* Higher rates are refused, so that sums and products fit into an int. */
#define RATE_MAX_MBPS 100000000
/* The version that `fi_mesh plan --json` writes. */
#define PLAN_VERSION_MAX 1

static int refuse(const char *source, const char *why)
{
	fprintf(stderr, "fi_mesh topo: %s: %s\n", source, why);
	return -EINVAL;
}

/* Text of a member, "" where there is none. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int rate_of(const json_t *object, const char *key)
{
	json_int_t rate = json_integer_value(json_object_get(object, key));

	return rate > 0 && rate <= RATE_MAX_MBPS ? (int)rate : 0;
}

static bool name_copy(char *to, size_t size, const char *from)
{
	const char *at;

	for (at = from; *at; at++)
		if (*at <= ' ' || *at > '~')
			return false;
	return *from && (size_t)snprintf(to, size, "%s", from) < size;
}

/* ---- plans ------------------------------------------------------------------------------ */

static int plan_ports_read(struct topo_map *map, const json_t *ports, int rate_mbps,
			   const char *source)
{
	struct topo_nic nic = {.state = TOPO_PLANNED, .rate_mbps = rate_mbps};
	json_t *port;
	size_t i;
	int ret;

	json_array_foreach(ports, i, port) {
		if (!json_is_string(port) ||
		    !name_copy(nic.name, sizeof(nic.name), json_string_value(port)))
			return refuse(source, "\"ports\" are names");
		ret = topo_map_nic_add(map, &nic);
		if (ret)
			return ret;
	}
	return 0;
}

static int plan_nodes_read(struct topo_map *map, const json_t *root, const char *source)
{
	const json_t *nodes = json_object_get(root, "nodes");
	int ret, rate_mbps = rate_of(root, "rate_mbps");
	json_t *node;
	size_t i;

	if (!json_array_size(nodes))
		return refuse(source, "a plan has \"nodes\"");
	json_array_foreach(nodes, i, node) {
		ret = topo_map_node_add(map, text_of(node, "name"));
		if (ret)
			return ret;
		topo_map_site_set(map, text_of(node, "site"));
		ret = plan_ports_read(map, json_object_get(node, "ports"), rate_mbps, source);
		if (ret)
			return ret;
	}
	return 0;
}

/* One end of a cable: gives the port its address. */
static int plan_end_read(struct topo_map *map, const json_t *end, json_t *names, int physical,
			 const char *source)
{
	const json_t *number = json_object_get(names, text_of(end, "node"));
	int nic = -1;

	if (number)
		nic = topo_map_nic_find(map, (int)json_integer_value(number), text_of(end, "port"));
	if (nic < 0)
		return refuse(source, "a cable ends at a port that no node has");
	if (map->nics[nic].addr.family != MESH_FAMILY_NONE)
		return refuse(source, "two cables end at one port");
	if (!strchr(text_of(end, "address"), '/') ||
	    mesh_addr_parse(text_of(end, "address"), &map->nics[nic].addr))
		return refuse(source, "the end of a cable has an address such as 10.0.0.1/24");
	map->nics[nic].physical = physical;
	return 0;
}

/* Which entries are halves of one cable; a plan without that has none. */
static int physical_of(const json_t *cable)
{
	json_int_t number = json_integer_value(json_object_get(cable, "physical"));

	return number > 0 && number <= MESH_TOPOLOGY_CABLES_MAX ? (int)number : 0;
}

static int plan_cables_read(struct topo_map *map, const json_t *root, json_t *names,
			    const char *source)
{
	const json_t *cables = json_object_get(root, "cables"), *ends;
	json_t *cable;
	size_t i;
	int ret;

	json_array_foreach(cables, i, cable) {
		ends = json_object_get(cable, "ends");
		if (json_array_size(ends) != 2)
			return refuse(source, "a cable has two \"ends\"");
		ret = plan_end_read(map, json_array_get(ends, 0), names, physical_of(cable),
				    source);
		if (!ret)
			ret = plan_end_read(map, json_array_get(ends, 1), names, physical_of(cable),
					    source);
		if (ret)
			return ret;
	}
	return 0;
}

/* The shape is only a word in the summary: one that does not fit the nodes is ignored. */
static void plan_shape_read(struct topo_map *map, const json_t *root)
{
	const char *text = text_of(root, "shape");
	struct mesh_shape shape;
	int64_t product = 1;
	int i;

	if (!*text || !strcmp(text, "cables") || mesh_shape_parse(text, &shape))
		return;
	for (i = 0; i < shape.num_sizes && product <= map->num_nodes; i++)
		product *= shape.sizes[i];
	if (shape.kind != MESH_SHAPE_TORUS || product == map->num_nodes)
		map->shape = shape;
}

static int plan_read(struct topo_map *map, const json_t *root, const char *source)
{
	json_t *names;
	int i, ret;

	if (json_integer_value(json_object_get(root, "plan")) > PLAN_VERSION_MAX)
		return refuse(source, "this plan is of a later version of fi_mesh");
	if (map->num_nodes)
		return refuse(source, "a plan cannot be combined with other files");
	map->planned = true;
	ret = plan_nodes_read(map, root, source);
	if (ret)
		return ret;
	plan_shape_read(map, root);
	names = json_object();
	for (i = 0; names && i < map->num_nodes; i++)
		json_object_set_new(names, map->nodes[i].name, json_integer(i));
	ret = names ? plan_cables_read(map, root, names, source) : -ENOMEM;
	json_decref(names);
	return ret;
}

/* ---- reports of nodes ------------------------------------------------------------------- */

/* "reports/spark1.json" -> "spark1" */
static void source_name(const char *source, char *name, size_t size)
{
	const char *slash = strrchr(source, '/');
	const char *start = slash ? slash + 1 : source;
	const char *dot = strstr(start, ".json");

	snprintf(name, size, "%.*s", (int)(dot ? dot - start : (long)strlen(start)), start);
}

/* True if a NIC is to be drawn: the plugin takes it, or would take it if it had a carrier. */
static bool nic_wanted(const json_t *nic)
{
	const char *kind = text_of(nic, "kind");

	if (json_is_true(json_object_get(nic, "taken")))
		return true;
	return (!strcmp(kind, "physical") || !strcmp(kind, "infiniband") ||
		!strcmp(kind, "virtual")) &&
	       !json_is_true(json_object_get(nic, "default_route")) &&
	       !json_is_true(json_object_get(nic, "carrier")) &&
	       json_array_size(json_object_get(nic, "addresses"));
}

/* "fe80::1%3/64" as well: the zone is an index of that node, and nothing to any other. */
static int addr_read(const char *text, struct mesh_addr *addr)
{
	size_t len = strcspn(text, "%");
	char without[MESH_ADDR_TEXT_MAX];

	if (strlen(text) >= sizeof(without))
		return -EINVAL;
	snprintf(without, sizeof(without), "%.*s%s", (int)len, text,
		 text + len + strcspn(text + len, "/"));
	return mesh_addr_parse(without, addr);
}

static int nic_read(struct topo_map *map, const json_t *object, const char *source)
{
	const json_t *addresses = json_object_get(object, "addresses");
	bool taken = json_is_true(json_object_get(object, "taken"));
	struct topo_nic nic = {
		.rate_mbps = rate_of(object, "speed_mbps"),
		.state = taken ? TOPO_UP : TOPO_DOWN,
		.provider = mesh_provider_id_parse(text_of(object, "provider")),
	};
	const char *addr = text_of(object, "source");

	if (!*addr && json_is_string(json_array_get(addresses, 0)))
		addr = json_string_value(json_array_get(addresses, 0));
	if (!name_copy(nic.name, sizeof(nic.name), text_of(object, "netdev")))
		return refuse(source, "a NIC has a \"netdev\", which is a name");
	if (*addr && addr_read(addr, &nic.addr))
		return refuse(source, "a NIC has a \"source\" such as 10.0.0.1/24");
	if (!taken)
		snprintf(nic.note, sizeof(nic.note), "%s", text_of(object, "reason"));
	mesh_text_clean(nic.note);
	return topo_map_nic_add(map, &nic);
}

static int report_read(struct topo_map *map, const json_t *root, const char *source)
{
	const json_t *nics = json_object_get(root, "nics");
	const char *own_name = text_of(root, "node");
	char name[MESH_PLAN_NAME_MAX];
	json_t *nic;
	size_t i;
	int ret;

	if (map->planned)
		return refuse(source, "a plan cannot be combined with other files");
	source_name(source, name, sizeof(name));
	ret = topo_map_node_add(map, *own_name ? own_name : name);
	if (!ret)
		topo_map_site_set(map, text_of(root, "site"));
	json_array_foreach(nics, i, nic) {
		if (!ret && nic_wanted(nic))
			ret = nic_read(map, nic, source);
	}
	return ret;
}

/* Bytes a second; no counter of a NIC grows faster. */
#define TRAFFIC_MAX 1e15

/* Adds a rate of `fi_mesh watch` to @sum; false if it is not known there. */
static bool traffic_add(const json_t *object, const char *key, double *sum)
{
	const json_t *member = json_object_get(object, key);
	double value = json_number_value(member);

	if (!json_is_number(member) || !(value >= 0 && value <= TRAFFIC_MAX))
		return false;
	*sum += value;
	return true;
}

static void nic_rates_read(struct topo_nic *nic, const json_t *object)
{
	const json_t *rdma = json_object_get(object, "rdma");
	double sends = 0, receives = 0;
	bool known = traffic_add(object, "tx_bytes_per_s", &sends) &&
		     traffic_add(object, "rx_bytes_per_s", &receives);

	if (traffic_add(rdma, "tx_bytes_per_s", &sends) &&
	    traffic_add(rdma, "rx_bytes_per_s", &receives))
		known = true;
	if (!known)
		return;
	nic->rates_known = true;
	nic->sends = sends;
	nic->receives = receives;
}

/* What `fi_mesh watch --json` printed on the node that was read last. */
static int rates_read(struct topo_map *map, const json_t *root, const char *source)
{
	json_t *nic;
	size_t i;
	int at;

	if (!json_is_number(json_object_get(root, "seconds")) ||
	    !json_is_array(json_object_get(root, "nics")))
		return refuse(
			source,
			"only rates may follow a node's report (fi_mesh watch --json --count 1)");
	json_array_foreach(json_object_get(root, "nics"), i, nic) {
		at = topo_map_nic_find(map, map->num_nodes - 1, text_of(nic, "netdev"));
		if (at >= 0)
			nic_rates_read(&map->nics[at], nic);
	}
	return 0;
}

static int first_read(struct topo_map *map, const json_t *root, const char *source)
{
	if (json_is_integer(json_object_get(root, "plan")))
		return plan_read(map, root, source);
	if (json_is_array(json_object_get(root, "nics")) &&
	    !json_is_number(json_object_get(root, "seconds")))
		return report_read(map, root, source);
	return refuse(source, "this is neither a plan (fi_mesh plan --json) nor a node's "
			      "report (fi_mesh nics --json)");
}

int topo_document_read(struct topo_map *map, const char *text, size_t size, const char *source)
{
	char why[JSON_ERROR_TEXT_LENGTH + 64];
	json_error_t error;
	size_t at = 0;
	int ret = 0;

	if (!map->num_nodes)
		map->shape = (struct mesh_shape){.kind = MESH_SHAPE_CABLES};
	do {
		bool first = !at;
		json_t *root = json_loadb(text + at, size - at,
					  JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);

		if (!root) {
			snprintf(why, sizeof(why), "not valid JSON: line %d: %s", error.line,
				 error.text);
			return refuse(source, output_clean(why));
		}
		at += (size_t)error.position;
		ret = first ? first_read(map, root, source) : rates_read(map, root, source);
		json_decref(root);
		while (at < size && strchr(" \t\r\n", text[at]) && text[at])
			at++;
	} while (!ret && at < size);
	return ret;
}
