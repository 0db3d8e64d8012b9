/* SPDX-License-Identifier: Apache-2.0 */
/* firewall_nft.c - reads `nft -j list ruleset` (libnftables-json(5)) for one packet. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "check/firewall_rules.h"

/* The value that one side of a comparison has for our packet. */
enum kind {
	KIND_OTHER, /* not followed */
	KIND_NEVER, /* a header that our packet does not have */
	KIND_NIC,   /* name of the interface; "" for the direction that the packet does not have */
	KIND_NUMBER,
	KIND_WORD, /* "tcp", "new" */
	KIND_ADDR,
};

struct subject {
	enum kind kind;
	const char *word;
	unsigned int number;
	const struct mesh_addr *addr;
};

static bool is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

static struct subject meta_subject(const char *key, const struct firewall_packet *packet)
{
	bool ipv4 = packet->source.family == MESH_FAMILY_IPV4;

	if (is(key, "iifname") || is(key, "iif"))
		return (struct subject){.kind = KIND_NIC,
					.word = packet->outgoing ? "" : packet->nic};
	if (is(key, "oifname") || is(key, "oif"))
		return (struct subject){.kind = KIND_NIC,
					.word = packet->outgoing ? packet->nic : ""};
	if (is(key, "l4proto"))
		return (struct subject){.kind = KIND_WORD, .word = firewall_protocol(packet)};
	if (is(key, "nfproto"))
		return (struct subject){.kind = KIND_WORD, .word = ipv4 ? "ipv4" : "ipv6"};
	return (struct subject){.kind = KIND_OTHER};
}

static struct subject payload_subject(const char *protocol, const char *field,
				      const struct firewall_packet *packet)
{
	const char *ip = packet->source.family == MESH_FAMILY_IPV4 ? "ip" : "ip6";

	if (is(protocol, packet->udp ? "tcp" : "udp") || is(protocol, "icmp") ||
	    is(protocol, "icmpv6") || is(protocol, "sctp") || is(protocol, ip[2] ? "ip" : "ip6"))
		return (struct subject){.kind = KIND_NEVER};
	if ((is(protocol, firewall_protocol(packet)) || is(protocol, "th")) && is(field, "dport"))
		return (struct subject){.kind = KIND_NUMBER, .number = packet->port};
	if ((is(protocol, firewall_protocol(packet)) || is(protocol, "th")) && is(field, "sport") &&
	    packet->source_port)
		return (struct subject){.kind = KIND_NUMBER, .number = packet->source_port};
	if (is(protocol, ip) && is(field, "saddr"))
		return (struct subject){.kind = KIND_ADDR, .addr = &packet->source};
	if (is(protocol, ip) && is(field, "daddr"))
		return (struct subject){.kind = KIND_ADDR, .addr = &packet->destination};
	if (is(protocol, ip) && (is(field, "protocol") || is(field, "nexthdr")))
		return (struct subject){.kind = KIND_WORD, .word = firewall_protocol(packet)};
	return (struct subject){.kind = KIND_OTHER};
}

static struct subject subject_of(const json_t *left, const struct firewall_packet *packet)
{
	const json_t *meta = json_object_get(left, "meta");
	const json_t *payload = json_object_get(left, "payload");
	const json_t *ct = json_object_get(left, "ct"), *fib = json_object_get(left, "fib");

	if (meta)
		return meta_subject(json_string_value(json_object_get(meta, "key")), packet);
	if (payload)
		return payload_subject(json_string_value(json_object_get(payload, "protocol")),
				       json_string_value(json_object_get(payload, "field")),
				       packet);
	if (is(json_string_value(json_object_get(ct, "key")), "state"))
		return (struct subject){.kind = KIND_WORD, .word = "new"};
	if (is(json_string_value(json_object_get(fib, "result")), "type") &&
	    is(json_string_value(json_array_get(json_object_get(fib, "flags"), 0)), "daddr"))
		return (struct subject){.kind = KIND_WORD, .word = firewall_type(packet)};
	if (is(json_string_value(json_object_get(ct, "key")), "status")) /* "dnat": not ours */
		return (struct subject){.kind = KIND_WORD, .word = ""};
	return (struct subject){.kind = KIND_OTHER};
}

static enum firewall_match prefix_match(const struct subject *subject, const json_t *prefix)
{
	const char *text = json_string_value(json_object_get(prefix, "addr"));
	json_int_t len = json_integer_value(json_object_get(prefix, "len"));
	struct mesh_addr subnet;

