/* SPDX-License-Identifier: Apache-2.0 */
/* test_firewall.c - one packet through rule sets as firewalld, ufw and people write them. */
#include <time.h>

#include "check/firewall_rules.h"

#include "unit.h"

static struct firewall_packet packet;

void tests_setup(void)
{
	packet = (struct firewall_packet){.nic = "eth1", .port = 40000};
	assert_int_equal(mesh_addr_parse("10.1.0.2/24", &packet.source), 0);
	assert_int_equal(mesh_addr_parse("10.1.0.1/24", &packet.destination), 0);
}

static enum firewall_action answer(int read, struct firewall_rules *rules, const char *where)
{
	struct firewall_verdict verdict;

	assert_int_equal(read, 0);
	firewall_follow(rules, &verdict);
	firewall_rules_free(rules);
	if (where && !strstr(verdict.where, where))
		fail_msg("\"%s\" is not in \"%s\"", where, verdict.where);
	return verdict.answer;
}

/* A base chain "input" of table "inet t" with this policy, and the rules' expressions. */
static enum firewall_action nft(const char *policy, const char *expressions, const char *where)
{
	struct firewall_rules rules;
	char *text = NULL;
	int ret;

	assert_true(asprintf(&text,
			     "{\"nftables\": [{\"metainfo\": {}}, {\"chain\": {\"family\": "
			     "\"inet\", \"table\": \"t\", \"name\": \"input\", \"type\": "
			     "\"filter\", \"hook\": \"input\", \"prio\": 0, \"policy\": \"%s\"}}"
			     "%s%s]}",
			     policy, *expressions ? ", " : "", expressions) > 0);
	ret = firewall_nft_read(text, &packet, true, &rules);
	free(text);
	return answer(ret, &rules, where);
}

/* A rule's chain and expressions; ends with a chain of NULL. */
struct row {
	const char *chain, *expressions;
};

static enum firewall_action nft_rows(const char *policy, const struct row *rows, const char *where)
{
	enum firewall_action action;
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);
	const struct row *row;

	for (row = rows; row->chain; row++)
		fprintf(file,
			"%s{\"rule\": {\"family\": \"inet\", \"table\": \"t\", \"chain\": \"%s\", "
			"\"expr\": [%s]}}",
			row > rows ? ", " : "", row->chain, row->expressions);
	fclose(file);
	action = nft(policy, text, where);
	free(text);
	return action;
}

#define NFT(policy, where, ...)                                                                    \
	nft_rows(policy, (const struct row[]){__VA_ARGS__, {NULL, NULL}}, where)
#define MATCH(left, op, right)                                                                     \
	"{\"match\": {\"op\": \"" op "\", \"left\": " left ", \"right\": " right "}}"
#define META(key) "{\"meta\": {\"key\": \"" key "\"}}"
#define PAYLOAD(protocol, field)                                                                   \
	"{\"payload\": {\"protocol\": \"" protocol "\", \"field\": \"" field "\"}}"
#define FLAGS PAYLOAD("tcp", "flags")
#define ACCEPT "{\"accept\": null}"
#define DROP "{\"drop\": null}"

