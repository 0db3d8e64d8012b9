/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - passes the plugin's log lines to NCCL's logger. */
#include <stdatomic.h>

#include "base/log.h"
#include "nccl/log.h"

/* Written by init, read by every thread that logs; both may happen at once. */
static _Atomic(nccl_logger) nccl_log;

static const enum nccl_level levels[] = {
	[MESH_LOG_WARN] = NCCL_LEVEL_WARN,
	[MESH_LOG_INFO] = NCCL_LEVEL_INFO,
	[MESH_LOG_TRACE] = NCCL_LEVEL_TRACE,
};

static void log_to_nccl(enum mesh_log_level level, const char *file, int line, const char *text)
{
	nccl_logger logger = atomic_load(&nccl_log);

	/* A thread may still call this sink after it was replaced. */
	if (!logger)
		return;
	/* NCCL prints its own prefix and adds the newline; its own nets log "NET/<name> : ". */
	logger(levels[level], NCCL_SUBSYSTEM_INIT | NCCL_SUBSYSTEM_NET, file, line, "NET/Mesh : %s",
	       text);
}

void mesh_nccl_log_set(nccl_logger logger)
{
	atomic_store(&nccl_log, logger);
	mesh_log_sink_set(logger ? log_to_nccl : NULL);
}
