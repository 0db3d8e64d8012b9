/* SPDX-License-Identifier: Apache-2.0 */
/* firewall.c - sends an imagined packet through the rules that nft and iptables have. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "check/checks.h"
#include "common/child.h"
#include "wire/neighbour.h"
#include "check/context.h"
#include "check/firewall_rules.h"
#include "common/finding.h"
#include "common/subnet.h"

#define PROGRAM_TIMEOUT_MS 10000

enum source {
	SOURCE_NFT,
	SOURCE_IPTABLES,
	SOURCE_IP6TABLES,
	SOURCE_LEGACY, /* the kernel's older tables; read only if the newer tool reports them */
	SOURCE_LEGACY6,
	NUM_SOURCES
};

/* What the programs printed; NULL and the reason if one failed. */
struct dump {
	char *texts[NUM_SOURCES];
	int errors[NUM_SOURCES];
	char complaints[NUM_SOURCES][RUN_PROGRAM_COMPLAINT_MAX];
};

static const char *const source_names[NUM_SOURCES] = {
	"nft", "iptables-save", "ip6tables-save", "iptables-legacy-save", "ip6tables-legacy-save"};

static void source_take(struct dump *dump, enum source source)
{
	char *argv[] = {(char *)source_names[source], NULL, NULL, NULL, NULL};
	char json[] = "-j", list[] = "list", ruleset[] = "ruleset";

	if (source == SOURCE_NFT) {
		argv[1] = json;
		argv[2] = list;
		argv[3] = ruleset;
	}
	dump->errors[source] = run_program(argv, PROGRAM_TIMEOUT_MS, &dump->texts[source],
					   dump->complaints[source]);
}

static void dump_take(struct dump *dump)
{
	enum source source;

	for (source = SOURCE_NFT; source <= SOURCE_IP6TABLES; source++)
		source_take(dump, source);
	/* "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them" */
	if (strstr(dump->complaints[SOURCE_IPTABLES], "legacy tables present"))
		source_take(dump, SOURCE_LEGACY);
	if (strstr(dump->complaints[SOURCE_IP6TABLES], "legacy tables present"))
		source_take(dump, SOURCE_LEGACY6);
}

static void dump_free(struct dump *dump)
{
	int i;

	for (i = 0; i < NUM_SOURCES; i++)
		free(dump->texts[i]);
}

/* Reads one program's rules for the packet, and follows it. Returns 0 or a negative errno. */
static int source_follow(const struct dump *dump, enum source source,
			 const struct firewall_packet *packet, struct firewall_verdict *verdict)
{
	struct firewall_rules rules;
	int ret;

	if (source == SOURCE_NFT)
		ret = firewall_nft_read(dump->texts[source], packet, dump->texts[SOURCE_IPTABLES],
					&rules);
	else
		ret = firewall_iptables_read(dump->texts[source], packet, &rules);
	if (!ret)
		firewall_follow(&rules, verdict);
	firewall_rules_free(&rules);
	return ret;
}

static void drop_fix(const struct check_context *context, const struct mesh_nic *nic, bool outgoing,
		     enum source source, const struct firewall_verdict *verdict,
		     struct check_result *result)
{
	const struct mesh_sysfs *files = &context->files;

	if (mesh_sysfs_exists(files, "run/firewalld") || strstr(verdict->where, "firewalld"))
		check_fix(result,
			  "firewall-cmd --permanent --zone=trusted --add-interface=%s && "
			  "firewall-cmd --reload",
			  nic->netdev);
	else if (strstr(verdict->where, "ufw-"))
		check_fix(result, "ufw allow in on %s", nic->netdev);
	else if (source == SOURCE_NFT)
		check_fix(result, "nft insert rule %s %s %s accept", verdict->base,
			  outgoing ? "oifname" : "iifname", nic->netdev);
	else
		check_fix(result, "%.*s -I %s %s %s -j ACCEPT",
			  (int)(strlen(source_names[source]) - strlen("-save")),
			  source_names[source], outgoing ? "OUTPUT" : "INPUT",
			  outgoing ? "-o" : "-i", nic->netdev);
}

