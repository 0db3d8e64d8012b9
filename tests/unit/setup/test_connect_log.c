/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_log.c - which reason the message about an attempt that was given up names. */
#include "nic/addr.h"
#include "setup/connecting.h"
#include "setup/relay_try.h"
#include "setup/setup.h"

#include "log_capture.h"
#include "unit.h"

static struct mesh_setup setup_state;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_nic nic;
static struct mesh_domain domain;
static struct mesh_peer peer;
static struct mesh_connect attempt;
static struct mesh_relay_try relay;

/* An attempt from a to c, which has one routed candidate; relay b has refused. */
static void setup(void)
{
	struct mesh_process *process = &setup_state.process;

	memset(&setup_state, 0, sizeof(setup_state));
	memset(&peer, 0, sizeof(peer));
	memset(&attempt, 0, sizeof(attempt));
	memset(&relay, 0, sizeof(relay));
	mesh_lock_init(&process->lock);
	strcpy(process->name, "a");
	strcpy(nic.netdev, "lo");
	assert_int_equal(mesh_addr_parse("10.7.1.1/24", &nic.source), 0);
	process->nics[0] = &nic;
	process->num_endpoints = 1;
	process->endpoints[0].addr = nic.source;
	domain.nic = &nic;
	domain.provider = MESH_PROVIDER_TCP;
	peer.process = process;
	peer.domain = &domain;
	strcpy(peer.name, "c");
	assert_int_equal(mesh_addr_parse("10.7.2.2/24", &peer.address.addr), 0);
	attempt.net = &net;
	attempt.state = MESH_CONNECT_PEERS;
	strcpy(attempt.handle.node, "c");
	attempt.handle.num_endpoints = 1;
	attempt.handle.endpoints[0].addr = peer.address.addr;
	attempt.choice.num_candidates = 1;
	attempt.choice.candidates[0].class = MESH_PATH_ROUTED;
	attempt.started_ms = 1000;
	relay.process = process;
	relay.handle = &attempt.handle;
	relay.tried.num = 1;
	relay.tried.all[0].refusal = MESH_REFUSAL_RELAY_FULL;
	strcpy(relay.tried.all[0].node, "b");
	log_capture_start();
	mesh_lock_take(&process->lock);
}

static void teardown(void)
{
	mesh_lock_release(&setup_state.process.lock);
	mesh_lock_destroy(&setup_state.process.lock);
}

/* What is different from that attempt. */
enum {
	OPEN_SENT = 1 << 0, /* OPEN has left, to the relay */
	RELAY = 1 << 1,	    /* one is tried beside the candidates */
	DIALS = 1 << 2,	    /* the candidate is tried, */
	RETRY = 1 << 3,	    /* and refused */
	NOTHING = 1 << 4,   /* there is no candidate */
};

static void attempt_change(unsigned int how)
{
	attempt.state = how & OPEN_SENT ? MESH_CONNECT_OPEN_SENT : MESH_CONNECT_PEERS;
	attempt.relay = how & RELAY ? &relay : NULL;
	attempt.num_dials = how & DIALS ? 1 : 0;
	attempt.dials[0].peer = how & DIALS ? &peer : NULL;
	attempt.dials[0].state = MESH_DIAL_TRYING;
	if (how & RETRY) {
		peer.state = MESH_PEER_LOST;
		strcpy(peer.reason, "it does not answer on port 7");
	}
	peer.control_port = 7;
	if (how & NOTHING)
		attempt.choice.num_candidates = 0;
	attempt.deadline_ms = 61000;
}

static const struct {
	const char *name;
	unsigned int how;
	enum {
		TIMEOUT,
		SLOW,
	} when;
	const char *says[6]; /* with a "!" before it: does not */
} cases[] = {
	/* A relay was found, and the circuit through it was not opened in time. */
	{"circuit",
	 OPEN_SENT | RELAY | DIALS,
	 TIMEOUT,
	 {"node a gave up connecting from lo (10.7.1.1) to node c",
	  "after 60000 ms (1 path tried; no neighbour relays: node b: ",
	  "): no answer from TCP port 7: is the cable in", "!no common subnet", "!has not opened"}},
	/* The relay has refused a moment ago: the reason of the candidates counts as well. */
	{"relay refused",
	 RELAY | DIALS | RETRY,
	 TIMEOUT,
	 {"gave up connecting from lo (10.7.1.1) to node c",
	  "; no neighbour relays: node b: ", "): it does not answer on port 7"}},
	/* The same, and no candidate can begin. */
	{"relay refused alone",
	 RELAY,
	 TIMEOUT,
	 {"gave up connecting from lo (10.7.1.1) to node c",
	  "after 60000 ms (1 path tried; no neighbour relays: node b: ",
	  "): libfabric has not opened lo: "}},
	{"opening",
	 0,
	 TIMEOUT,
	 {"libfabric has not opened lo: is this node short of CPU time", "!relay"}},
	{"slow candidate",
	 RELAY | DIALS,
	 SLOW,
	 {"still connecting from lo to node c", "(no answer from TCP port 7: ",
	  "; no neighbour relays: node b: ", "); giving up in 55 s"}},
	{"slow relay",
	 RELAY | NOTHING,
	 SLOW,
	 {"still connecting to node c",
	  "(no link or route reaches it; no neighbour relays: node b: ", "); giving up in 55 s"}},
};

/* One line, with all that it should say, and nothing about a NIC or a cable that is well. */
TEST_BARE(lines)
{
	const char *text;

	FOR_EACH(i, cases) {
		setup();
		attempt_change(cases[i].how);
		switch (cases[i].when) {
		case TIMEOUT:
			mesh_connect_log_timeout(&attempt, 61000);
			break;
		case SLOW:
			mesh_connect_log_slow(&attempt, 5999);
			assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
			mesh_connect_log_slow(&attempt, 6000);
			mesh_connect_log_slow(&attempt, 7000);
		}
		assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
		for (int k = 0; k < 6 && cases[i].says[k]; k++) {
			text = cases[i].says[k];
			if (log_captured(MESH_LOG_WARN, text + (*text == '!')) == (*text == '!'))
				fail_msg("%s: %s", cases[i].name, text);
		}
		teardown();
	}
}
