/* SPDX-License-Identifier: Apache-2.0 */
/* test_place.c - the copy into a buffer that is being polled: all bytes, in the right order. */
#include <signal.h>
#include <sys/mman.h>

#include "transport/data.h"

#include "unit.h"

/*
 * memcpy() promises no order and no width. It is watched (test_place.ldflags), where the compiler
 * leaves it a call: into an aligned buffer it may bring the odd bytes at the end, no more.
 */
static struct {
	const char *start; /* NULL: not watched */
	size_t size;
	size_t largest; /* bytes of the largest call into it */
} watched;

void *__real_memcpy(void *to, const void *from, size_t size);

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	const char *start = to;

	if (watched.start && start >= watched.start && start < watched.start + watched.size &&
	    size > watched.largest)
		watched.largest = size;
	return __real_memcpy(to, from, size);
}

TEST(no_memcpy)
{
	static char to[5 * MESH_LINE_BYTES] __attribute__((aligned(128)));
	static char from[5 * MESH_LINE_BYTES];

	for (size_t size = 0; size <= 4 * MESH_LINE_BYTES + 9; size++) {
		watched.start = to;
		watched.size = sizeof(to);
		watched.largest = 0;
		mesh_place(to + 8, from + 1, size);
		watched.start = NULL;
		assert_true(watched.largest < 8);
	}
}

/* Every size up to some lines, every alignment of both sides; nothing beside it is touched. */
TEST(bytes)
{
	static uint8_t from[8 + 5 * MESH_LINE_BYTES];
	static uint8_t room[32 + 5 * MESH_LINE_BYTES] __attribute__((aligned(16)));
	size_t size, to_offset, from_offset, i;

	for (i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(1 + i % 251);
	for (size = 0; size <= 4 * MESH_LINE_BYTES + 9; size++) {
		for (to_offset = 0; to_offset < 17; to_offset++) {
			from_offset = (size + to_offset * 3) % 8;
			memset(room, 0, sizeof(room));
			mesh_place(room + to_offset, from + from_offset, size);
			assert_memory_equal(room + to_offset, from + from_offset, size);
			for (i = 0; i < to_offset; i++)
				assert_int_equal(room[i], 0);
			for (i = to_offset + size; i < sizeof(room); i++)
				assert_int_equal(room[i], 0);
		}
	}
}

/* ---- order, shown by a page fault in the middle of the copy ----------------------------- */

/*
 * The destination begins in a page that cannot be written and ends in one that can. When the copy
 * faults, the handler counts what has reached the second page, and opens the first.
 */
static struct {
	uint8_t *pages; /* two */
	size_t page_size;
	uint8_t *to;
	size_t size;
	volatile sig_atomic_t faults;
	volatile sig_atomic_t early; /* bytes beyond the fault that were there already */
} order;

static void fault_handle(int number, siginfo_t *info, void *context)
{
	const volatile uint8_t *byte = order.pages + order.page_size;

	if ((uint8_t *)info->si_addr < order.pages ||
	    (uint8_t *)info->si_addr >= order.pages + order.page_size)
		_exit(99);
	order.faults++;
	for (; byte < order.to + order.size; byte++)
		order.early += *byte != 0;
	mprotect(order.pages, order.page_size, PROT_READ | PROT_WRITE);
}

/* Copies @size bytes of which the first @before lie in the first page. */
static void order_check(size_t before, size_t size)
{
	static uint8_t from[4 * MESH_LINE_BYTES];

	memset(from, 0xee, sizeof(from));
	memset(order.pages, 0, 2 * order.page_size);
	order.to = order.pages + order.page_size - before;
	order.size = size;
	order.faults = order.early = 0;
	assert_int_equal(mprotect(order.pages, order.page_size, PROT_NONE), 0);
	mesh_place(order.to, from, size);
	assert_int_equal(order.faults, 1);
	assert_int_equal(order.early, 0);
	assert_memory_equal(order.to, from, size);
}

TEST(order)
{
	struct sigaction action = {.sa_sigaction = fault_handle, .sa_flags = SA_SIGINFO}, old;

	order.page_size = (size_t)sysconf(_SC_PAGESIZE);
	order.pages = mmap(NULL, 2 * order.page_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(order.pages != MAP_FAILED);
	sigaction(SIGSEGV, &action, &old);
	/* LL: word after word. LL128: the last word of a line after the rest. */
	for (size_t size = 16; size < MESH_LINE_BYTES; size += 8) {
		for (size_t before = 8; before < size; before += 8)
			order_check(before, size);
	}
	for (size_t before = 8; before < 3 * MESH_LINE_BYTES; before += 8)
		order_check(before, 3 * MESH_LINE_BYTES);
	sigaction(SIGSEGV, &old, NULL);
	munmap(order.pages, 2 * order.page_size);
}
