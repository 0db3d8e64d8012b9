/* SPDX-License-Identifier: Apache-2.0 */
/* firewall_iptables.c - reads what iptables-save prints (iptables-save(8)) for one packet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/firewall_rules.h"

/* More words than this in one line are read as "may match". */
#define WORDS_MAX 64

/* ---- matches: each takes the option's value --------------------------------------------- */

typedef enum firewall_match (*match_function)(const struct firewall_packet *packet,
					      const char *value);

static enum firewall_match match_in(const struct firewall_packet *packet, const char *value)
{
	return firewall_match_of(!packet->outgoing && firewall_name_fits(value, packet->nic, '+'));
}

static enum firewall_match match_out(const struct firewall_packet *packet, const char *value)
{
	return firewall_match_of(packet->outgoing && firewall_name_fits(value, packet->nic, '+'));
}

static enum firewall_match match_protocol(const struct firewall_packet *packet, const char *value)
{
	return firewall_match_of(!strcmp(value, firewall_protocol(packet)) ||
				 !strcmp(value, "all"));
}

static enum firewall_match match_subnet(const struct mesh_addr *addr, const char *value)
{
	struct mesh_addr subnet;

	if (mesh_addr_parse(value, &subnet)) /* a dotted mask; lists do not occur in a dump */
		return FIREWALL_MAYBE;
	return firewall_match_of(mesh_addr_in_subnet(addr, &subnet));
}

static enum firewall_match match_source(const struct firewall_packet *packet, const char *value)
{
	return match_subnet(&packet->source, value);
}

static enum firewall_match match_destination(const struct firewall_packet *packet,
					     const char *value)
{
	return match_subnet(&packet->destination, value);
}

/* "22", "1000:2000", "1000:", or a comma list of these. */
static enum firewall_match match_port(unsigned int port, const char *value)
{
	unsigned long low, high;
	char *end;

	for (;;) {
		low = *value == ':' ? 0 : strtoul(value, &end, 10);
		if (*value == ':')
			end = (char *)value;
		else if (end == value)
			return FIREWALL_MAYBE;
		high = low;
		if (*end == ':') {
			value = end + 1;
			high = strtoul(value, &end, 10);
			high = end == value ? 65535 : high;
		}
		if (low <= port && port <= high)
			return FIREWALL_YES;
		if (*end != ',')
			return *end ? FIREWALL_MAYBE : FIREWALL_NO;
		value = end + 1;
	}
}

static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *at = list;

	while (at && *at) {
		if (!strncmp(at, word, len) && (!at[len] || at[len] == ','))
			return true;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return false;
}

static enum firewall_match match_ports(const struct firewall_packet *packet, const char *value)
{
	return match_port(packet->port, value);
}

static enum firewall_match match_source_ports(const struct firewall_packet *packet,
					      const char *value)
{
	return packet->source_port ? match_port(packet->source_port, value) : FIREWALL_MAYBE;
}

static enum firewall_match match_state(const struct firewall_packet *packet, const char *value)
{
	(void)packet;
	return firewall_match_of(list_has(value, "NEW"));
}

/* --tcp-flags MASK SET: of these flags exactly those are set; our packet has SYN and no other. */
static enum firewall_match match_flags(const struct firewall_packet *packet, const char *mask,
				       const char *set)
{
	if (packet->udp)
		return FIREWALL_NO;
	return firewall_match_of(
		!strcmp(set, list_has(mask, "SYN") || !strcmp(mask, "ALL") ? "SYN" : "NONE"));
}

static enum firewall_match match_destination_type(const struct firewall_packet *packet,
						  const char *value)
{
	const char *type = packet->outgoing ? "UNICAST" : "LOCAL";

	return firewall_match_of(list_has(value, packet->multicast ? "MULTICAST" : type));
}

static const struct option_row {
	const char *name;
	match_function match; /* NULL: has a value that does not depend on the packet */
} option_rows[] = {
	{"-i", match_in},
	{"-o", match_out},
	{"-p", match_protocol},
	{"-s", match_source},
	{"-d", match_destination},
	{"--dport", match_ports},
	{"--dports", match_ports},
	{"--sport", match_source_ports},
	{"--sports", match_source_ports},
	{"--state", match_state},
	{"--ctstate", match_state},
	{"--dst-type", match_destination_type},
	{"-m", NULL},
	{"--comment", NULL},
	{NULL, NULL},
};

/* ---- lines ------------------------------------------------------------------------------ */

/* Cuts a line into words in place; "..." is one word. Returns their number, or -1 if too many. */
static int words_cut(char *line, char **words)
{
	int num = 0;
	char *to;

	for (;;) {
		line += strspn(line, " ");
		if (!*line)
			return num;
		if (num == WORDS_MAX)
			return -1;
		words[num++] = to = line;
		if (*line == '"') {
			for (line++; *line && *line != '"'; line++) {
				line += *line == '\\' && line[1];
				*to++ = *line;
			}
			line += *line == '"';
		} else {
			line += strcspn(line, " ");
			to = line;
		}
		line += *line == ' ';
		*to = '\0';
	}
}

/*
 * Handles -j. A target that is neither a chain nor a verdict (LOG, MARK) lets the packet continue.
 */
