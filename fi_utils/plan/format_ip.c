/* SPDX-License-Identifier: Apache-2.0 */
/* format_ip.c - plain `ip` commands, until the next boot; one script a node. */
#include "plan/format.h"
#include "plan/format_ip.h"
#include "plan/plan.h"
#include "plan/ports.h"

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

const struct plan_format plan_format_ip = {
	.name = "ip",
	.title = "plain ip commands, until the next boot; then: sh mesh-addresses",
	.path = "/usr/local/sbin/mesh-addresses",
	.mode = 0755,
	.write = ip_write,
};