static const struct {
	const char *match;
	enum firewall_match fits;
} nft_matches[] = {
	{MATCH(META("iifname"), "==", "\"eth1\""), FIREWALL_YES},
	{MATCH(META("iifname"), "==", "\"eth*\""), FIREWALL_YES},
	{MATCH(META("iifname"), "==", "\"eth\""), FIREWALL_NO},
	{MATCH(META("iifname"), "!=", "\"eth0\""), FIREWALL_YES},
	{MATCH(META("iifname"), "==", "{\"set\": [\"lo\", \"eth1\"]}"), FIREWALL_YES},
	{MATCH(META("iifname"), "==", "\"@trusted\""), FIREWALL_MAYBE},
	{MATCH(META("iifname"), "!=", "\"@trusted\""), FIREWALL_MAYBE},
	{MATCH(META("oifname"), "==", "\"eth1\""), FIREWALL_NO},
	{MATCH(META("l4proto"), "==", "\"tcp\""), FIREWALL_YES},
	{MATCH(META("l4proto"), "==", "{\"set\": [\"icmp\", \"udp\"]}"), FIREWALL_NO},
	{MATCH(META("nfproto"), "==", "\"ipv6\""), FIREWALL_NO},
	{MATCH(META("mark"), "==", "1"), FIREWALL_MAYBE},
	{MATCH(PAYLOAD("tcp", "dport"), "==", "40000"), FIREWALL_YES},
	{MATCH(PAYLOAD("tcp", "dport"), "!=", "40000"), FIREWALL_NO},
	{MATCH(PAYLOAD("tcp", "dport"), "==", "{\"range\": [30000, 50000]}"), FIREWALL_YES},
	{MATCH(PAYLOAD("tcp", "dport"), "==", "{\"range\": [30000, 39999]}"), FIREWALL_NO},
	{MATCH(PAYLOAD("tcp", "dport"), "==", "{\"set\": [22, {\"range\": [1, 50000]}]}"),
	 FIREWALL_YES},
	{MATCH(PAYLOAD("tcp", "dport"), ">", "1024"), FIREWALL_YES},
	{MATCH(PAYLOAD("tcp", "dport"), ">=", "1024"), FIREWALL_YES},
	{MATCH(PAYLOAD("tcp", "dport"), ">=", "40001"), FIREWALL_NO},
	{MATCH(PAYLOAD("tcp", "dport"), "<=", "40000"), FIREWALL_YES},
	{MATCH(PAYLOAD("tcp", "dport"), "<", "40000"), FIREWALL_NO},
	{MATCH(PAYLOAD("tcp", "dport"), ">=", "\"ssh\""), FIREWALL_MAYBE},
	/* As nft 1.0.6 prints `tcp flags syn`, `tcp flags syn,ack`, `tcp flags != syn` ... */
	{MATCH(FLAGS, "in", "\"syn\""), FIREWALL_YES},
	{MATCH(FLAGS, "in", "[\"syn\", \"ack\"]"), FIREWALL_YES},
	{MATCH(FLAGS, "in", "\"rst\""), FIREWALL_NO},
	{MATCH(FLAGS, "==", "\"syn\""), FIREWALL_YES},
	{MATCH(FLAGS, "==", "2"), FIREWALL_YES},
	{MATCH(FLAGS, "!=", "\"syn\""), FIREWALL_NO},
	{MATCH(FLAGS, "==", "{\"set\": [{\"|\": [\"syn\", \"ack\"]}, \"syn\"]}"), FIREWALL_YES},
	{MATCH(FLAGS, "==", "{\"set\": [{\"|\": [\"syn\", \"ack\"]}]}"), FIREWALL_NO},
	{MATCH(FLAGS, "==", "{\"set\": [\"x\"]}"), FIREWALL_MAYBE},
	{MATCH(FLAGS, "in", "\"@flags\""), FIREWALL_MAYBE},
	/* ... and `tcp flags & (fin|syn|rst|ack) == syn`, or `tcp flags syn / fin,syn,rst,ack`. */
	{MATCH("{\"&\": [" FLAGS ", [\"fin\", \"syn\", \"rst\", \"ack\"]]}", "==", "\"syn\""),
	 FIREWALL_YES},
	{MATCH("{\"&\": [" FLAGS ", [\"fin\", \"rst\"]]}", "==", "\"fin\""), FIREWALL_NO},
	{MATCH("{\"&\": [" FLAGS ", \"?\"]}", "==", "\"syn\""), FIREWALL_MAYBE},
	{MATCH(PAYLOAD("tcp", "sport"), "==", "22"), FIREWALL_MAYBE},
	{MATCH(PAYLOAD("udp", "dport"), "==", "40000"), FIREWALL_NO},
	{MATCH(PAYLOAD("ip6", "saddr"), "==", "\"fd00::1\""), FIREWALL_NO},
	{MATCH(PAYLOAD("ip", "saddr"), "==", "\"10.1.0.2\""), FIREWALL_YES},
	{MATCH(PAYLOAD("ip", "saddr"), "==", "{\"prefix\": {\"addr\": \"10.0.0.0\", \"len\": 8}}"),
	 FIREWALL_YES},
	{MATCH(PAYLOAD("ip", "daddr"), "==", "{\"prefix\": {\"addr\": \"10.2.0.0\", \"len\": 16}}"),
	 FIREWALL_NO},
	{MATCH(PAYLOAD("ip", "daddr"), "==", "{\"prefix\": {\"addr\": \"10.2.0.0\", \"len\": 99}}"),
	 FIREWALL_MAYBE},
	{MATCH("{\"ct\": {\"key\": \"state\"}}", "in", "[\"established\", \"related\"]"),
	 FIREWALL_NO},
	{MATCH("{\"ct\": {\"key\": \"state\"}}", "in", "[\"new\", \"established\"]"), FIREWALL_YES},
	{MATCH("{\"ct\": {\"key\": \"status\"}}", "in", "\"dnat\""), FIREWALL_NO},
	{MATCH("{\"fib\": {\"result\": \"type\", \"flags\": [\"daddr\"]}}", "==", "\"local\""),
	 FIREWALL_YES},
	{"{\"limit\": {\"rate\": 1}}", FIREWALL_MAYBE},
	{"{\"xt\": null}", FIREWALL_MAYBE},
	{"{\"counter\": {\"packets\": 0}}", FIREWALL_YES},
	{"{}", FIREWALL_MAYBE},
	{"7", FIREWALL_MAYBE},
};

