/* SPDX-License-Identifier: Apache-2.0 */
/* said.c - counts the lines of each process by their place in the source. */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "said.h"

#define PLACES_MAX 512
#define TEXT_MAX 400

/* Where lines of a process come from. */
struct place {
	const struct world_node *node;
	enum nccl_level level;
	const char *file;
	int line;
	int times;
	uint64_t last_ns;
	char text[TEXT_MAX]; /* the last one */
};

static struct place places[PLACES_MAX];
static int num_places;

static struct place *place_find(enum nccl_level level, const char *file, int line)
{
	const struct world_node *node = world_acting();
	struct place *place;

	for (place = places; place < places + num_places; place++) {
		if (place->node == node && place->level == level && place->line == line &&
		    !strcmp(place->file, file))
			return place;
	}
	if (num_places++ == PLACES_MAX)
		world_die("too many places in the log");
	*place = (struct place){.node = node, .level = level, .file = file, .line = line};
	return place;
}

void said(enum nccl_level level, const char *file, int line, const char *text)
{
	struct place *place;

	world_say("%s%s", level == NCCL_LEVEL_WARN ? "WARN " : "", text);
	if (level != NCCL_LEVEL_WARN && level != NCCL_LEVEL_INFO)
		return;
	place = place_find(level, file, line);
	place->times++;
	place->last_ns = world.now_ns;
	snprintf(place->text, sizeof(place->text), "%s", text);
}

bool said_warn_since(const struct world_node *node, uint64_t ns)
{
	const struct place *place;

	for (place = places; place < places + num_places; place++) {
		if (place->node == node && place->level == NCCL_LEVEL_WARN && place->last_ns >= ns)
			return true;
	}
	return false;
}

bool said_matches(const char *text, const char *pattern)
{
	regex_t regex;
	bool is;

	if (regcomp(&regex, pattern, REG_NOSUB))
		world_die("%s is no basic regular expression", pattern);
	is = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return is;
}

int said_times(const struct world_node *node, const char *pattern)
{
	const struct place *place;
	int times = 0;

	for (place = places; place < places + num_places; place++)
		times += place->node == node && said_matches(place->text, pattern) ? place->times
										   : 0;
	return times;
}

void said_check_quiet(int limit)
{
	const struct place *place;

	for (place = places; place < places + num_places; place++) {
		if (place->level == NCCL_LEVEL_WARN || place->times > limit)
			world_die("%s says %d times, though nothing happens: %s%s",
				  place->node->name, place->times,
				  place->level == NCCL_LEVEL_WARN ? "WARN " : "", place->text);
	}
}
