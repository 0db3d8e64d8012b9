/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what rank 0 prints at the end: text for people, or one JSON document. */
#ifndef PINGPONG_REPORT_H
#define PINGPONG_REPORT_H

#include <jansson.h>

#include "options.h"

/*
 * The document:
 *   {"ok": bool,
 *    "pairs": [{"from": rank, "to": rank, "ok": bool, "from_node": host, "to_node": host,
 *               "paths": [{"nic", "local", "remote", "via"}],
 *               "sizes": [{"bytes", "half_rtt_us", "gbit_s"}],
 *               "errors": [text]}],
 *    "errors": [text that belongs to no single pair]}
 */

/** Returns a new document with no pairs. */
json_t *report_new(void);

/** Appends a pair without results, which is not ok. */
void report_add_pair(json_t *report, struct pair_name name, const char *from_node,
		     const char *to_node);

/**
 * Adds what one side of a pair says (JSON text with "finished", "paths", "sizes" and "errors", each
 * of them optional) to pair @index. Text that is not understood becomes an error of the pair.
 *
 * Returns true if that side says that it did all that was to be done.
 */
bool report_merge(json_t *report, size_t index, const char *text);

/** Both sides of pair @index have finished. */
void report_pair_ok(json_t *report, size_t index);

/** Appends an error to pair @index, or to the whole if @index is -1. */
void report_error(json_t *report, long index, const char *text);

/**
 * True if all pairs are ok, there is at least one, and no error was reported. Also stored as "ok".
 */
bool report_settle(json_t *report);

/** The first error of a report that is not ok. */
const char *report_reason(const json_t *report);

/** Prints the settled report on stdout as @options say. Returns 0, or -EIO. */
int report_print(const json_t *report, const struct options *options);

#endif