	if (subject->kind != KIND_ADDR || !text || mesh_addr_parse(text, &subnet) || len < 0 ||
	    len > (json_int_t)(8 * mesh_addr_size(subnet.family)))
		return FIREWALL_MAYBE;
	subnet.prefix_len = (uint8_t)len;
	return firewall_match_of(mesh_addr_in_subnet(subject->addr, &subnet));
}

static enum firewall_match range_match(const struct subject *subject, const json_t *range)
{
	const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);

	if (subject->kind != KIND_NUMBER || !json_is_integer(low) || !json_is_integer(high))
		return FIREWALL_MAYBE;
	return firewall_match_of(json_integer_value(low) <= (json_int_t)subject->number &&
				 (json_int_t)subject->number <= json_integer_value(high));
}

static enum firewall_match text_match(const struct subject *subject, const char *text)
{
	struct mesh_addr addr;

	if (*text == '@') /* a named set: its elements are listed elsewhere */
		return FIREWALL_MAYBE;
	if (subject->kind == KIND_NIC)
		return firewall_match_of(firewall_name_fits(text, subject->word, '*'));
	if (subject->kind == KIND_WORD)
		return firewall_match_of(!strcmp(text, subject->word));
	if (subject->kind == KIND_ADDR && !mesh_addr_parse(text, &addr))
		return firewall_match_of(mesh_addr_equal(subject->addr, &addr));
	return FIREWALL_MAYBE; /* for example "ssh", though nft -j prints numbers */
}

/* One value, or a set or list of values of which one has to match. */
static enum firewall_match value_match(const struct subject *subject, const json_t *value,
				       int depth)
{
	enum firewall_match match, best = FIREWALL_NO;
	const json_t *set = json_object_get(value, "set");
	size_t i;

	if (set)
		value = set;
	if (depth > 3)
		return FIREWALL_MAYBE;
	if (json_is_array(value)) {
		for (i = 0; i < json_array_size(value); i++) {
			match = value_match(subject, json_array_get(value, i), depth + 1);
			best = match > best ? match : best;
		}
		return best;
	}
	if (json_is_string(value))
		return text_match(subject, json_string_value(value));
	if (json_is_integer(value) && subject->kind == KIND_NUMBER)
		return firewall_match_of(json_integer_value(value) == (json_int_t)subject->number);
	if (json_is_array(json_object_get(value, "range")))
		return range_match(subject, json_object_get(value, "range"));
	if (json_object_get(value, "prefix"))
		return prefix_match(subject, json_object_get(value, "prefix"));
	return FIREWALL_MAYBE;
}

/* ---- TCP flags ---------------------------------------------------------------------------- */

/* A SYN and nothing else, as Linux sends it by default (tcp_ecn 2). */
#define FLAGS_OF_PACKET 0x02u

/* "syn", ["syn", "ack"], {"|": [...]} or a number. False if it is anything else. */
static bool flags_value(const json_t *value, int depth, unsigned int *flags)
{
	static const char *const names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"};
	const json_t *list = json_is_array(value) ? value : json_object_get(value, "|");
	unsigned int part;
	size_t i;

	*flags = 0;
	if (json_is_integer(value)) {
		*flags = (unsigned int)json_integer_value(value);
		return true;
	}
	for (i = 0; json_is_string(value) && i < sizeof(names) / sizeof(names[0]); i++)
		if (is(json_string_value(value), names[i]))
			*flags = 1u << i;
	if (json_is_string(value))
		return *flags != 0;
	for (i = 0; i < json_array_size(list) && depth < 8; i++) {
		if (!flags_value(json_array_get(list, i), depth + 1, &part))
			return false;
		*flags |= part;
	}
	return *flags != 0;
}

/* One value, or a set of which one has to be equal. */
static enum firewall_match flags_equal(const json_t *value, unsigned int seen)
{
	const json_t *set = json_object_get(value, "set"), *element;
	unsigned int flags;
	size_t i;

	if (!json_is_array(set))
		return flags_value(value, 0, &flags) ? firewall_match_of(flags == seen)
						     : FIREWALL_MAYBE;
	json_array_foreach(set, i, element) {
		if (!flags_value(element, 0, &flags))
			return FIREWALL_MAYBE;
		if (flags == seen)
			return FIREWALL_YES;
	}
	return FIREWALL_NO;
}

/* The flags that are looked at, of "tcp flags" or "tcp flags & MASK"; 0 if @left is neither. */
static unsigned int flags_mask(const json_t *left)
{
	const json_t *masked = json_object_get(left, "&"), *payload;
	unsigned int mask = 0xff;

	payload = json_object_get(masked ? json_array_get(masked, 0) : left, "payload");
	if (!is(json_string_value(json_object_get(payload, "protocol")), "tcp") ||
	    !is(json_string_value(json_object_get(payload, "field")), "flags"))
		return 0;
	return !masked || flags_value(json_array_get(masked, 1), 0, &mask) ? mask : 0;
}

