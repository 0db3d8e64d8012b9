/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c - the formats of configuration files. */
#include <stddef.h>
#include <string.h>

#include "plan/formats.h"
#include "plan/plan.h"
#include "plan/ports.h"

/* ---- netplan's YAML (netplan.readthedocs.io), one file a node ---------------------------- */

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
	.path = "/etc/netplan/60-mesh.yaml",
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

/* A cable leads to one node: it must not become a default route, and has no DNS server. */
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
			"autoconnect=true\nautoconnect-retries=0\n\n",
			name, plan->infiniband ? "infiniband" : "ethernet", name);
		link_write(file, plan);
		address_write(file, &addr);
	}
}

static const struct plan_format format_nm = {
	.name = "nm",
	.title = "NetworkManager; then: nmcli connection reload",
	.path = "/etc/NetworkManager/system-connections/mesh-%s.nmconnection",
	.each_port = true,
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
	.each_port = true,
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
