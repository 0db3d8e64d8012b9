/* SPDX-License-Identifier: Apache-2.0 */
/* format_netplan.c - netplan's YAML (netplan.readthedocs.io), one file a node. */
#include "plan/format.h"
#include "plan/format_netplan.h"
#include "plan/plan.h"
#include "plan/ports.h"

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

const struct plan_format plan_format_netplan = {
	.name = "netplan",
	.title = "netplan (Ubuntu); then: netplan apply",
	.path = "/etc/netplan/60-mesh.yaml",
	.mode = 0600,
	.write = netplan_write,
};