static enum firewall_match flags_match(const char *op, unsigned int mask, const json_t *right)
{
	unsigned int seen = FLAGS_OF_PACKET & mask, flags;

	if (is(op, "in")) /* any of them */
		return flags_value(right, 0, &flags) ? firewall_match_of((flags & seen) != 0)
						     : FIREWALL_MAYBE;
	if (is(op, "=="))
		return flags_equal(right, seen);
	return is(op, "!=") ? firewall_match_not(flags_equal(right, seen)) : FIREWALL_MAYBE;
}

/* ---- rules -------------------------------------------------------------------------------- */

/* "<", ">=" and so on. */
static enum firewall_match order_match(const char *op, unsigned int number, const json_t *right)
{
	json_int_t value = json_integer_value(right);

	if (!json_is_integer(right))
		return FIREWALL_MAYBE;
	if (is(op, "<"))
		return firewall_match_of((json_int_t)number < value);
	if (is(op, "<="))
		return firewall_match_of((json_int_t)number <= value);
	if (is(op, ">"))
		return firewall_match_of((json_int_t)number > value);
	return is(op, ">=") ? firewall_match_of((json_int_t)number >= value) : FIREWALL_MAYBE;
}

static enum firewall_match match_read(const json_t *match, const struct firewall_packet *packet)
{
	const char *op = json_string_value(json_object_get(match, "op"));
	const json_t *left = json_object_get(match, "left");
	const json_t *right = json_object_get(match, "right");
	struct subject subject = subject_of(left, packet);
	unsigned int mask = flags_mask(left);
	enum firewall_match result;

	if (mask && !packet->udp)
		return flags_match(op, mask, right);
	if (subject.kind == KIND_NEVER)
		return FIREWALL_NO;
	if (subject.kind == KIND_OTHER)
		return FIREWALL_MAYBE;
	result = value_match(&subject, right, 0);
	if (is(op, "==") || is(op, "in"))
		return result;
	if (is(op, "!="))
		return firewall_match_not(result);
	return subject.kind == KIND_NUMBER ? order_match(op, subject.number, right)
					   : FIREWALL_MAYBE;
}

/* "accept": true if @statement decides; the rule's action and target are then set. */
static bool verdict_read(const json_t *statement, struct firewall_rule *rule)
{
	static const struct {
		const char *name;
		enum firewall_action action;
	} verdicts[] = {
		{"accept", FIREWALL_ACCEPT}, {"drop", FIREWALL_DROP}, {"reject", FIREWALL_DROP},
		{"return", FIREWALL_RETURN}, {"jump", FIREWALL_JUMP}, {"goto", FIREWALL_GOTO},
		{"queue", FIREWALL_ACCEPT},
	};
	const json_t *value;
	const char *target;
	size_t i;

	for (i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		value = json_object_get(statement, verdicts[i].name);
		if (!value)
			continue;
		rule->action = verdicts[i].action;
		target = json_string_value(json_object_get(value, "target"));
		if (target)
			snprintf(rule->target, sizeof(rule->target), "%s", target);
		return true;
	}
	return false;
}

/* A map from values to verdicts, as firewalld and others use for their zones. */
static bool vmap_read(const json_t *vmap, const struct firewall_packet *packet,
		      struct firewall_rule *rule)
{
	const json_t *set = json_object_get(json_object_get(vmap, "data"), "set"), *pair;
	struct subject subject = subject_of(json_object_get(vmap, "key"), packet);
	enum firewall_match match;
	size_t i;

	if (!json_is_array(set) || subject.kind == KIND_OTHER) {
		rule->match = FIREWALL_MAYBE;
		rule->action = FIREWALL_DROP; /* it may do anything */
		return true;
	}
	for (i = 0; i < json_array_size(set) && subject.kind != KIND_NEVER; i++) {
		pair = json_array_get(set, i);
		match = value_match(&subject, json_array_get(pair, 0), 0);
		if (match == FIREWALL_NO || !verdict_read(json_array_get(pair, 1), rule))
			continue;
		rule->match = match < rule->match ? match : rule->match;
		return true;
	}
	return false;
}

/* Statements that neither match nor decide. */
static bool is_harmless(const json_t *statement)
{
	static const char *const names[] = {"counter", "log", "comment", "mangle", "notrack"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(statement, names[i]))
			return true;
	return false;
}

