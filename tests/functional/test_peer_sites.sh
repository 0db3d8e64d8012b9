#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_peer_sites.sh - `fi_mesh check --peer` names the sites of both nodes; a check of another
# version of its protocol is refused, with both versions named, whichever end is the older one.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

MESH=$MESH_BUILD/fi_mesh

# check SITE [OPTION...]: from a, which is in that site.
check() {
	on a env NCCL_MESH_SITE="${1#-}" timeout 180 "$MESH" check --peer 10.77.1.2 "${@:2}" \
		>"$OUT/out" 2>"$OUT/err"
	(($? != 124)) || fail "the check does not end"
}

# says TEXT: and nothing else about sites.
says() {
	grep -qF -- "$1" "$OUT/out" || fail "no \"$1\" in: $(cat "$OUT/out" "$OUT/err")"
}

sites_are_named() {
	serve b
	check -
	! grep -q ' site' "$OUT/out" || fail "sites where none is set: $(cat "$OUT/out")"
	check north --json
	python3 - "$OUT/out" <<-'PY' || fail "the JSON is not as documented: $(cat "$OUT/out")"
		import json, sys
		root = json.load(open(sys.argv[1]))
		assert root["site"] == "north" and root["peers"][0]["site"] is None, root
		findings = root["peers"][0]["sections"][0]["findings"]
		finding, = [f for f in findings if "site" in f["text"]]
		assert finding["verdict"] == "warn", finding
		assert "node a is in site north, and node b has no site" in finding["text"], finding
		assert finding["fix"].startswith("set NCCL_MESH_SITE on node b as well"), finding
	PY
	end_serving
	serve b -- NCCL_MESH_SITE=north
	check north
	says "pass     paths          both nodes are in site north"
	check a-name-too-long-for-it
	says "pass     paths          two sites: this node is in a-name-too-long, node b in"
	says "node b in north; tcp paths"
	check -
	says "warn     paths          node b is in site north, and node a has no site"
	says "do:   set NCCL_MESH_SITE on node a as well"
	end_serving
	note "sites of both ends, of one, of none"
}

# A server of version 2 answers a HELLO of another version with an ERROR of that version.
older_server() {
	cat >"$OUT/older.py" <<-'PY'
		import errno, socket, struct
		listener = socket.create_server(("10.77.1.2", 18620))
		print("listening", flush=True)
		while True:
		    with listener.accept()[0] as client:
		        head = client.recv(16, socket.MSG_WAITALL)
		        if len(head) < 16:
		            continue
		        magic, version, kind, zero, length, number = struct.unpack("<IBBHII", head)
		        client.recv(length, socket.MSG_WAITALL)
		        words = "serve uses version 2, and check version %d" % version
		        client.sendall(struct.pack("<IBBHIIII", magic, version, 17, 0, 168, number,
		                                   errno.EPROTONOSUPPORT, 0) +
		                       words.encode().ljust(160, b"\0"))
		        client.recv(1)
	PY
	mesh_spawn b "$OUT/older" python3 "$OUT/older.py"
	wait_for "grep -q listening $OUT/older" 60 || fail "$(cat "$OUT/older")"
	check -
	says "fail     peer           10.77.1.2 cannot be checked over ab: serve uses version 2"
	says "and check version 4"
	says "do:   run the same version of fi_mesh on both nodes"
	kill "$MESH_SPAWNED"
	note "a server of version 2"
}

# What checks of earlier versions get from our server, and read as their own.
other_checks() {
	serve b
	on a python3 - <<-'PY' || fail "a check of another version: $(cat "$OUT/serve-b")"
		import errno, socket, struct
		for version, size in (1, 80), (2, 500), (3, 96):
		    with socket.create_connection(("10.77.1.2", 18620)) as server:
		        server.settimeout(30)
		        server.sendall(struct.pack("<IBBHII", 0x4b48434d, version, 1, 0, size, 77) +
		                       bytes(size))
		        answer = server.recv(16 + 168, socket.MSG_WAITALL)
		        head = struct.unpack_from("<IBBHII", answer)
		        assert head == (0x4b48434d, version, 17, 0, 168, 77), head
		        assert struct.unpack_from("<I", answer, 16)[0] == errno.EPROTONOSUPPORT
		        words = answer[24:].rstrip(b"\0").decode()
		        assert "version 4 of" in words, words
		        assert words.endswith("version %d" % version), words
		        assert server.recv(1) == b""
	PY
	check -
	says "first choice: ab 10.77.1.1 -> ba 10.77.1.2"
	end_serving
	note "checks of versions 1 to 3"
}

main() {
	mesh_init
	mesh_node a b
	mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
	sites_are_named
	older_server
	other_checks
}

main
