/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.h - what a check finds: a verdict, a sentence, the evidence, and the command that fixes
 * it.
 */
#ifndef MESH_FI_UTILS_COMMON_FINDING_H
#define MESH_FI_UTILS_COMMON_FINDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* From the best to the worst; a check is as good as its worst finding. */
enum check_verdict {
	CHECK_PASS,
	CHECK_UNKNOWN, /* could not be checked; the sentence has the reason */
	CHECK_WARN,    /* works, but slowly or not reliably */
	CHECK_FAIL,    /* does not work */
};

struct check_finding {
	enum check_verdict verdict;
	char *text;	/* one sentence; owned, as are the others */
	char *evidence; /* the evidence; NULL: the sentence has it */
	char *fix;	/* command, or instructions; NULL: nothing to do */
};

struct check_result {
	struct check_finding *findings; /* owned */
	int num_findings;
	bool incomplete; /* memory ran out */
};

/** Adds a finding: one sentence without a full stop. */
void check_say(struct check_result *result, enum check_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Add the evidence, or the command that fixes it, to the latest finding. */
void check_seen(struct check_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void check_fix(struct check_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The worst of its findings; CHECK_UNKNOWN if there are none or memory ran out. */
enum check_verdict check_verdict_of(const struct check_result *result);

/** "pass", "unknown", "warn" or "fail". */
const char *check_verdict_text(enum check_verdict verdict);

void check_result_free(struct check_result *result);

/* How many findings have which verdict: lines of the text. */
struct check_totals {
	int counts[CHECK_FAIL + 1];
};

#define CHECK_TOTALS_TEXT_MAX 80

/** Prints the findings for people; @quiet omits what passes. */
void check_print(FILE *file, const char *id, const struct check_result *result, bool quiet);

/** {"id", "title", "verdict", "findings": [...]}, or NULL without memory. */
json_t *check_json(const char *id, const char *title, const struct check_result *result);

void check_totals_add(struct check_totals *totals, const struct check_result *result);

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
