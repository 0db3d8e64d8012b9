/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh check --peer`: checks each link to the nodes behind some addresses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/finding.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/options.h"
#include "common/output.h"
#include "common/progress.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/search.h"
#include "peer/self.h"
#include "peer/stream.h"
#include "peer/wire.h"

static const char who[] = "fi_mesh check";

static const char usage_text[] =
	"usage: fi_mesh check --peer NODE... [--port PORT] [--ms MS]\n"
	"                            [--quiet] [--json]\n"
	"\n"
	"Checks each link to these nodes, end to end; `fi_mesh serve` must run there.\n"
	"NODE is any address of a node (fe80::1%eth0, too) or its name; all links to it\n"
	"are found and checked.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 nothing is wrong, 1 something is (warn or fail), 2 usage error.\n";

/* Of each measurement, unless the user wants another time. */
#define MEASURE_MS 1000

/* The results of all sections. */
struct totals {
	struct check_totals verdicts;
	json_t *peers;			 /* with --json; NULL after memory ran out */
	json_t *sections;		 /* of the present one */
	uint64_t seen[PEER_TARGETS_MAX]; /* node ids */
	int num_seen;
};

/* ---- options ------------------------------------------------------------------------------ */

bool check_peer_is_wanted(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--peer") || !strncmp(argv[i], "--peer=", 7))
			return true;
	return false;
}

/* A comma list. Returns an exit status, or -1 to go on. */
static int targets_add(struct peer_check_options *options, const char *list)
{
	char item[PEER_TARGET_TEXT_MAX + 1];
	const char *at = list, *end, *why;

	for (; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ',');
		if (options->num_targets == PEER_TARGETS_MAX)
			return arguments_misuse(who, "too many nodes: %s", at);
		snprintf(item, sizeof(item), "%.*s", (int)(end - at), at);
		if (peer_target_parse(item, &options->targets[options->num_targets], &why))
			return arguments_misuse(who, "--peer %s: %s", item, why);
		options->num_targets++;
	}
	return -1;
}

struct options {
	struct peer_check_options check;
	/* Values of --peer, parsed after all options, so that --help works in any place. */
	const char *lists[PEER_TARGETS_MAX];
	int num_lists;
};

static int peer_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	if (!text) /* --peer NODE: an operand */
		return -1;
	if (options->num_lists == PEER_TARGETS_MAX)
		return arguments_misuse(who, "too many nodes: %s", text);
	options->lists[options->num_lists++] = text;
	return -1;
}

static const struct option_row option_rows[] = {
	{"peer", 0, "[NODE]", NULL, OPTION_HANDLER(peer_take)}, /* the synopsis explains it */
	{"port", 0, "PORT", "that of `fi_mesh serve` (default 18620)",
	 OPTION_NUMBER(struct options, check.port, 1, UINT16_MAX)},
	{"ms", 0, "MS", "measure so many milliseconds at a time (default 1000)",
	 OPTION_NUMBER(struct options, check.ms, 20, MESH_CHECK_RUN_MS_MAX)},
	{"quiet", 'q', NULL, "show only what is not right",
	 OPTION_FLAG(struct options, check.quiet)},
	{"json", 0, NULL, "JSON instead of text", OPTION_FLAG(struct options, check.json)},
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/* Returns an exit status, or -1 to go on. */
static int options_parse(int argc, char **argv, const struct peer_check_options **check)
{
	/* Large: not on the stack. */
	static struct options options;
	int i, operand, status;

	options.check.port = MESH_CHECK_PORT;
	options.check.ms = MEASURE_MS;
	status = option_table_parse(&option_table, argc, argv, &options, &operand);
	for (i = 0; status < 0 && i < options.num_lists; i++)
		status = targets_add(&options.check, options.lists[i]);
	for (; status < 0 && operand < argc; operand++)
		status = targets_add(&options.check, argv[operand]);
	if (status < 0 && !options.check.num_targets)
		return arguments_misuse(who, "--peer needs a node");
	*check = &options.check;
	return status;
}

/* ---- showing ------------------------------------------------------------------------------ */

static void section_end(const struct peer_checker *checker, struct totals *totals, const char *id,
			const char *title, struct check_result *result, json_t *numbers)
{
	json_t *section;

	check_totals_add(&totals->verdicts, result);
	if (checker->options->json) {
		section = check_json(id, title, result);
		if (numbers && section)
			json_object_update(section, numbers);
		totals->sections = output_json_append(totals->sections, section);
	} else {
		if (!checker->options->quiet || check_verdict_of(result) != CHECK_PASS)
			printf("\n%s%s%s\n", output_style(stdout, OUTPUT_STRONG), title,
			       output_style(stdout, OUTPUT_PLAIN));
		check_print(stdout, id, result, checker->options->quiet);
		fflush(stdout);
	}
	json_decref(numbers);
	check_result_free(result);
}

static json_t *link_json(const struct peer_link *link)
{
	const struct peer_numbers *numbers = &link->numbers;
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];

	return json_pack("{s:o, s:o, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "nic",
			 output_json_text(link->nic->netdev), "peer_nic",
			 output_json_text(link->theirs->netdev), "local",
			 mesh_addr_text(&link->local, local), "remote",
			 mesh_addr_text(&link->remote, remote), "provider",
			 mesh_provider_id_text(link->provider), "routed", link->routed,
			 "half_rtt_us", output_json_known(numbers->half_rtt_us), "to_gbps",
			 output_json_known(numbers->to_gbps), "from_gbps",
			 output_json_known(numbers->from_gbps), "to_mtu",
			 numbers->to_mtu > 0 ? json_integer(numbers->to_mtu) : json_null(),
			 "from_mtu",
			 numbers->from_mtu > 0 ? json_integer(numbers->from_mtu) : json_null());
}

/* ---- one peer ----------------------------------------------------------------------------- */

static void links_check(struct peer_checker *checker, const struct peer *peer,
			struct totals *totals)
{
	char title[256];
	int i;

	for (i = 0; i < peer->choice.num_candidates && !interrupt_happened(); i++) {
		const struct mesh_path_candidate *pair = &peer->choice.candidates[i];
		struct check_result result = {0};
		struct peer_link link = {
			.checker = checker,
			.peer = peer,
			.nic = &checker->self.table.nics[pair->local],
			.theirs = &peer->hello.nics[pair->remote],
			.provider = pair->provider,
			.routed = mesh_path_class_is_routed(pair->class),
			.numbers = {-1, -1, -1, 1, 1, -1, -1},
			.stream = {.fd = -1},
		};

		link.local = link.nic->source;
		mesh_check_nic_addr(link.theirs, &link.remote);
		link.remote.scope_id = link.local.scope_id;
		snprintf(title, sizeof(title), "node %s over %s - %s", peer->name, link.nic->netdev,
			 link.theirs->netdev);
		output_clean(title);
		checker->progress = progress_begin("%s", title);
		peer_link_check(&link, &result);
		progress_end(checker->progress);
		checker->progress = NULL;
		section_end(checker, totals, "link", title, &result,
			    checker->options->json ? link_json(&link) : NULL);
	}
}

/* Such a peer has no link: its routes over relays are measured. */
static void relayed_check(struct peer_checker *checker, const struct peer *peer,
			  struct totals *totals)
{
	struct check_result result = {0};
	char title[256];
	json_t *figures;

	if (!peer->routes.num || interrupt_happened())
		return;
	snprintf(title, sizeof(title), "node %s over relays", peer->name);
	output_clean(title);
	checker->progress = progress_begin("%s", title);
	figures = peer_relayed_check(checker, peer, &result);
	progress_end(checker->progress);
	checker->progress = NULL;
	section_end(checker, totals, "relayed", title, &result, figures);
}

/* The address of that NIC whose subnet contains @addr, or NULL. */
static const struct mesh_addr *address_beside(const struct mesh_nic *nic,
					      const struct mesh_addr *addr)
{
	int i;

	for (i = 0; i < nic->num_addrs; i++)
		if (mesh_addr_in_subnet(addr, &nic->addrs[i]))
			return &nic->addrs[i];
	return NULL;
}

/*
 * From each NIC in whose subnet the address lies: a link-local one may be on any cable, unless its
 * zone says on which.
 */
static int peer_dial_anyhow(const struct peer_checker *checker, const struct mesh_addr *addr,
			    struct peer_stream *stream, struct mesh_check_hello *hello, char *text)
{
	const struct mesh_addr *local;
	bool tried = false;
	int i, ret = 0;

	for (i = 0; i < checker->self.num_nics; i++) {
		local = address_beside(&checker->self.table.nics[i], addr);
		if (!local || (addr->scope_id && addr->scope_id != local->scope_id))
			continue;
		ret = peer_dial(checker, local, addr, stream, hello, text);
		if (!ret || ret == -EINTR)
			return ret;
		tried = true;
	}
	return tried ? ret : peer_dial(checker, NULL, addr, stream, hello, text);
}

static bool already_seen(struct totals *totals, uint64_t node_id)
{
	int i;

	for (i = 0; i < totals->num_seen; i++)
		if (totals->seen[i] == node_id)
			return true;
	totals->seen[totals->num_seen++] = node_id;
	return false;
}

/* Asks at each address of the target in turn. Returns 0 if the node answered at peer->addr. */
static int target_ask(struct peer_checker *checker, const struct peer_target *target,
		      struct peer *peer, struct peer_stream *stream, char *text)
{
	int i, ret = -ENOENT;

	for (i = 0; i < target->num_addrs; i++) {
		peer->addr = target->addrs[i];
		ret = peer_dial_anyhow(checker, &peer->addr, stream, &peer->hello, text);
		if (!ret || ret == -EINTR)
			break;
	}
	return ret;
}

/* Returns 0 if it answered. */
static int peer_meet(struct peer_checker *checker, const struct peer_target *named,
		     struct peer *peer, struct check_result *result)
{
	struct peer_target target = *named;
	char text[MESH_CHECK_TEXT_MAX];
	struct peer_stream stream;
	const char *why;
	int ret;

	checker->progress = progress_begin("asking %s", target.text);
	ret = peer_target_resolve(&target, &checker->asking, &why);
	if (ret) {
		check_say(result, CHECK_FAIL,
			  "%s does not answer as a neighbour, and its name has no address: %s",
			  target.text, why);
		check_fix(result, "run `fi_mesh serve` on node %s, or name one of its addresses",
			  target.text);
	} else {
		ret = target_ask(checker, &target, peer, &stream, text);
		if (ret)
			peer_explain(checker, &peer->addr, ret, text, result);
	}
	progress_end(checker->progress);
	checker->progress = NULL;
	if (ret)
		return ret;
	peer_stream_close(&stream);
	snprintf(peer->name, sizeof(peer->name), "%s", peer->hello.node);
	output_clean(peer->name);
	return 0;
}

static void peer_json_add(struct totals *totals, const struct peer_target *target,
			  const struct peer *peer, bool met)
{
	const char *site = met ? peer->hello.site : "";

	totals->peers = output_json_append(
		totals->peers, json_pack("{s:s, s:o, s:o, s:o}", "address", target->text, "node",
					 met ? output_json_text(peer->name) : json_null(), "site",
					 *site ? output_json_text(site) : json_null(), "sections",
					 totals->sections));
}

static void peer_check(struct peer_checker *checker, const struct peer_target *target,
		       struct totals *totals)
{
	struct check_result result = {0};
	struct peer *peer = calloc(1, sizeof(*peer));
	char title[PEER_TARGET_TEXT_MAX + 100];
	bool met = false;

	if (!peer) {
		output_failure(who, -ENOMEM);
		totals->verdicts.counts[CHECK_UNKNOWN]++;
		return;
	}
	totals->sections = checker->options->json ? json_array() : NULL;
	if (peer_meet(checker, target, peer, &result)) {
		snprintf(title, sizeof(title), "%s", target->text);
		section_end(checker, totals, "peer", title, &result, NULL);
	} else if (!already_seen(totals, peer->hello.node_id)) {
		met = true;
		peer_paths_check(checker, peer, &result);
		snprintf(title, sizeof(title), "paths to node %s (asked at %s)", peer->name,
			 target->text);
		section_end(checker, totals, "paths", title, &result,
			    checker->options->json ? peer_paths_json(checker, peer) : NULL);
		links_check(checker, peer, totals);
		relayed_check(checker, peer, totals);
	} else {
		met = true; /* another address of a node that was already checked */
	}
	if (checker->options->json)
		peer_json_add(totals, target, peer, met);
	json_decref(peer->relays);
	free(peer);
}

/* ---- all of them -------------------------------------------------------------------------- */

static json_t *totals_json(const struct peer_self *self, const struct totals *totals)
{
	json_t *root = check_totals_json(&totals->verdicts, "peers", totals->peers);
	char site[MESH_SITE_NAME_MAX];

	peer_self_site(self, site);
	if (root)
		json_object_set_new(root, "site", *site ? output_json_text(site) : json_null());
	return root;
}

static int totals_end(const struct peer_checker *checker, struct totals *totals)
{
	const struct peer_check_options *options = checker->options;
	int status = check_totals_status(&totals->verdicts);
	char text[CHECK_TOTALS_TEXT_MAX];

	if (interrupt_happened())
		status = COMMAND_PROBLEM;
	if (options->json) {
		if (output_json_print(who, stdout, totals_json(&checker->self, totals)))
			status = COMMAND_PROBLEM;
	} else if (interrupt_happened()) {
		printf("\ninterrupted: not everything was checked\n");
	} else if (!options->quiet || status != COMMAND_FINE) {
		printf("\n%d node%s; findings: %s\n", totals->num_seen,
		       totals->num_seen == 1 ? "" : "s",
		       check_totals_text(&totals->verdicts, text));
	}
	return status;
}

int command_check_peer(int argc, char **argv)
{
	const struct peer_check_options *options;
	struct peer_checker *checker;
	struct totals totals = {0};
	int i, ret, status;

	status = options_parse(argc, argv, &options);
	if (status >= 0)
		return status;
	checker = calloc(1, sizeof(*checker));
	ret = checker ? peer_self_open(&checker->self) : -ENOMEM;
	if (ret) {
		free(checker);
		return output_failure(who, ret);
	}
	interrupt_catch();
	checker->options = options;
	totals.peers = options->json ? json_array() : NULL;
	peer_neighbours_ask(&checker->self, &checker->about, &checker->asking);
	for (i = 0; i < options->num_targets && !interrupt_happened(); i++)
		peer_check(checker, &options->targets[i], &totals);
	status = totals_end(checker, &totals);
	mesh_asking_finish(&checker->asking);
	peer_self_close(&checker->self);
	free(checker);
	return output_finish(who, status);
}
