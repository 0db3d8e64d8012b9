/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - collects the findings of a check, and prints them as text or JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "common/finding.h"
#include "common/json.h"
#include "common/output.h"

void check_say(struct check_result *result, enum check_verdict verdict, const char *format, ...)
{
	struct check_finding *list, *finding;
	va_list args;

	list = mesh_array_room(result->findings, (size_t)result->num_findings, sizeof(*list));
	if (!list) {
		result->incomplete = true;
		return;
	}
	result->findings = list;
	finding = &list[result->num_findings];
	*finding = (struct check_finding){.verdict = verdict};
	va_start(args, format);
	if (vasprintf(&finding->text, format, args) < 0)
		finding->text = NULL;
	va_end(args);
	if (finding->text) {
		output_clean(finding->text);
		result->num_findings++;
	} else {
		result->incomplete = true;
	}
}

__attribute__((format(printf, 3, 0))) static void
text_replace(struct check_result *result, char **text, const char *format, va_list args)
{
	char *made;

	if (vasprintf(&made, format, args) < 0) {
		result->incomplete = true;
		return;
	}
	free(*text);
	*text = output_clean(made);
}

void check_seen(struct check_result *result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (result->num_findings)
		text_replace(result, &result->findings[result->num_findings - 1].evidence, format,
			     args);
	va_end(args);
}

void check_fix(struct check_result *result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (result->num_findings)
		text_replace(result, &result->findings[result->num_findings - 1].fix, format, args);
	va_end(args);
}

enum check_verdict check_verdict_of(const struct check_result *result)
{
	enum check_verdict worst = CHECK_PASS;
	int i;

	if (!result->num_findings || result->incomplete)
		worst = CHECK_UNKNOWN;
	for (i = 0; i < result->num_findings; i++)
		if (result->findings[i].verdict > worst)
			worst = result->findings[i].verdict;
	return worst;
}

const char *check_verdict_text(enum check_verdict verdict)
{
	static const char *const names[] = {
		[CHECK_PASS] = "pass",
		[CHECK_UNKNOWN] = "unknown",
		[CHECK_WARN] = "warn",
		[CHECK_FAIL] = "fail",
	};

	return names[verdict];
}

void check_result_free(struct check_result *result)
{
	int i;

	for (i = 0; i < result->num_findings; i++) {
		free(result->findings[i].text);
		free(result->findings[i].evidence);
		free(result->findings[i].fix);
	}
	free(result->findings);
	memset(result, 0, sizeof(*result));
}

/* ---- report ----------------------------------------------------------------------------- */

/* The columns of the text: verdict, id, sentence. */
#define VERDICT_WIDTH 9
#define ID_WIDTH 15

static enum output_style verdict_style(enum check_verdict verdict)
{
	static const enum output_style styles[] = {
		[CHECK_PASS] = OUTPUT_GOOD,
		[CHECK_UNKNOWN] = OUTPUT_FAINT,
		[CHECK_WARN] = OUTPUT_NOTICE,
		[CHECK_FAIL] = OUTPUT_BAD,
	};

	return styles[verdict];
}

static void line_print(FILE *file, enum check_verdict verdict, const char *id, const char *text)
{
	fprintf(file, "%s%-*s%s%-*s%s\n", output_style(file, verdict_style(verdict)), VERDICT_WIDTH,
		check_verdict_text(verdict), output_style(file, OUTPUT_PLAIN), ID_WIDTH, id, text);
}

void check_print(FILE *file, const char *id, const struct check_result *result, bool quiet)
{
	const struct check_finding *finding;
	int i, indent = VERDICT_WIDTH + ID_WIDTH;

	for (i = 0; i < result->num_findings; i++) {
		finding = &result->findings[i];
		if (quiet && finding->verdict == CHECK_PASS)
			continue;
		line_print(file, finding->verdict, id, finding->text);
		if (finding->evidence && finding->verdict != CHECK_PASS)
			fprintf(file, "%*sseen: %s\n", indent, "", finding->evidence);
		if (finding->fix)
			fprintf(file, "%*sdo:   %s\n", indent, "", finding->fix);
	}
	if (result->incomplete || !result->num_findings)
		line_print(file, CHECK_UNKNOWN, id, "out of memory");
}

static json_t *finding_json(const struct check_finding *finding)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "verdict", check_verdict_text(finding->verdict),
			 "text", output_json_text(finding->text), "evidence",
			 output_json_text(finding->evidence), "fix",
			 output_json_text(finding->fix));
}

json_t *check_json(const char *id, const char *title, const struct check_result *result)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < result->num_findings && list; i++)
		list = output_json_append(list, finding_json(&result->findings[i]));
	return json_pack("{s:s, s:s, s:s, s:o}", "id", id, "title", title, "verdict",
			 check_verdict_text(check_verdict_of(result)), "findings", list);
}

void check_totals_add(struct check_totals *totals, const struct check_result *result)
{
	int i;

	for (i = 0; i < result->num_findings; i++)
		totals->counts[result->findings[i].verdict]++;
	totals->counts[CHECK_UNKNOWN] += result->incomplete || !result->num_findings;
}

int check_totals_status(const struct check_totals *totals)
{
	return totals->counts[CHECK_WARN] || totals->counts[CHECK_FAIL] ? COMMAND_PROBLEM
									: COMMAND_FINE;
}

const char *check_totals_text(const struct check_totals *totals, char *text)
{
	const int *counts = totals->counts;

	snprintf(text, CHECK_TOTALS_TEXT_MAX, "%d pass, %d unknown, %d warn, %d fail",
		 counts[CHECK_PASS], counts[CHECK_UNKNOWN], counts[CHECK_WARN], counts[CHECK_FAIL]);
	return text;
}

json_t *check_totals_json(const struct check_totals *totals, const char *key, json_t *list)
{
	const int *counts = totals->counts;

	return json_pack("{s:i, s:i, s:i, s:i, s:o}", "pass", counts[CHECK_PASS], "unknown",
			 counts[CHECK_UNKNOWN], "warn", counts[CHECK_WARN], "fail",
			 counts[CHECK_FAIL], key, list);
}
