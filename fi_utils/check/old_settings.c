/* SPDX-License-Identifier: Apache-2.0 */
/* old_settings.c - settings of nccl-mesh-plugin, whose prefix is the same, and what to use now. */
#include <stddef.h>

#include "check/old_settings.h"
#include "common/nccl_setting.h"

static const struct {
	const char *name;
	const char *instead; /* a setting to use; NULL: none is needed */
	const char *why;     /* why none is needed */
} old_settings[] = {
	{"NCCL_MESH_GID_INDEX", NULL, "the GID is found by the address"},
	{"NCCL_MESH_DEBUG", "NCCL_DEBUG=INFO", NULL},
	{"NCCL_MESH_FAST_FAIL", "NCCL_MESH_DEAD_PEER_TIMEOUT, in seconds", NULL},
	{"NCCL_MESH_TIMEOUT_MS", "NCCL_MESH_CONNECT_TIMEOUT, in seconds", NULL},
	{"NCCL_MESH_RETRY_COUNT", NULL, "attempts go on until NCCL_MESH_CONNECT_TIMEOUT"},
	{"NCCL_MESH_DISABLE_RDMA", "NCCL_MESH_PROVIDER=tcp on all nodes", NULL},
	{"NCCL_MESH_CONN_POOL", NULL, "connections of two processes are always shared"},
	{"NCCL_MESH_ASYNC_CONNECT", NULL, "connect never waits"},
};

void check_old_settings(const struct check_context *context, bool is_rccl,
			struct check_result *result)
{
	struct nccl_setting setting;
	size_t i;

	for (i = 0; i < sizeof(old_settings) / sizeof(old_settings[0]); i++) {
		const char *name = old_settings[i].name;

		if (!nccl_setting_find(&context->files, is_rccl, name, &setting))
			continue;
		check_say(result, CHECK_WARN,
			  "%s is a setting of nccl-mesh-plugin, ignored here: %s%s", name,
			  old_settings[i].instead ? "the setting is now " : "",
			  old_settings[i].instead ? old_settings[i].instead : old_settings[i].why);
		check_seen(result, "%s: %s=%.300s", setting.origin, name, setting.value);
		if (setting.line)
			check_fix(result, "take the line %s= out of %s", name, setting.origin);
		else
			check_fix(result, "unset %s", name);
	}
}
