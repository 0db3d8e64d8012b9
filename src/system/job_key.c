/* SPDX-License-Identifier: Apache-2.0 */
/* job_key.c - a number that all ranks of a job have in common. */
#include <stddef.h>
#include <stdlib.h>

#include "system/job_key.h"

/* What a launcher sets alike on all ranks; the first must be set, the others may be. */
static const char *const launchers[][3] = {
	{"SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
	{"PMIX_NAMESPACE", NULL, NULL},
	{"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"},
	{"MASTER_ADDR", "MASTER_PORT", NULL},
};

static const char *environment_lookup(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

/* FNV-1a, 64 bits (draft-eastlake-fnv), with the zero byte at the end. */
static uint64_t text_add(uint64_t hash, const char *text)
{
	do {
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	} while (*text++);
	return hash;
}

uint64_t mesh_job_key(const char *(*lookup)(void *arg, const char *name), void *arg)
{
	uint64_t hash = 0xcbf29ce484222325u;
	const char *value;
	size_t i, k;

	if (!lookup)
		lookup = environment_lookup;
	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		value = lookup(arg, launchers[i][0]);
		if (value && *value)
			break;
	}
	if (i == sizeof(launchers) / sizeof(launchers[0]))
		return 0;
	for (k = 0; k < 3 && launchers[i][k]; k++) {
		value = lookup(arg, launchers[i][k]);
		hash = text_add(text_add(hash, launchers[i][k]), value ? value : "");
	}
	return hash ? hash : 1;
}
