/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_topo.c - untrusted plans and reports of nodes: read, joined, drawn in all forms. */
#include <stdint.h>
#include <stdio.h>

#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

#include "fuzz_text.h"

/* Drawing is quadratic in what a small input can name: a bound keeps the fuzzer fast. */
#define NICS_DRAWN_MAX 60

static FILE *nowhere;

/* The reasons for refusing are many, and of no use here; the sanitizers keep descriptor 2. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	nowhere = fopen("/dev/null", "w");
	fuzz_check(nowhere);
	stderr = nowhere;
	return 0;
}

static void map_check(const struct topo_map *map)
{
	for (int i = 0; i < map->num_nics; i++)
		fuzz_check(map->nics[i].link < map->num_links &&
			   map->nics[i].node < map->num_nodes);
	for (int i = 0; i < map->num_links; i++)
		fuzz_check(map->links[i].num >= 2 &&
			   map->links[i].first + map->links[i].num <= map->num_nics);
}

static void map_draw(const struct topo_map *map)
{
	struct topo_path path;

	topo_print_text(nowhere, map, NULL);
	topo_print_dot(nowhere, map, NULL);
	topo_print_json(nowhere, map, NULL);
	if (map->num_nodes < 2)
		return;
	topo_path_find(map, 0, 1, &path);
	topo_print_dot(nowhere, map, &path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topo_map map = {.planned = false};
	size_t half = size / 2;

	/* One document, or two of different nodes. */
	if (topo_document_read(&map, (const char *)data, size, "a.json")) {
		topo_map_free(&map);
		if (topo_document_read(&map, (const char *)data, half, "a.json") ||
		    topo_document_read(&map, (const char *)data + half, size - half, "b.json")) {
			topo_map_free(&map);
			return 0;
		}
	}
	if (!topo_map_join(&map)) {
		map_check(&map);
		if (map.num_nodes && map.num_nics <= NICS_DRAWN_MAX && map.num_nodes <= 60)
			map_draw(&map);
	}
	topo_map_free(&map);
	return 0;
}
