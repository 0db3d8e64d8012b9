/* SPDX-License-Identifier: Apache-2.0 */
/* provider_reason.c - why two NICs use their provider, in words. */
#include "common/provider_reason.h"

static const struct {
	const char *word, *text;
} words[PROVIDER_REASONS] = {
	[PROVIDER_WHY_SETTING] = {"setting", "by NCCL_MESH_PROVIDER"},
	[PROVIDER_WHY_RDMA] = {"rdma", "RDMA at both ends"},
	[PROVIDER_WHY_NO_RDMA] = {"no-rdma", "no RDMA at either end"},
	[PROVIDER_WHY_ONE_END] = {"one-end", "because there is no RDMA at one end: much "
					     "slower than RDMA at both ends"},
	[PROVIDER_WHY_FALLBACK] = {"fallback", "if RDMA does not connect: NCCL_MESH_PROVIDER "
					       "allows it"},
};

const char *provider_reason_word(enum provider_reason reason)
{
	return words[reason].word;
}

const char *provider_reason_text(enum provider_reason reason)
{
	return words[reason].text;
}

enum provider_reason provider_reason_of(enum mesh_provider_id ours, enum mesh_provider_id theirs,
					const struct mesh_path_candidate *pair, bool setting)
{
	if (pair->class == MESH_PATH_FALLBACK || pair->class == MESH_PATH_FALLBACK_ROUTED)
		return PROVIDER_WHY_FALLBACK;
	if (ours != theirs)
		return PROVIDER_WHY_ONE_END;
	if (setting)
		return PROVIDER_WHY_SETTING;
	return pair->provider == MESH_PROVIDER_VERBS_RXM ? PROVIDER_WHY_RDMA : PROVIDER_WHY_NO_RDMA;
}
