/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuner_abi.h - versions 2 to 6 of NCCL's tuner ABI. NCCL 2.21 and later look for them in the net
 * plugin's library as well. Written from the ABI's documented layout. LP64.
 */
#ifndef MESH_NCCL_TUNER_ABI_H
#define MESH_NCCL_TUNER_ABI_H

#include <nccl/types.h>

/* Rows of the cost table (NCCL_ALGO_*): 6 up to NCCL 2.22, 7 with PAT. */
enum nccl_algorithm {
	NCCL_ALGORITHM_TREE = 0,
	NCCL_ALGORITHM_RING = 1,
	NCCL_ALGORITHM_COLLNET_DIRECT = 2,
	NCCL_ALGORITHM_COLLNET_CHAIN = 3,
	NCCL_ALGORITHM_NVLS = 4,
	NCCL_ALGORITHM_NVLS_TREE = 5,
	NCCL_ALGORITHM_PAT = 6,
	NCCL_ALGORITHMS = 7,
};

/* Columns (NCCL_PROTO_*). */
enum nccl_protocol {
	NCCL_PROTOCOL_LL = 0,
	NCCL_PROTOCOL_LL128 = 1,
	NCCL_PROTOCOL_SIMPLE = 2,
	NCCL_PROTOCOLS = 3,
};

/* ncclFunc_t: the collectives that a tuner is asked about. */
enum nccl_collective {
	NCCL_COLLECTIVE_BROADCAST = 0,
	NCCL_COLLECTIVE_REDUCE = 1,
	NCCL_COLLECTIVE_ALL_GATHER = 2,
	NCCL_COLLECTIVE_REDUCE_SCATTER = 3,
	NCCL_COLLECTIVE_ALL_REDUCE = 4,
};
NCCL_ASSERT_SIZE(enum nccl_collective, 4);

/* An entry of the cost table below 0: this combination cannot be used (NCCL_ALGO_PROTO_IGNORE). */
#define NCCL_COST_EXCLUDED (-1.0f)

typedef enum nccl_result nccl_tuner_init_v2(size_t num_ranks, size_t num_nodes, nccl_logger logger,
					    void **context);
/* @domain: three ints, @constants: 144 doubles; both may be NULL. */
typedef enum nccl_result nccl_tuner_init_v5(void **context, uint64_t comm_id, size_t num_ranks,
					    size_t num_nodes, nccl_logger logger, void *domain,
					    void *constants);

/* What is not set in *@algorithm and *@protocol (-1) NCCL chooses. */
typedef enum nccl_result nccl_tuner_info_v2(void *context, enum nccl_collective collective,
					    size_t num_bytes, int collnet, int nvls, int num_ops,
					    int *algorithm, int *protocol, int *num_channels);
/*
 * @table: in spite of its type one array of @num_algorithms times @num_protocols costs in
 * microseconds. The smallest entry that is not below 0 wins; a table without one is an error.
 */
typedef enum nccl_result nccl_tuner_info_v3(void *context, enum nccl_collective collective,
					    size_t num_bytes, int num_ops, float **table,
					    int num_algorithms, int num_protocols,
					    int *num_channels);
typedef enum nccl_result nccl_tuner_info_v4(void *context, enum nccl_collective collective,
					    size_t num_bytes, int num_ops, float **table,
					    int num_algorithms, int num_protocols,
					    int registered_buffers, int *num_channels);
typedef enum nccl_result nccl_tuner_destroy_v2(void *context);
typedef enum nccl_result nccl_tuner_chunk_v6(void *context, enum nccl_collective collective,
					     size_t num_bytes, int algorithm, int protocol,
					     int num_channels, size_t *chunk_bytes);

#define NCCL_TUNER_SLOTS(init_type, info_type)                                                     \
	const char *name;                                                                          \
	init_type *init;                                                                           \
	info_type *get_coll_info;                                                                  \
	nccl_tuner_destroy_v2 *destroy /* called finalize since v5 */

#define NCCL_ASSERT_TUNER(object, bytes)                                                           \
	NCCL_ASSERT_MEMBER(object, name, 0, 8);                                                    \
	NCCL_ASSERT_MEMBER(object, init, 8, 8);                                                    \
	NCCL_ASSERT_MEMBER(object, get_coll_info, 16, 8);                                          \
	NCCL_ASSERT_MEMBER(object, destroy, 24, 8);                                                \
	NCCL_ASSERT_SIZE(object, bytes)

struct nccl_tuner_v2 {
	NCCL_TUNER_SLOTS(nccl_tuner_init_v2, nccl_tuner_info_v2);
};
NCCL_ASSERT_TUNER(struct nccl_tuner_v2, 32);

struct nccl_tuner_v3 {
	NCCL_TUNER_SLOTS(nccl_tuner_init_v2, nccl_tuner_info_v3);
};
NCCL_ASSERT_TUNER(struct nccl_tuner_v3, 32);

struct nccl_tuner_v4 {
	NCCL_TUNER_SLOTS(nccl_tuner_init_v2, nccl_tuner_info_v4);
};
NCCL_ASSERT_TUNER(struct nccl_tuner_v4, 32);

struct nccl_tuner_v5 {
	NCCL_TUNER_SLOTS(nccl_tuner_init_v5, nccl_tuner_info_v4);
};
NCCL_ASSERT_TUNER(struct nccl_tuner_v5, 32);

struct nccl_tuner_v6 {
	NCCL_TUNER_SLOTS(nccl_tuner_init_v5, nccl_tuner_info_v4);
	nccl_tuner_chunk_v6 *get_chunk_size; /* may be NULL */
};
NCCL_ASSERT_TUNER(struct nccl_tuner_v6, 40);
NCCL_ASSERT_MEMBER(struct nccl_tuner_v6, get_chunk_size, 32, 8);

/* The symbols that NCCL looks up: each is the table itself. */
extern const struct nccl_tuner_v2 ncclTunerPlugin_v2 __attribute__((visibility("default")));
extern const struct nccl_tuner_v3 ncclTunerPlugin_v3 __attribute__((visibility("default")));
extern const struct nccl_tuner_v4 ncclTunerPlugin_v4 __attribute__((visibility("default")));
extern const struct nccl_tuner_v5 ncclTunerPlugin_v5 __attribute__((visibility("default")));
extern const struct nccl_tuner_v6 ncclTunerPlugin_v6 __attribute__((visibility("default")));

#endif
