/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_plugin_rude.c - a net plugin that does something while it is loaded, by FAKE_PLUGIN_RUDE:
 *
 *   print  talks on both outputs, more than a pipe holds
 *   exit   ends the process
 *   abort  crashes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The only part of a table that is looked at without a call. */
extern const struct table {
	const char *name;
} ncclNetPlugin_v8;

const struct table ncclNetPlugin_v8 = {"Rude"};

__attribute__((constructor)) static void loaded(void)
{
	const char *what = getenv("FAKE_PLUGIN_RUDE");

	if (!what)
		return;
	for (int i = 0; i < 20000 && !strcmp(what, "print"); i++) {
		printf("hello\n");
		fprintf(stderr, "hello\n");
	}
	fflush(stdout);
	if (!strcmp(what, "exit"))
		exit(3);
	if (!strcmp(what, "abort"))
		abort();
}
