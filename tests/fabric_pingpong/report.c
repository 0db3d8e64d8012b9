/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - collects the result as JSON and prints it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "report.h"

#define COLUMN_MAX 160

json_t *report_new(void)
{
	return json_pack("{s:b, s:[], s:[]}", "ok", 0, "pairs", "errors");
}

void report_add_pair(json_t *report, struct pair_name name, const char *from_node,
		     const char *to_node)
{
	/* s? : a host name that is not UTF-8 becomes null instead of failing the whole. */
	json_t *pair = json_pack("{s:i, s:i, s:b, s:[], s:[], s:[]}", "from", name.from, "to",
				 name.to, "ok", 0, "paths", "sizes", "errors");
	json_t *from = json_string(from_node), *to = json_string(to_node);

	json_object_set_new(pair, "from_node", from ? from : json_null());
	json_object_set_new(pair, "to_node", to ? to : json_null());
	json_array_append_new(json_object_get(report, "pairs"), pair);
}

void report_error(json_t *report, long index, const char *text)
{
	json_t *owner = report;
	json_t *string = json_string(text);

	if (index >= 0)
		owner = json_array_get(json_object_get(report, "pairs"), (size_t)index);
	if (!string)
		string = json_string("an error whose text is not UTF-8");
	json_array_append_new(json_object_get(owner, "errors"), string);
}

/* Makes all texts of a rank's result printable ASCII. */
static void texts_clean(json_t *value)
{
	json_t *entry;
	const char *key;
	char *text;
	size_t i;

	json_object_foreach(value, key, entry)
		texts_clean(entry);
	json_array_foreach(value, i, entry)
		texts_clean(entry);
	if (!json_is_string(value))
		return;
	text = strdup(json_string_value(value));
	if (text)
		mesh_text_clean(text);
	json_string_set(value, text ? text : "");
	free(text);
}

bool report_merge(json_t *report, size_t index, const char *text)
{
	static const char *const keys[] = {"paths", "sizes", "errors"};
	json_t *pair = json_array_get(json_object_get(report, "pairs"), index);
	json_t *part = json_loads(text, 0, NULL);
	bool finished = json_is_true(json_object_get(part, "finished"));

	if (!json_is_object(part)) {
		report_error(report, (long)index, "a rank sent a result that cannot be parsed");
		json_decref(part);
		return false;
	}
	texts_clean(part);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_array_extend(json_object_get(pair, keys[i]), json_object_get(part, keys[i]));
	json_decref(part);
	return finished;
}

void report_pair_ok(json_t *report, size_t index)
{
	json_t *pair = json_array_get(json_object_get(report, "pairs"), index);

	json_object_set_new(pair, "ok", json_true());
}

static bool pair_is_ok(const json_t *pair)
{
	return json_is_true(json_object_get(pair, "ok")) &&
	       !json_array_size(json_object_get(pair, "errors"));
}

bool report_settle(json_t *report)
{
	json_t *pairs = json_object_get(report, "pairs"), *pair;
	bool ok = !json_array_size(json_object_get(report, "errors")) && json_array_size(pairs);
	size_t i;

	json_array_foreach(pairs, i, pair) {
		json_object_set_new(pair, "ok", json_boolean(pair_is_ok(pair)));
		if (!pair_is_ok(pair))
			ok = false;
	}
	json_object_set_new(report, "ok", json_boolean(ok));
	return ok;
}

/* --- text --- */

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : otherwise;
}

static void print_cell(const json_t *pair, const char *rank_key, const char *node_key)
{
	char cell[COLUMN_MAX];

	snprintf(cell, sizeof(cell), "%lld (%s)",
		 (long long)json_integer_value(json_object_get(pair, rank_key)),
		 text_of(pair, node_key, "?"));
	printf("%-16s ", cell);
}

/* @narrow: on a terminal each path has a line of its own, to fit into 80 columns. */
static void print_path(const json_t *path, bool narrow)
{
	char cell[4 * COLUMN_MAX];
	const char *local = text_of(path, "local", NULL), *via = text_of(path, "via", NULL);

	if (!path)
		snprintf(cell, sizeof(cell), "?");
	else if (!local)
		snprintf(cell, sizeof(cell), "%s", text_of(path, "nic", "?"));
	else
		snprintf(cell, sizeof(cell), "%s %s -> %s%s%s", text_of(path, "nic", "?"), local,
			 text_of(path, "remote", "?"), via && strcmp(via, "direct") ? " via " : "",
			 via && strcmp(via, "direct") ? via : "");
	printf(narrow ? "    %s" : "%-44s ", cell);
}