TEST(nft_matches)
{
	enum firewall_action got, wanted;
	char rule[600];

	FOR_EACH(i, nft_matches) {
		snprintf(rule, sizeof(rule), "%s, " DROP, nft_matches[i].match);
		got = NFT("accept", NULL, {"input", rule});
		wanted = nft_matches[i].fits == FIREWALL_YES  ? FIREWALL_DROP
			 : nft_matches[i].fits == FIREWALL_NO ? FIREWALL_ACCEPT
							      : FIREWALL_CONTINUE;
		if (got != wanted)
			fail_msg("%s: %d, not %d", nft_matches[i].match, got, wanted);
	}
}

#define JUMP(chain) "{\"jump\": {\"target\": \"" chain "\"}}"
#define GOTO(chain) "{\"goto\": {\"target\": \"" chain "\"}}"
#define REJECT "{\"reject\": {\"type\": \"icmpx\"}}"
#define IN(nic) MATCH(META("iifname"), "==", "\"" nic "\"")
#define CT(key, right) MATCH("{\"ct\": {\"key\": \"" key "\"}}", "in", right)

TEST(nft_flow)
{
	assert_int_equal(nft("accept", "", NULL), FIREWALL_ACCEPT);
	assert_int_equal(nft("drop", "", "the policy of chain input, table inet t"), FIREWALL_DROP);
	assert_int_equal(NFT("drop", NULL, {"input", ACCEPT}), FIREWALL_ACCEPT);
	/* A jump returns to the chain; goto does not. */
	assert_int_equal(NFT("accept", "rule 2 of chain input", {"input", JUMP("x")},
			     {"input", DROP}, {"x", "{\"return\": null}"}, {"x", ACCEPT}),
			 FIREWALL_DROP);
	assert_int_equal(NFT("drop", "policy", {"input", GOTO("x")}, {"input", ACCEPT}),
			 FIREWALL_DROP);
	assert_int_equal(NFT("accept", "rule 1 of chain x", {"input", JUMP("x")}, {"x", DROP}),
			 FIREWALL_DROP);
	/* A loop, which the kernel would refuse, ends. */
	assert_int_equal(
		NFT("accept", NULL, {"input", JUMP("x")}, {"x", JUMP("x")}, {"x", JUMP("x")}),
		FIREWALL_CONTINUE);
	/* What may have been accepted before is not surely dropped. */
	assert_int_equal(NFT("drop", NULL, {"input", "{\"xt\": null}, " ACCEPT}),
			 FIREWALL_CONTINUE);
}

#define VMAP(set) "{\"vmap\": {\"key\": " META("iifname") ", \"data\": " set "}}"
#define ZONES "{\"set\": [[\"lo\", " ACCEPT "], [\"eth1\", " GOTO("trusted") "]]}"

TEST(nft_vmap)
{
	static const struct row zones[] = {
		{"input", VMAP(ZONES)}, {"input", DROP}, {"trusted", ACCEPT}, {NULL, NULL}};

	assert_int_equal(nft_rows("drop", zones, NULL), FIREWALL_ACCEPT);
	packet.nic = "eth2";
	assert_int_equal(nft_rows("drop", zones, "rule 2 of chain input"), FIREWALL_DROP);
	assert_int_equal(NFT("accept", NULL, {"input", VMAP("\"@zones\"")}), FIREWALL_CONTINUE);
}

