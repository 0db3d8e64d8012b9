/* SPDX-License-Identifier: Apache-2.0 */
/* provider_reason.c - why two NICs are a path, and why they use their provider, in words. */
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

const char *path_reason_text(enum mesh_path_reason reason)
{
	static const char *const texts[MESH_PATH_REASONS] = {
		[MESH_PATH_WHY_UNKNOWN] = "the reason is not known",
		[MESH_PATH_WHY_SUBNET] = "both addresses are on one subnet",
		[MESH_PATH_WHY_LINK_LOCAL] = "both addresses are link-local, which all "
					     "links have in common",
		[MESH_PATH_WHY_ROUTE] = "the kernel's route leaves by this NIC",
		[MESH_PATH_WHY_NCCL] = "NCCL chose both NICs",
		[MESH_PATH_WHY_NCCL_HERE] = "NCCL chose this node's NIC",
		[MESH_PATH_WHY_NCCL_THERE] = "NCCL chose the other node's NIC",
		[MESH_PATH_WHY_RAIL] = "both NICs are on one rail of NCCL_MESH_RAILS",
		[MESH_PATH_WHY_NUMBER] =
			"the two have the same number on nodes with equally many NICs",
		[MESH_PATH_WHY_NEAR] = "both NICs are near those that NCCL chose",
		[MESH_PATH_WHY_CABLE] = "the other NIC answers on this link",
		[MESH_PATH_WHY_SHARES] = "a better path has one of the two NICs",
		[MESH_PATH_WHY_FAR] = "a NIC is not near those that NCCL chose",
		[MESH_PATH_WHY_FALLBACK] = "NCCL_MESH_PROVIDER allows tcp where RDMA does "
					   "not connect",
		[MESH_PATH_WHY_RESERVE] = "a NIC is a reserve, such as the management "
					  "network's",
		[MESH_PATH_WHY_UNLIKELY] = "the node does not answer on this link",
		[MESH_PATH_WHY_RELAY] = "no link or route joins the two nodes",
	};

	return texts[reason];
}

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