static void verdict_say(const struct check_context *context, const struct mesh_nic *nic,
			const struct firewall_packet *packet, enum source source,
			const struct firewall_verdict *verdict, struct check_result *result)
{
	const char *direction = packet->outgoing ? "out by" : "in on";
	const char *what = packet->multicast ? "questions" : "answers";

	if (verdict->answer == FIREWALL_DROP) {
		if (packet->udp)
			check_say(result, CHECK_WARN,
				  "the firewall drops the %s of neighbours %s %s (UDP %sport %d)",
				  what, direction, nic->netdev, packet->multicast ? "" : "source ",
				  MESH_NEIGHBOUR_PORT);
		else
			check_say(result, CHECK_FAIL,
				  "the firewall drops TCP connections %s %s (port %u, for example)",
				  direction, nic->netdev, packet->port);
		check_seen(result, "%s: %s", source_names[source], verdict->where);
		drop_fix(context, nic, packet->outgoing, source, verdict, result);
	} else if (verdict->answer == FIREWALL_CONTINUE) {
		if (packet->udp)
			check_say(result, CHECK_UNKNOWN,
				  "the firewall may drop the %s of neighbours %s %s (UDP port %d)",
				  what, direction, nic->netdev, MESH_NEIGHBOUR_PORT);
		else
			check_say(result, CHECK_UNKNOWN,
				  "the firewall may drop TCP connections %s %s; it has rules that "
				  "this check cannot evaluate",
				  direction, nic->netdev);
		check_seen(result, "%s: %s", source_names[source], verdict->where);
	}
}

/* The ports that the kernel hands out. */
static void kernel_ports_read(const struct check_context *context, unsigned int *low,
			      unsigned int *high)
{
	char text[64];

	if (mesh_sysfs_read(&context->files, text, sizeof(text),
			    "proc/sys/net/ipv4/ip_local_port_range") ||
	    sscanf(text, "%5u %5u", low, high) != 2 || *low > *high || *high > 65535) {
		*low = 32768;
		*high = 60999;
	}
}

/* The ports on which the plugin and libfabric listen: NCCL_MESH_PORTS, or the kernel's. */
static void port_range_read(const struct check_context *context, unsigned int *low,
			    unsigned int *high)
{
	struct mesh_port_range ports;

	if (!mesh_port_range_parse(context->config.ports, &ports) && ports.first) {
		*low = ports.first;
		*high = ports.last;
		return;
	}
	kernel_ports_read(context, low, high);
}

static bool source_fits(enum source source, enum mesh_family family)
{
	switch (source) {
	case SOURCE_IPTABLES:
	case SOURCE_LEGACY:
		return family == MESH_FAMILY_IPV4;
	case SOURCE_IP6TABLES:
	case SOURCE_LEGACY6:
		return family == MESH_FAMILY_IPV6;
	default:
		return true;
	}
}

/* Follows one packet through all rules. False if something was found: the rest is as it is. */
static bool packet_judge(const struct check_context *context, const struct mesh_nic *nic,
			 const struct dump *dump, const struct firewall_packet *packet,
			 struct check_result *result)
{
	struct firewall_verdict verdict;
	enum source source;

	for (source = SOURCE_NFT; source < NUM_SOURCES; source++) {
		if (!dump->texts[source] || !source_fits(source, packet->source.family))
			continue;
		if (source_follow(dump, source, packet, &verdict)) {
			check_say(result, CHECK_UNKNOWN, "the output of %s cannot be parsed",
				  source_names[source]);
			return false;
		}
		verdict_say(context, nic, packet, source, &verdict, result);
		if (verdict.answer != FIREWALL_ACCEPT)
			return false;
	}
	return true;
}

/* Checks one direction of one NIC over several ports. False if something was found. */
static bool direction_judge(const struct check_context *context, const struct mesh_nic *nic,
			    const struct dump *dump, bool outgoing, struct check_result *result)
{
	struct firewall_packet packet = {.outgoing = outgoing, .nic = nic->netdev};
	unsigned int low, high, i;
	struct mesh_addr neighbour;

	if (mesh_subnet_neighbour(&nic->source, 0, &neighbour))
		return true;
	packet.source = outgoing ? nic->source : neighbour;
	packet.destination = outgoing ? neighbour : nic->source;
	port_range_read(context, &low, &high);
	for (i = 0; i < 3; i++) {
		packet.port = low + (high - low) * i / 2;
		if (!packet_judge(context, nic, dump, &packet, result))
			return false;
	}
	return true;
}

