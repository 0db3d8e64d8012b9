/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c - the formats of configuration files. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/formats.h"
#include "plan/plan.h"
#include "plan/topology.h"

/* ---- netplan's YAML (netplan.readthedocs.io), one a port: it merges them ----------------- */

/* No name or address in a plan needs quotes; they are used where YAML might read a number. */
static void netplan_write(FILE *file, const struct mesh_plan *plan, const struct plan_port *ports,
			  int num_ports)
{
	char text[MESH_ADDR_TEXT_MAX], purpose[160];
	int i;

	fprintf(file, "network:\n  version: 2\n  ethernets:\n");
	for (i = 0; i < num_ports; i++) {
		struct mesh_addr addr = mesh_plan_addr(plan, ports[i].cable, ports[i].end);

		fprintf(file, "    \"%s\": # %s\n", plan_port_name(plan, &ports[i]),
			plan_port_purpose(plan, &ports[i], purpose, sizeof(purpose)));
		fprintf(file,
			"      addresses: [\"%s\"]\n"
			"      mtu: %d\n"
			"      dhcp4: false\n"
			"      dhcp6: false\n"
			"      accept-ra: false\n"
			"      optional: true # booting does not wait for the far node\n",
			mesh_addr_text_prefix(&addr, text), plan->mtu);
	}
}

static const struct plan_format format_netplan = {
	.name = "netplan",
	.title = "netplan (Ubuntu); then: netplan apply",
	.path = "/etc/netplan/60-mesh-%s.yaml",
	.mode = 0600,
	.write = netplan_write,
};

/* ---- NetworkManager's keyfiles, nm-settings-keyfile(5), one a port ----------------------- */

static void link_write(FILE *file, const struct mesh_plan *plan)
{
	if (plan->infiniband)
		fprintf(file, "[infiniband]\nmtu=%d\ntransport-mode=datagram\n\n", plan->mtu);
	else
		fprintf(file, "[ethernet]\nmtu=%d\n\n", plan->mtu);
}

/* A cable reaches one node: it must not become a default route, and has no DNS server. */
static void address_write(FILE *file, const struct mesh_addr *addr)
{
	char text[MESH_ADDR_TEXT_MAX];

	mesh_addr_text_prefix(addr, text);
	if (addr->family == MESH_FAMILY_IPV4)
		fprintf(file,
			"[ipv4]\nmethod=manual\naddress1=%s\nnever-default=true\n"
			"\n[ipv6]\nmethod=link-local\n",
			text);
	else
		fprintf(file,
			"[ipv4]\nmethod=disabled\n"
			"\n[ipv6]\nmethod=manual\naddress1=%s\nnever-default=true\n",
			text);
}

static void nm_write(FILE *file, const struct mesh_plan *plan, const struct plan_port *ports,
		     int num_ports)
{
	char purpose[160];
	int i;

	for (i = 0; i < num_ports; i++) {
		const char *name = plan_port_name(plan, &ports[i]);
		struct mesh_addr addr = mesh_plan_addr(plan, ports[i].cable, ports[i].end);

		fprintf(file, "# %s\n",
			plan_port_purpose(plan, &ports[i], purpose, sizeof(purpose)));
		fprintf(file,
			"[connection]\nid=mesh-%s\ntype=%s\ninterface-name=%s\n"
			"autoconnect=true\nautoconnect-priority=1\nautoconnect-retries=0\n\n",
			name, plan->infiniband ? "infiniband" : "ethernet", name);
		link_write(file, plan);
		address_write(file, &addr);
	}
}

static const struct plan_format format_nm = {
	.name = "nm",
	.title = "NetworkManager; then: nmcli connection reload",
	.path = "/etc/NetworkManager/system-connections/mesh-%s.nmconnection",
	.mode = 0600, /* NetworkManager ignores a keyfile that other users can read */
	.write = nm_write,
};

/* ---- systemd-networkd's files, systemd.network(5), one a port ---------------------------- */

