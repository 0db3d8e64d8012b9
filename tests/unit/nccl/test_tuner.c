/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tuner.c - the tuner's tables, as NCCL calls them: every version, with 6 and with 7
 * algorithms. No call fails, something that can be used is always left, and all ranks decide alike.
 */
#include <nccl/tuner_abi.h>

#include "nccl/plugin.h"

#include "log_capture.h"
#include "unit.h"

#define RANDOM_SHAPES 300
#define CELLS (NCCL_ALGORITHMS * NCCL_PROTOCOLS)

static char plan[] = "/tmp/mesh-tuner-plan-XXXXXX";

/* ---- one rank, with the table of one version --------------------------------------------- */

struct rank {
	int version;
	void *context;
};

static void quiet(enum nccl_level level, unsigned long flags, const char *file, int number,
		  const char *format, ...)
{
}

static struct rank rank_open(int version, size_t ranks, size_t nodes, nccl_logger logger)
{
	struct rank rank = {.version = version, .context = &rank};
	enum nccl_result result = NCCL_RESULT_INTERNAL_ERROR;

	switch (version) {
	case 2:
		result = ncclTunerPlugin_v2.init(ranks, nodes, logger, &rank.context);
		break;
	case 3:
		result = ncclTunerPlugin_v3.init(ranks, nodes, logger, &rank.context);
		break;
	case 4:
		result = ncclTunerPlugin_v4.init(ranks, nodes, logger, &rank.context);
		break;
	case 5:
		result =
			ncclTunerPlugin_v5.init(&rank.context, 7, ranks, nodes, logger, NULL, NULL);
		break;
	case 6:
		result =
			ncclTunerPlugin_v6.init(&rank.context, 7, ranks, nodes, logger, NULL, NULL);
		break;
	}
	assert_int_equal(result, NCCL_RESULT_SUCCESS);
	return rank;
}

static void rank_close(struct rank *rank)
{
	nccl_tuner_destroy_v2 *const destroy[] = {
		NULL,
		NULL,
		ncclTunerPlugin_v2.destroy,
		ncclTunerPlugin_v3.destroy,
		ncclTunerPlugin_v4.destroy,
		ncclTunerPlugin_v5.destroy,
		ncclTunerPlugin_v6.destroy,
	};

	assert_int_equal(destroy[rank->version](rank->context), NCCL_RESULT_SUCCESS);
}

/* Versions 3 to 6. */
static void rank_ask(const struct rank *rank, float *table, int num_algorithms)
{
	const enum nccl_collective all = NCCL_COLLECTIVE_ALL_REDUCE;
	float **costs = (float **)table;
	enum nccl_result result;
	int channels = 3;

	if (rank->version == 3)
		result = ncclTunerPlugin_v3.get_coll_info(
			rank->context, all, 4, 1, costs, num_algorithms, NCCL_PROTOCOLS, &channels);
	else if (rank->version == 4)
		result = ncclTunerPlugin_v4.get_coll_info(rank->context, all, 4, 1, costs,
							  num_algorithms, NCCL_PROTOCOLS, 0,
							  &channels);
	else if (rank->version == 5)
		result = ncclTunerPlugin_v5.get_coll_info(rank->context, all, 4, 1, costs,
							  num_algorithms, NCCL_PROTOCOLS, 1,
							  &channels);
	else
		result = ncclTunerPlugin_v6.get_coll_info(rank->context, all, 4, 1, costs,
							  num_algorithms, NCCL_PROTOCOLS, 1,
							  &channels);
	assert_int_equal(result, NCCL_RESULT_SUCCESS);
	assert_int_equal(channels, 3);
}

/* ---- settings ---------------------------------------------------------------------------- */

