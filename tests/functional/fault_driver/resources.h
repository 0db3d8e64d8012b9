/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - commands that count and use up descriptors, memory and CPU time. */
#ifndef FAULT_DRIVER_RESOURCES_H
#define FAULT_DRIVER_RESOURCES_H

#include <dirent.h>

#include "driver.h"

/* Descriptors of this process, except the one that counts them. */
static int descriptors_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = -1;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static int64_t memory_bytes(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*s %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static int64_t cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* fds NAME, memory NAME: notes how many there are. */
static int command_fds(struct driver *d, int argc, char **argv)
{
	return note_set(d, "fds", argv[1], descriptors_count());
}

static int command_memory(struct driver *d, int argc, char **argv)
{
	return note_set(d, "memory", argv[1], memory_bytes());
}

/* fds-back NAME MORE: waits until there are at most MORE than then. */
static int command_fds_back(struct driver *d, int argc, char **argv)
{
	uint64_t deadline = clock_ms() + d->limit_ms;
	int64_t before = 0, allowed = (int64_t)number(argv[2]);

	if (note_get(d, "fds", argv[1], &before))
		return OUTCOME_WRONG;
	while (descriptors_count() > before + allowed) {
		if (clock_ms() > deadline)
			return wrong("%d descriptors, %" PRId64 " before", descriptors_count(),
				     before);
		pause_us(20000);
	}
	printf("note %d descriptors, %" PRId64 " before\n", descriptors_count(), before);
	return OUTCOME_OK;
}

/* memory-back NAME MORE: at most MORE bytes more than then. */
static int command_memory_back(struct driver *d, int argc, char **argv)
{
	int64_t before = 0, now = memory_bytes();

	if (note_get(d, "memory", argv[1], &before))
		return OUTCOME_WRONG;
	if (now > before + (int64_t)number(argv[2]))
		return wrong("%" PRId64 " bytes resident, %" PRId64 " before", now, before);
	printf("note %" PRId64 " bytes more than before\n", now - before);
	return OUTCOME_OK;
}

/* idle MS CPU_MS: in MS milliseconds without a call the process uses at most CPU_MS of CPU. */
static int command_idle(struct driver *d, int argc, char **argv)
{
	uint64_t until = clock_ms() + number(argv[1]);
	int64_t used = cpu_ms();

	while (clock_ms() < until)
		pause_us(50000);
	used = cpu_ms() - used;
	printf("note %" PRId64 " ms of CPU in %s ms\n", used, argv[1]);
	return used <= (int64_t)number(argv[2]) ? OUTCOME_OK : wrong("the CPU spins");
}

/* exhaust FREE: opens descriptors until only FREE more can be opened. */
static int command_exhaust(struct driver *d, int argc, char **argv)
{
	uint64_t left = number(argv[1]);
	struct rlimit limit;
	int fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)(descriptors_count() + 64);
	setrlimit(RLIMIT_NOFILE, &limit);
	while (d->num_spare < 65536 && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		d->spare[d->num_spare++] = fd;
	while (left-- && d->num_spare)
		close(d->spare[--d->num_spare]);
	return OUTCOME_OK;
}

/* release: gives them all back, and lifts the limit. */
static int command_release(struct driver *d, int argc, char **argv)
{
	struct rlimit limit;

	while (d->num_spare)
		close(d->spare[--d->num_spare]);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return OUTCOME_OK;
}

#endif