/* firewalld's shape: all that is not of a zone is rejected at the end. */
TEST(nft_firewalld)
{
	static const struct row rows[] = {
		{"input", CT("state", "[\"established\", \"related\"]") ", " ACCEPT},
		{"input", CT("status", "\"dnat\"") ", " ACCEPT},
		{"input", IN("lo") ", " ACCEPT},
		{"input", CT("state", "\"invalid\"") ", " DROP},
		{"input", JUMP("zones")},
		{"input", REJECT},
		{"zones", IN("eth0") ", " GOTO("public")},
		{"public", MATCH(PAYLOAD("tcp", "dport"), "==", "22") ", " ACCEPT},
		{NULL, NULL}};

	assert_int_equal(nft_rows("accept", rows, "rule 6 of chain input"), FIREWALL_DROP);
	packet.nic = "eth0";
	assert_int_equal(nft_rows("accept", rows, "rule 6 of chain input"), FIREWALL_DROP);
	packet.port = 22;
	assert_int_equal(nft_rows("accept", rows, NULL), FIREWALL_ACCEPT);
}

/* A question of neighbours, and an answer: neither TCP's rules nor replies let them pass. */
TEST(udp)
{
	static const struct row rows[] = {
		{"input", CT("state", "[\"established\", \"related\"]") ", " ACCEPT},
		{"input", MATCH(PAYLOAD("tcp", "dport"), "==", "18621") ", " ACCEPT},
		{"input", MATCH(PAYLOAD("udp", "dport"), "==", "18621") ", " ACCEPT},
		{NULL, NULL}};
	static const struct row answers[] = {
		{"input", MATCH(PAYLOAD("udp", "sport"), "==", "18621") ", " ACCEPT}, {NULL, NULL}};

	packet.udp = packet.multicast = true;
	packet.port = 18621;
	assert_int_equal(nft_rows("drop", rows, NULL), FIREWALL_ACCEPT);
	assert_int_equal(nft_rows("drop", rows + 2, NULL), FIREWALL_ACCEPT);
	packet.udp = false;
	assert_int_equal(nft_rows("drop", rows + 2, "the policy"), FIREWALL_DROP);
	packet.udp = true;
	packet.multicast = false;
	packet.port = 40000;
	packet.source_port = 18621;
	assert_int_equal(nft_rows("drop", rows, "the policy"), FIREWALL_DROP);
	assert_int_equal(nft_rows("drop", answers, NULL), FIREWALL_ACCEPT);
	packet.source_port = 18620;
	assert_int_equal(nft_rows("drop", answers, "the policy"), FIREWALL_DROP);
}

TEST(nft_junk)
{
	static const char *const texts[] = {
		"", "x", "[]", "{}", "{\"nftables\": 7}", "{\"nftables\""};
	struct firewall_rules rules;

	FOR_EACH(i, texts) {
		assert_int_equal(firewall_nft_read(texts[i], &packet, true, &rules), -EINVAL);
		firewall_rules_free(&rules);
	}
	assert_int_equal(
		answer(firewall_nft_read("{\"nftables\": [1, {\"rule\": []}, {\"chain\": "
					 "{\"family\": 1}}, {\"rule\": {\"family\": "
					 "\"inet\", \"table\": \"t\", \"chain\": \"c\"}}]}",
					 &packet, true, &rules),
		       &rules, NULL),
		FIREWALL_ACCEPT);
}

static enum firewall_action iptables(const char *text, const char *where)
{
	struct firewall_rules rules;

	return answer(firewall_iptables_read(text, &packet, &rules), &rules, where);
}

/* ufw's shape. */
static const char ufw[] =
	"# Generated by iptables-save v1.8.9\n*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n"
	":OUTPUT ACCEPT [0:0]\n:ufw-before-input - [0:0]\n:ufw-not-local - [0:0]\n"
	":ufw-user-input - [0:0]\n:ufw-track-input - [0:0]\n"
	"-A INPUT -j ufw-before-input\n-A INPUT -j ufw-user-input\n-A INPUT -j ufw-track-input\n"
	"-A ufw-before-input -i lo -j ACCEPT\n"
	"-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
	"-A ufw-before-input -m conntrack --ctstate INVALID -j LOG --log-prefix \"[UFW] \"\n"
	"-A ufw-before-input -m conntrack --ctstate INVALID -j DROP\n"
	"-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT\n"
	"-A ufw-before-input -j ufw-not-local\n"
	"-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN\n"
	"-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j DROP\n"
	"-A ufw-not-local -j DROP\n"
	"-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT\n"
	"-A ufw-user-input -p tcp -m multiport --dports 80,443,8000:9000 -j ACCEPT\n"
	"-A ufw-user-input -i eth7 -j ACCEPT\nCOMMIT\n";

