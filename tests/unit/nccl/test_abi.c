/* SPDX-License-Identifier: Apache-2.0 */
/* test_abi.c - which slots of the exported tables are filled, and which are empty on purpose. */
#include <strings.h>

#include <nccl/net_abi.h>

#include "unit.h"

/* A table as NCCL sees it: pointers one after the other. */
struct table {
	int version;
	const void *start;
	size_t size; /* bytes */
};

/* By the documented slot numbers, not by our structs, so that a wrong struct is found. */
enum slot {
	SLOT_NAME = 0,
	SLOT_REG_MR_DMABUF = 8,
	SLOT_CLOSE_LISTEN = 16,
	SLOT_GET_DEVICE_MR = 17,
	SLOT_IRECV_CONSUMED = 18,
	SLOT_MAKE_VDEVICE = 19,
	SLOT_FINALIZE = 20,
	SLOT_SET_ATTRIBUTES = 21,
};

static const struct table tables[] = {
	{6, &ncclNetPlugin_v6, 136},   {7, &ncclNetPlugin_v7, 152},   {8, &ncclNetPlugin_v8, 152},
	{9, &ncclNetPlugin_v9, 160},   {10, &ncclNetPlugin_v10, 160}, {11, &ncclNetPlugin_v11, 176},
	{12, &ncclNetPlugin_v12, 176},
};

#define NUM_TABLES (sizeof(tables) / sizeof(tables[0]))

static void *slot_of(const struct table *table, size_t slot)
{
	void *pointer;

	memcpy(&pointer, (const char *)table->start + slot * sizeof(pointer), sizeof(pointer));
	return pointer;
}

static bool slot_is_empty_on_purpose(size_t slot)
{
	switch (slot) {
	case SLOT_REG_MR_DMABUF:
	case SLOT_GET_DEVICE_MR:
	case SLOT_IRECV_CONSUMED:
	case SLOT_MAKE_VDEVICE:
	case SLOT_SET_ATTRIBUTES:
		return true;
	default:
		return false;
	}
}

TEST(each_slot_is_filled_or_empty_on_purpose)
{
	for (size_t i = 0; i < NUM_TABLES; i++)
		for (size_t slot = 0; slot < tables[i].size / sizeof(void *); slot++)
			if ((slot_of(&tables[i], slot) == NULL) != slot_is_empty_on_purpose(slot))
				fail_msg("v%d: slot %zu", tables[i].version, slot);
}

TEST(trap_finalize_is_never_null)
{
	assert_non_null(slot_of(&tables[NUM_TABLES - 2], SLOT_FINALIZE));
	assert_non_null(slot_of(&tables[NUM_TABLES - 1], SLOT_FINALIZE));
}

TEST(trap_nics_are_never_fused)
{
	for (size_t i = 0; i < NUM_TABLES; i++)
		if (tables[i].version >= 9)
			assert_null(slot_of(&tables[i], SLOT_MAKE_VDEVICE));
}

/* Compared without case; NCCL's own nets have the other two. */
TEST(trap_name_is_mesh_in_every_table)
{
	for (size_t i = 0; i < NUM_TABLES; i++) {
		const char *name = slot_of(&tables[i], SLOT_NAME);

		assert_string_equal(name, "Mesh");
		assert_int_not_equal(strcasecmp(name, "IB"), 0);
		assert_int_not_equal(strcasecmp(name, "Socket"), 0);
	}
}

/* No function stands in a slot of another kind: all of those that NCCL calls are different. */
TEST(slots_hold_different_functions)
{
	for (size_t i = 0; i < NUM_TABLES; i++)
		for (size_t a = 1; a < SLOT_CLOSE_LISTEN; a++)
			for (size_t b = a + 1; b <= SLOT_CLOSE_LISTEN; b++) {
				if (!slot_of(&tables[i], a) || (a == 14 && b == 15))
					continue; /* one function closes both kinds of comm */
				if (slot_of(&tables[i], a) == slot_of(&tables[i], b))
					fail_msg("v%d: slots %zu and %zu", tables[i].version, a, b);
			}
}
