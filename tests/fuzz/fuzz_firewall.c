/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_firewall.c - what nft or iptables-save printed: read or refused, and followed to an end. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check/firewall_rules.h"

#include "fuzz_text.h"

static void follow(int ret, struct firewall_rules *rules)
{
	struct firewall_verdict verdict;

	fuzz_check(!ret || ret == -EINVAL || ret == -ENOMEM);
	if (!ret) {
		firewall_follow(rules, &verdict);
		fuzz_check(verdict.answer == FIREWALL_ACCEPT || verdict.answer == FIREWALL_DROP ||
			   verdict.answer == FIREWALL_CONTINUE);
		fuzz_check(memchr(verdict.where, '\0', sizeof(verdict.where)));
	}
	firewall_rules_free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct firewall_packet packet = {.nic = "eth1", .port = 40000};
	struct firewall_rules rules;
	char *text = fuzz_text(data, size);

	if (!text)
		return 0;
	mesh_addr_parse("10.1.0.2/24", &packet.source);
	mesh_addr_parse("10.1.0.1/24", &packet.destination);
	packet.outgoing = size & 1;
	follow(firewall_nft_read(text, &packet, size & 2, &rules), &rules);
	follow(firewall_iptables_read(text, &packet, &rules), &rules);
	free(text);
	return 0;
}
