/* SPDX-License-Identifier: Apache-2.0 */
/* test_place.c - the copy into a buffer that is being polled: all bytes, in the right order. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "transport/place.h"

#include "unit.h"

#define WORDS_OF_LINE (MESH_LINE_BYTES / 8)
#define LINES 64
/* Whole lines, and less than a line behind them. */
#define WORDS (LINES * WORDS_OF_LINE + 5)
#define ROUNDS 2000

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
void *__wrap_memcpy(void *to, const void *from, size_t size);

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
	size_t size;

	for (size = 0; size <= 4 * MESH_LINE_BYTES + 9; size++) {
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

	(void)number;
	(void)context;
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
	size_t before, size;

	order.page_size = (size_t)sysconf(_SC_PAGESIZE);
	order.pages = mmap(NULL, 2 * order.page_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(order.pages != MAP_FAILED);
	sigaction(SIGSEGV, &action, &old);
	/* LL: word after word. LL128: the last word of a line after the rest. */
	for (size = 16; size < MESH_LINE_BYTES; size += 8) {
		for (before = 8; before < size; before += 8)
			order_check(before, size);
	}
	for (before = 8; before < 3 * MESH_LINE_BYTES; before += 8)
		order_check(before, 3 * MESH_LINE_BYTES);
	sigaction(SIGSEGV, &old, NULL);
	munmap(order.pages, 2 * order.page_size);
}

/* ---- a reader thread, as a GPU reads ----------------------------------------------------- */

struct polled {
	uint64_t room[WORDS + 1] __attribute__((aligned(128)));
	uint64_t *words;	/* in it */
	_Atomic(uint32_t) read; /* rounds that the reader has seen */
	_Atomic(int) torn;
	bool whole_lines; /* LL128: one flag for each line; else LL: a flag in each word */
};

/* LL: 4 bytes of data, 4 of flag, in one word. */
static uint64_t ll_word(uint32_t round, int word)
{
	return (uint64_t)round << 32 | (round * 2654435761u + (uint32_t)word);
}

static uint64_t word_of(bool whole_lines, uint32_t round, int word)
{
	if (whole_lines && word % WORDS_OF_LINE == WORDS_OF_LINE - 1)
		return round; /* the flag */
	return ll_word(round, word);
}

static void ll_read(struct polled *polled, uint32_t round)
{
	uint64_t word;
	int i;

	for (i = WORDS - 1; i >= 0; i--) {
		do {
			word = __atomic_load_n(&polled->words[i], __ATOMIC_RELAXED);
		} while (word >> 32 != round);
		if (word != ll_word(round, i))
			atomic_fetch_add(&polled->torn, 1);
	}
}

static void ll128_read(struct polled *polled, uint32_t round)
{
	int line, i;

	for (line = LINES - 1; line >= 0; line--) {
		uint64_t *words = &polled->words[line * WORDS_OF_LINE];

		while (__atomic_load_n(&words[WORDS_OF_LINE - 1], __ATOMIC_ACQUIRE) != round)
			;
		for (i = 0; i < WORDS_OF_LINE - 1; i++) {
			if (__atomic_load_n(&words[i], __ATOMIC_RELAXED) !=
			    ll_word(round, line * WORDS_OF_LINE + i))
				atomic_fetch_add(&polled->torn, 1);
		}
	}
}

static void *reader(void *arg)
{
	struct polled *polled = arg;
	uint32_t round;

	for (round = 1; round <= ROUNDS; round++) {
		if (polled->whole_lines)
			ll128_read(polled, round);
		else
			ll_read(polled, round);
		atomic_store(&polled->read, round);
	}
	return NULL;
}

/* NCCL's buffers are aligned to 16 bytes at least, but nothing promises it. */
static void polled_run(bool whole_lines, size_t first)
{
	static struct polled polled;
	uint64_t from[WORDS];
	pthread_t thread;
	uint32_t round;
	int i;

	memset(&polled, 0, sizeof(polled));
	polled.words = polled.room + first;
	polled.whole_lines = whole_lines;
	assert_int_equal(pthread_create(&thread, NULL, reader, &polled), 0);
	for (round = 1; round <= ROUNDS; round++) {
		for (i = 0; i < WORDS; i++)
			from[i] = word_of(whole_lines, round, i);
		while (atomic_load(&polled.read) != round - 1)
			;
		mesh_place(polled.words, from, sizeof(from));
	}
	pthread_join(thread, NULL);
	assert_int_equal(polled.torn, 0);
}

TEST(reader_ll)
{
	polled_run(false, 0);
	polled_run(false, 1);
}

TEST(reader_ll128)
{
	polled_run(true, 0);
	polled_run(true, 1);
}
