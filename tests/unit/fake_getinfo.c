/* SPDX-License-Identifier: Apache-2.0 */
/* fake_getinfo.c - the fi_getinfo of fake_fabric.c: what the test offers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "fabric/provider.h"

#include "check.h"
#include "fake_fabric.h"

void fake_hints_forget(void)
{
	if (fake.hints)
		fi_freeinfo(fake.hints);
	fake.hints = NULL;
}

static struct fi_info *info_make(const struct fake_offer *offer)
{
	struct fi_info *info = fi_allocinfo();
	struct sockaddr_storage storage;
	struct mesh_addr addr;

	check(info);
	info->fabric_attr->prov_name = strdup(offer->provider);
	if (offer->domain)
		info->domain_attr->name = strdup(offer->domain);
	info->domain_attr->mr_mode = (int)fake.mr_mode;
	info->domain_attr->cq_data_size = fake.cq_data_size;
	info->domain_attr->mr_key_size = fake.mr_key_size;
	info->rx_attr->size = fake.rx_size;
	info->tx_attr->size = fake.tx_size;
	info->tx_attr->inject_size = fake.inject_size;
	info->tx_attr->iov_limit = 4;
	info->tx_attr->rma_iov_limit = 1;
	info->ep_attr->max_msg_size = fake.max_msg_size;
	if (!offer->source)
		return info;
	check_equal(mesh_addr_parse(offer->source, &addr), 0);
	info->src_addrlen = mesh_addr_to_sockaddr(&addr, 0, &storage);
	info->src_addr = malloc(info->src_addrlen);
	check(info->src_addr);
	memcpy(info->src_addr, &storage, info->src_addrlen);
	return info;
}

static void query_note(const char *node, const struct fi_info *hints)
{
	int i = fake.on[FAKE_GETINFO].calls;

	check(i < (int)(sizeof(fake.queried) / sizeof(fake.queried[0])));
	snprintf(fake.queried[i], sizeof(fake.queried[0]), "%s %s", hints->fabric_attr->prov_name,
		 node);
	fake_hints_forget();
	fake.hints = fi_dupinfo(hints);
}

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	const struct fake_offer *offer;
	struct fi_info **end = info;
	int ret;

	check(FI_VERSION_GE(version, FI_VERSION(1, 17)));
	check(!service);
	check((flags & ~FI_RESCAN) == FI_SOURCE);
	fake.rescans += flags & FI_RESCAN ? 1 : 0;
	query_note(node, hints);
	ret = fake_called(FAKE_GETINFO);
	if (ret)
		return ret;
	*info = NULL;
	for (offer = fake.offers; offer->provider; offer++) {
		if (strcmp(offer->provider, hints->fabric_attr->prov_name))
			continue;
		*end = info_make(offer);
		end = &(*end)->next;
	}
	return *info ? 0 : -FI_ENODATA;
}