/* The NIC's address that it asks its neighbours from, as src/neighbours does; NULL: none. */
static const struct mesh_addr *asking_address(const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < nic->num_addrs; i++) {
		if (mesh_addr_is_link_local(&nic->addrs[i]) &&
		    nic->addrs[i].family == MESH_FAMILY_IPV6)
			return &nic->addrs[i];
	}
	for (i = 0; i < nic->num_addrs; i++) {
		if (nic->addrs[i].family == MESH_FAMILY_IPV4)
			return &nic->addrs[i];
	}
	return NULL;
}

/*
 * Questions of neighbours go to all nodes of a link, and answers come to some port of the asker:
 * for the firewall, these are no replies, because the question went to another address.
 */
static void neighbours_judge(const struct check_context *context, const struct mesh_nic *nic,
			     const struct dump *dump, struct check_result *result)
{
	const struct mesh_addr *own = asking_address(nic);
	struct firewall_packet packet = {
		.nic = nic->netdev, .udp = true, .multicast = true, .port = MESH_NEIGHBOUR_PORT};
	unsigned int low, high;

	if (!context->config.neighbours || !own || mesh_subnet_neighbour(own, 0, &packet.source))
		return;
	mesh_addr_parse(own->family == MESH_FAMILY_IPV6 ? "ff02::1" : "224.0.0.1",
			&packet.destination);
	if (!packet_judge(context, nic, dump, &packet, result))
		return;
	kernel_ports_read(context, &low, &high);
	packet.multicast = false;
	packet.destination = *own;
	packet.port = high;
	packet.source_port = MESH_NEIGHBOUR_PORT;
	packet_judge(context, nic, dump, &packet, result);
}

/* Reports the rules that could not be read. True if none could. */
static bool dump_is_blind(const struct dump *dump, struct check_result *result)
{
	if (!dump->texts[SOURCE_NFT] && !dump->texts[SOURCE_IPTABLES]) {
		check_say(result, CHECK_UNKNOWN,
			  "the firewall's rules cannot be read (nft: %s; iptables-save: %s)",
			  dump->complaints[SOURCE_NFT], dump->complaints[SOURCE_IPTABLES]);
		check_fix(result, dump->errors[SOURCE_NFT] == -ENOENT &&
						  dump->errors[SOURCE_IPTABLES] == -ENOENT
					  ? "install nftables, or: fi_mesh check --peer ADDRESS"
					  : "sudo fi_mesh check --only firewall");
		return true;
	}
	/* nft also shows the rules of iptables-nft; those of the old iptables are separate. */
	if (!dump->texts[SOURCE_NFT] && dump->errors[SOURCE_NFT] != -ENOENT)
		check_say(result, CHECK_UNKNOWN, "nft does not show its rules: %s",
			  dump->complaints[SOURCE_NFT]);
	if (!dump->texts[SOURCE_IPTABLES] && dump->errors[SOURCE_IPTABLES] != -ENOENT)
		check_say(result, CHECK_UNKNOWN, "iptables-save does not show its rules: %s",
			  dump->complaints[SOURCE_IPTABLES]);
	return false;
}

void check_firewall(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	struct dump dump = {.errors = {0}};
	int i;

	dump_take(&dump);
	if (!dump_is_blind(&dump, result))
		for (i = 0; i < table->num_taken; i++) {
			if (direction_judge(context, &table->nics[i], &dump, false, result))
				neighbours_judge(context, &table->nics[i], &dump, result);
			direction_judge(context, &table->nics[i], &dump, true, result);
		}
	dump_free(&dump);
	if (!result->num_findings)
		check_say(result, CHECK_PASS,
			  "no rule of this node's firewall drops connections on the mesh NICs");
}
