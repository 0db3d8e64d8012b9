/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_members.c - a report of a local process, perhaps another user's, and a neighbour's answer:
 * whatever is taken of them, no other node refuses what this one says.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "neighbours/answering.h"
#include "neighbours/members.h"

#include "fuzz_text.h"

#define LATER_MS ((uint64_t)1 << 60)

static struct mesh_neighbour_self self = {.node_id = 1, .node = "a", .process = {.role = 1}};
static struct mesh_engine engine;
static struct mesh_answering answering;
static struct mesh_member member;
static struct mesh_members members = {.self = &self, .all = {&member}};

/* Two NICs, and what the node behind the first of them answers, changed by steps of 4 bytes. */
static size_t input_make(const uint8_t *data, size_t size, struct mesh_member_report *report,
			 struct mesh_neighbour *heard)
{
	struct mesh_neighbour_self other = {.node_id = 2, .node = "b", .process = {.role = 1}};
	struct mesh_nic nic = {.netdev = "eth0", .ifindex = 3, .num_addrs = 1};
	struct mesh_neighbour_link link;
	size_t at, whole = mesh_member_report_size(2);

	memset(report, 0, sizeof(*report));
	mesh_addr_parse("fe80::1/64", &nic.addrs[0]);
	report->process = self.process;
	report->num_links = 2;
	mesh_neighbour_link_describe(&self, &nic, 0, 1, &report->links[0]);
	mesh_neighbour_link_describe(&other, &nic, 0, 1, &link);
	nic.ifindex++;
	mesh_neighbour_link_describe(&self, &nic, 1, 1, &report->links[1]);
	*heard = link.about;
	mesh_neighbour_finish(heard, MESH_NEIGHBOUR_ANSWER);
	for (; size >= 4; data += 4, size -= 4) {
		at = (size_t)data[0] << 8 | data[1];
		if (data[3] & 1)
			((uint8_t *)heard)[at % mesh_neighbour_size(0)] = data[2];
		else
			((uint8_t *)report)[at % whole] = data[2];
	}
	return size ? mesh_member_report_size((int)(report->num_links & 7)) : whole;
}

/* What the speaker answers to its neighbours' questions, on each NIC of the member. */
static void neighbours_answer(uint64_t job)
{
	struct mesh_neighbour answer, decoded;
	struct mesh_neighbour_link link;

	for (int i = 0; i < member.num_links; i++) {
		fuzz_check(mesh_members_link(&members, member.links[i].ifindex, &link));
		answer = link.about;
		answer.job = job;
		mesh_members_list(&members, &answer);
		mesh_neighbour_finish(&answer, MESH_NEIGHBOUR_ANSWER);
		fuzz_check(!mesh_neighbour_decode(&answer, answer.length, &decoded));
		fuzz_text_printable(decoded.netdev, sizeof(decoded.netdev));
	}
}

int __wrap_mesh_datagram_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
			      const struct mesh_addr *to, uint16_t port, const void *datagram,
			      size_t size)
{
	union mesh_links links;

	fuzz_check(!mesh_links_decode(datagram, size, &links));
	return 0;
}

/* What it answers to questions about its links, of any node: with the NICs and what they hear. */
static void links_answer(const struct mesh_neighbour *heard)
{
	const struct mesh_links_question question = {.node_id = 2, .token = 1, .hops = 1};
	struct mesh_forwarding_asker from = {.ifindex = member.links[0].ifindex};
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	struct mesh_asking *asking = &answering.survey;
	int i, num = mesh_members_links(&members, links, MESH_NICS_MAX);

	mesh_addr_parse("fe80::2/64", &from.addr);
	mesh_answering_init(&answering, &engine, &self, &members);
	answering.sockets[0].watch.fd = INT_MAX; /* open: it can answer */
	answering.surveyed_ms = 1;		 /* long ago: all have answered */
	mesh_asking_links_set(asking, links, num);
	for (i = 0; i < num; i++) {
		/* A socket can have it. */
		fuzz_check(!links[i].ask_from.family || mesh_addr_size(links[i].ask_from.family));
		asking->asked[i].answered = true;
		asking->asked[i].heard[0] = heard ? malloc(sizeof(struct mesh_heard)) : NULL;
		if (!asking->asked[i].heard[0])
			continue;
		*asking->asked[i].heard[asking->asked[i].num_heard++] =
			(struct mesh_heard){.about = *heard, .heard_ms = LATER_MS};
	}
	mesh_forwarding_question(&answering.forwarding, 0, &from, &question, LATER_MS);
	mesh_forwarding_advance(&answering.forwarding, LATER_MS);
	mesh_asking_finish(&answering.survey);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mesh_member_report report;
	struct mesh_neighbour bytes, heard;
	size_t length = input_make(data, size, &report, &bytes);
	bool hears = !mesh_neighbour_decode(&bytes, mesh_neighbour_size(0), &heard);

	member.num_links = 0;
	if (mesh_member_report_is_valid(&report, length)) {
		member.process = report.process;
		member.num_links = (int)report.num_links;
		memcpy(member.links, report.links, sizeof(member.links));
	}
	neighbours_answer(size ? data[0] : 0);
	links_answer(hears ? &heard : NULL);
	return 0;
}
