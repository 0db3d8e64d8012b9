#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_mixed_versions.sh - a node of the previous protocol version is refused: both ranks name both
# nodes and versions, and neither waits for its timeout. One whose neighbour datagrams alone are
# older is connected to, and named.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

NEW=$MESH_BUILD/libnccl-net-mesh.so
OLDER=$MESH_BUILD/older/protocol/libnccl-net-mesh.so
OLDER_NEIGHBOURS=$MESH_BUILD/older/neighbours/libnccl-net-mesh.so
PROTOCOL=$(sed -n 's/^#define MESH_PROTOCOL_VERSION //p' "$MESH_TOP/src/wire/protocol.h")
VERSION=$(<"$MESH_TOP/VERSION")

# Neither end may wait for these.
FAULTS_ENV[0]=NCCL_MESH_CONNECT_TIMEOUT=600
FAULTS_ENV[1]=NCCL_MESH_ACCEPT_TIMEOUT=600
AT_ONCE=15000

# refused NAME LISTENER CONNECTOR: node a runs the plugin LISTENER and listens, b connects with the
# plugin CONNECTOR.
refused() {
	play a "$1-listener" "$2" <<-END
		listen 0 $FAULTS/$1
		! within $(ms $AT_ONCE) accept 0 0
		close-listen 0
	END
	play b "$1-connector" "$3" <<-END
		await $FAULTS/$1
		! within $(ms $AT_ONCE) connect 0 $FAULTS/$1
	END
	ended "$1-connector"
	ended "$1-listener"
}

# names NAME NODE PEER OURS THEIRS: the listener's log names both nodes, with their versions.
names() {
	said "$1-listener" WARN \
		"node $2 refused node $3 .*runs nccl-net-mesh $5, and we run nccl-net-mesh $4:"
}

faults_init
mesh_node a b
mesh_link a ab 10.77.1.1/24,fd77:1::1/64 b ba 10.77.1.2/24,fd77:1::2/64
new="$VERSION \(protocol $PROTOCOL\)" old="0\.0\.1 \(protocol $((PROTOCOL - 1))\)"

refused older-connects "$NEW" "$OLDER"
names older-connects a b "$new" "$old"
said older-connects-connector WARN "node b got a handle of another version .* from node a: $(
	)it has protocol $PROTOCOL, and nccl-net-mesh 0\.0\.1 here has $(
	)protocol $((PROTOCOL - 1))\."
refused newer-connects "$OLDER" "$NEW"
names newer-connects a b "$old" "$new"
said newer-connects-connector WARN "node b got a handle of another version .* from node a: $(
	)it has protocol $((PROTOCOL - 1)), and nccl-net-mesh $VERSION here has $(
	)protocol $PROTOCOL\."
for log in "$FAULTS"/*.log; do
	(($(grep -c "another version of this plugin\|refused node" "$log") == 1)) ||
		faults_show "$log does not name the versions once"
done
note "both ends fail at once, and name both nodes and versions, whichever is older"

# Two connections of one process to two listeners of another one share a peer, whose HELLO names
# one of the listeners.
play a two-listener <<END
listen 0 $FAULTS/two0
listen 1 $FAULTS/two1
thread 0 ! within $(ms $AT_ONCE) accept 0 0
thread 1 ! within $(ms $AT_ONCE) accept 1 1
join 0
join 1
END
play b two-connector "$OLDER" <<END
await $FAULTS/two1
thread 0 ! within $(ms $AT_ONCE) connect 0 $FAULTS/two0
thread 1 ! within $(ms $AT_ONCE) connect 1 $FAULTS/two1
join 0
join 1
END
ended two-connector
ended two-listener
note "so do two connections of one process to two listeners of another"

# ---- the neighbours' datagrams -----------------------------------------------------------------

# Without addresses of a subnet, only an answer says where a cable leads; without one that can be
# read, the connection tries its links.
mesh_node c d
mesh_link c cd "" d dc ""
play c listener <<END
$(meet listen 1M)
touch $FAULTS/listening
transfer 0 64K 20 1
await $FAULTS/asked
drop 0
close-listen 0
END
play d connector "$OLDER_NEIGHBOURS" <<END
$(meet connect 1M)
transfer 0 64K 20 1
touch $FAULTS/carried
await $FAULTS/asked
drop 0
END
arrives carried
on c timeout 60 "$MESH_BUILD/fi_mesh" neighbours >"$FAULTS/out" 2>&1
touch "$FAULTS/asked"
text="node d at cd has nccl-net-mesh 0.0.1, whose answers this one ($VERSION) cannot read"
tr -s ' \n' ' ' <"$FAULTS/out" | grep -qF "$text" ||
	faults_show "$(cat "$FAULTS/out")"
ended connector
ended listener
note "with older neighbour datagrams two nodes connect, and fi_mesh neighbours names both versions"
