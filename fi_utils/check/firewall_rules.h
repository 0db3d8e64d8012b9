/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firewall_rules.h - follows one packet through rules that nft or iptables-save printed. The rules
 * are read into one small model, in which each rule already knows whether it matches the packet:
 * yes, no, or "maybe" if that depends on something that this check cannot evaluate.
 */
#ifndef MESH_FI_UTILS_CHECK_FIREWALL_RULES_H
#define MESH_FI_UTILS_CHECK_FIREWALL_RULES_H

#include <stdbool.h>

#include "nic/addr.h"

/* The first packet of a TCP connection, or a UDP datagram, to or from one of our NICs. */
struct firewall_packet {
	bool outgoing;
	bool udp; /* and, if it is for all nodes of the link: */
	bool multicast;
	const char *nic;
	struct mesh_addr source, destination;
	unsigned int port;	  /* destination */
	unsigned int source_port; /* 0: any */
};

enum firewall_match {
	FIREWALL_NO,
	FIREWALL_MAYBE,
	FIREWALL_YES,
};

enum firewall_action {
	FIREWALL_CONTINUE, /* counters, logs */
	FIREWALL_ACCEPT,
	FIREWALL_DROP, /* and reject */
	FIREWALL_JUMP,
	FIREWALL_GOTO,
	FIREWALL_RETURN,
};

#define FIREWALL_NAME_MAX 128

struct firewall_rule {
	char table[FIREWALL_NAME_MAX], chain[FIREWALL_NAME_MAX];
	enum firewall_match match;
	enum firewall_action action;
	char target[FIREWALL_NAME_MAX]; /* of a jump or goto */
};

struct firewall_chain {
	char table[FIREWALL_NAME_MAX]; /* "inet filter"; iptables: "filter" */
	char name[FIREWALL_NAME_MAX];
	bool visited; /* a base chain that this packet visits */
	bool policy_drops;
};

struct firewall_rules {
	struct firewall_chain *chains; /* owned, as are the rules */
	int num_chains;
	struct firewall_rule *rules; /* in order */
	int num_rules;
};

#define FIREWALL_WHERE_MAX 400

/* FIREWALL_ACCEPT, FIREWALL_DROP, or FIREWALL_CONTINUE: unknown. */
struct firewall_verdict {
	enum firewall_action answer;
	char where[FIREWALL_WHERE_MAX];	  /* "rule 3 of chain input, table inet filter" */
	char base[2 * FIREWALL_NAME_MAX]; /* the base chain: "inet filter input" */
};

/** Adds a zeroed entry; NULL without memory. The names must be filled in at once. */
struct firewall_chain *firewall_chain_add(struct firewall_rules *rules);
struct firewall_rule *firewall_rule_add(struct firewall_rules *rules);

void firewall_rules_free(struct firewall_rules *rules);

/**
 * Reads what `nft -j list ruleset` printed, for @packet.
 *
 * @skip_iptables: skip the tables of iptables-nft: iptables-save shows them in more detail
 *
 * Returns 0, -EINVAL if this is not such a text, or -ENOMEM; @rules must be freed in each case.
 */
int firewall_nft_read(const char *text, const struct firewall_packet *packet, bool skip_iptables,
		      struct firewall_rules *rules);

/** The same for iptables-save or ip6tables-save. */
int firewall_iptables_read(const char *text, const struct firewall_packet *packet,
			   struct firewall_rules *rules);

/** Follows the packet for which @rules were read through all base chains that it visits. */
void firewall_follow(const struct firewall_rules *rules, struct firewall_verdict *verdict);

/**
 * True if @pattern equals @name, or ends in @wildcard ('*' in nft, '+' in iptables) and matches it.
 */
bool firewall_name_fits(const char *pattern, const char *name, char wildcard);

/** "tcp" or "udp". */
static inline const char *firewall_protocol(const struct firewall_packet *packet)
{
	return packet->udp ? "udp" : "tcp";
}

/** Of its destination, as nft calls it. */
static inline const char *firewall_type(const struct firewall_packet *packet)
{
	if (packet->multicast)
		return "multicast";
	return packet->outgoing ? "unicast" : "local";
}

static inline enum firewall_match firewall_match_of(bool yes)
{
	return yes ? FIREWALL_YES : FIREWALL_NO;
}

static inline enum firewall_match firewall_match_not(enum firewall_match match)
{
	return (enum firewall_match)(FIREWALL_YES - match);
}

#endif
