/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_tables.c - the tables of versions 2 to 6 of NCCL's tuner ABI. */
#include "nccl/plugin.h"
#include "nccl/tuner.h"

/*
 * Up to this number of bytes a ring uses LL, above it SIMPLE: v2 has no costs to
 * choose by, and NCCL ignores an algorithm without a protocol. LL128 needs links that v2 does not
 * tell of.
 */
#define LL_BYTES_MAX ((size_t)16 << 10)

/* ---- v2 to v4: other arguments of init --------------------------------------------------- */

static enum nccl_result init_v2(size_t num_ranks, size_t num_nodes, nccl_logger logger,
				void **context)
{
	return mesh_tuner_init(context, 0, num_ranks, num_nodes, logger, NULL, NULL);
}

/* v2: no costs, but one choice. Up to NCCL 2.22 only all-reduce has another than the ring. */
static enum nccl_result info_v2(void *context, enum nccl_collective collective, size_t num_bytes,
				int collnet, int nvls, int num_ops, int *algorithm, int *protocol,
				int *num_channels)
{
	const struct mesh_tuner *tuner = context;

	(void)collnet;
	(void)nvls;
	(void)num_ops;
	(void)num_channels;
	if (!tuner || !tuner->active || collective != NCCL_COLLECTIVE_ALL_REDUCE ||
	    tuner->excluded >> NCCL_ALGORITHM_RING & 1 ||
	    !(tuner->excluded >> NCCL_ALGORITHM_TREE & 1))
		return NCCL_RESULT_SUCCESS;
	*algorithm = NCCL_ALGORITHM_RING;
	*protocol = num_bytes <= LL_BYTES_MAX ? NCCL_PROTOCOL_LL : NCCL_PROTOCOL_SIMPLE;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result info_v3(void *context, enum nccl_collective collective, size_t num_bytes,
				int num_ops, float **table, int num_algorithms, int num_protocols,
				int *num_channels)
{
	return mesh_tuner_info(context, collective, num_bytes, num_ops, table, num_algorithms,
			       num_protocols, 0, num_channels);
}

/* ---- the tables -------------------------------------------------------------------------- */

const struct nccl_tuner_v2 ncclTunerPlugin_v2 = {
	.name = MESH_PLUGIN_NAME,
	.init = init_v2,
	.get_coll_info = info_v2,
	.destroy = mesh_tuner_finalize,
};

const struct nccl_tuner_v3 ncclTunerPlugin_v3 = {
	.name = MESH_PLUGIN_NAME,
	.init = init_v2,
	.get_coll_info = info_v3,
	.destroy = mesh_tuner_finalize,
};

const struct nccl_tuner_v4 ncclTunerPlugin_v4 = {
	.name = MESH_PLUGIN_NAME,
	.init = init_v2,
	.get_coll_info = mesh_tuner_info,
	.destroy = mesh_tuner_finalize,
};

const struct nccl_tuner_v5 ncclTunerPlugin_v5 = {
	.name = MESH_PLUGIN_NAME,
	.init = mesh_tuner_init,
	.get_coll_info = mesh_tuner_info,
	.destroy = mesh_tuner_finalize,
};

/* get_chunk_size is NULL: NCCL's own size is right on a mesh as well. */
const struct nccl_tuner_v6 ncclTunerPlugin_v6 = {
	.name = MESH_PLUGIN_NAME,
	.init = mesh_tuner_init,
	.get_coll_info = mesh_tuner_info,
	.destroy = mesh_tuner_finalize,
};
