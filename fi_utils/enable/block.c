/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - our lines in one of NCCL's configuration files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "common/own_plugin.h"
#include "enable/enable.h"

/* Before 2.26 NCCL took a comment with a '=' for a variable: the markers have none. */
#define MARK_BEGIN "# fi_mesh enable: begin (`fi_mesh disable` removes these lines)"
#define MARK_END "# fi_mesh enable: end"
/* Behind MARK_BEGIN: what else the removal has to undo. */
#define MARK_NEW_FILE " [new file]"
#define MARK_NEW_LINE " [newline added before]"

enum line_kind {
	LINE_FOREIGN,
	LINE_BEGIN,
	LINE_OURS,
	LINE_END,
};

/* Goes through a text line by line. */
struct scan {
	const char *at, *end;
	const char *line; /* the current one */
	size_t len;	  /* without its newline and a carriage return at the end */
	size_t whole;	  /* with both */
	int number;	  /* from 1 */
	bool inside;	  /* between the markers */
	enum line_kind kind;
};

static bool starts_with(const struct scan *scan, const char *text)
{
	return scan->len >= strlen(text) && !memcmp(scan->line, text, strlen(text));
}

/* True if the line has one of our names, and a value that conf_block_put() may have written. */
static bool is_own_setting(const struct scan *scan)
{
	const char *equals = memchr(scan->line, '=', scan->len);
	char value[NCCL_CONF_VALUE_MAX + 1];
	size_t len;

	if (!equals)
		return false;
	len = scan->len - (size_t)(equals + 1 - scan->line);
	if (len >= sizeof(value))
		return false;
	memcpy(value, equals + 1, len);
	value[len] = '\0';
	if (starts_with(scan, "NCCL_NET_PLUGIN="))
		return own_plugin_is_named(value);
	if (starts_with(scan, "NCCL_SOCKET_IFNAME="))
		return *value == '=';
	return (starts_with(scan, "NCCL_NET=") && !strcmp(value, "Mesh")) ||
	       (starts_with(scan, "NCCL_NET_PLUGIN_REF_COUNT=") && !strcmp(value, "1"));
}

static enum line_kind kind_of(const struct scan *scan)
{
	if (starts_with(scan, MARK_BEGIN))
		return LINE_BEGIN;
	if (starts_with(scan, MARK_END) && scan->len == strlen(MARK_END))
		return LINE_END;
	return scan->inside && is_own_setting(scan) ? LINE_OURS : LINE_FOREIGN;
}

static struct scan scan_begin(const struct conf_text *text)
{
	return (struct scan){.at = text->bytes, .end = text->bytes + text->size};
}

/* Returns 1; 0 at the end; -EBADMSG for a marker without its counterpart. */
static int scan_next(struct scan *scan)
{
	const char *newline;

	if (scan->at == scan->end)
		return scan->inside ? -EBADMSG : 0;
	newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
	scan->line = scan->at;
	scan->at = newline ? newline + 1 : scan->end;
	scan->whole = (size_t)(scan->at - scan->line);
	scan->len = scan->whole - (newline != NULL);
	if (scan->len && scan->line[scan->len - 1] == '\r')
		scan->len--;
	scan->number++;
	scan->kind = kind_of(scan);
	if ((scan->kind == LINE_BEGIN && scan->inside) || (scan->kind == LINE_END && !scan->inside))
		return -EBADMSG;
	if (scan->kind == LINE_BEGIN || scan->kind == LINE_END)
		scan->inside = scan->kind == LINE_BEGIN;
	return 1;
}

static void obstacle_set(const struct scan *scan, struct conf_obstacle *obstacle)
{
	obstacle->line = scan->number;
	snprintf(obstacle->text, sizeof(obstacle->text), "%.*s", (int)scan->len, scan->line);
	mesh_text_clean(obstacle->text);
}

/* ---- without the block ------------------------------------------------------------------- */

/* The foreign lines of a text, and what the block says about its own making. */
struct rest {
	char *bytes; /* owned */
	size_t size;
	size_t block_at; /* where the last block began, in the bytes */
	bool has_block, new_file, new_line;
};

static bool marker_notes(const struct scan *scan, const char *note)
{
	return memmem(scan->line, scan->len, note, strlen(note));
}

static int foreign_write(const struct conf_text *old, FILE *file, struct rest *rest,
			 struct conf_obstacle *obstacle)
{
	struct scan scan = scan_begin(old);
	size_t written = 0;
	int ret;

