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
#include <stdio.h>
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

/* What is done to a cost table. Constant for a communicator. */
struct tuner {
	uint32_t
		excluded; /* bit n: enum nccl_algorithm n; the last: those of later versions, too */
	float factors[NCCL_ALGORITHMS]; /* of the other rows */
};

/* Which transfers between nodes an algorithm makes. The others use hardware of switches. */
static const struct {
	enum nccl_algorithm algorithm;
	enum mesh_plan_pattern pattern;
} patterns[] = {
	{NCCL_ALGORITHM_RING, MESH_PATTERN_RING},
	{NCCL_ALGORITHM_TREE, MESH_PATTERN_TREE},
	{NCCL_ALGORITHM_NVLS_TREE, MESH_PATTERN_TREE},
	{NCCL_ALGORITHM_PAT, MESH_PATTERN_PAT},
};

#define NUM_PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* ---- the decision ------------------------------------------------------------------------ */

/* Excludes what needs a relay, if anything needs none; otherwise costs grow with the routes. */
static void plan_apply(const struct mesh_plan_graph *graph, struct tuner *tuner)
{
	int hops[MESH_PATTERNS], pattern;
	bool any_direct = false;
	size_t i;

	for (pattern = 0; pattern < MESH_PATTERNS; pattern++) {
		hops[pattern] = mesh_plan_hops(graph, (enum mesh_plan_pattern)pattern);
		any_direct |= hops[pattern] == 1;
	}
	for (i = 0; i < NUM_PATTERNS; i++) {
		pattern = patterns[i].pattern;
		if (!hops[pattern] || (any_direct && hops[pattern] > 1))
			tuner->excluded |= 1u << patterns[i].algorithm;
		else
			tuner->factors[patterns[i].algorithm] = (float)hops[pattern];
	}
}

static const char *plan_words(const struct tuner *tuner)
{
	const bool ring = tuner->excluded >> NCCL_ALGORITHM_RING & 1;
	const bool tree = tuner->excluded >> NCCL_ALGORITHM_TREE & 1;

	if (tree && !ring)
		return "trees would need relays; rings do not, and are used instead";
	if (ring && !tree)
		return "rings would need relays; trees do not, and are used instead";
	return "each algorithm costs as much more as its routes are longer than on a full mesh";
}

/* Decides for a communicator of so many nodes. @why: receives the decision in words. */
static void tuner_decide(const struct mesh_tuner_plan *plan, size_t num_nodes, struct tuner *tuner,
			 char *why, size_t why_size)
{
	const struct mesh_plan_graph *graph = &plan->graph;
	int i;

	memset(tuner, 0, sizeof(*tuner));
	for (i = 0; i < NCCL_ALGORITHMS; i++)
		tuner->factors[i] = 1;
	if (plan->mode == MESH_TUNER_OFF) {
		snprintf(why, why_size, "off: NCCL's choice stays");
	} else if (num_nodes < 2) {
		snprintf(why, why_size, "one node: NCCL's choice stays");
	} else if (plan->mode == MESH_TUNER_RING) {
		tuner->excluded = ~(1u << NCCL_ALGORITHM_RING);
		snprintf(why, why_size, "rings only (NCCL_MESH_TUNER)");
	} else if (!graph->num_nodes) {
		snprintf(why, why_size, "no plan: NCCL's choice stays");
	} else if ((size_t)graph->num_nodes != num_nodes) {
		snprintf(why, why_size,
			 "the plan has %d nodes, this communicator %zu: NCCL's choice stays",
			 graph->num_nodes, num_nodes);
	} else if (mesh_plan_graph_is_full(graph)) {
		snprintf(why, why_size, "full mesh: NCCL's choice stays");
	} else {
		plan_apply(graph, tuner);
		snprintf(why, why_size, "%zu nodes, not fully meshed: %s", num_nodes,
			 plan_words(tuner));
	}
}

static bool is_excluded(const struct tuner *tuner, int algorithm)
{
	return tuner->excluded >> (algorithm < NCCL_ALGORITHMS ? algorithm : 31) & 1;
}

/*
 * Changes a cost table of @num_algorithms rows and @num_protocols columns. If nothing that can be
 * used would be left, it stays as it is.
 */
static void tuner_apply(const struct tuner *tuner, float *table, int num_algorithms,
			int num_protocols)
{
	bool any_left = false;
	int algorithm, i;

	for (algorithm = 0; algorithm < num_algorithms; algorithm++)
		for (i = 0; i < num_protocols && !is_excluded(tuner, algorithm); i++)
			any_left |= table[algorithm * num_protocols + i] >= 0;
	if (!any_left)
		return;
	for (algorithm = 0; algorithm < num_algorithms; algorithm++) {
		for (i = 0; i < num_protocols; i++) {
			float *entry = &table[algorithm * num_protocols + i];

			if (is_excluded(tuner, algorithm))
				*entry = NCCL_COST_EXCLUDED;
			else if (*entry > 0 && algorithm < NCCL_ALGORITHMS)
				*entry *= tuner->factors[algorithm];
		}
	}
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
	struct tuner *tuner = malloc(sizeof(*tuner));
	struct mesh_tuner_plan *plan = malloc(sizeof(*plan));
	struct mesh_config config;
	char why[200];

	(void)comm_id;
	(void)domain;
	(void)constants;
	*context = NULL;
	if (logger)
		mesh_nccl_log_set(logger);
	if (tuner && plan) {
		/* A value that cannot be used is reported, and the default taken. */
		mesh_config_load(setting_lookup, NULL, &config);
		mesh_tuner_plan_load(&config, plan);
		tuner_decide(plan, num_nodes, tuner, why, sizeof(why));
		mesh_info("tuner: %zu ranks, %s", num_ranks, why);
		*context = tuner;
		tuner = NULL;
	}
	free(plan);
	free(tuner);
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
		tuner_apply(context, (float *)table, num_algorithms, num_protocols);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result tuner_finalize(void *context)
{
	free(context);
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
	const struct tuner *tuner = context;

	(void)collnet;
	(void)nvls;
	(void)num_ops;
	(void)num_channels;
	if (!tuner || collective != NCCL_COLLECTIVE_ALL_REDUCE ||
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
