/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - prints findings of checks as text or JSON. */
#ifndef MESH_FI_UTILS_COMMON_REPORT_H
#define MESH_FI_UTILS_COMMON_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "common/finding.h"

/* How many checks, or sections, have which verdict. */
struct check_totals {
	int counts[CHECK_FAIL + 1];
};

#define CHECK_TOTALS_TEXT_MAX 80

/** Prints the findings for people; @quiet omits what passes. */
void check_print(FILE *file, const char *id, const struct check_result *result, bool quiet);

/** {"id", "title", "verdict", "findings": [...]}, or NULL without memory. */
json_t *check_json(const char *id, const char *title, const struct check_result *result);

/** COMMAND_PROBLEM if anything warns or fails, else COMMAND_FINE. */
int check_totals_status(const struct check_totals *totals);

/**
 * Writes "3 pass, 0 unknown, 1 warn, 0 fail" into @text (CHECK_TOTALS_TEXT_MAX bytes); returns
 * @text.
 */
const char *check_totals_text(const struct check_totals *totals, char *text);

/** {"pass", "unknown", "warn", "fail", @key: @list}, which takes @list; NULL without memory. */
json_t *check_totals_json(const struct check_totals *totals, const char *key, json_t *list);

#endif
