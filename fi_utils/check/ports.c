/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - checks of RDMA ports: state, subnet manager, GIDs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/rdma_port.h"
#include "system/sysfs.h"

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"
#include "common/output.h"

#define CLASS "sys/class/infiniband"
#define PORT_MAX 255

/* ---- state and subnet manager ----------------------------------------------------------- */

/* A port's files; "" where one cannot be read. */
struct port {
	const char *device;
	int number;
	bool infiniband;
	char state[32], physical[32], sm_lid[16], rate[64];
	const struct mesh_nic *nic; /* NULL: none in this namespace */
};

static void port_file(const struct check_context *context, const struct port *port,
		      const char *file, char *text, size_t size)
{
	mesh_sysfs_read(&context->files, text, size, CLASS "/%s/ports/%d/%s", port->device,
			port->number, file);
}

static const struct mesh_nic *port_nic(const struct check_context *context, const struct port *port)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_nics; i++)
		if (!strcmp(table->nics[i].rdma.device, port->device) &&
		    table->nics[i].rdma.port == port->number)
			return &table->nics[i];
	return NULL;
}

static void port_read(const struct check_context *context, const char *device, int number,
		      struct port *port)
{
	char text[32];

	memset(port, 0, sizeof(*port));
	port->device = device;
	port->number = number;
	port_file(context, port, "link_layer", text, sizeof(text));
	port->infiniband = !strcmp(text, "InfiniBand");
	port_file(context, port, "state", port->state, sizeof(port->state));
	port_file(context, port, "phys_state", port->physical, sizeof(port->physical));
	port_file(context, port, "sm_lid", port->sm_lid, sizeof(port->sm_lid));
	port_file(context, port, "rate", port->rate, sizeof(port->rate));
	port->nic = port_nic(context, port);
}

/* The port's GUID, which opensm takes: the last 8 bytes of its first GID. */
static void port_guid_text(const struct check_context *context, const struct port *port, char *text,
			   size_t size)
{
	char gid[64];
	uint8_t bytes[16];
	int i;

	port_file(context, port, "gids/0", gid, sizeof(gid));
	if (mesh_sysfs_gid_parse(gid, bytes)) {
		snprintf(text, size, "PORT_GUID (ibstat -p)");
		return;
	}
	snprintf(text, size, "0x");
	for (i = 8; i < 16; i++)
		output_add(text, size, "%02x", bytes[i]);
}

static void port_without_manager(const struct check_context *context, const struct port *port,
				 struct check_result *result)
{
	char guid[32];

	port_guid_text(context, port, guid, sizeof(guid));
	check_say(result, CHECK_FAIL,
		  "port %d of %s waits for a subnet manager: its cable has none", port->number,
		  port->device);
	check_seen(result, "/" CLASS "/%s/ports/%d/state = %s", port->device, port->number,
		   port->state);
	check_fix(result,
		  "opensm -B -g %s (one for each cable, on either of its nodes; a node with two "
		  "cables needs two)",
		  guid);
}

/* A port without a configured address is not in use; it may be down. */
static void port_down(const struct port *port, struct check_result *result)
{
	bool disabled = strstr(port->physical, "Disabled");

	if (!port->nic || !check_given_address(port->nic))
		return;
	check_say(result, CHECK_FAIL, "port %d of %s (%s) is down: %s", port->number, port->device,
		  port->nic->netdev,
		  disabled ? "it is disabled" : "no signal comes from the other end");
	check_seen(result, "/" CLASS "/%s/ports/%d: state = %s, phys_state = %s", port->device,
		   port->number, port->state, port->physical);
	if (disabled)
		check_fix(result, "ip link set %s up", port->nic->netdev);
	else
		check_fix(result, "reseat the cable at both ends, and check the port at the other "
				  "end");
}

static void port_judge(const struct check_context *context, const struct port *port,
		       struct check_result *result)
{
	if (!port->infiniband && !port->nic)
		return; /* another namespace's */
	if (!strncmp(port->state, "1:", 2)) {
		port_down(port, result);
	} else if (port->infiniband && strncmp(port->state, "4:", 2)) {
		port_without_manager(context, port, result);
	} else if (port->infiniband && !port->nic) {
		/* In a container the port may belong to another one. */
		check_say(result, CHECK_WARN,
			  "port %d of %s has no IPoIB interface; the mesh needs its address to "
			  "find the neighbour",
			  port->number, port->device);
		check_seen(result, "ip link show type ipoib");
		check_fix(result, "modprobe ib_ipoib, then `fi_mesh up`, or give ib0 an address");
	}
	if (port->infiniband && strstr(port->rate, "(1X")) {
		check_say(result, CHECK_WARN, "port %d of %s runs on one lane of four: %s",
			  port->number, port->device, port->rate);
		check_seen(result, "/" CLASS "/%s/ports/%d/rate", port->device, port->number);
		check_fix(result, "clean and re-seat the cable, or try another one (ibstatus)");
	}
}

/* Calls port_judge() for every port that the kernel has. Returns how many there are. */
static int device_ports(const struct check_context *context, const char *device,
			struct check_result *result)
{
	struct dirent **entries = NULL;
	char path[300];
	struct port port;
	uint64_t number;
	int i, num, seen = 0;

