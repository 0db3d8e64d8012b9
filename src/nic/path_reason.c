/* SPDX-License-Identifier: Apache-2.0 */
/* path_reason.c - the words for why a path, and its provider, was chosen. */
#include "nic/path_reason.h"

struct reason_words {
	const char *word, *text;
};

static const struct reason_words path_words[MESH_PATH_REASONS] = {
	[MESH_PATH_WHY_UNKNOWN] = {"unknown", "the reason is not known"},
	[MESH_PATH_WHY_SUBNET] = {"subnet", "both addresses are on one subnet"},
	[MESH_PATH_WHY_LINK_LOCAL] = {"link-local", "both addresses are link-local, which all "
						    "links have in common"},
	[MESH_PATH_WHY_ROUTE] = {"route", "the kernel's route leaves by this NIC"},
	[MESH_PATH_WHY_NCCL] = {"nccl", "NCCL chose both NICs"},
	[MESH_PATH_WHY_NCCL_HERE] = {"nccl-here", "NCCL chose this node's NIC"},
	[MESH_PATH_WHY_NCCL_THERE] = {"nccl-there", "NCCL chose the other node's NIC"},
	[MESH_PATH_WHY_RAIL] = {"rail", "both NICs are on one rail of NCCL_MESH_RAILS"},
	[MESH_PATH_WHY_NUMBER] = {"number",
				  "the two have the same number on nodes with equally many NICs"},
	[MESH_PATH_WHY_NEAR] = {"near", "both NICs are near those that NCCL chose"},
	[MESH_PATH_WHY_CABLE] = {"cable", "the other NIC answers on this link"},
	[MESH_PATH_WHY_SHARES] = {"shares", "a better path has one of the two NICs"},
	[MESH_PATH_WHY_FAR] = {"far", "a NIC is not near those that NCCL chose"},
	[MESH_PATH_WHY_FALLBACK] = {"fallback", "NCCL_MESH_PROVIDER allows tcp where RDMA does "
						"not connect"},
	[MESH_PATH_WHY_RESERVE] = {"reserve", "a NIC is a reserve, such as the management "
					      "network's"},
	[MESH_PATH_WHY_UNLIKELY] = {"unlikely", "the node does not answer on this link"},
	[MESH_PATH_WHY_RELAY] = {"relay", "no link or route joins the two nodes"},
};

static const struct reason_words provider_words[MESH_PROVIDER_REASONS] = {
	[MESH_PROVIDER_WHY_SETTING] = {"setting", "by NCCL_MESH_PROVIDER"},
	[MESH_PROVIDER_WHY_RDMA] = {"rdma", "RDMA at both ends"},
	[MESH_PROVIDER_WHY_NO_RDMA] = {"no-rdma", "no RDMA at either end"},
	[MESH_PROVIDER_WHY_ONE_END] = {"one-end", "because there is no RDMA at one end: much "
						  "slower than RDMA at both ends"},
	[MESH_PROVIDER_WHY_FALLBACK] = {"fallback", "if RDMA does not connect: NCCL_MESH_PROVIDER "
						    "allows it"},
};

const char *mesh_path_reason_word(enum mesh_path_reason reason)
{
	return path_words[reason].word;
}

const char *mesh_path_reason_text(enum mesh_path_reason reason)
{
	return path_words[reason].text;
}

const char *mesh_provider_reason_word(enum mesh_provider_reason reason)
{
	return provider_words[reason].word;
}

const char *mesh_provider_reason_text(enum mesh_provider_reason reason)
{
	return provider_words[reason].text;
}