static void expressions_read(const json_t *list, const struct firewall_packet *packet,
			     struct firewall_rule *rule)
{
	const json_t *statement;
	enum firewall_match match;
	size_t i;

	rule->match = FIREWALL_YES;
	for (i = 0; i < json_array_size(list) && rule->match != FIREWALL_NO; i++) {
		statement = json_array_get(list, i);
		if (json_object_get(statement, "vmap")) {
			if (vmap_read(json_object_get(statement, "vmap"), packet, rule))
				return;
			continue;
		}
		if (verdict_read(statement, rule))
			return;
		if (is_harmless(statement))
			continue;
		match = FIREWALL_MAYBE; /* limit, xt, ... */
		if (json_object_get(statement, "match"))
			match = match_read(json_object_get(statement, "match"), packet);
		rule->match = match < rule->match ? match : rule->match;
	}
}

/* iptables-nft keeps its rules in tables of these families with chains in capitals. */
static bool is_iptables(const char *family, const char *chain)
{
	return (is(family, "ip") || is(family, "ip6")) &&
	       (is(chain, "INPUT") || is(chain, "OUTPUT") || is(chain, "PREROUTING"));
}

static bool family_fits(const char *family, const struct firewall_packet *packet)
{
	return is(family, "inet") ||
	       is(family, packet->source.family == MESH_FAMILY_IPV4 ? "ip" : "ip6");
}

static bool hook_fits(const char *hook, const struct firewall_packet *packet)
{
	return packet->outgoing ? is(hook, "output") || is(hook, "postrouting")
				: is(hook, "prerouting") || is(hook, "input");
}

/* Reads the names that chains and rules have. False if the table does not apply to our packet. */
static bool names_read(const json_t *object, const char *chain_key,
		       const struct firewall_packet *packet, char *table, char *chain)
{
	const char *family = json_string_value(json_object_get(object, "family"));
	const char *table_name = json_string_value(json_object_get(object, "table"));
	const char *name = json_string_value(json_object_get(object, chain_key));

	if (!family || !table_name || !name || !family_fits(family, packet))
		return false;
	return snprintf(table, FIREWALL_NAME_MAX, "%s %s", family, table_name) <
		       FIREWALL_NAME_MAX &&
	       snprintf(chain, FIREWALL_NAME_MAX, "%s", name) < FIREWALL_NAME_MAX;
}

static int chain_read(const json_t *object, const struct firewall_packet *packet,
		      bool skip_iptables, struct firewall_rules *rules)
{
	const char *family = json_string_value(json_object_get(object, "family"));
	char table[FIREWALL_NAME_MAX], name[FIREWALL_NAME_MAX];
	struct firewall_chain *chain;

	if (!names_read(object, "name", packet, table, name))
		return 0;
	chain = firewall_chain_add(rules);
	if (!chain)
		return -ENOMEM;
	memcpy(chain->table, table, sizeof(table));
	memcpy(chain->name, name, sizeof(name));
	chain->visited = hook_fits(json_string_value(json_object_get(object, "hook")), packet) &&
			 !is(json_string_value(json_object_get(object, "type")), "nat") &&
			 !(skip_iptables && is_iptables(family, name));
	chain->policy_drops = is(json_string_value(json_object_get(object, "policy")), "drop");
	return 0;
}

static int rule_read(const json_t *object, const struct firewall_packet *packet,
		     struct firewall_rules *rules)
{
	char table[FIREWALL_NAME_MAX], chain[FIREWALL_NAME_MAX];
	struct firewall_rule *rule;

	if (!names_read(object, "chain", packet, table, chain))
		return 0;
	rule = firewall_rule_add(rules);
	if (!rule)
		return -ENOMEM;
	memcpy(rule->table, table, sizeof(table));
	memcpy(rule->chain, chain, sizeof(chain));
	expressions_read(json_object_get(object, "expr"), packet, rule);
	return 0;
}

int firewall_nft_read(const char *text, const struct firewall_packet *packet, bool skip_iptables,
		      struct firewall_rules *rules)
{
	const json_t *list, *entry, *object;
	json_t *root = json_loads(text, 0, NULL);
	int ret = 0;
	size_t i;

	memset(rules, 0, sizeof(*rules));
	list = json_object_get(root, "nftables");
	if (!json_is_array(list))
		ret = -EINVAL;
	for (i = 0; !ret && i < json_array_size(list); i++) {
		entry = json_array_get(list, i);
		object = json_object_get(entry, "chain");
		if (object)
			ret = chain_read(object, packet, skip_iptables, rules);
		object = json_object_get(entry, "rule");
		if (object && !ret)
			ret = rule_read(object, packet, rules);
	}
	json_decref(root);
	return ret;
}
