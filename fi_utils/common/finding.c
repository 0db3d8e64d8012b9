/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - collects the findings of a check, and prints them as text or JSON. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "common/finding.h"
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
