/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c - checks the TCP settings of the kernel, for NICs without RDMA. */
#include <string.h>

#include "nic/endpoint_addr.h"

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"

#define FILE_CONGESTION "proc/sys/net/ipv4/tcp_congestion_control"
#define FILE_AVAILABLE "proc/sys/net/ipv4/tcp_available_congestion_control"

/* The wanted NIC that libfabric would use TCP on; NULL if there is none. */
static const struct mesh_nic *tcp_nic(const struct check_context *context)
{
	enum mesh_provider_id provider = mesh_provider_id_parse(context->config.provider);
	const struct mesh_nic *nic;
	int i;

	for (i = 0; i < context->table.num_nics; i++) {
		nic = &context->table.nics[i];
		if (!check_nic_is_wanted(context, nic))
			continue;
		if (provider == MESH_PROVIDER_NONE ? !*nic->rdma.device
						   : provider != MESH_PROVIDER_VERBS_RXM)
			return nic;
	}
	return NULL;
}

/* Linux's default if this kernel has it, else reno, which every kernel has. */
static const char *unpaced_control(const struct check_context *context)
{
	char available[256];

	if (!mesh_sysfs_read(&context->files, available, sizeof(available), FILE_AVAILABLE) &&
	    !strstr(available, "cubic"))
		return "reno";
	return "cubic";
}

void check_congestion(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic *nic = tcp_nic(context);
	char name[32];

	if (!nic) {
		check_say(result, CHECK_PASS, "no NIC carries messages over TCP");
		return;
	}
	if (mesh_sysfs_read(&context->files, name, sizeof(name), FILE_CONGESTION)) {
		check_say(result, CHECK_UNKNOWN, "/" FILE_CONGESTION " cannot be read");
		return;
	}
	/* It limits its rate as if the path were shared: docs/performance.md. */
	if (!strncmp(name, "bbr", 3)) {
		check_say(result, CHECK_WARN,
			  "TCP paces itself (%s), which on a direct cable, such as that of "
			  "%s, can cost half of the bandwidth",
			  name, nic->netdev);
		check_seen(result, "/" FILE_CONGESTION ": %s", name);
		check_fix(result, "sysctl -w net.ipv4.tcp_congestion_control=%s",
			  unpaced_control(context));
		return;
	}
	check_say(result, CHECK_PASS, "TCP does not pace itself: it uses %s", name);
}
