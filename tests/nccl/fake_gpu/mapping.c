/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - the driver's virtual memory: allocations that are mapped into reserved addresses.
 * NCCL connects an algorithm at its first use only if all ranks have it (init.cc, runtimeConn).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_gpu.h"

#define GRANULARITY ((size_t)2 << 20) /* bytes, as of a GPU */

/* CUmemAllocationProp: only handed back. */
struct properties {
	uint64_t words[4];
};

/* What a CUmemGenericAllocationHandle stands for: a file without a name. */
struct memory {
	int fd;
	unsigned int references; /* under lock: handles and mappings */
	struct properties properties;
};

struct mapping {
	struct mapping *next; /* under lock */
	char *begin, *end;
	struct memory *memory;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings; /* under lock */

static struct memory *memory_of(unsigned long long handle)
{
	struct memory *memory;

	memcpy(&memory, &handle, sizeof(memory));
	return memory;
}

static void *address_of(unsigned long long pointer)
{
	return memory_of(pointer);
}

static unsigned long long number_of(const void *address)
{
	return (uintptr_t)address;
}

/* Takes @fd over, also on an error. */
static enum fake_error memory_new(unsigned long long *handle, int fd,
				  const struct properties *properties)
{
	struct memory *memory = fd < 0 ? NULL : calloc(1, sizeof(*memory));

	if (!memory) {
		if (fd >= 0)
			close(fd);
		return FAKE_OUT_OF_MEMORY;
	}
	memory->fd = fd;
	memory->references = 1;
	if (properties)
		memory->properties = *properties;
	*handle = number_of(memory);
	return FAKE_OK;
}

/* Under lock. */
static void memory_put(struct memory *memory)
{
	if (--memory->references)
		return;
	close(memory->fd);
	free(memory);
}

/* Under lock: the link to the mapping that has @address, or to NULL. */
static struct mapping **mapping_find(const char *address)
{
	struct mapping **link = &mappings;

	while (*link && (address < (*link)->begin || address >= (*link)->end))
		link = &(*link)->next;
	return link;
}

bool fake_mapping_ours(const void *address)
{
	bool ours;

	pthread_mutex_lock(&lock);
	ours = *mapping_find(address);
	pthread_mutex_unlock(&lock);
	return ours;
}

/* --- allocations ----------------------------------------------------------------------------- */

static enum fake_error granularity(size_t *bytes, const struct properties *properties, int option)
{
	*bytes = GRANULARITY;
	return FAKE_OK;
}

static enum fake_error create(unsigned long long *handle, size_t bytes,
			      const struct properties *properties, unsigned long long flags)
{
	int fd = memfd_create("fake_gpu", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
		close(fd);
		fd = -1;
	}
	return memory_new(handle, fd, properties);
}

static enum fake_error release(unsigned long long handle)
{
	pthread_mutex_lock(&lock);
	memory_put(memory_of(handle));
	pthread_mutex_unlock(&lock);
	return FAKE_OK;
}

static enum fake_error retain(unsigned long long *handle, const void *address)
{
	struct mapping *mapping;

