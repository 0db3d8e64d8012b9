/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh neighbours`: which node is at the other end of each link. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/finding.h"
#include "common/interrupt.h"
#include "common/options.h"
#include "common/output.h"
#include "neighbours/show.h"
#include "peer/search.h"
#include "peer/self.h"

static const char who[] = "fi_mesh neighbours";

static const char usage_text[] =
	"usage: fi_mesh neighbours [--json]\n"
	"\n"
	"Asks on each NIC that carries the mesh which node is at the other end of its\n"
	"link, and says what is wrong there. A node answers while a job or `fi_mesh\n"
	"serve` runs on it.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 nothing is wrong, 1 something is (warn or fail), 2 usage error.\n";

struct options {
	bool json;
};

static const struct option_row option_rows[] = {
	{"json", 0, NULL, "JSON instead of a table", OPTION_FLAG(struct options, json)},
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/* Returns an exit status. */
static int neighbours_show(const struct options *options, const struct mesh_asking *asking,
			   const struct mesh_nic_table *table)
{
	struct check_result results[MESH_NICS_MAX] = {{0}};
	struct check_totals totals = {{0}};
	int i, status;

	for (i = 0; i < asking->num_links; i++) {
		neighbours_judge(asking, i, &results[i]);
		totals.counts[check_verdict_of(&results[i])]++;
	}
	for (i = 0; i < table->num_nics; i++)
		totals.counts[CHECK_FAIL] += table->nics[i].verdict == MESH_NIC_LINK_DOWN;
	status = check_totals_status(&totals);
	if (!options->json)
		neighbours_print(stdout, asking, results, table);
	else if (neighbours_print_json(who, stdout, asking, results, table))
		status = COMMAND_PROBLEM;
	for (i = 0; i < asking->num_links; i++)
		check_result_free(&results[i]);
	return status;
}

static int neighbours_find(const struct options *options, const struct peer_self *node)
{
	struct mesh_asking *asking = calloc(1, sizeof(*asking));
	struct mesh_neighbour_self self;
	int ret, status = COMMAND_PROBLEM;

	if (!asking)
		return output_failure(who, -ENOMEM);
	interrupt_catch();
	ret = peer_neighbours_ask(node, &self, asking);
	if (ret && ret != -EINTR)
		fprintf(stderr, "%s: cannot ask: %s\n", who, strerror(-ret));
	else if (!ret && asking->num_links)
		status = neighbours_show(options, asking, &node->table);
	else if (!ret)
		fprintf(stderr,
			"%s: no NIC of this node can carry the mesh; `fi_mesh nics` says "
			"why\n",
			who);
	mesh_asking_finish(asking);
	free(asking);
	return status;
}

int command_neighbours(int argc, char **argv)
{
	struct options options = {0};
	struct peer_self node;
	int status, ret;

	status = option_table_parse(&option_table, argc, argv, &options, NULL);
	if (status >= 0)
		return status;
	ret = peer_self_open(&node);
	if (ret)
		return output_failure(who, ret);
	status = neighbours_find(&options, &node);
	peer_self_close(&node);
	return output_finish(who, status);
}
