/* SPDX-License-Identifier: Apache-2.0 */
/* port_range.c - a range of TCP ports, as NCCL_MESH_PORTS names it. */
#include <errno.h>
#include <unistd.h>

#include "base/port_range.h"

#define PORT_MAX 65535

/* Reads a port at @text; returns what stands behind it, or NULL. */
static const char *port_parse(const char *text, uint16_t *port)
{
	unsigned int value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		value = 10 * value + (unsigned int)(*at - '0');
		if (value > PORT_MAX)
			return NULL;
	}
	*port = (uint16_t)value;
	return at == text || !value ? NULL : at;
}

int mesh_port_range_parse(const char *text, struct mesh_port_range *range)
{
	struct mesh_port_range found;
	const char *rest;

	*range = (struct mesh_port_range){0, 0};
	if (!*text)
		return 0;
	rest = port_parse(text, &found.first);
	if (!rest)
		return -EINVAL;
	found.last = found.first;
	if (*rest == '-')
		rest = port_parse(rest + 1, &found.last);
	if (!rest || *rest || found.last < found.first)
		return -EINVAL;
	*range = found;
	return 0;
}

unsigned int mesh_port_range_size(const struct mesh_port_range *range)
{
	return (unsigned int)(range->last - range->first) + 1;
}

uint16_t mesh_port_range_get(const struct mesh_port_range *range, unsigned int number)
{
	if (!range->first)
		return 0;
	return (uint16_t)(range->first +
			  ((unsigned int)getpid() + number) % mesh_port_range_size(range));
}