	pthread_mutex_lock(&lock);
	mapping = *mapping_find(address);
	if (mapping) {
		mapping->memory->references++;
		*handle = number_of(mapping->memory);
	}
	pthread_mutex_unlock(&lock);
	return mapping ? FAKE_OK : FAKE_INVALID_VALUE;
}

static enum fake_error properties_of(struct properties *properties, unsigned long long handle)
{
	*properties = memory_of(handle)->properties;
	return FAKE_OK;
}

/* A file descriptor for another process. */
static enum fake_error export_handle(int *shared, unsigned long long handle, int type,
				     unsigned long long flags)
{
	*shared = dup(memory_of(handle)->fd);
	return *shared < 0 ? FAKE_OUT_OF_MEMORY : FAKE_OK;
}

static enum fake_error import_handle(unsigned long long *handle, void *shared, int type)
{
	return memory_new(handle, dup((int)(intptr_t)shared), NULL);
}

/* --- addresses ------------------------------------------------------------------------------- */

static enum fake_error reserve(unsigned long long *pointer, size_t bytes, size_t alignment,
			       unsigned long long wanted, unsigned long long flags)
{
	size_t extra = alignment > GRANULARITY ? alignment : GRANULARITY, before;
	char *begin;

	begin = mmap(NULL, bytes + extra, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	if (begin == MAP_FAILED)
		return FAKE_OUT_OF_MEMORY;
	before = (extra - (uintptr_t)begin % extra) % extra;
	if (before)
		munmap(begin, before);
	munmap(begin + before + bytes, extra - before);
	*pointer = number_of(begin + before);
	return FAKE_OK;
}

static enum fake_error unreserve(unsigned long long pointer, size_t bytes)
{
	return munmap(address_of(pointer), bytes) ? FAKE_INVALID_VALUE : FAKE_OK;
}

static enum fake_error map(unsigned long long pointer, size_t bytes, size_t offset,
			   unsigned long long handle, unsigned long long flags)
{
	struct memory *memory = memory_of(handle);
	struct mapping *mapping = calloc(1, sizeof(*mapping));

	if (!mapping || mmap(address_of(pointer), bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, memory->fd, (off_t)offset) == MAP_FAILED) {
		free(mapping);
		return FAKE_OUT_OF_MEMORY;
	}
	mapping->begin = address_of(pointer);
	mapping->end = mapping->begin + bytes;
	mapping->memory = memory;
	pthread_mutex_lock(&lock);
	memory->references++;
	mapping->next = mappings;
	mappings = mapping;
	pthread_mutex_unlock(&lock);
	return FAKE_OK;
}

/* The addresses stay reserved. */
static enum fake_error unmap(unsigned long long pointer, size_t bytes)
{
	struct mapping **link, *found;

	fake_streams_synchronize();
	pthread_mutex_lock(&lock);
	link = mapping_find(address_of(pointer));
	found = *link;
	if (found) {
		*link = found->next;
		memory_put(found->memory);
	}
	pthread_mutex_unlock(&lock);
	free(found);
	return !found || mmap(address_of(pointer), bytes, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			      0) == MAP_FAILED
		       ? FAKE_INVALID_VALUE
		       : FAKE_OK;
}

static enum fake_error set_access(unsigned long long pointer, size_t bytes, const void *who,
				  size_t count)
{
	return FAKE_OK;
}

static enum fake_error range(unsigned long long *begin, size_t *bytes, unsigned long long pointer)
{
	const struct mapping *mapping;

	pthread_mutex_lock(&lock);
	mapping = *mapping_find(address_of(pointer));
	if (mapping && begin)
		*begin = number_of(mapping->begin);
	if (mapping && bytes)
		*bytes = (size_t)(mapping->end - mapping->begin);
	pthread_mutex_unlock(&lock);
	return mapping ? FAKE_OK : FAKE_INVALID_VALUE;
}

static const struct {
	const char *name;
	void (*function)(void);
} functions[] = {
	{"cuMemGetAllocationGranularity", (void (*)(void))granularity},
	{"cuMemCreate", (void (*)(void))create},
	{"cuMemRelease", (void (*)(void))release},
	{"cuMemRetainAllocationHandle", (void (*)(void))retain},
	{"cuMemGetAllocationPropertiesFromHandle", (void (*)(void))properties_of},
	{"cuMemExportToShareableHandle", (void (*)(void))export_handle},
	{"cuMemImportFromShareableHandle", (void (*)(void))import_handle},
	{"cuMemAddressReserve", (void (*)(void))reserve},
	{"cuMemAddressFree", (void (*)(void))unreserve},
	{"cuMemMap", (void (*)(void))map},
	{"cuMemUnmap", (void (*)(void))unmap},
	{"cuMemSetAccess", (void (*)(void))set_access},
	{"cuMemGetAddressRange", (void (*)(void))range},
};

void (*fake_mapping_function(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			return functions[i].function;
	return NULL;
}
