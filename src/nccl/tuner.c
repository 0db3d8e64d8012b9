/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuner.c - keeps NCCL from algorithms that a mesh without all cables cannot do well: the decision,
 * and the tables of versions 2 to 6 of NCCL's tuner ABI.
 *
 * All ranks must choose alike, or a collective hangs, and a tuner has no channel to agree. It uses
 * what every rank is given: the numbers of ranks and nodes, and a setting and a plan of which HELLO
 * carries a digest. No function here fails: NCCL would end the collective.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nccl/tuner_abi.h>

#include "base/config.h"
#include "base/log.h"
#include "nccl/plugin.h"
#include "system/tuner_plan.h"

/*
 * Up to this number of bytes a ring uses LL, above it SIMPLE: v2 has no costs to
 * choose by, and NCCL ignores an algorithm without a protocol. LL128 needs links that v2 does not
 * tell of.
 */
#define LL_BYTES_MAX ((size_t)16 << 10)

/*
 * A context is NULL or one of these: bit n excludes enum nccl_algorithm n, the last one those of
 * later versions, too. Trees and PAT need relays where a ring does not; the other algorithms use
 * hardware of switches.
 */
static const uint32_t all_but_ring = ~(1u << NCCL_ALGORITHM_RING);
static const uint32_t trees = 1u << NCCL_ALGORITHM_TREE | 1u << NCCL_ALGORITHM_NVLS_TREE |
			      1u << NCCL_ALGORITHM_PAT;

/* ---- the decision ------------------------------------------------------------------------ */

/*
 * What is excluded in a communicator of so many nodes; NULL: nothing. @why: receives the decision
 * in words.
 */
static const uint32_t *tuner_decide(const struct mesh_tuner_plan *plan, size_t num_nodes,
				    const char **why)
{
	const struct mesh_plan_graph *graph = &plan->graph;

	if (plan->mode == MESH_TUNER_OFF) {
		*why = "off: NCCL's choice stays";
	} else if (num_nodes < 2) {
		*why = "NCCL's choice stays";
	} else if (plan->mode == MESH_TUNER_RING) {
		*why = "rings only (NCCL_MESH_TUNER)";
		return &all_but_ring;
	} else if (!graph->num_nodes) {
		*why = "no plan: NCCL's choice stays";
	} else if ((size_t)graph->num_nodes != num_nodes) {
		*why = "the plan has another number of nodes: NCCL's choice stays";
	} else if (mesh_plan_graph_is_full(graph)) {
		*why = "full mesh: NCCL's choice stays";
	} else if (!mesh_plan_graph_has_ring(graph)) {
		*why = "rings would need relays: NCCL's choice stays";
	} else {
		*why = "not fully meshed: trees may need relays; rings do not, and are used "
		       "instead";
		return &trees;
	}
	return NULL;
}

static bool is_excluded(uint32_t excluded, int algorithm)
{
	return excluded >> (algorithm < NCCL_ALGORITHMS ? algorithm : 31) & 1;
}

/*
 * Changes a cost table of @num_algorithms rows and @num_protocols columns. If nothing that can be
 * used would be left, it stays as it is.
 */
static void tuner_apply(uint32_t excluded, float *table, int num_algorithms, int num_protocols)
{
	bool any_left = false;
	int algorithm, i;

	for (algorithm = 0; algorithm < num_algorithms; algorithm++)
		for (i = 0; i < num_protocols && !is_excluded(excluded, algorithm); i++)
			any_left |= table[algorithm * num_protocols + i] >= 0;
	for (algorithm = 0; algorithm < num_algorithms && any_left; algorithm++)
		for (i = 0; i < num_protocols && is_excluded(excluded, algorithm); i++)
			table[algorithm * num_protocols + i] = NCCL_COST_EXCLUDED;
}

/* ---- NCCL's calls ------------------------------------------------------------------------ */