TEST(iptables_ufw)
{
	assert_int_equal(iptables(ufw, "the policy of chain INPUT, table filter"), FIREWALL_DROP);
	packet.port = 8500;
	assert_int_equal(iptables(ufw, NULL), FIREWALL_ACCEPT);
	packet.port = 22;
	assert_int_equal(iptables(ufw, NULL), FIREWALL_ACCEPT);
	packet.port = 40000;
	packet.nic = "eth7";
	assert_int_equal(iptables(ufw, NULL), FIREWALL_ACCEPT);
	packet.nic = "eth1";
	packet.outgoing = true;
	assert_int_equal(iptables(ufw, NULL), FIREWALL_ACCEPT);
}

static enum firewall_action iptables_rule(const char *rule)
{
	char text[500];

	snprintf(text, sizeof(text), "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT %s -j DROP\nCOMMIT\n",
		 rule);
	return iptables(text, NULL);
}

TEST(iptables_matches)
{
	static const char *const yes[] = {"-i eth1",
					  "-i eth+",
					  "! -i eth0",
					  "-s 10.1.0.0/24",
					  "! -s 10.2.0.0/24",
					  "-d 10.1.0.1/32 -p tcp",
					  "-p tcp -m tcp --dport 32768:60999",
					  "-p tcp -m tcp --dport :50000",
					  "-p tcp -m tcp --dport 40000:",
					  "-m state --state NEW,ESTABLISHED",
					  "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN",
					  "-m tcp ! --tcp-flags SYN,RST RST",
					  "-m comment --comment \"! -i eth1 -j \\\"x\\\"\""};
	static const char *const no[] = {"-i eth0",
					 "! -i eth1",
					 "-i eth",
					 "-o eth1",
					 "-p udp",
					 "-s 10.1.1.0/24",
					 "! -p tcp",
					 "-p tcp --dport 22",
					 "-p tcp --dports 22,80",
					 "-m tcp --tcp-flags FIN,SYN NONE",
					 "-m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN",
					 "-m limit --limit 1/s -p udp"};
	static const char *const maybe[] = {"-m limit --limit 1/s", "-m set --match-set x src",
					    "-m x ! --unknown 5",   "-s 10.1.0.0/255.255.0.0",
					    "--dport ssh",	    "-m owner --uid-owner 0"};

	FOR_EACH(i, yes)
		if (iptables_rule(yes[i]) != FIREWALL_DROP)
			fail_msg("%s does not match", yes[i]);
	FOR_EACH(i, no)
		if (iptables_rule(no[i]) != FIREWALL_ACCEPT)
			fail_msg("%s matches", no[i]);
	FOR_EACH(i, maybe)
		if (iptables_rule(maybe[i]) != FIREWALL_CONTINUE)
			fail_msg("%s is not a maybe", maybe[i]);
}

TEST(iptables_junk)
{
	struct firewall_rules rules;
	char line[1000] = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT";

	assert_int_equal(firewall_iptables_read("junk\n", &packet, &rules), -EINVAL);
	firewall_rules_free(&rules);
	assert_int_equal(firewall_iptables_read("-A\n", &packet, &rules), -EINVAL);
	firewall_rules_free(&rules);
	assert_int_equal(firewall_iptables_read("*filter\n-A \n", &packet, &rules), -EINVAL);
	firewall_rules_free(&rules);
	assert_int_equal(iptables("", NULL), FIREWALL_ACCEPT);
	for (int i = 0; i < 100; i++)
		strcat(line, " -m x");
	assert_int_equal(iptables(line, NULL), FIREWALL_CONTINUE);
}

/* One bound for the whole packet: a chain that is named often does not get it anew each time. */
TEST(many_loops)
{
	char text[2000] = "*filter\n";
	clock_t started = clock();

	for (int i = 0; i < 60; i++)
		strcat(text, ":INPUT ACCEPT\n");
	strcat(text, "-A INPUT -j INPUT\n-A INPUT -j INPUT\nCOMMIT\n");
	assert_int_equal(iptables(text, NULL), FIREWALL_CONTINUE);
	/* CPU time: milliseconds with one bound, 60 times as much with one for each chain. */
	assert_true(clock() - started < 3 * CLOCKS_PER_SEC);
}
