/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.c - finds what a process still has after finalize. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "leftovers.h"

#define SAID_MAX 10 /* blocks of memory that are named */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER
#endif
#endif

#ifdef HAS_SANITIZER

void leftovers_keep(const struct world_node *node)
{
}

static int memory_left(const struct world_node *node, const void *plugin)
{
	return 0;
}

#else

/* ---- memory -------------------------------------------------------------------------------- */

#define BUCKETS ((size_t)1 << 16)

struct block {
	struct block *next; /* of its bucket */
	const void *bytes;
	size_t size;
	const void *caller;
	const struct world_node *node;
	int life; /* of the node */
	bool kept;
};

static struct block *buckets[BUCKETS];
static char buckets_lock; /* also against threads that are outside of the world */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t num, size_t size);
void *__libc_realloc(void *bytes, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *bytes);

static void buckets_begin(void)
{
	while (__atomic_test_and_set(&buckets_lock, __ATOMIC_ACQUIRE))
		continue;
}

static void buckets_end(void)
{
	__atomic_clear(&buckets_lock, __ATOMIC_RELEASE);
}

static struct block **bucket_of(const void *bytes)
{
	return &buckets[((uintptr_t)bytes >> 4) * 0x9e3779b97f4a7c15ull >> 48];
}

static void *block_add(void *bytes, size_t size, const void *caller, bool kept)
{
	const struct world_node *node = world_acting();
	struct block *block, **bucket = bucket_of(bytes);

	if (!node || !bytes)
		return bytes;
	block = __libc_malloc(sizeof(*block));
	if (!block)
		abort();
	*block = (struct block){.bytes = bytes,
				.size = size,
				.caller = caller,
				.node = node,
				.life = node->lives,
				.kept = kept};
	buckets_begin();
	block->next = *bucket;
	*bucket = block;
	buckets_end();
	return bytes;
}

/* Returns whether it was kept. */
static bool block_remove(const void *bytes)
{
	struct block **place = bucket_of(bytes), *block;
	bool kept;

	if (!*place)
		return false;
	buckets_begin();
	while (*place && (*place)->bytes != bytes)
		place = &(*place)->next;
	block = *place;
	if (block)
		*place = block->next;
	buckets_end();
	kept = block && block->kept;
	__libc_free(block);
	return kept;
}

void *malloc(size_t size)
{
	return block_add(__libc_malloc(size), size, __builtin_return_address(0), false);
}

void *calloc(size_t num, size_t size)
{
	return block_add(__libc_calloc(num, size), num * size, __builtin_return_address(0), false);
}

void *realloc(void *bytes, size_t size)
{
	bool kept = block_remove(bytes);

	bytes = __libc_realloc(bytes, size);
	return block_add(bytes, size, __builtin_return_address(0), kept);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return block_add(__libc_memalign(alignment, size), size, __builtin_return_address(0),
			 false);
}

int posix_memalign(void **bytes, size_t alignment, size_t size)
{
	*bytes = __libc_memalign(alignment, size);
	block_add(*bytes, size, __builtin_return_address(0), false);
	return *bytes ? 0 : ENOMEM;
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = __libc_malloc(size);

	block_add(copy, size, __builtin_return_address(0), false);
	return copy ? memcpy(copy, text, size) : NULL;
}

void free(void *bytes)
{
	block_remove(bytes);
	__libc_free(bytes);
}

static bool block_is_of(const struct block *block, const struct world_node *node)
{
	return block->node == node && block->life == node->lives;
}

void leftovers_keep(const struct world_node *node)
{
	struct block *block;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (block = buckets[i]; block; block = block->next)
			block->kept |= block_is_of(block, node);
	}
}

/* Says where the plugin has allocated what is left, and returns how much it is. */
static int memory_left(const struct world_node *node, const void *plugin)
{
	const struct block *block;
	Dl_info of, caller;
	int num = 0;

	if (!dladdr(plugin, &of))
		world_die("no plugin");

	for (size_t i = 0; i < BUCKETS; i++) {
		for (block = buckets[i]; block; block = block->next) {
			if (block->kept || !block_is_of(block, node) ||
			    !dladdr(block->caller, &caller) || caller.dli_fbase != of.dli_fbase)
				continue;
			if (num++ < SAID_MAX)
				fprintf(stderr, "%zu bytes: addr2line -e plugin.so 0x%zx\n",
					block->size,
					(size_t)((const char *)block->caller -
						 (const char *)caller.dli_fbase));
		}
	}
	return num;
}

#endif

/* ---- all of it ----------------------------------------------------------------------------- */

void leftovers_check(const struct world_node *node, const void *plugin)
{
	int i, threads = world_threads(node), blocks = memory_left(node, plugin), files = 0;

	for (i = 0; i < WORLD_FILES_MAX; i++) {
		/* tcp keeps one whose first bytes have not come when its endpoint is closed. */
		if (!node->files[i] || node->files[i]->by_provider)
			continue;
		/* The next use of the plugin has this one again (setup/nic_watch.c). */
		if (!strcmp(node->files[i]->kind->name, "anon_inode:inotify"))
			continue;
		fprintf(stderr, "%d: %s\n", WORLD_FD_FIRST + i, node->files[i]->kind->name);
		files++;
	}
	if (threads || files || blocks)
		world_die("%s has after finalize: %d threads, %d descriptors, %d blocks of memory",
			  node->name, threads, files, blocks);
}
