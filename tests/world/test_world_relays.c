/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_world_relays.c - faults of relays, and of the cables to them. A "diamond" has the relays b
 * (cables 0 and 1) and d (2 and 3) between a and c; a "detour" b, and d and e (2, 3 and 4).
 *
 * Usage: test_world_relays [NAME...]     (default: all of them)
 */
#include "cases.h"

static const struct test_case cases[] = {
	/* A comm begins with one of two equal routes, and gets the other one within a second. */
	{"both-routes", "diamond", 1000,
	 .events = {IS_USED(1000, 0), CARRIES(3000, 0, 20), CARRIES(3000, 2, 20), ENDS(3000)}},
	{"stopped", "diamond", 2000,
	 .events = {STOPS(1000, 1), IS_USED(8000, 2), GOES_ON(9000, 1), ENDS(12000)}},
	{"stopped-with-a-detour", "detour", 2000,
	 .events = {STOPS(1000, 1), IS_USED(8000, 3), GOES_ON(9000, 1), ENDS(12000)}},
	/* The second relay of a route: the first one answers. */
	{"stopped-second", "detour", 2000,
	 .events = {DOWN(500, 1), IS_USED(4000, 3), UP(4000, 1), STOPS(5000, 4), IS_USED(12000, 1),
		    GOES_ON(13000, 4), ENDS(16000)}},
	{"end-stopped", "diamond", 1000, .events = {STOPS(1000, 2), GOES_ON(6000, 2), ENDS(9000)}},
	/* A relay's link that comes back is used at once, also beside the one that stands. */
	{"end-stopped-cable-away", "line", 2000, .settings = "NCCL_MESH_DEAD_PEER_TIMEOUT=60",
	 .says = "^a: .*lost node b",
	 .events = {STOPS(1000, 2), DOWN(3000, 0), UP(4000, 0), IS_USED(8000, 0), GOES_ON(8000, 2),
		    ENDS(12000)}},
	{"stopped-only", "line", 2000, .events = {STOPS(1000, 1), GOES_ON(6000, 1), ENDS(9000)}},
	{"killed", "diamond", 1000,
	 .events = {IS_KILLED(1000, 1), STARTS(4000, 1), IS_USED(9000, 0), IS_KILLED(9000, 3),
		    STARTS(13000, 3), IS_USED(28000, 2), ENDS(28000)}},
	{"killed-only", "chain", 3000,
	 .events = {IS_KILLED(1000, 1), STARTS(3000, 1), ENDS(12000)}},
	/* c has cut its connection with b, of which b has heard nothing: it has none to lose. */
	{"end-killed", "line", 2000,
	 .events = {IS_KILLED(3000, 0), DOWN(3200, 1), UP(3230, 1), STARTS(6000, 0), ENDS(14000)}},
	{"without-descriptors", "diamond", 2000,
	 .events = {NO_FILES(1000, 1), RESETS(1500, 0), HAS_FILES(6000, 1), ENDS(9000)}},
	{"cable", "diamond", 1000, .says_not = "^c: .*lost node b \\|^a: .*lost node d ",
	 .events = {DOWN(1000, 0), UP(4000, 0), IS_USED(9000, 0), DOWN(9000, 3), UP(12000, 3),
		    IS_USED(17000, 3), ENDS(17000)}},
	{"black-hole", "diamond", 4000, .events = {HOLE(1000, 1), UP(9000, 1), ENDS(12000)}},
	{"reset", "chain", 2000, .events = {RESETS(1000, 1), RESETS(2000, 0), ENDS(4000)}},
	{"small-memory", "chain", 2000, .message_kib = 2000,
	 .settings = "NCCL_MESH_RELAY_MEMORY=1M", .events = {RESETS(1000, 1), ENDS(6000)}},
	{"small-segments", "chain", 2000,
	 .settings = "NCCL_MESH_DEBUG_SEGMENT_SIZE=4K NCCL_MESH_DEBUG_EAGER_LIMIT=0",
	 .events = {DOWN(1000, 1), UP(2000, 1), ENDS(5000)}},
	{"large-messages", "diamond", 2000, .message_kib = 3000,
	 .events = {DOWN(1000, 1), UP(3000, 1), ENDS(6000)}},
	{"rxm", "diamond", 3000, .settings = "NCCL_MESH_PROVIDER=tcp;ofi_rxm",
	 .events = {DOWN(1000, 1), UP(3000, 1), ENDS(8000)}},
	{"of-the-job", "line", 2000,
	 .settings = "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 NCCL_MESH_RELAY=job",
	 .says = "wait for another route", .events = {DOWN(1000, 1), UP(3000, 1), ENDS(6000)}},
	{"slow-hop", "diamond", 8000,
	 .events = {MBPS(1000, 1, 1), MBPS(8000, 1, 100), ENDS(12000)}},
	{"drained-hop", "diamond", 1000,
	 .events = {DRAINED(1000, 0, 0), UNDRAINED(5000, 0, 0), ENDS(9000)}},
	{"killed-with-a-detour", "detour", 10000, .says = "from=a to=c .* via=d,e ",
	 .events = {IS_KILLED(1000, 1), IS_USED(10000, 3), STARTS(10000, 1), ENDS(14000)}},
	{"end-killed-for-good", "line", 10000, .says = "has lost node c, whose process has ended",
	 .settings = "NCCL_MESH_RECOVERY_TIMEOUT=60", .events = {IS_KILLED(1000, 2), ENDS(11000)}},
	{"late", "chain", 1000, FAILS(3000, 4000), .settings = "NCCL_MESH_RECOVERY_TIMEOUT=2",
	 .says = "lost node \\(b\\|c\\) .*; its messages wait for a",
	 .events = {DOWN(1000, 1), UP(6000, 1), ENDS(7000)}},
	/* A cable between the two, later: a stream that goes over a relay does not move to it. */
	{"cable-added", "line", 2000, .events = {PLUGGED(1000, 0, 2), ENDS(8000)}},
	/* One relay is better than two: the stream moves when a cable of other nodes comes. */
	{"shorter", "detour", 2000, .absent = 1u << 1,
	 .events = {UP(1000, 1), IS_USED(16000, 1), IS_QUIET(17000, 3), DOWN(17000, 1),
		    IS_USED(20000, 3), UP(20000, 1), IS_USED(50000, 1), ENDS(51000)}},
	/* The only cable between the two is pulled: a relay carries them until it is back. */
	{"pulled", "triangle", 350, .events = {DOWN(1000, 0), UP(20000, 0), ENDS(24000)}},
	{"hole", "triangle", 1200, .events = {HOLE(1000, 0), UP(20000, 0), ENDS(24000)}},
	{"hole-from-the-start", "triangle", 6000,
	 .events = {HOLE(0, 0), UP(20000, 0), ENDS(25000)}},
	/* Between nodes with a cable of their own relays are not used. */
	{"full", "full", 1000,
	 .events = {DOWN(1000, 0), IS_KILLED(2000, 3), UP(3000, 0), STARTS(4000, 3), ENDS(8000)}},
};

CASES_MAIN
