/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - what the test programs that are one rank of two have in common. */
#ifndef TESTS_FUNCTIONAL_RANK_H
#define TESTS_FUNCTIONAL_RANK_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* Prints the reason with the program's name before it, and ends all threads of the process. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%s: ", program_invocation_short_name);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

/* Calls a function of the plugin, which must succeed. */
#define CALL(expression)                                                                           \
	do {                                                                                       \
		enum nccl_result call_result = (expression);                                       \
		if (call_result)                                                                   \
			die("%s returned %d", #expression, call_result);                           \
	} while (0)

/* Leaves @bytes for the other rank, which reads either all of them or none. */
static inline void file_write(const char *name, const void *bytes, size_t size)
{
	char fresh[1024];
	FILE *file;

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	file = fopen(fresh, "w");
	if (!file || fwrite(bytes, size, 1, file) != 1 || fclose(file) || rename(fresh, name))
		die("cannot write %s", name);
}

/* Reads what the other rank has left. Returns false while there is no such file. */
static inline bool file_read(const char *name, void *bytes, size_t size)
{
	FILE *file = fopen(name, "r");

	if (!file)
		return false;
	if (fread(bytes, size, 1, file) != 1)
		die("cannot read %s", name);
	fclose(file);
	return true;
}

/*
 * Uses up all descriptors when there is a file "exhaust-of-RANK" in @folder, which becomes
 * "exhausted-of-RANK", until that is gone. Called again and again.
 */
static inline void descriptors_exhaust(const char *folder, int rank)
{
	static int taken[1024], count;
	char asked[1024], done[1024];
	int fd;

	snprintf(asked, sizeof(asked), "%s/exhaust-of-%d", folder, rank);
	snprintf(done, sizeof(done), "%s/exhausted-of-%d", folder, rank);
	if (access(asked, F_OK) && access(done, F_OK)) {
		while (count)
			close(taken[--count]);
		return;
	}
	while (count < 1024 && (fd = dup(STDOUT_FILENO)) >= 0)
		taken[count++] = fd;
	rename(asked, done);
}

#endif
