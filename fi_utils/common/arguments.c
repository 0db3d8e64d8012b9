/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.c - parses values of options and operands. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/arguments.h"
#include "common/exit_status.h"

int arguments_misuse(const char *who, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", who);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return COMMAND_MISUSE;
}

bool argument_number(const char *text, unsigned long min, unsigned long max, unsigned long *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	/* strtoul() also accepts blanks and signs. */
	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
		return false;
	*number = value;
	return true;
}

bool argument_is_folder(const char *who, const char *path)
{
	struct stat info;

	if (!stat(path, &info) && S_ISDIR(info.st_mode))
		return true;
	fprintf(stderr, "%s: %s is not a folder\n", who, path);
	return false;
}
