/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - a map as a picture, which Graphviz draws. */
#include <errno.h>
#include <stdlib.h>

#include "common/child.h"
#include "topo/print.h"

/* neato takes 0.5 s for 64 nodes with a cable between each two. */
#define DRAWING_TIMEOUT_MS 60000

static int drawing_run(FILE *dot, char **picture)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)], complaint[RUN_PROGRAM_COMPLAINT_MAX];
	const char *const argv[] = {"neato", "-Tsvg", path, NULL};
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(dot));
	ret = run_program((char *const *)argv, DRAWING_TIMEOUT_MS, picture, complaint);
	if (ret == -ENOENT)
		fprintf(stderr, "fi_mesh topo: --svg needs Graphviz, which draws the picture: "
				"install graphviz, or draw what --dot prints elsewhere\n");
	else if (ret)
		fprintf(stderr, "fi_mesh topo: neato, which draws the picture: %s\n", complaint);
	return ret;
}

int topo_print_svg(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	FILE *dot = tmpfile(); /* which programs that we start inherit */
	char *picture;
	int ret;

	if (!dot) {
		ret = -errno;
		perror("fi_mesh topo: no temporary file");
		return ret;
	}
	ret = topo_print_dot(dot, map, pair);
	if (!ret && fflush(dot))
		ret = -errno;
	if (!ret)
		ret = drawing_run(dot, &picture);
	if (!ret) {
		fputs(picture, file);
		free(picture);
	}
	fclose(dot);
	return ret;
}