static void target_read(const char *target, bool is_goto, struct firewall_rule *rule)
{
	static const struct {
		const char *name;
		enum firewall_action action;
	} targets[] = {
		{"ACCEPT", FIREWALL_ACCEPT}, {"DROP", FIREWALL_DROP},
		{"REJECT", FIREWALL_DROP},   {"RETURN", FIREWALL_RETURN},
		{"QUEUE", FIREWALL_ACCEPT},  {"NFQUEUE", FIREWALL_ACCEPT},
	};
	size_t i;

	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (!strcmp(target, targets[i].name)) {
			rule->action = targets[i].action;
			return;
		}
	/* A jump to an unknown chain finds no rules, and so continues. */
	rule->action = is_goto ? FIREWALL_GOTO : FIREWALL_JUMP;
	snprintf(rule->target, sizeof(rule->target), "%s", target);
}

static const struct option_row *option_find(const char *name)
{
	const struct option_row *row;

	for (row = option_rows; row->name; row++)
		if (!strcmp(row->name, name))
			return row;
	return NULL;
}

/* Reads the words behind "-A CHAIN". */
static void options_read(char **words, int num, const struct firewall_packet *packet,
			 struct firewall_rule *rule)
{
	enum firewall_match match;
	const struct option_row *row;
	bool negated;
	int i;

	rule->match = FIREWALL_YES;
	for (i = 0; i < num; i++) {
		if ((!strcmp(words[i], "-j") || !strcmp(words[i], "-g")) && i + 1 < num) {
			target_read(words[i + 1], words[i][1] == 'g', rule);
			return; /* the target's own options follow */
		}
		negated = !strcmp(words[i], "!");
		i += negated;
		row = i < num ? option_find(words[i]) : NULL;
		if (i + 2 < num && !strcmp(words[i], "--tcp-flags")) {
			match = match_flags(packet, words[i + 1], words[i + 2]);
			i += 2;
		} else if (!row || i + 1 == num) {
			/* Not evaluated; its values are skipped word by word. */
			match = i < num && words[i][0] != '-' ? FIREWALL_YES : FIREWALL_MAYBE;
		} else {
			match = row->match ? row->match(packet, words[i + 1]) : FIREWALL_YES;
			i++;
		}
		if (negated)
			match = firewall_match_not(match);
		rule->match = match < rule->match ? match : rule->match;
	}
}

static int rule_line(char *line, const char *table, const struct firewall_packet *packet,
		     struct firewall_rules *rules)
{
	char *words[WORDS_MAX];
	int num = words_cut(line, words);
	struct firewall_rule *rule;

	if (num >= 0 && num < 2)
		return -EINVAL;
	rule = firewall_rule_add(rules);
	if (!rule)
		return -ENOMEM;
	snprintf(rule->table, sizeof(rule->table), "%s", table);
	snprintf(rule->chain, sizeof(rule->chain), "%s", words[1]);
	if (num >= 0) {
		options_read(words + 2, num - 2, packet, rule);
	} else {
		rule->match = FIREWALL_MAYBE;
		rule->action = FIREWALL_DROP; /* it may do anything */
	}
	return 0;
}

/* The chains that the packet passes; nat only rewrites. */
static bool is_visited(const char *table, const char *chain, const struct firewall_packet *packet)
{
	bool filters = !strcmp(table, "filter") || !strcmp(table, "mangle") ||
		       !strcmp(table, "raw") || !strcmp(table, "security");

	if (packet->outgoing)
		return filters && (!strcmp(chain, "OUTPUT") || !strcmp(chain, "POSTROUTING"));
	return filters && (!strcmp(chain, "INPUT") || !strcmp(chain, "PREROUTING"));
}

/* ":INPUT DROP [0:0]" */
static int chain_line(char *line, const char *table, const struct firewall_packet *packet,
		      struct firewall_rules *rules)
{
	struct firewall_chain *chain;
	char *words[WORDS_MAX];
	int num = words_cut(line + 1, words);

	if (num < 2)
		return -EINVAL;
	chain = firewall_chain_add(rules);
	if (!chain)
		return -ENOMEM;
	snprintf(chain->table, sizeof(chain->table), "%s", table);
	snprintf(chain->name, sizeof(chain->name), "%s", words[0]);
	chain->visited = is_visited(table, words[0], packet);
	chain->policy_drops = !strcmp(words[1], "DROP");
	return 0;
}

static int line_read(char *line, char *table, const struct firewall_packet *packet,
		     struct firewall_rules *rules)
{
	switch (*line) {
	case '\0':
	case '#':
		return 0;
	case '*':
		snprintf(table, FIREWALL_NAME_MAX, "%s", line + 1);
		return 0;
	case ':':
		return chain_line(line, table, packet, rules);
	case '-':
		return strncmp(line, "-A ", 3) ? -EINVAL : rule_line(line, table, packet, rules);
	default:
		return strcmp(line, "COMMIT") ? -EINVAL : 0;
	}
}

int firewall_iptables_read(const char *text, const struct firewall_packet *packet,
			   struct firewall_rules *rules)
{
	char table[FIREWALL_NAME_MAX] = "", *copy = strdup(text), *line, *rest = copy;
	int ret = copy ? 0 : -ENOMEM;

	memset(rules, 0, sizeof(*rules));
	while (!ret && (line = strsep(&rest, "\n")))
		ret = line_read(line, table, packet, rules);
	free(copy);
	return ret;
}
