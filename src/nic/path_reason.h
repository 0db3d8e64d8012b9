/* SPDX-License-Identifier: Apache-2.0 */
/* path_reason.h - why a pair of NICs has its place in a choice, and why its provider. */
#ifndef MESH_NIC_PATH_REASON_H
#define MESH_NIC_PATH_REASON_H

/* The strongest thing that decided about a candidate's place (path_choice.h). */
enum mesh_path_reason {
	MESH_PATH_WHY_UNKNOWN, /* the other node chose it, or it joined later */
	MESH_PATH_WHY_SUBNET,
	MESH_PATH_WHY_LINK_LOCAL,
	MESH_PATH_WHY_ROUTE,
	MESH_PATH_WHY_NCCL,	  /* NCCL chose both NICs */
	MESH_PATH_WHY_NCCL_HERE,  /* NCCL chose ours */
	MESH_PATH_WHY_NCCL_THERE, /* NCCL chose the listener's */
	MESH_PATH_WHY_RAIL,
	MESH_PATH_WHY_NUMBER,
	MESH_PATH_WHY_NEAR,
	MESH_PATH_WHY_CABLE,
	/* Why it comes after others. */
	MESH_PATH_WHY_SHARES, /* a better pair has one of its NICs */
	MESH_PATH_WHY_FAR,
	MESH_PATH_WHY_FALLBACK,
	MESH_PATH_WHY_RESERVE,
	MESH_PATH_WHY_UNLIKELY,
	MESH_PATH_WHY_RELAY, /* no pair of NICs reaches the node */
	MESH_PATH_REASONS
};

/** One word for logs and JSON: "subnet", "rail", ... Stable. Never NULL. */
const char *mesh_path_reason_word(enum mesh_path_reason reason);

/** A clause for people: "both addresses are on one subnet". Never NULL. */
const char *mesh_path_reason_text(enum mesh_path_reason reason);

/* Why two NICs use their provider. */
enum mesh_provider_reason {
	MESH_PROVIDER_WHY_SETTING, /* NCCL_MESH_PROVIDER */
	MESH_PROVIDER_WHY_RDMA,	   /* at both ends */
	MESH_PROVIDER_WHY_NO_RDMA, /* at neither end */
	MESH_PROVIDER_WHY_ONE_END, /* RDMA at one end only */
	MESH_PROVIDER_WHY_FALLBACK,
	MESH_PROVIDER_REASONS
};

/** The same for the provider: "rdma", ... */
const char *mesh_provider_reason_word(enum mesh_provider_reason reason);
const char *mesh_provider_reason_text(enum mesh_provider_reason reason);

#endif
