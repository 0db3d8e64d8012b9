/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic_order.c - the order of the NIC table, the numbers by which NCCL distinguishes NICs, and the
 * NICs that are skipped.
 */
#include <stdio.h>

#include "nic/nic_order.h"

#define _GNU_SOURCE /* strverscmp */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The beginning of the reason of a NIC that is skipped. */
#define SKIPPED "skipped: "

static uint64_t hash(uint64_t seed, const char *text)
{
	return mesh_hash_add(MESH_HASH_START ^ seed, text, strlen(text));
}

/* EUI-64 from a MAC (RFC 4291 appendix A, without the inverted bit); IPoIB has 8 bytes already. */
static uint64_t guid_of_mac(const struct mesh_nic *nic)
{
	const uint8_t *mac = nic->mac;
	const uint8_t eui[8] = {mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	static const uint8_t zero[8];
	uint64_t guid = 0;
	int i;

	if (!memcmp(mac, zero, 8))
		return 0;
	for (i = 0; i < 8; i++)
		guid = guid << 8 | (nic->kind == MESH_NIC_INFINIBAND ? mac[i] : eui[i]);
	return guid;
}

static bool guid_is_used(const struct mesh_nic *nics, int num, const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < num; i++)
		if (nics[i].guid == nic->guid && nics[i].port == nic->port)
			return true;
	return false;
}

void mesh_nic_table_identify(struct mesh_nic_table *table)
{
	struct mesh_nic *nic;
	int i;

	for (i = 0; i < table->num_nics; i++) {
		nic = &table->nics[i];
		nic->port = *nic->rdma.device ? nic->rdma.port : 1;
		nic->guid = *nic->rdma.device ? nic->rdma.node_guid : 0;
		if (!nic->guid)
			nic->guid = guid_of_mac(nic);
		while (!nic->guid || guid_is_used(table->nics, i, nic))
			nic->guid = hash(nic->guid, nic->netdev);
	}
}

static int nic_compare(const void *left, const void *right)
{
	const struct mesh_nic *a = left, *b = right;
	int ret;

	if (a->taken != b->taken)
		return a->taken ? -1 : 1;
	if (!*a->pci_path != !*b->pci_path)
		return *a->pci_path ? -1 : 1;
	ret = strcmp(a->pci_path, b->pci_path);
	if (!ret && *a->pci_path)
		ret = a->rdma.port - b->rdma.port;
	if (!ret)
		ret = strverscmp(a->netdev, b->netdev);
	if (!ret)
		ret = a->ifindex < b->ifindex ? -1 : a->ifindex > b->ifindex;
	return ret;
}

void mesh_nic_table_sort(struct mesh_nic_table *table)
{
	int i;

	if (table->num_nics)
		qsort(table->nics, (size_t)table->num_nics, sizeof(*table->nics), nic_compare);
	table->num_taken = 0;
	for (i = 0; i < table->num_nics; i++)
		table->num_taken += table->nics[i].taken;
}

static void nic_leave_va(struct mesh_nic *nic, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void nic_leave_va(struct mesh_nic *nic, const char *format, va_list args)
{
	nic->taken = false;
	memset(&nic->source, 0, sizeof(nic->source));
	memcpy(nic->reason, SKIPPED, sizeof(SKIPPED));
	vsnprintf(nic->reason + sizeof(SKIPPED) - 1, sizeof(nic->reason) - (sizeof(SKIPPED) - 1),
		  format, args);
}

const char *mesh_nic_bare_reason(const struct mesh_nic *nic)
{
	const size_t len = sizeof(SKIPPED) - 1;

	return nic->reason + (strncmp(nic->reason, SKIPPED, len) ? 0 : len);
}

void mesh_nic_leave(struct mesh_nic *nic, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	nic_leave_va(nic, format, args);
	va_end(args);
}

void mesh_nic_table_leave(struct mesh_nic_table *table, int index, const char *format, ...)
{
	va_list args;

	if (index < 0 || index >= table->num_taken)
		return;
	va_start(args, format);
	nic_leave_va(&table->nics[index], format, args);
	va_end(args);
	mesh_nic_table_sort(table);
}

/* The address of @nic that lies in a subnet of the peer's; NULL if there is none. */
static const struct mesh_addr *
shared_address(const struct mesh_nic *nic, const struct mesh_endpoint_addr *remote, int num_remote)
{
	int i, k;

	for (i = 0; i < nic->num_addrs; i++)
		for (k = 0; k < num_remote; k++)
			if (mesh_addr_same_subnet(&nic->addrs[i], &remote[k].addr) &&
			    !mesh_addr_is_link_local(&nic->addrs[i]) &&
			    !mesh_addr_is_loopback(&nic->addrs[i]))
				return &nic->addrs[i];
	return NULL;
}

/* The address to name; NULL if the NIC does not explain a missing path. */
static const struct mesh_addr *address_of(const struct mesh_nic *nic,
					  const struct mesh_endpoint_addr *remote, int num_remote)
{
	const struct mesh_addr *shared = shared_address(nic, remote, num_remote);

	if (nic->taken || shared || !nic->num_addrs || mesh_addr_is_loopback(&nic->addrs[0]))
		return nic->taken ? NULL : shared;
	if (nic->admin_up && nic->carrier && !nic->starting && !nic->no_provider)
		return NULL;
	return &nic->addrs[0];
}

const char *mesh_nics_skipped_text(const struct mesh_nic_table *table,
				   const struct mesh_endpoint_addr *remote, int num_remote,
				   char *text, size_t size)
{
	const struct mesh_addr *address;
	char words[MESH_ADDR_TEXT_MAX];
	const struct mesh_nic *nic;
	size_t used = 0;
	int n;

	*text = '\0';
	for (nic = table->nics; nic < table->nics + table->num_nics && used < size; nic++) {
		address = address_of(nic, remote, num_remote);
		if (!address)
			continue;
		n = snprintf(text + used, size - used, "%s%s (%s): %s", used ? "; " : "",
			     nic->netdev, mesh_addr_text_prefix(address, words),
			     mesh_nic_bare_reason(nic));
		if (n < 0)
			break;
		used += (size_t)n;
	}
	return text;
}