static void format_bytes(long long bytes, char *text, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	int unit = 0;

	while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, size, "%lld %s", bytes, units[unit]);
}

static double number_of(const json_t *size, const char *key)
{
	return json_number_value(json_object_get(size, key));
}

static void print_pair(const json_t *pair, const char *right, bool narrow)
{
	const json_t *sizes = json_object_get(pair, "sizes");
	const json_t *paths = json_object_get(pair, "paths");
	size_t num_sizes = json_array_size(sizes);

	print_cell(pair, "from", "from_node");
	print_cell(pair, "to", "to_node");
	if (!narrow)
		print_path(json_array_get(paths, 0), narrow);
	if (num_sizes)
		printf("%10.2f %12.3f", number_of(json_array_get(sizes, 0), "half_rtt_us"),
		       number_of(json_array_get(sizes, num_sizes - 1), "gbit_s"));
	else
		printf("%10s %12s", "-", "-");
	printf("  %s\n", pair_is_ok(pair) ? right : "FAILED");
	for (size_t i = narrow ? 0 : 1; i < json_array_size(paths); i++) {
		printf("%*s", narrow ? 0 : 34, "");
		print_path(json_array_get(paths, i), narrow);
		putchar('\n');
	}
}

static void print_sizes(const json_t *pairs)
{
	const json_t *pair, *size;
	char bytes[32];
	size_t i, j;

	printf("\n%4s %4s %12s %14s %14s\n", "from", "to", "size", "half rtt us", "Gbit/s");
	json_array_foreach(pairs, i, pair) {
		json_array_foreach(json_object_get(pair, "sizes"), j, size) {
			format_bytes((long long)number_of(size, "bytes"), bytes, sizeof(bytes));
			printf("%4d %4d %12s %14.2f %14.3f\n", (int)number_of(pair, "from"),
			       (int)number_of(pair, "to"), bytes, number_of(size, "half_rtt_us"),
			       number_of(size, "gbit_s"));
		}
	}
}

const char *report_reason(const json_t *report)
{
	const json_t *pair, *errors = json_object_get(report, "errors");
	size_t i;

	json_array_foreach(json_object_get(report, "pairs"), i, pair)
		if (!json_array_size(errors))
			errors = json_object_get(pair, "errors");
	return json_array_size(errors) ? json_string_value(json_array_get(errors, 0)) : "not run";
}

static void print_errors(const json_t *report)
{
	const json_t *pair, *error;
	size_t i, j;

	json_array_foreach(json_object_get(report, "errors"), i, error)
		printf("error: %s\n", json_string_value(error));
	json_array_foreach(json_object_get(report, "pairs"), i, pair)
		json_array_foreach(json_object_get(pair, "errors"), j, error)
			printf("pair %d -> %d: %s\n", (int)number_of(pair, "from"),
			       (int)number_of(pair, "to"), json_string_value(error));
}

static void print_text(const json_t *report, const struct options *options)
{
	const json_t *pairs = json_object_get(report, "pairs"), *pair;
	uint64_t smallest = options->sizes[0], largest = options->sizes[options->num_sizes - 1];
	char rtt[64] = "half rtt", rate[64] = "bandwidth";
	bool narrow = isatty(STDOUT_FILENO) || getenv("COLUMNS"); /* `fi_mesh up` sets it */
	const bool ok = json_is_true(json_object_get(report, "ok"));
	int room = narrow ? 0 : 45; /* of the path */
	size_t i;

	print_errors(report);
	printf("%s%-16s %-16s %-*s%10s %12s  %s\n", ok ? "" : "\n", "from", "to", room,
	       narrow ? "" : "path", rtt, rate, "check");
	format_bytes((long long)smallest, rtt, sizeof(rtt));
	format_bytes((long long)largest, rate, sizeof(rate));
	printf("%*s %10s %12s\n", 33 + room, "", rtt, rate);
	printf("%*s %10s %12s\n", 33 + room, "", "us", "Gbit/s");
	json_array_foreach(pairs, i, pair)
		print_pair(pair, options->check ? "ok" : "samples", narrow);
	if (options->measure)
		print_sizes(pairs);
	printf("\n%s\n", ok ? "ok" : "FAILED");
}

int report_print(const json_t *report, const struct options *options)
{
	if (!options->json) {
		print_text(report, options);
	} else {
		json_dumpf(report, stdout,
			   JSON_INDENT(1) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
		putchar('\n');
	}
	return fflush(stdout) || ferror(stdout) ? -EIO : 0;
}
