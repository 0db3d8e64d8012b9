/* SPDX-License-Identifier: Apache-2.0 */
/* firewall_rules.c - follows one packet through a set of rules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "check/firewall_rules.h"

/* iptables allows no loops; the limit ends the walk of a damaged file. */
#define DEPTH_MAX 32
/*
 * Rules examined for one packet: chains that are reached by many jumps are walked each time, and a
 * file may name a base chain many times.
 */
#define STEPS_MAX 1000000

struct firewall_chain *firewall_chain_add(struct firewall_rules *rules)
{
	struct firewall_chain *list;

	list = mesh_array_room(rules->chains, (size_t)rules->num_chains, sizeof(*list));
	if (!list)
		return NULL;
	rules->chains = list;
	list += rules->num_chains++;
	memset(list, 0, sizeof(*list));
	return list;
}

struct firewall_rule *firewall_rule_add(struct firewall_rules *rules)
{
	struct firewall_rule *list;

	list = mesh_array_room(rules->rules, (size_t)rules->num_rules, sizeof(*list));
	if (!list)
		return NULL;
	rules->rules = list;
	list += rules->num_rules++;
	memset(list, 0, sizeof(*list));
	return list;
}

void firewall_rules_free(struct firewall_rules *rules)
{
	free(rules->chains);
	free(rules->rules);
	memset(rules, 0, sizeof(*rules));
}

bool firewall_name_fits(const char *pattern, const char *name, char wildcard)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == wildcard)
		return !strncmp(pattern, name, len - 1);
	return !strcmp(pattern, name);
}

struct walk {
	const struct firewall_rules *rules;
	bool uncertain; /* an earlier rule may have dropped or accepted the packet */
	char maybe[FIREWALL_WHERE_MAX]; /* the first rule that may drop it */
	char where[FIREWALL_WHERE_MAX]; /* the rule that ended it */
	long *steps;			/* of all walks of this packet */
};

static void where_write(char *where, const struct firewall_rule *rule, int number)
{
	snprintf(where, FIREWALL_WHERE_MAX, "rule %d of chain %s, table %s", number, rule->chain,
		 rule->table);
}

static enum firewall_action chain_walk(struct walk *walk, const char *table, const char *chain,
				       int depth);

/* What a rule that matches does with the packet. CONTINUE: the next rule decides. */
static enum firewall_action rule_apply(struct walk *walk, const struct firewall_rule *rule,
				       int number, int depth)
{
	enum firewall_action action = rule->action;

	if (action == FIREWALL_JUMP || action == FIREWALL_GOTO) {
		action = chain_walk(walk, rule->table, rule->target, depth + 1);
		if (action == FIREWALL_CONTINUE && rule->action == FIREWALL_GOTO)
			action = FIREWALL_RETURN;
	} else if (action == FIREWALL_DROP) {
		where_write(walk->where, rule, number);
	}
	if (action == FIREWALL_CONTINUE || rule->match == FIREWALL_YES)
		return action;
	/* The rule may have matched: note its verdict, and continue as if it had not. */
	if (action == FIREWALL_DROP && !*walk->maybe)
		memcpy(walk->maybe, walk->where, sizeof(walk->maybe));
	if (action != FIREWALL_DROP)
		walk->uncertain = true;
	return FIREWALL_CONTINUE;
}

static enum firewall_action chain_walk(struct walk *walk, const char *table, const char *chain,
				       int depth)
{
	const struct firewall_rules *rules = walk->rules;
	enum firewall_action action;
	int i, number = 0;

	for (i = 0; i < rules->num_rules && depth < DEPTH_MAX && *walk->steps < STEPS_MAX; i++) {
		const struct firewall_rule *rule = &rules->rules[i];

		++*walk->steps;
		if (strcmp(rule->chain, chain) || strcmp(rule->table, table))
			continue;
		number++;
		if (rule->match == FIREWALL_NO)
			continue;
		action = rule_apply(walk, rule, number, depth);
		if (action == FIREWALL_RETURN)
			return FIREWALL_CONTINUE;
		if (action != FIREWALL_CONTINUE)
			return action;
	}
	return FIREWALL_CONTINUE;
}

/* One base chain. Returns ACCEPT, DROP or CONTINUE (unknown). */
static enum firewall_action base_walk(const struct firewall_rules *rules,
				      const struct firewall_chain *chain, long *steps, char *where)
{
	struct walk walk = {.rules = rules, .steps = steps};
	enum firewall_action action = chain_walk(&walk, chain->table, chain->name, 0);

	if (*steps >= STEPS_MAX)
		return FIREWALL_CONTINUE;
	if (action == FIREWALL_CONTINUE && chain->policy_drops) {
		action = FIREWALL_DROP;
		snprintf(walk.where, sizeof(walk.where), "the policy of chain %s, table %s",
			 chain->name, chain->table);
	}
	if (action == FIREWALL_DROP) {
		memcpy(where, walk.where, sizeof(walk.where));
		return walk.uncertain ? FIREWALL_CONTINUE : FIREWALL_DROP;
	}
	memcpy(where, walk.maybe, sizeof(walk.maybe));
	return *walk.maybe ? FIREWALL_CONTINUE : FIREWALL_ACCEPT;
}

void firewall_follow(const struct firewall_rules *rules, struct firewall_verdict *verdict)
{
	char where[FIREWALL_WHERE_MAX];
	enum firewall_action action;
	long steps = 0;
	int i;

	*verdict = (struct firewall_verdict){.answer = FIREWALL_ACCEPT};
	for (i = 0; i < rules->num_chains; i++) {
		if (!rules->chains[i].visited)
			continue;
		*where = '\0';
		action = base_walk(rules, &rules->chains[i], &steps, where);
		/* A chain that drops decides; "maybe" counts only if no chain certainly drops. */
		if (action == FIREWALL_DROP ||
		    (action == FIREWALL_CONTINUE && verdict->answer == FIREWALL_ACCEPT)) {
			verdict->answer = action;
			memcpy(verdict->where, where, sizeof(where));
			snprintf(verdict->base, sizeof(verdict->base), "%s %s",
				 rules->chains[i].table, rules->chains[i].name);
		}
		if (action == FIREWALL_DROP)
			return;
	}
}