/* The tuner's settings only: the net's init reports what is wrong with others. */
static const char *setting_lookup(void *arg, const char *name)
{
	(void)arg;
	return !strcmp(name, "NCCL_MESH_TUNER") || !strcmp(name, "NCCL_MESH_PLAN") ? getenv(name)
										   : NULL;
}

static enum nccl_result tuner_init(void **context, uint64_t comm_id, size_t num_ranks,
				   size_t num_nodes, nccl_logger logger, void *domain,
				   void *constants)
{
	struct mesh_tuner_plan *plan = malloc(sizeof(*plan));
	struct mesh_config config;
	const char *why;

	(void)comm_id;
	(void)domain;
	(void)constants;
	*context = NULL;
	if (logger)
		mesh_nccl_log_set(logger);
	if (!plan)
		return NCCL_RESULT_SUCCESS;
	/* A value that cannot be used is reported, and the default taken. */
	mesh_config_load(setting_lookup, NULL, &config);
	mesh_tuner_plan_load(&config, plan);
	*context = (void *)tuner_decide(plan, num_nodes, &why);
	mesh_info("tuner: %zu ranks, %zu nodes: %s", num_ranks, num_nodes, why);
	free(plan);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result tuner_info(void *context, enum nccl_collective collective, size_t num_bytes,
				   int num_ops, float **table, int num_algorithms,
				   int num_protocols, int registered_buffers, int *num_channels)
{
	(void)collective;
	(void)num_bytes;
	(void)num_ops;
	(void)registered_buffers;
	(void)num_channels;
	if (context && table && num_algorithms > 0 && num_protocols > 0)
		tuner_apply(*(const uint32_t *)context, (float *)table, num_algorithms,
			    num_protocols);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result tuner_finalize(void *context)
{
	(void)context;
	return NCCL_RESULT_SUCCESS;
}

/* ---- v2 to v4: other arguments of init --------------------------------------------------- */

static enum nccl_result init_v2(size_t num_ranks, size_t num_nodes, nccl_logger logger,
				void **context)
{
	return tuner_init(context, 0, num_ranks, num_nodes, logger, NULL, NULL);
}

/* v2: no costs, but one choice. Up to NCCL 2.22 only all-reduce has another than the ring. */
static enum nccl_result info_v2(void *context, enum nccl_collective collective, size_t num_bytes,
				int collnet, int nvls, int num_ops, int *algorithm, int *protocol,
				int *num_channels)
{
	(void)collnet;
	(void)nvls;
	(void)num_ops;
	(void)num_channels;
	if (!context || collective != NCCL_COLLECTIVE_ALL_REDUCE)
		return NCCL_RESULT_SUCCESS;
	*algorithm = NCCL_ALGORITHM_RING;
	*protocol = num_bytes <= LL_BYTES_MAX ? NCCL_PROTOCOL_LL : NCCL_PROTOCOL_SIMPLE;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result info_v3(void *context, enum nccl_collective collective, size_t num_bytes,
				int num_ops, float **table, int num_algorithms, int num_protocols,
				int *num_channels)
{
	return tuner_info(context, collective, num_bytes, num_ops, table, num_algorithms,
			  num_protocols, 0, num_channels);
}

/* ---- the tables -------------------------------------------------------------------------- */

#define TABLE(version, init_function, info_function)                                               \
	const struct nccl_tuner_##version ncclTunerPlugin_##version = {                            \
		.name = MESH_PLUGIN_NAME,                                                          \
		.init = (init_function),                                                           \
		.get_coll_info = (info_function),                                                  \
		.destroy = tuner_finalize,                                                         \
	}

TABLE(v2, init_v2, info_v2);
TABLE(v3, init_v2, info_v3);
TABLE(v4, init_v2, tuner_info);
TABLE(v5, tuner_init, tuner_info);
TABLE(v6, tuner_init, tuner_info); /* get_chunk_size is NULL: NCCL's own is right on a mesh, too */
