#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_page.sh - `fi_mesh serve --http`: what the page has, who may read it and how, and what a
# real browser makes of it (a headless Chromium, where there is one).
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

MESH=$MESH_BUILD/fi_mesh
# Of other tests' processes nothing is to be seen.
export NCCL_MESH_STATS_DIR=$OUT/stats

# get PATH [CURL-LIKE OPTION...]: status and type on the first line, then the body.
get() {
	on mgmt python3 "$MESH_TOP/tests/functional/http_get.py" \
		"http://$ADDRESS:18622$1" "${@:2}"
}

# refused WORDS ADDRESS: --http with that address ends with 1, and says so.
refused() {
	on a timeout 20 "$MESH" serve --http "$2" >"$OUT/refused" 2>&1
	[[ $? == 1 ]] && grep -qF -- "$1" "$OUT/refused" ||
		fail "--http $2 is not refused as '$1': $(cat "$OUT/refused")"
}

addresses_are_checked() {
	refused "is on ab, which carries the mesh" 10.77.1.1
	refused "not all of them" 0.0.0.0
	refused "not all of them" ::
	refused "Cannot assign requested address" 10.77.0.250
	on a timeout 20 "$MESH" serve >"$OUT/plain" 2>&1 &
	wait_for "grep -q '^answering' $OUT/plain" 60 || fail "$(cat "$OUT/plain")"
	get / >/dev/null 2>&1 &&
		fail "a page that is off is served"
	mesh_namespace_pids "$(mesh_ns a)" | xargs -r kill -INT
	wait
	note "the page is off by default, and on one address of the management network only"
}

# On a cable that is slow enough for them to leave the cores to others.
ranks_start() {
	local rank=0 node

	mesh_shape a ab 100mbit
	mesh_shape b ba 100mbit
	for node in a b; do
		mesh_spawn $node "$OUT/rank$rank" env RANK=$rank WORLD_SIZE=2 \
			MASTER_ADDR="$(mesh_mgmt_addr a)" MASTER_PORT=29500 \
			timeout -k 5 240 "$MESH_BUILD/fabric_pingpong" --sizes 4M --iters 1000000
		rank=1
	done
}

documents_are_right() {
	local path

	get / >"$OUT/index" || fail "no page: $(cat "$OUT/index")"
	grep -q '^200 text/html' "$OUT/index" && grep -q 'Content-Security-Policy' "$OUT/index" ||
		fail "$(cat "$OUT/index")"
	for path in page.css page.js mesh.svg mesh.json watch.json check.json; do
		get /$path >"$OUT/$path" || fail "$path: $(cat "$OUT/$path")"
		grep -q "$path" "$OUT/index" "$OUT/page.js" || fail "$path is not used"
	done
	python3 - "$OUT" <<-'PY' || fail "the documents are not as expected"
		import json, sys
		def body(name):
		    return open(sys.argv[1] + "/" + name).read().partition("\n\n")[2]
		mesh, watch, check = (json.loads(body(name + ".json"))
		                      for name in ("mesh", "watch", "check"))
		assert mesh["nodes"][0]["name"] == "a" and len(mesh["nodes"]) == 3, mesh["nodes"]
		(ab,) = [nic for nic in mesh["nodes"][0]["nics"] if nic["name"] == "ab"]
		assert ab["tx_bytes_per_s"] > 1e6, ab
		assert {nic["netdev"] for nic in watch["nics"]} == {"ab", "ac"}, watch["nics"]
		assert any(link["peer"] == "b" and link["open_paths"]
		           for link in watch["links"]), watch
		assert len(check["checks"]) > 10, check
		assert "</svg>" in body("mesh.svg")
	PY
	note "picture, rates, paths and checks are there"
}

# It can only be read, and only by its own name.
requests_are_refused() {
	get /../etc/passwd >"$OUT/refused" && fail "$(cat "$OUT/refused")"
	grep -q '^404 ' "$OUT/refused" || fail "$(cat "$OUT/refused")"
	for method in POST PUT DELETE OPTIONS; do
		get / --method $method >"$OUT/refused"
		grep -q '^405 ' "$OUT/refused" || fail "$method: $(cat "$OUT/refused")"
	done
	# The second one is this node's name in a domain of somebody else's (DNS rebinding).
	for host in evil.example a.evil.example:80 a.local.evil.example; do
		get / --host "$host" >"$OUT/refused"
		grep -q '^421 ' "$OUT/refused" || fail "$host: $(cat "$OUT/refused")"
	done
	for host in a A.local:80 localhost:8080 '[fd77::1]:80' 10.1.2.3; do
		get / --host "$host" >"$OUT/refused" || fail "$host: $(cat "$OUT/refused")"
	done
	# Noise in place of a request, and a connection that sends nothing, disturb no one else.
	on mgmt python3 - "$ADDRESS" <<-'PY' || fail "noise"
		import os, socket, sys
		idle = socket.create_connection((sys.argv[1], 18622))
		long = b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 9999
		for text in b"\0" * 100, os.urandom(4096), long:
		    with socket.create_connection((sys.argv[1], 18622)) as noise:
		        noise.settimeout(20)
		        try:
		            noise.sendall(text)
		            noise.recv(100)
		        except OSError:
		            pass
	PY
	get /check.json >"$OUT/refused" || fail "after noise: $(cat "$OUT/refused")"
	note "other methods, hosts and paths are refused"
}

browser() {
	on mgmt timeout 120 "$BROWSER" --no-sandbox --disable-gpu --user-data-dir="$OUT/browser" \
		--window-size=1240,2200 --virtual-time-budget=9000 "$@" \
		"http://$ADDRESS:18622/" 2>"$OUT/browser.log"
}

browser_shows_it() {
	BROWSER=$(command -v chromium-headless-shell || command -v chromium) || {
		note "left, as there is no Chromium (Debian: chromium-headless-shell): the browser"
		return
	}
	browser --dump-dom >"$OUT/dom" || fail "$(cat "$OUT/browser.log")"
	for text in '<span id="node">a</span>' '<td>kernel (TCP)</td>' '<td class="up">' \
		'<td class="pass">pass</td>' 'src="blob:'; do
		grep -qF "$text" "$OUT/dom" ||
			fail "the browser does not show $text: $(cat "$OUT/dom")"
	done
	grep -q 'class="error"[^>]*>[^<]' "$OUT/dom" && fail "errors: $(cat "$OUT/dom")"
	browser --screenshot="$OUT/page.png" || fail "$(cat "$OUT/browser.log")"
	python3 "$MESH_TOP/tests/functional/png_colours.py" "$OUT/page.png" 2f9461 ||
		fail "the picture of the mesh is not in $OUT/page.png"
	rm -rf "$OUT/browser"
	note "a headless browser shows the picture and the tables"
}

mesh_init
mesh_up triangle
ADDRESS=$(mesh_mgmt_addr a)
on a "$MESH" serve --http 0.0.0.0 2>&1 | grep -q 'built without' &&
	skip "built without libmicrohttpd (scripts/install-deps.sh)"
addresses_are_checked
serve b c
serve a -- --http "$ADDRESS"
serving_await a page:
ranks_start
wait_for "get /watch.json | grep -q '\"open_paths\":[1-9]'" 120 ||
	fail "no path is open: $(cat "$OUT"/rank* "$OUT/serve-a")"
documents_are_right
requests_are_refused
browser_shows_it
end_serving
