/* SPDX-License-Identifier: Apache-2.0 */
/* cable_list.c - reads a list of cables, one a line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "plan/cable_list.h"
#include "plan/topology.h"

static bool name_valid(const char *name, size_t size, const char *extra)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789";
	size_t i, len = strlen(name);

	if (!len || len >= size || !strchr(letters, *name))
		return false;
	for (i = 0; i < len; i++)
		if (!strchr(letters, name[i]) && !strchr(extra, name[i]))
			return false;
	return true;
}

bool mesh_node_name_valid(const char *name)
{
	return name_valid(name, MESH_PLAN_NAME_MAX, ".-_");
}

const char *mesh_name_repeated(const void *first, size_t size, int num)
{
	const char *name = first, *other;
	int i;

	for (i = 0; i < num; i++, name += size)
		for (other = first; other < name; other += size)
			if (!strcmp(other, name))
				return name;
	return NULL;
}

bool mesh_port_name_valid(const char *name)
{
	return name_valid(name, IF_NAMESIZE, ".-_@");
}

/* The next word of a line; returns its length, 0 at the end of the line. */
static size_t word_next(const char **at, const char *end, const char **word)
{
	while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
		(*at)++;
	*word = *at;
	while (*at < end && **at != ' ' && **at != '\t' && **at != '\r' && **at != '#')
		(*at)++;
	return (size_t)(*at - *word);
}

/* Copies a word that may hold any bytes; false if it does not fit. */
static bool word_copy(const char *word, size_t len, char *text, size_t size)
{
	if (len >= size || memchr(word, '\0', len))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	return true;
}

/* Reads "ADDR/N" behind the '=' of an end. */
static int kept_parse(const char *word, size_t len, struct mesh_addr *addr)
{
	char text[MESH_ADDR_TEXT_MAX];

	if (!word_copy(word, len, text, sizeof(text)) || !strchr(text, '/'))
		return -EINVAL;
	return mesh_addr_parse(text, addr);
}

static int end_parse(const char *word, size_t len, struct mesh_listed_end *end)
{
	const char *equals = memchr(word, '=', len), *colon;
	size_t node_len;

	*end = (struct mesh_listed_end){.port = ""};
	if (equals) {
		if (kept_parse(equals + 1, len - (size_t)(equals - word) - 1, &end->addr))
			return -EINVAL;
		len = (size_t)(equals - word);
	}
	colon = memchr(word, ':', len);
	node_len = colon ? (size_t)(colon - word) : len;
	if (equals && !colon)
		return -EINVAL;
	if (!word_copy(word, node_len, end->node, sizeof(end->node)) ||
	    !mesh_node_name_valid(end->node))
		return -EINVAL;
	if (!colon)
		return 0;
	if (!word_copy(colon + 1, len - node_len - 1, end->port, sizeof(end->port)) ||
	    !mesh_port_name_valid(end->port))
		return -EINVAL;
	return 0;
}

/* The addresses of a line: both ends have one, of one subnet, or none has. */
static int kept_check(const struct mesh_listed_cable *cable, int number)
{
	const struct mesh_addr *a = &cable->ends[0].addr, *b = &cable->ends[1].addr;

	if (a->family == MESH_FAMILY_NONE && b->family == MESH_FAMILY_NONE)
		return 0;
	if (a->family == b->family && !mesh_addr_equal(a, b) && a->prefix_len == b->prefix_len &&
	    mesh_addr_same_subnet(a, b))
		return 0;
	mesh_warn("cables, line %d: the two addresses must be different ones of one subnet",
		  number);
	return -EINVAL;
}

/* Reads one line; *@present: whether it has a cable. */
static int line_parse(const char *at, const char *end, int number, struct mesh_listed_cable *cable,
		      bool *present)
{
	const char *word;
	size_t len;
	int i;

	*present = false;
	for (i = 0; i < 2; i++) {
		len = word_next(&at, end, &word);
		if (!len && !i)
			return 0;
		if (!len || end_parse(word, len, &cable->ends[i])) {
			mesh_warn("cables, line %d: write the two ends as NODE NODE, "
				  "NODE:PORT NODE:PORT or NODE:PORT=ADDRESS/N "
				  "NODE:PORT=ADDRESS/N",
				  number);
			return -EINVAL;
		}
	}
	if (word_next(&at, end, &word)) {
		mesh_warn("cables, line %d: a cable has two ends, not three", number);
		return -EINVAL;
	}
	if (!strcmp(cable->ends[0].node, cable->ends[1].node)) {
		mesh_warn("cables, line %d: both ends are on %s", number, cable->ends[0].node);
		return -EINVAL;
	}
	*present = true;
	return kept_check(cable, number);
}

static int cable_append(struct mesh_cable_list *list, const struct mesh_listed_cable *cable)
{
	struct mesh_listed_cable *cables;

	if (list->num_cables == MESH_TOPOLOGY_CABLES_MAX) {
		mesh_warn("more than %d cables", MESH_TOPOLOGY_CABLES_MAX);
		return -E2BIG;
	}
	cables = mesh_array_room(list->cables, (size_t)list->num_cables, sizeof(*cables));
	if (!cables)
		return -ENOMEM;
	list->cables = cables;
	cables[list->num_cables++] = *cable;
	return 0;
}

int mesh_cable_list_parse(const char *text, size_t size, struct mesh_cable_list *list)
{
	struct mesh_cable_list result = {.num_cables = 0};
	const char *at = text, *stop = text + size, *end;
	struct mesh_listed_cable cable;
	int number, ret = 0;
	bool present;

	for (number = 1; at < stop && !ret; number++, at = end + 1) {
		end = memchr(at, '\n', (size_t)(stop - at));
		if (!end)
			end = stop;
		ret = line_parse(at, end, number, &cable, &present);
		if (!ret && present)
			ret = cable_append(&result, &cable);
		if (end == stop)
			break;
	}
	if (!ret && !result.num_cables) {
		mesh_warn("the list names no cable");
		ret = -EINVAL;
	}
	if (ret)
		mesh_cable_list_free(&result);
	else
		*list = result;
	return ret;
}

void mesh_cable_list_free(struct mesh_cable_list *list)
{
	free(list->cables);
	memset(list, 0, sizeof(*list));
}
