/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_world_cases.c - faults of cables and processes at moments that are written down: what the
 * random ones of test_world have found, and what is promised for single faults.
 *
 * Usage: test_world_cases [NAME...]     (default: all of them)
 */
#include "cases.h"

static const struct test_case cases[] = {
	/* Without a fault, nothing is lost and nothing is to be said. */
	{"quiet-pair", "pair", 200, .events = {ENDS(2000)}},
	{"quiet-triangle", "triangle", 200, .events = {ENDS(2000)}},
	{"quiet-line", "line", 500, .events = {ENDS(3000)}},
	{"quiet-ring", "ring", 500, .events = {ENDS(3000)}},
	{"cable", "pair", 1000,
	 .events = {DOWN(500, 1), UP(2000, 1), IS_USED(4000, 1), DOWN(4000, 0), UP(6000, 0),
		    IS_USED(7000, 0), ENDS(7000)}},
	{"one-reset", "pair", 1000, .says = "lost node .*x1 .*go over the other paths now",
	 .says_not = "wait for a path", .events = {RESETS(1000, 1), ENDS(3000)}},
	{"both-away", "pair", 1000, .says = "wait for a path",
	 .events = {DOWN(1000, 0), DOWN(1000, 1), UP(6000, 0), UP(8000, 1), DOWN(9000, 0),
		    DOWN(9000, 1), UP(9001, 0), UP(9001, 1), RESETS(11000, 0), RESETS(11000, 1),
		    ENDS(13000)}},
	/* Known as soon as one of the cables is back. */
	{"killed-while-away", "pair", 3000, .settings = "NCCL_MESH_RECOVERY_TIMEOUT=60",
	 .says = "^a: .*its process has ended",
	 .events = {DOWN(1000, 0), DOWN(1000, 1), IS_KILLED(3000, 1), UP(4000, 0), ENDS(7500)}},
	/* The other end waits for the cable, but not for NCCL_MESH_RECOVERY_TIMEOUT. */
	{"sender-aborts-while-away", "one", 3000, .settings = "NCCL_MESH_RECOVERY_TIMEOUT=60",
	 .says = "^b: .*had ended a connection meanwhile",
	 .events = {DOWN(1000, 0), ABORTS(2000, 0, 0), UP(3000, 0), ENDS(13000)}},
	{"receiver-aborts-while-away", "one", 3000, .settings = "NCCL_MESH_RECOVERY_TIMEOUT=60",
	 .says = "^a: .*had ended a connection meanwhile",
	 .events = {DOWN(1000, 0), ABORTS(2000, 1, 0), UP(3000, 0), ENDS(13000)}},
	{"all-abort-while-away", "one", 3000,
	 .settings = "NCCL_MESH_RECOVERY_TIMEOUT=60 NCCL_MESH_RELAY=off",
	 .says = "^b: .*its process has ended, or all of its",
	 .events = {DOWN(1000, 0), ABORTS(2000, 0, 0), ABORTS(2000, 0, 1), ABORTS(2000, 0, 2),
		    ABORTS(2000, 0, 3), UP(3000, 0), ENDS(13000)}},
	{"black-hole", "pair", 4000, .events = {HOLE(500, 1), UP(6000, 1), ENDS(7000)}},
	/* As of a wrong MTU: control frames pass, and large messages do not. */
	{"small-packets", "pair", 10000,
	 .events = {SMALL(500, 1), UP(20000, 1), IS_USED(32000, 1), ENDS(32000)}},
	/* With a relay and without, for little less than NCCL_MESH_RECOVERY_TIMEOUT. */
	{"only-way", "line", 1500, .events = {DOWN(500, 0), UP(25500, 0), ENDS(28500)}},
	/*
	 * A cable that was lost often waits ever longer before it is used again, but not any more
	 * when the other one is gone.
	 */
	{"flapping-is-left", "pair", 4000,
	 .events = {FLAP(500, 0), FLAP(1500, 0), FLAP(2500, 0), FLAP(4000, 0), FLAP(6500, 0),
		    FLAP(11000, 0), HOLE(15500, 1), RESETS(16000, 0), UP(25000, 1), ENDS(26000)}},
	/* A firewall refuses for a moment, and then nothing answers: nobody's process has ended. */
	{"refused-then-silent", "pair", 4000,
	 .events = {DOWN(500, 0), HOLE(600, 1), RESETS(4000, 1), UP(9000, 1), UP(9000, 0),
		    ENDS(12000)}},
	/* Nothing fails because a process does not run, nor because of what it finds then. */
	{"stopped-and-reset", "pair", 1000,
	 .events = {DOWN(500, 0), STOPS(1000, 0), RESETS(3000, 1), GOES_ON(3100, 0), STOPS(5000, 1),
		    RESETS(7000, 1), GOES_ON(7100, 1), UP(9000, 0), ENDS(10000)}},

	/* Other paths, segments and providers. With one path a comm waits for its own cable. */
	{"one-path", "pair", 4000, .settings = "NCCL_MESH_DEBUG_MAX_PATHS=1",
	 .events = {DOWN(500, 0), UP(2000, 0), DOWN(3000, 1), UP(5000, 1), ENDS(6000)}},
	{"small-segments", "pair", 1000,
	 .settings = "NCCL_MESH_DEBUG_SEGMENT_SIZE=4K NCCL_MESH_DEBUG_EAGER_LIMIT=0",
	 .events = {DOWN(500, 0), UP(2000, 0), RESETS(3000, 1), ENDS(4000)}},
	{"large-messages", "pair", 2000, .settings = "NCCL_MESH_DEBUG_EAGER_LIMIT=64K",
	 .message_kib = 3000, .events = {DOWN(500, 0), UP(2500, 0), RESETS(4000, 1), ENDS(6000)}},
	{"rxm", "pair", 4000, .settings = "NCCL_MESH_PROVIDER=tcp;ofi_rxm",
	 .events = {DOWN(1000, 0), UP(3000, 0), RESETS(6000, 1), IS_USED(9000, 0), ENDS(9000)}},
	/* What is no loss. */
	{"silent-for-a-moment", "one", 4000, .says_not = "lost node",
	 .events = {HOLE(500, 0), UP(3000, 0), ENDS(8000)}},
	{"stopped-for-long", "one", 1000, .settings = "NCCL_MESH_DEAD_PEER_TIMEOUT=3",
	 .says_not = "lost node", .events = {STOPS(1000, 1), GOES_ON(10000, 1), ENDS(12000)}},
	{"idle-and-silent-for-less", "one", 1000, .settings = "NCCL_MESH_DEAD_PEER_TIMEOUT=4",
	 .says_not = "lost node",
	 .events = {RESTS(500), HOLE(3300, 0), UP(6800, 0), WORKS(8800), ENDS(10000)}},
	{"slow-one-path", "one", 40000, .message_kib = 3000,
	 .settings = "NCCL_MESH_DEAD_PEER_TIMEOUT=2", .says_not = "lost node",
	 .events = {MBPS(500, 0, 10), MBPS(20000, 0, 100), ENDS(25000)}},
	/* What is one, with the reason that is true. */
	{"verdict-silent", "pair", 8000,
	 .says = "lost node [ab] (10.1.0..), reached from x1 (10.1.0..): .*no answer",
	 .events = {HOLE(500, 1), UP(8000, 1), ENDS(9000)}},
	{"verdict-small-packets", "one", 20000, .says = "lost node .*large frames",
	 .events = {SMALL(500, 0), UP(15000, 0), ENDS(16000)}},
	{"verdict-idle-silent", "one", 4000, .says = "lost node .*no answer for 3 s: cable pulled",
	 .settings = "NCCL_MESH_DEAD_PEER_TIMEOUT=6",
	 .events = {RESTS(500), HOLE(4000, 0), UP(11600, 0), WORKS(11600), ENDS(12000)}},
	{"late", "pair", 1000, FAILS(4000, 5000), .settings = "NCCL_MESH_RECOVERY_TIMEOUT=3",
	 .says = "the peer has not come back over any path for 3 s (NCCL_MESH_RECOVERY_TIMEOUT)",
	 .events = {DOWN(1000, 0), DOWN(1000, 1), UP(6000, 0), ENDS(7000)}},
	/* 10 ms from one site to the other. */
	{"two-sites", "pair", 2000,
	 .settings = "a:NCCL_MESH_SITE=east b:NCCL_MESH_SITE=west NCCL_MESH_DEBUG_LANES=3",
	 .events = {TAKES_MS(0, 0, 10), TAKES_MS(0, 1, 10), DOWN(4000, 0), UP(6000, 0),
		    IS_USED(12000, 0), ENDS(12000)}},
	{"slow-cable", "pair", 10000,
	 .events = {MBPS(1000, 0, 1), MBPS(8000, 0, 100), MBPS(10000, 1, 10), DOWN(11000, 0),
		    UP(13000, 0), ENDS(15000)}},
	/* A second later both carry what they can. */
	{"drop-to-a-tenth", "pair", 5000, .message_kib = 1000,
	 .events = {IS_USED(1000, 0), CARRIES(3000, 0, 100), CARRIES(3000, 1, 100),
		    MBPS(3000, 1, 10), IS_USED(4000, 0), CARRIES(6000, 0, 80), CARRIES(6000, 1, 8),
		    MBPS(6000, 1, 100), IS_USED(7000, 0), CARRIES(9000, 0, 100),
		    CARRIES(9000, 1, 100), ENDS(9000)}},
	{"ring-of-ranks", "triangle", 1000,
	 .settings = "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 NCCL_MESH_RELAY=job WORLD_SIZE=3 "
		     "a:RANK=0 b:RANK=1 c:RANK=2",
	 .events = {DOWN(1000, 1), UP(3000, 1), ENDS(6000)}},

	/* NICs that come later, or for a second time. */
	{"cable-added", "one", 1000,
	 .events = {PLUGGED(1000, 0, 1), IS_USED(3000, 1), DOWN(3000, 0), UP(6000, 0),
		    IS_USED(8000, 0), ENDS(8000)}},
	{"carrier-late", "pair", 1000, .absent = 2,
	 .events = {UP(2000, 1), IS_USED(4000, 1), DOWN(4000, 0), UP(7000, 0), ENDS(9000)}},
	/* The kernel does not tell a connection that its address is gone. */
	{"address-moves", "pair", 4000,
	 .events = {LOSES_ADDRESS(1000, 0, 1), HAS_ADDRESS(6000, 0, 1), IS_USED(9000, 1),
		    DOWN(9000, 0), UP(11000, 0), ENDS(13000)}},

	/* Drained cables. */
	{"drained-and-pulled", "pair", 1000,
	 .events = {DRAINED(500, 0, 1), IS_USED(1000, 0), IS_QUIET(1500, 1), DOWN(1500, 1),
		    UP(2500, 1), IS_QUIET(3500, 1), UNDRAINED(3500, 0, 1), IS_USED(5000, 1),
		    DOWN(5000, 0), UP(6000, 0), ENDS(8000)}},
	{"drained-at-both-ends", "pair", 1000,
	 .events = {DRAINED(500, 0, 0), DRAINED(600, 1, 0), UNDRAINED(1500, 0, 0),
		    IS_QUIET(2500, 0), UNDRAINED(2500, 1, 0), IS_USED(4000, 0), ENDS(4000)}},
	{"drained-only-cable", "one", 1000,
	 .events = {DRAINED(500, 0, 0), IS_USED(3000, 0), UNDRAINED(3000, 0, 0), ENDS(4000)}},
	/* Whoever loses its last cable takes the drained one. */
	{"drained-and-needed", "pair", 1000,
	 .events = {DRAINED(500, 1, 1), DOWN(2000, 0), IS_USED(4000, 1), UP(4000, 0),
		    UNDRAINED(6000, 1, 1), ENDS(7000)}},
	{"drained-before-the-start", "pair", 1000, .settings = "NCCL_MESH_DEBUG_MAX_PATHS=2",
	 .events = {DRAINED(500, 0, 1), IS_KILLED(1000, 0), STARTS(1500, 0), IS_QUIET(3500, 1),
		    UNDRAINED(3500, 0, 1), IS_USED(5000, 1), ENDS(5000)}},
};

CASES_MAIN
