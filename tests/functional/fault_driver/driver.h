/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - what one fault_driver process holds, and the small helpers of all its commands. */
#ifndef FAULT_DRIVER_DRIVER_H
#define FAULT_DRIVER_DRIVER_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <nccl/net_abi.h>

#include "../pause.h"

/* How a command ended: 0, one of NCCL's results (above 0), or one of these. */
#define OUTCOME_OK 0
#define OUTCOME_LATE (-1)  /* neither success nor an error in time */
#define OUTCOME_WRONG (-2) /* a check of this program failed; a line names it */

#define SLOTS 1024 /* objects of each kind, by the number that the script gives them */
#define WORDS_MAX 16
#define PATH_BYTES 256

struct comm {
	void *comm;
	bool sending;
};

struct buffer {
	char *data;
	size_t size; /* bytes */
};

struct registration {
	void *handle;
	int buffer, comm;
};

struct note {
	const char *kind;
	char name[32];
	int64_t value;
};

/* The most that one call of the data path has cost so far (longest.h). */
struct calls {
	_Atomic(uint64_t) cpu_ns, sent, received; /* of the processor; bytes of sockets */
};

struct driver {
	const struct nccl_net_newest *net;
	uint64_t limit_ms; /* for calls that are repeated until they are done */
	void *contexts[8];
	int devices[8]; /* of each context: where it listens and connects */
	void *listeners[SLOTS];
	struct comm comms[SLOTS];
	struct buffer buffers[SLOTS];
	struct registration registrations[SLOTS];
	void *requests[SLOTS];
	struct note notes[16];
	int spare[65536]; /* descriptors that exhaust the limit */
	int num_spare;
	int strangers[4096]; /* sockets of noise */
	int num_strangers;
	struct calls calls;
};

/* Reports which check failed. */
__attribute__((format(printf, 1, 2))) static inline int wrong(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("WRONG: %s\n", text);
	return OUTCOME_WRONG;
}

/* A number with an optional K or M; ends the program if it is none: the script is broken. */
static inline uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (*end == 'K')
		value <<= 10;
	if (*end == 'M')
		value <<= 20;
	if (end == text || (*end && end[1])) {
		printf("WRONG: \"%s\" is no number\n", text);
		exit(2);
	}
	return value;
}

static inline int slot(const char *text)
{
	uint64_t value = number(text);

	if (value >= SLOTS) {
		printf("WRONG: slot %s\n", text);
		exit(2);
	}
	return (int)value;
}

static inline int note_set(struct driver *d, const char *kind, const char *name, int64_t value)
{
	for (size_t i = 0; i < sizeof(d->notes) / sizeof(d->notes[0]); i++) {
		if (d->notes[i].kind &&
		    (strcmp(d->notes[i].kind, kind) || strcmp(d->notes[i].name, name)))
			continue;
		d->notes[i].kind = kind;
		snprintf(d->notes[i].name, sizeof(d->notes[i].name), "%s", name);
		d->notes[i].value = value;
		printf("note %s %s = %" PRId64 "\n", kind, name, value);
		return OUTCOME_OK;
	}
	return wrong("no room for note %s", name);
}

static inline int note_get(const struct driver *d, const char *kind, const char *name,
			   int64_t *value)
{
	for (size_t i = 0; i < sizeof(d->notes) / sizeof(d->notes[0]); i++) {
		if (d->notes[i].kind && !strcmp(d->notes[i].kind, kind) &&
		    !strcmp(d->notes[i].name, name)) {
			*value = d->notes[i].value;
			return OUTCOME_OK;
		}
	}
	return wrong("no note %s", name);
}

/* Whole small files. Return 0 or a negative errno. */
static inline int file_write(const char *path, const void *bytes, size_t size)
{
	char temporary[PATH_BYTES + 8];
	FILE *file;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "w");
	if (!file)
		return -errno;
	fwrite(bytes, 1, size, file);
	fclose(file);
	return rename(temporary, path) ? -errno : 0;
}

static inline int file_read(const char *path, void *bytes, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file)
		return -errno;
	n = fread(bytes, 1, size, file);
	fclose(file);
	return n == size ? 0 : -EIO;
}

/* While exhaust holds all descriptors, our own files borrow one of them. */
static inline bool descriptor_lend(struct driver *d)
{
	return d->num_spare && !close(d->spare[--d->num_spare]);
}

static inline void descriptor_return(struct driver *d, bool lent)
{
	if (lent)
		d->spare[d->num_spare++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

#endif