static void plan_write(const char *text)
{
	FILE *file = fopen(plan, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	setenv("NCCL_MESH_PLAN", plan, 1);
}

static void table_fill(float *table)
{
	for (int i = 0; i < CELLS; i++)
		table[i] = (float)(10 + i);
}

/* Asks each version about 4 nodes, with both numbers of algorithms. @excluded: bits of the rows. */
static void assert_excluded(uint32_t excluded)
{
	float table[CELLS];
	struct rank rank;

	for (int version = 3; version <= 6; version++) {
		rank = rank_open(version, 4, 4, quiet);
		for (int num = 6; num <= 7; num++) {
			table_fill(table);
			rank_ask(&rank, table, num);
			for (int i = 0; i < CELLS; i++) {
				const int row = i / NCCL_PROTOCOLS;
				const bool gone = row < num && excluded >> row & 1;

				assert_true(table[i] == (gone ? NCCL_COST_EXCLUDED : 10 + i));
			}
		}
		rank_close(&rank);
	}
}

static const char ring_of_four[] = "a b\nb c\nc d\nd a\n";

TEST(nothing_is_set)
{
	unsetenv("NCCL_MESH_PLAN");
	assert_excluded(0);
}

TEST(plans)
{
	plan_write(ring_of_four);
	assert_excluded(1u << NCCL_ALGORITHM_TREE | 1u << NCCL_ALGORITHM_NVLS_TREE |
			1u << NCCL_ALGORITHM_PAT);
	plan_write("a b\na c\na d\nb c\nb d\nc d\n"); /* a full mesh changes nothing */
	assert_excluded(0);
	plan_write("a b\nb c\nc d\n"); /* nor does a line: rings need relays there, too */
	assert_excluded(0);
	plan_write("a b\nb c\nc a\n"); /* of other nodes than this communicator's */
	assert_excluded(0);
	plan_write("no plan at all\n");
	assert_excluded(0);
	setenv("NCCL_MESH_PLAN", "/nonexistent/plan", 1);
	assert_excluded(0);
}

TEST(modes)
{
	plan_write(ring_of_four);
	setenv("NCCL_MESH_TUNER", "off", 1);
	assert_excluded(0);
	setenv("NCCL_MESH_TUNER", "ring", 1);
	unsetenv("NCCL_MESH_PLAN");
	assert_excluded(~(1u << NCCL_ALGORITHM_RING));
	setenv("NCCL_MESH_TUNER", "rings", 1); /* reported, and the default is taken */
	assert_excluded(0);
	unsetenv("NCCL_MESH_TUNER");
}

/* NCCL takes an error for the end of the collective, and a table without an entry for one. */
TEST(last_entry)
{
	float table[CELLS], before[CELLS];
	struct rank rank;

	setenv("NCCL_MESH_TUNER", "ring", 1);
	rank = rank_open(5, 4, 4, quiet);
	for (int i = 0; i < CELLS; i++)
		table[i] = i < NCCL_PROTOCOLS ? 5 : NCCL_COST_EXCLUDED; /* trees only */
	memcpy(before, table, sizeof(table));
	rank_ask(&rank, table, 7);
	assert_memory_equal(table, before, sizeof(table));
	for (int i = 0; i < CELLS; i++)
		table[i] = NCCL_COST_EXCLUDED;
	memcpy(before, table, sizeof(table));
	rank_ask(&rank, table, 7);
	assert_memory_equal(table, before, sizeof(table));
	rank_close(&rank);
	/* One node has no network to choose for. */
	rank = rank_open(5, 4, 1, quiet);
	table_fill(table);
	rank_ask(&rank, table, 7);
	assert_true(table[0] == 10);
	rank_close(&rank);
	unsetenv("NCCL_MESH_TUNER");
}

/* v2 has no costs: one choice, and only where trees are excluded. */
TEST(v2)
{
	int algorithm = -1, protocol = -1, channels = 0;
	struct rank rank;

	plan_write(ring_of_four);
	rank = rank_open(2, 4, 4, quiet);
	ncclTunerPlugin_v2.get_coll_info(rank.context, NCCL_COLLECTIVE_BROADCAST, 4, 0, 0, 1,
					 &algorithm, &protocol, &channels);
	assert_int_equal(algorithm, -1);
	ncclTunerPlugin_v2.get_coll_info(rank.context, NCCL_COLLECTIVE_ALL_REDUCE, 4, 0, 0, 1,
					 &algorithm, &protocol, &channels);
	assert_int_equal(algorithm, NCCL_ALGORITHM_RING);
	assert_int_equal(protocol, NCCL_PROTOCOL_LL);
	ncclTunerPlugin_v2.get_coll_info(rank.context, NCCL_COLLECTIVE_ALL_REDUCE, 1 << 20, 0, 0, 1,
					 &algorithm, &protocol, &channels);
	assert_int_equal(protocol, NCCL_PROTOCOL_SIMPLE);
	assert_int_equal(channels, 0);
	rank_close(&rank);
	unsetenv("NCCL_MESH_PLAN");
	rank = rank_open(2, 4, 4, quiet);
	algorithm = protocol = -1;
	ncclTunerPlugin_v2.get_coll_info(rank.context, NCCL_COLLECTIVE_ALL_REDUCE, 4, 0, 0, 1,
					 &algorithm, &protocol, &channels);
	assert_int_equal(algorithm, -1);
	assert_int_equal(protocol, -1);
	rank_close(&rank);
}

/* Also a context that could not be made. */
TEST(no_context)
{
	float table[CELLS];
	int version, value = -1;

	for (version = 3; version <= 6; version++) {
		struct rank rank = {.version = version, .context = NULL};

		table_fill(table);
		rank_ask(&rank, table, 7);
		assert_true(table[0] == 10);
		rank_close(&rank);
	}
	assert_int_equal(ncclTunerPlugin_v2.get_coll_info(NULL, NCCL_COLLECTIVE_ALL_REDUCE, 4, 0, 0,
							  1, &value, &value, &value),
			 NCCL_RESULT_SUCCESS);
	assert_int_equal(value, -1);
	assert_null(ncclTunerPlugin_v6.get_chunk_size);
	assert_string_equal(ncclTunerPlugin_v2.name, MESH_PLUGIN_NAME);
	assert_string_equal(ncclTunerPlugin_v6.name, MESH_PLUGIN_NAME);
}

/* ---- random shapes ----------------------------------------------------------------------- */

/* Each has a ring. */
static void random_plan(char *text, int nodes)
{
	*text = '\0';
	for (int i = 0; i < nodes; i++)
		text += sprintf(text, "n%d\n", i);
	for (int i = 0; i < nodes; i++)
		for (int j = 0; j < i; j++)
			if (i - j == 1 || (!j && i + 1 == nodes) || rand() % 3 == 0)
				text += sprintf(text, "n%d n%d\n", i, j);
}

static int entries_left(const float *table, int num)
{
	int i, left = 0;

	for (i = 0; i < num * NCCL_PROTOCOLS; i++)
		left += table[i] >= 0;
	return left;
}

TEST(random_shapes)
{
	static char text[70 * 70 * 8];
	float given[CELLS], first[CELLS], table[CELLS];
	int shape, rank_number, nodes, num, i, changed = 0;
	struct rank rank;

	srand(16);
	for (shape = 0; shape < RANDOM_SHAPES; shape++) {
		nodes = 2 + rand() % 15;
		random_plan(text, nodes);
		plan_write(text);
		num = 6 + rand() % 2;
		for (i = 0; i < CELLS; i++)
			given[i] = rand() % 2 ? NCCL_COST_EXCLUDED : (float)(rand() % 1000) / 7;
		/* Each rank, of whatever version, answers the same. */
		for (rank_number = 0; rank_number < 4; rank_number++) {
			memcpy(table, given, sizeof(table));
			rank = rank_open(3 + rank_number, (size_t)nodes * 2, (size_t)nodes, quiet);
			rank_ask(&rank, table, num);
			rank_close(&rank);
			if (!rank_number)
				memcpy(first, table, sizeof(table));
			assert_memory_equal(table, first, sizeof(table));
		}
		assert_int_equal(entries_left(table, num) > 0, entries_left(given, num) > 0);
		changed += memcmp(table, given, sizeof(table)) != 0;
		for (i = num * NCCL_PROTOCOLS; i < CELLS; i++) /* beyond the table */
			assert_true(table[i] == given[i]);
	}
	assert_true(changed > RANDOM_SHAPES / 4);
	unsetenv("NCCL_MESH_PLAN");
}

/* One INFO line for each communicator, which says what was decided. */
TEST(log)
{
	struct rank rank;

	plan_write(ring_of_four);
	log_capture_start();
	rank = rank_open(6, 8, 4, NULL);
	assert_int_equal(log_captured_lines(MESH_LOG_INFO), 1);
	assert_true(log_captured(MESH_LOG_INFO, "tuner: 8 ranks, 4 nodes: not fully meshed: trees "
						"may need relays; rings do not"));
	rank_close(&rank);
	log_capture_start();
	plan_write("a b c\n");
	rank = rank_open(6, 8, 4, NULL);
	assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_PLAN: line 1 of"));
	rank_close(&rank);
}

void tests_begin(void)
{
	int fd = mkstemp(plan);

	assert_true(fd >= 0);
	close(fd);
	unsetenv("NCCL_MESH_TUNER");
}

void tests_end(void)
{
	unlink(plan);
}
