/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - one line that shows what a subcommand waits for, once the wait exceeds 2 s. */

#ifndef MESH_FI_UTILS_COMMON_PROGRESS_H
#define MESH_FI_UTILS_COMMON_PROGRESS_H

/*
 * Printed on standard error, if that is a terminal, by a thread, so that it also appears while a
 * library blocks. NULL is a progress that shows nothing; all calls allow it.
 */
struct progress;

/**
 * Begins to wait; @format describes for what. The result may be NULL and goes to progress_end().
 */
struct progress *progress_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Replaces the text; the time still counts from progress_begin(). */
void progress_say(struct progress *progress, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Wipes the line. To be called before anything else is printed. */
void progress_end(struct progress *progress);

#endif