	while ((ret = scan_next(&scan)) > 0) {
		if (scan.kind == LINE_FOREIGN)
			written += fwrite(scan.line, 1, scan.whole, file);
		if (scan.kind != LINE_BEGIN)
			continue;
		rest->has_block = true;
		rest->block_at = written;
		rest->new_file |= marker_notes(&scan, MARK_NEW_FILE);
		rest->new_line = marker_notes(&scan, MARK_NEW_LINE);
	}
	if (ret)
		obstacle_set(&scan, obstacle);
	return ret;
}

/* Returns 0, -EBADMSG or -ENOMEM. @rest: its bytes are set on success only. */
static int rest_make(const struct conf_text *old, struct rest *rest, struct conf_obstacle *obstacle)
{
	FILE *file;
	int ret;

	*rest = (struct rest){.bytes = NULL};
	file = open_memstream(&rest->bytes, &rest->size);
	if (!file)
		return -ENOMEM;
	ret = foreign_write(old, file, rest, obstacle);
	if (fclose(file) && !ret)
		ret = -ENOMEM;
	if (ret) {
		free(rest->bytes);
		return ret;
	}
	/* A line that was added behind the block needs the newline. */
	if (rest->new_line && rest->size && rest->block_at == rest->size)
		rest->bytes[--rest->size] = '\0';
	return 0;
}

int conf_block_remove(const struct conf_text *old, struct conf_text *made, bool *unmake,
		      struct conf_obstacle *obstacle)
{
	struct rest rest;
	int ret = rest_make(old, &rest, obstacle);

	if (ret)
		return ret;
	if (!rest.has_block) {
		free(rest.bytes);
		return 0;
	}
	*made = (struct conf_text){rest.bytes, rest.size};
	*unmake = rest.new_file && !rest.size;
	return 1;
}

/* ---- with the block ---------------------------------------------------------------------- */

/* True if NCCL would take another value than @value from this line. A carriage return counts. */
static bool is_other_value(const struct scan *scan, const struct conf_value *value)
{
	const size_t name_len = strlen(value->name), value_len = strlen(value->value);
	size_t len = scan->whole;

	if (len && scan->line[len - 1] == '\n')
		len--;
	if (len <= name_len || memcmp(scan->line, value->name, name_len) ||
	    scan->line[name_len] != '=')
		return false;
	if (len - name_len - 1 != value_len)
		return true;
	return value->any_case
		       ? strncasecmp(scan->line + name_len + 1, value->value, value_len) != 0
		       : memcmp(scan->line + name_len + 1, value->value, value_len) != 0;
}

/* @left_out: set for each optional value that a foreign line sets to something else. */
static int conflicts_find(const struct conf_text *old, const struct conf_value *values, int num,
			  bool *left_out, struct conf_obstacle *obstacle)
{
	struct scan scan = scan_begin(old);
	int i;

	while (scan_next(&scan) > 0) {
		for (i = 0; i < num; i++) {
			if (scan.kind != LINE_FOREIGN || !is_other_value(&scan, &values[i]))
				continue;
			if (values[i].kind != CONF_OPTIONAL) {
				obstacle_set(&scan, obstacle);
				return -EEXIST;
			}
			left_out[i] = true;
		}
	}
	return 0;
}

static int text_make(const struct rest *rest, bool is_new, const struct conf_value *values, int num,
		     const bool *left_out, struct conf_text *made)
{
	const bool new_line = rest->size && rest->bytes[rest->size - 1] != '\n';
	const bool new_file = is_new || (rest->new_file && !rest->size);
	struct conf_text text = {NULL, 0};
	FILE *file = open_memstream(&text.bytes, &text.size);
	int i;

	if (!file)
		return -ENOMEM;
	fwrite(rest->bytes, 1, rest->size, file);
	fprintf(file, "%s" MARK_BEGIN "%s%s\n", new_line ? "\n" : "", new_file ? MARK_NEW_FILE : "",
		new_line ? MARK_NEW_LINE : "");
	for (i = 0; i < num; i++)
		if (!left_out[i] && values[i].kind != CONF_WATCHED)
			fprintf(file, "%s=%s\n", values[i].name, values[i].value);
	fprintf(file, MARK_END "\n");
	if (fclose(file)) {
		free(text.bytes);
		return -ENOMEM;
	}
	*made = text;
	return 0;
}

int conf_block_put(const struct conf_text *old, bool is_new, const struct conf_value *values,
		   int num, struct conf_text *made, struct conf_obstacle *obstacle)
{
	bool left_out[CONF_VALUES_MAX] = {false};
	struct rest rest;
	int ret = rest_make(old, &rest, obstacle);

	if (ret)
		return ret;
	ret = conflicts_find(old, values, num, left_out, obstacle);
	if (!ret)
		ret = text_make(&rest, is_new, values, num, left_out, made);
	free(rest.bytes);
	return ret;
}
