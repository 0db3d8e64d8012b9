/* SPDX-License-Identifier: Apache-2.0 */
/* format_networkd.c - systemd-networkd's files, systemd.network(5), one a port. */
#include "plan/format.h"
#include "plan/format_networkd.h"
#include "plan/plan.h"
#include "plan/ports.h"

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

const struct plan_format plan_format_networkd = {
	.name = "networkd",
	.title = "systemd-networkd; then: networkctl reload",
	.path = "/etc/systemd/network/60-mesh-%s.network",
	.each_port = true,
	.mode = 0644,
	.write = networkd_write,
};