static void networkd_write(FILE *file, const struct mesh_plan *plan, const struct plan_port *ports,
			   int num_ports)
{
	char text[MESH_ADDR_TEXT_MAX], purpose[160];
	int i;

	for (i = 0; i < num_ports; i++) {
		struct mesh_addr addr = mesh_plan_addr(plan, ports[i].cable, ports[i].end);

		fprintf(file, "# %s\n",
			plan_port_purpose(plan, &ports[i], purpose, sizeof(purpose)));
		fprintf(file,
			"[Match]\nName=%s\n\n"
			"[Link]\nMTUBytes=%d\nRequiredForOnline=no\n\n"
			"[Network]\nAddress=%s\nDHCP=no\nIPv6AcceptRA=no\nLLDP=no\n",
			plan_port_name(plan, &ports[i]), plan->mtu,
			mesh_addr_text_prefix(&addr, text));
	}
}

static const struct plan_format format_networkd = {
	.name = "networkd",
	.title = "systemd-networkd; then: networkctl reload",
	.path = "/etc/systemd/network/60-mesh-%s.network",
	.mode = 0644,
	.write = networkd_write,
};

/* ---- plain `ip` commands, until the next boot; one script a node ------------------------- */

static void ip_write(FILE *file, const struct mesh_plan *plan, const struct plan_port *ports,
		     int num_ports)
{
	char text[MESH_ADDR_TEXT_MAX], purpose[160];
	int i;

	fprintf(file, "#!/bin/sh\nset -e\n");
	for (i = 0; i < num_ports; i++) {
		const char *name = plan_port_name(plan, &ports[i]);
		struct mesh_addr addr = mesh_plan_addr(plan, ports[i].cable, ports[i].end);

		fprintf(file, "# %s\n",
			plan_port_purpose(plan, &ports[i], purpose, sizeof(purpose)));
		fprintf(file, "ip link set dev %s mtu %d up\n", name, plan->mtu);
		fprintf(file, "ip address replace %s dev %s\n", mesh_addr_text_prefix(&addr, text),
			name);
	}
}

static const struct plan_format format_ip = {
	.name = "ip",
	.title = "plain ip commands, until the next boot; then: sh mesh-addresses",
	.path = "/usr/local/sbin/mesh-addresses",
	.mode = 0755,
	.write = ip_write,
};

/* ---- all of them ------------------------------------------------------------------------- */

const struct plan_format *const plan_formats[] = {
	&format_netplan, &format_nm, &format_networkd, &format_ip, NULL,
};

const struct plan_format *plan_format_find(const char *name)
{
	int i;

	for (i = 0; plan_formats[i]; i++)
		if (!strcmp(plan_formats[i]->name, name))
			return plan_formats[i];
	return NULL;
}

static int plan_port_compare(const void *left, const void *right)
{
	const struct plan_port *a = left, *b = right;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return (a->port > b->port) - (a->port < b->port);
}

int plan_ports_load(const struct mesh_plan *plan, struct plan_ports *ports)
{
	size_t num_nodes = (size_t)plan->topology.num_nodes, i;
	size_t num_ports = 2 * (size_t)plan->topology.num_cables;
	struct plan_ports result = {
		.ports = calloc(num_ports + 1, sizeof(*result.ports)),
		.first = calloc(num_nodes + 2, sizeof(*result.first)),
	};

	if (!result.ports || !result.first) {
		plan_ports_free(&result);
		return -ENOMEM;
	}
	for (i = 0; i < num_ports; i++) {
		const struct mesh_cable_end *end = &plan->topology.cables[i / 2].ends[i % 2];

		result.ports[i] =
			(struct plan_port){end->node, end->port, (int)(i / 2), (int)(i % 2)};
		result.first[end->node + 1]++;
	}
	for (i = 0; i < num_nodes; i++)
		result.first[i + 1] += result.first[i];
	qsort(result.ports, num_ports, sizeof(*result.ports), plan_port_compare);
	*ports = result;
	return 0;
}

void plan_ports_free(struct plan_ports *ports)
{
	free(ports->ports);
	free(ports->first);
	memset(ports, 0, sizeof(*ports));
}

const char *plan_port_name(const struct mesh_plan *plan, const struct plan_port *port)
{
	return mesh_plan_port_name(plan, port->cable, port->end);
}

const char *plan_port_purpose(const struct mesh_plan *plan, const struct plan_port *port,
			      char *text, size_t size)
{
	int far = 1 - port->end;
	char cable[MESH_PLAN_CABLE_TEXT_MAX];

	snprintf(text, size, "cable %s, to %s %s", mesh_plan_cable_text(plan, port->cable, cable),
		 mesh_plan_node_name(plan, port->cable, far),
		 mesh_plan_port_name(plan, port->cable, far));
	return text;
}
