/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the NIC table as JSON. */
#include <stdio.h>
#include <string.h>

#include "nic/rdma_port.h"

#include "common/json.h"
#include "nics/json.h"
#include "nics/provider.h"

static json_t *addrs_json(const struct mesh_nic *nic)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < nic->num_addrs && list; i++)
		list = output_json_append(list, output_json_addr(&nic->addrs[i]));
	return list;
}

static json_t *mac_json(const struct mesh_nic *nic)
{
	int i, num = nic->kind == MESH_NIC_INFINIBAND ? 8 : 6;
	char text[3 * 8 + 1] = "";

	for (i = 0; i < num; i++)
		snprintf(text + 3 * i, 4, "%02x%s", nic->mac[i], i < num - 1 ? ":" : "");
	return json_string(text);
}

static const char *kind_name(enum mesh_nic_kind kind)
{
	static const char *const names[] = {
		[MESH_NIC_PHYSICAL] = "physical",     [MESH_NIC_VIRTUAL] = "virtual",
		[MESH_NIC_INFINIBAND] = "infiniband", [MESH_NIC_LOOPBACK] = "loopback",
		[MESH_NIC_BRIDGE] = "bridge",	      [MESH_NIC_CONTAINER] = "container",
		[MESH_NIC_WIRELESS] = "wireless",
	};

	return names[kind];
}

static json_t *gid_json(const struct mesh_gid *gid)
{
	struct mesh_addr addr = {.family = MESH_FAMILY_IPV6};
	char text[MESH_ADDR_TEXT_MAX];

	if (!gid)
		return json_null();
	memcpy(addr.bytes, gid->bytes, 16);
	return json_pack("{s:i, s:s, s:o}", "index", gid->index, "gid", mesh_addr_text(&addr, text),
			 "type", output_json_text(mesh_gid_type_text(gid->type)));
}

static json_t *gids_json(const struct mesh_rdma_port *rdma)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < rdma->num_gids && list; i++)
		list = output_json_append(list, gid_json(&rdma->gids[i]));
	return list;
}

static json_t *rdma_json(const struct mesh_nic *nic)
{
	const struct mesh_rdma_port *rdma = &nic->rdma;

	if (!*rdma->device)
		return json_null();
	return json_pack("{s:o, s:i, s:s, s:o, s:b, s:i, s:o, s:o, s:o}", "device",
			 output_json_text(rdma->device), "port", rdma->port, "link_layer",
			 rdma->link_layer == MESH_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet",
			 "state", output_json_text(rdma->state), "active", rdma->active,
			 "speed_mbps", rdma->speed_mbps, "node_guid",
			 output_json_hex(rdma->node_guid), "gid_in_use",
			 gid_json(mesh_gid_find(rdma, &nic->source)), "gids", gids_json(rdma));
}

static json_t *pci_link_json(const struct mesh_pci_link *link)
{
	if (!link->width && !link->max_width)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "width", link->width, "speed_mts",
			 link->speed_mts, "max_width", link->max_width, "max_speed_mts",
			 link->max_speed_mts, "slot_width", link->slot_width, "slot_speed_mts",
			 link->slot_speed_mts);
}

static json_t *nic_json(const struct mesh_nic *nic, int dev, const struct nics_provider *provider)
{
	return json_pack(
		"{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:o, s:b, s:b, s:b, s:o, s:i,"
		" s:i, s:o, s:o, s:o, s:i, s:o, s:o}",
		"netdev", output_json_text(nic->netdev), "taken", nic->taken, "reason",
		output_json_text(nic->reason), "dev", nic->taken ? json_integer(dev) : json_null(),
		"provider", output_json_text(provider ? provider->name : NULL), "provider_note",
		output_json_text(provider ? provider->note : NULL), "source",
		output_json_addr(&nic->source), "addresses", addrs_json(nic), "ifindex",
		(int)nic->ifindex, "kind", kind_name(nic->kind), "link_kind",
		output_json_text(nic->link_kind), "admin_up", nic->admin_up, "carrier",
		nic->carrier, "default_route", nic->default_route, "mac", mac_json(nic), "mtu",
		nic->mtu, "speed_mbps", nic->speed_mbps, "pci_path",
		output_json_text(nic->pci_path), "pci_link", pci_link_json(&nic->pci_link), "guid",
		output_json_hex(nic->guid), "port", nic->port, "name", output_json_text(nic->name),
		"rdma", rdma_json(nic));
}

int nics_print_json(FILE *file, const struct mesh_nic_table *table,
		    const struct nics_provider *providers, const char *site)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < table->num_nics && list; i++)
		list = output_json_append(
			list,
			nic_json(&table->nics[i], i, i < table->num_taken ? &providers[i] : NULL));
	return output_json_print("fi_mesh nics", file,
				 json_pack("{s:o, s:i, s:o}", "site", output_json_text(site),
					   "taken", table->num_taken, "nics", list));
}
