/* SPDX-License-Identifier: Apache-2.0 */
/* self.c - reads what this node is, with the plugin's own layers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fabric/provider.h"
#include "system/nic_table.h"
#include "system/node.h"

#include "peer/self.h"
#include "peer/wire.h"

static int nics_read(const struct peer_self *self, struct mesh_nic_table *table,
		     enum mesh_provider_id *providers)
{
	struct mesh_provider_verdict *verdicts;
	int i, ret;

	ret = mesh_nic_table_load("/sys", &self->config, table);
	if (ret)
		return ret;
	verdicts = calloc((size_t)table->num_taken + 1, sizeof(*verdicts));
	ret = verdicts ? mesh_providers_assign(self->config.provider, table, verdicts) : -ENOMEM;
	for (i = 0; !ret && i < table->num_taken && i < MESH_NICS_MAX; i++)
		providers[i] = verdicts[i].id;
	free(verdicts);
	if (ret)
		mesh_nic_table_free(table);
	return ret;
}

int peer_self_refresh(struct peer_self *self)
{
	enum mesh_provider_id providers[MESH_NICS_MAX] = {MESH_PROVIDER_NONE};
	struct mesh_nic_table table = {0};
	int ret = nics_read(self, &table, providers);

	if (ret)
		return ret;
	mesh_nic_table_free(&self->table);
	self->table = table;
	self->num_nics = table.num_taken < MESH_NICS_MAX ? table.num_taken : MESH_NICS_MAX;
	memcpy(self->providers, providers, sizeof(providers));
	return 0;
}

int peer_self_open(struct peer_self *self)
{
	int ret;

	memset(self, 0, sizeof(*self));
	ret = mesh_config_load(NULL, NULL, &self->config);
	if (ret == -E2BIG)
		return ret;
	ret = mesh_rails_parse(self->config.rails, &self->rails);
	if (ret)
		return ret;
	mesh_node_name(self->config.node_name, self->name, sizeof(self->name));
	self->node_id = mesh_node_id();
	return peer_self_refresh(self);
}

void peer_self_close(struct peer_self *self)
{
	mesh_nic_table_free(&self->table);
}

void peer_self_site(const struct peer_self *self, char *site)
{
	snprintf(site, MESH_SITE_NAME_MAX, "%.*s", MESH_SITE_NAME_MAX - 1, self->config.site);
	mesh_text_clean(site);
}

void peer_self_hello(const struct peer_self *self, struct mesh_check_hello *hello)
{
	int i;

	memset(hello, 0, sizeof(*hello));
	hello->node_id = self->node_id;
	hello->plugin_protocol = MESH_PROTOCOL_VERSION;
	hello->num_nics = (uint8_t)self->num_nics;
	memcpy(hello->node, self->name, sizeof(hello->node));
	peer_self_site(self, hello->site);
	for (i = 0; i < self->num_nics; i++) {
		const struct mesh_nic *nic = &self->table.nics[i];
		struct mesh_check_nic *entry = &hello->nics[i];

		entry->family = (uint8_t)nic->source.family;
		entry->prefix_len = nic->source.prefix_len;
		entry->provider = (uint8_t)self->providers[i];
		entry->carrier = mesh_nic_has_carrier(nic);
		entry->mtu = (uint32_t)nic->mtu;
		entry->speed_mbps = (uint32_t)nic->speed_mbps;
		memcpy(entry->addr, nic->source.bytes, sizeof(entry->addr));
		memcpy(entry->netdev, nic->netdev, sizeof(entry->netdev));
	}
}

bool peer_self_also_tcp(const struct peer_self *self, enum mesh_provider_id provider)
{
	const char *setting = self->config.provider;

	return provider == MESH_PROVIDER_VERBS_RXM &&
	       (!*setting || mesh_provider_list_falls_back(setting));
}

uint8_t peer_self_providers(const struct peer_self *self, int index)
{
	enum mesh_provider_id best = self->providers[index];

	return (uint8_t)(1u << best |
			 (peer_self_also_tcp(self, best) ? 1u << MESH_PROVIDER_TCP : 0));
}

enum mesh_provider_id peer_best_provider(uint8_t providers)
{
	int id;

	for (id = MESH_PROVIDER_NONE + 1; id <= MESH_PROVIDER_ID_MAX; id++) {
		if (providers & 1u << id)
			return (enum mesh_provider_id)id;
	}
	return MESH_PROVIDER_NONE;
}

const struct mesh_nic *peer_self_nic(const struct peer_self *self, const struct mesh_addr *addr)
{
	int i;

	for (i = 0; i < self->num_nics; i++) {
		const struct mesh_addr *source = &self->table.nics[i].source;

		if (source->family == addr->family &&
		    !memcmp(source->bytes, addr->bytes, mesh_addr_size(addr->family)))
			return &self->table.nics[i];
	}
	return NULL;
}

int peer_self_links(const struct peer_self *self, const struct mesh_neighbour_self *about,
		    struct mesh_neighbour_link *links)
{
	int i, num_links = 0;

	for (i = 0; i < self->num_nics; i++) {
		if (self->table.nics[i].kind == MESH_NIC_LOOPBACK)
			continue;
		mesh_neighbour_link_describe(about, &self->table.nics[i], i,
					     peer_self_providers(self, i), &links[num_links++]);
	}
	return num_links;
}
