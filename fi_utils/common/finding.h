/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.h - what a check finds: a verdict, a sentence, the evidence, and the command that fixes
 * it.
 */
#ifndef MESH_FI_UTILS_COMMON_FINDING_H
#define MESH_FI_UTILS_COMMON_FINDING_H

#include <stdbool.h>

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

#endif
