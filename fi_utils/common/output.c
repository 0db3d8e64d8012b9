/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - colour, columns and JSON for all subcommands. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "common/output.h"

bool output_is_coloured(FILE *file)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no_color && *no_color) && term && strcmp(term, "dumb") && isatty(fileno(file));
}

static const char *style_sequence(enum output_style style)
{
	/* ECMA-48, "select graphic rendition". */
	static const char *const sequences[] = {
		[OUTPUT_PLAIN] = "\033[0m",   [OUTPUT_GOOD] = "\033[32m",
		[OUTPUT_NOTICE] = "\033[33m", [OUTPUT_BAD] = "\033[31m",
		[OUTPUT_STRONG] = "\033[1m",  [OUTPUT_FAINT] = "\033[2m",
	};

	return sequences[style];
}

const char *output_style(FILE *file, enum output_style style)
{
	return output_is_coloured(file) ? style_sequence(style) : "";
}

char *output_clean(char *text)
{
	mesh_text_clean(text);
	return text;
}

void output_add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

int output_finish(const char *who, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: cannot write to standard output\n", who);
	return COMMAND_PROBLEM;
}

int output_failure(const char *who, int error)
{
	if (error == -ENOMEM)
		fprintf(stderr, "%s: out of memory\n", who);
	return COMMAND_PROBLEM;
}
