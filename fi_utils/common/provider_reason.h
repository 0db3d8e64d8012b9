/* SPDX-License-Identifier: Apache-2.0 */
/* provider_reason.h - why two NICs are a path, and why they use their provider, in words. Pure. */
#ifndef FI_UTILS_COMMON_PROVIDER_REASON_H
#define FI_UTILS_COMMON_PROVIDER_REASON_H

#include <stdbool.h>

#include "nic/path_choice.h"

enum provider_reason {
	PROVIDER_WHY_SETTING, /* NCCL_MESH_PROVIDER */
	PROVIDER_WHY_RDMA,    /* at both ends */
	PROVIDER_WHY_NO_RDMA, /* at neither end */
	PROVIDER_WHY_ONE_END, /* RDMA at one end only */
	PROVIDER_WHY_FALLBACK,
	PROVIDER_REASONS
};

/** A clause for people: "both addresses are on one subnet". Never NULL. */
const char *path_reason_text(enum mesh_path_reason reason);

/** One word for JSON: "rdma", ... Stable. Never NULL. */
const char *provider_reason_word(enum provider_reason reason);

/** A clause for people. Never NULL. */
const char *provider_reason_text(enum provider_reason reason);

/**
 * Why @pair has its provider.
 *
 * @ours, @theirs: the best one of each NIC
 * @setting: NCCL_MESH_PROVIDER names one
 */
enum provider_reason provider_reason_of(enum mesh_provider_id ours, enum mesh_provider_id theirs,
					const struct mesh_path_candidate *pair, bool setting);

#endif
