/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - the variables that NCCL needs in a planned mesh; the rank order as text. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/own_plugin.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/rank_order.h"

static int names_compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

/*
 * "^=docker0,docker_gwbridge,lo,p0,p1": all but these. NCCL's own default leaves out docker and lo,
 * and a value replaces it (ncclFindInterfaces() in NCCL's socket.cc). Exact names: '^' alone
 * excludes by prefix, and ens1 would take ens18 with it.
 */
static char *others_value(const struct mesh_plan *plan)
{
	size_t num = 0, i, used = 2 * (size_t)plan->topology.num_cables;
	char(*names)[IF_NAMESIZE] = calloc(used + 1, sizeof(*names)), *value = NULL;
	size_t size;
	FILE *text;

	if (!names)
		return NULL;
	for (i = 0; i < used; i++)
		memcpy(names[num++], mesh_plan_port_name(plan, (int)(i / 2), (int)(i % 2)),
		       IF_NAMESIZE);
	qsort(names, num, sizeof(*names), names_compare);
	text = open_memstream(&value, &size);
	if (!text) {
		free(names);
		return NULL;
	}
	fprintf(text, "^=docker0,docker_gwbridge,lo");
	for (i = 0; i < num; i++)
		if (!i || strcmp(names[i - 1], names[i]))
			fprintf(text, ",%s", names[i]);
	free(names);
	if (fclose(text)) {
		free(value);
		return NULL;
	}
	return value;
}

static char *socket_value(const struct mesh_plan *plan)
{
	char *value;

	if (!*plan->management)
		return others_value(plan);
	return asprintf(&value, "=%s", plan->management) < 0 ? NULL : value;
}

/*
 * The plugin's folder on this node, or else that of `scons install`. To be freed; NULL without
 * memory.
 */
static char *plugin_value(void)
{
	char folder[PATH_MAX], *value;

	if (!own_plugin_folder(true, folder))
		strcpy(folder, OWN_PLUGIN_FOLDER);
	return asprintf(&value, "%s/" OWN_PLUGIN_FILE, folder) < 0 ? NULL : value;
}

int plan_environment(const struct mesh_plan *plan, struct plan_variable *variables)
{
	int i, num = 0;

	variables[num++] =
		(struct plan_variable){"NCCL_NET_PLUGIN", plugin_value(), "takes this plugin"};
	variables[num++] = (struct plan_variable){
		"NCCL_NET_PLUGIN_REF_COUNT", strdup("1"),
		"keeps it: NCCL 2.28.3 to 2.29.7 forget it between communicators"};
	variables[num++] = (struct plan_variable){
		"NCCL_NET", strdup("Mesh"), "an error, not another network, if it is not loaded"};
	variables[num++] = (struct plan_variable){
		"NCCL_SOCKET_IFNAME", socket_value(plan),
		"the ranks meet on the network that reaches all nodes, not on a cable"};
	if (*plan->management)
		variables[num++] = (struct plan_variable){"GLOO_SOCKET_IFNAME",
							  strdup(plan->management),
							  "the same for PyTorch's Gloo"};
	for (i = 0; i < num; i++) {
		if (variables[i].value)
			continue;
		plan_environment_free(variables, num);
		return -ENOMEM;
	}
	return num;
}

void plan_environment_free(struct plan_variable *variables, int num)
{
	int i;

	for (i = 0; i < num; i++)
		free(variables[i].value);
}

const char *plan_order_text(const struct mesh_plan *plan, char *text, size_t size)
{
	const struct mesh_rank_order *order = &plan->order;

	switch (order->kind) {
	case MESH_ORDER_RING:
		snprintf(text, size,
			 "Each rank is cabled to the next one, and the last to the first.");
		break;
	case MESH_ORDER_LINE:
		if (plan->num_sites > 1) {
			snprintf(text, size,
				 "Each rank is cabled to the next one; the last and the first are "
				 "not cabled.");
			break;
		}
		snprintf(text, size,
			 "Each rank is cabled to the next one; the last and the first are not "
			 "cabled: %s.",
			 order->proven ? "these cables hold no ring through all nodes"
				       : "no ring was found in the time given");
		break;
	case MESH_ORDER_GAPS:
		if (plan->num_sites > 1) {
			snprintf(text, size, "%d time%s a rank is not cabled to the next one.",
				 order->num_gaps, order->num_gaps == 1 ? "" : "s");
			break;
		}
		snprintf(text, size, "%d time%s a rank is not cabled to the next one: %s.",
			 order->num_gaps, order->num_gaps == 1 ? "" : "s",
			 order->proven ? "these cables hold no line through all nodes"
				       : "nothing better was found in the time given");
		break;
	}
	return text;
}
