/* SPDX-License-Identifier: Apache-2.0 */
/* format_nm.c - NetworkManager's keyfiles, nm-settings-keyfile(5), one a port. */
#include "plan/format.h"
#include "plan/format_nm.h"
#include "plan/plan.h"
#include "plan/ports.h"

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

const struct plan_format plan_format_nm = {
	.name = "nm",
	.title = "NetworkManager; then: nmcli connection reload",
	.path = "/etc/NetworkManager/system-connections/mesh-%s.nmconnection",
	.each_port = true,
	.mode = 0600, /* NetworkManager ignores a keyfile that other users can read */
	.write = nm_write,
};