	snprintf(path, sizeof(path), CLASS "/%.200s/ports", device);
	num = mesh_sysfs_list(&context->files, path, &entries);
	for (i = 0; i < num; i++) {
		if (mesh_sysfs_number_parse(entries[i]->d_name, PORT_MAX, &number))
			continue;
		port_read(context, device, (int)number, &port);
		port_judge(context, &port, result);
		seen++;
	}
	mesh_sysfs_list_free(entries, num);
	return seen;
}

void check_ports(const struct check_context *context, struct check_result *result)
{
	struct dirent **entries = NULL;
	int i, num, seen = 0;

	num = mesh_sysfs_list(&context->files, CLASS, &entries);
	for (i = 0; i < num; i++)
		seen += device_ports(context, entries[i]->d_name, result);
	mesh_sysfs_list_free(entries, num);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "%s",
			  seen ? "every RDMA port in use is ACTIVE" : "there is no RDMA port");
}

/* ---- GIDs ------------------------------------------------------------------------------- */

/* The settings that NCCL's own transport would need. */
struct exports {
	char hcas[512]; /* "rocep1s0f0:1,rocep1s0f1:1" */
	int index;	/* of the first GID */
	int num;
	bool differ;
};

static void exports_add(struct exports *exports, const struct mesh_nic *nic, int index)
{
	if (!exports->num)
		exports->index = index;
	exports->differ |= index != exports->index;
	exports->num++;
	output_add(exports->hcas, sizeof(exports->hcas), "%s%s:%d", *exports->hcas ? "," : "",
		   nic->rdma.device, nic->rdma.port);
}

static void exports_say(const struct exports *exports, struct check_result *result)
{
	if (!exports->num)
		return;
	if (exports->differ)
		check_say(result, CHECK_PASS,
			  "without the plugin NCCL would need: export NCCL_IB_HCA==%s; no "
			  "NCCL_IB_GID_INDEX fits, as the indexes differ: leave it unset and let "
			  "NCCL 2.21 or later choose by NCCL_IB_ROCE_VERSION_NUM=2",
			  exports->hcas);
	else
		check_say(result, CHECK_PASS,
			  "without the plugin NCCL would need: export NCCL_IB_HCA==%s "
			  "NCCL_IB_GID_INDEX=%d",
			  exports->hcas, exports->index);
}

static void gid_missing(const struct mesh_nic *nic, const struct mesh_addr *addr,
			struct check_result *result)
{
	char text[MESH_ADDR_TEXT_MAX], full[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(addr, text);
	mesh_addr_text_prefix(addr, full);
	check_say(result, CHECK_FAIL, "%s port %d has no GID for %s: RDMA from that address fails",
		  nic->rdma.device, nic->rdma.port, text);
	check_seen(result, "/" CLASS "/%s/ports/%d/gids has %d entries of %s, none of this address",
		   nic->rdma.device, nic->rdma.port, nic->rdma.num_gids, nic->netdev);
	check_fix(result, "ip address del %s dev %s && ip address add %s dev %s", full, nic->netdev,
		  full, nic->netdev);
}

static void addr_gid(const struct mesh_nic *nic, const struct mesh_addr *addr,
		     struct exports *exports, struct check_result *result)
{
	const struct mesh_gid *gid = mesh_gid_find(&nic->rdma, addr);
	char text[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(addr, text);
	if (!gid) {
		gid_missing(nic, addr, result);
	} else if (gid->type == MESH_GID_ROCE_V2) {
		check_say(result, CHECK_PASS, "%s of %s is GID %d of %s port %d, RoCE v2", text,
			  nic->netdev, gid->index, nic->rdma.device, nic->rdma.port);
		if (mesh_addr_equal(addr, &nic->source))
			exports_add(exports, nic, gid->index);
	} else if (gid->type == MESH_GID_ROCE_V1) {
		check_say(result, CHECK_WARN,
			  "%s of %s has a RoCE v1 GID only (%d of %s port %d): a peer that uses "
			  "RoCE v2 cannot reach it",
			  text, nic->netdev, gid->index, nic->rdma.device, nic->rdma.port);
		check_seen(result, "/" CLASS "/%s/ports/%d/gid_attrs/types/%d", nic->rdma.device,
			   nic->rdma.port, gid->index);
		check_fix(result,
			  "look for newer firmware (ethtool -i %s); a ConnectX-3 without Pro "
			  "does not support RoCE v2: then all nodes must use v1",
			  nic->netdev);
	} else {
		check_say(result, CHECK_UNKNOWN,
			  "%s of %s is GID %d of %s port %d, but its RoCE version cannot be read",
			  text, nic->netdev, gid->index, nic->rdma.device, nic->rdma.port);
		check_seen(result, "/" CLASS "/%s/ports/%d/gid_attrs/types/%d", nic->rdma.device,
			   nic->rdma.port, gid->index);
	}
}

void check_gids(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	struct exports exports = {.num = 0};
	const struct mesh_nic *nic;
	int i;

	for (nic = table->nics; nic < table->nics + table->num_nics; nic++) {
		if (!check_nic_is_wanted(context, nic) ||
		    nic->rdma.link_layer != MESH_LINK_LAYER_ETHERNET ||
		    !mesh_rdma_port_is_active(&nic->rdma))
			continue;
		for (i = 0; i < nic->num_addrs; i++)
			if (nic->addrs[i].family == MESH_FAMILY_IPV4 &&
			    !mesh_addr_is_loopback(&nic->addrs[i]))
				addr_gid(nic, &nic->addrs[i], &exports, result);
	}
	exports_say(&exports, result);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "no RoCE port has an IPv4 address");
}
