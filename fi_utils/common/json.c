/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - makes JSON values, and prints a document. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

json_t *output_json_text(const char *text)
{
	json_t *value;
	char *copy, *at;

	if (!text || !*text)
		return json_null();
	value = json_string(text);
	if (value)
		return value;
	copy = strdup(text);
	for (at = copy; at && *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

json_t *output_json_addr(const struct mesh_addr *addr)
{
	char text[MESH_ADDR_TEXT_MAX];

	return addr->family == MESH_FAMILY_NONE ? json_null()
						: json_string(mesh_addr_text_prefix(addr, text));
}

json_t *output_json_known(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

json_t *output_json_hex(uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016" PRIx64, value);
	return json_string(text);
}

json_t *output_json_append(json_t *list, json_t *value)
{
	if (list && !json_array_append_new(list, value))
		return list;
	if (!list)
		json_decref(value); /* else append_new() has done so */
	json_decref(list);
	return NULL;
}

json_t *output_json_join(json_t *object, json_t *more)
{
	if (!object || !more || json_object_update(object, more)) {
		json_decref(object);
		object = NULL;
	}
	json_decref(more);
	return object;
}

static int json_print(const char *who, FILE *file, json_t *root, size_t flags)
{
	int ret = root ? json_dumpf(root, file, flags) : -1;

	if (!ret)
		fputc('\n', file);
	else
		fprintf(stderr, "%s: the JSON could not be made or written\n", who);
	json_decref(root);
	return ret;
}

int output_json_print(const char *who, FILE *file, json_t *root)
{
	return json_print(who, file, root, JSON_INDENT(2));
}

int output_json_print_line(const char *who, FILE *file, json_t *root)
{
	return json_print(who, file, root, JSON_COMPACT);
}
