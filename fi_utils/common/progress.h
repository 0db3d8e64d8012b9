/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - one line that says what is being waited for, once the wait is longer than 2 s. */

#ifndef MESH_FI_UTILS_COMMON_PROGRESS_H
#define MESH_FI_UTILS_COMMON_PROGRESS_H

/* On standard error, and only where that is a terminal. A thread prints it, so that it also shows
 * while a library blocks. NULL stands for one that shows nothing; all calls allow it. */
struct progress;

/** Begins to wait for what @format says; the result may be NULL and goes to progress_end(). */
struct progress *progress_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Replaces the text; the time goes on counting from progress_begin(). */
void progress_say(struct progress *progress, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Wipes the line. To be called before anything else is printed. */
void progress_end(struct progress *progress);

#endif
