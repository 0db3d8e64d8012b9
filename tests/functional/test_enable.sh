#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_enable.sh - `fi_mesh enable` and `disable`: programs with an empty environment find the
# plugin by NCCL's rules, and nothing is left afterwards. /etc is a folder of this test's own.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OUT=$(mktemp -d)
ETC=$OUT/etc
FI_MESH=$MESH_BUILD/fi_mesh
OPENER=$MESH_BUILD/functional/nccl_opener

# inside COMMAND...: on node a, with our folder for /etc, and an empty environment.
inside() {
	# shellcheck disable=SC2016 # the inner shell's
	on a unshare --mount --propagation private sh -c '
		mount --bind "$0/etc" /etc && mount --bind "$0/home" "$1" && shift &&
			mount -t tmpfs none /var/cache/ldconfig 2>/dev/null
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$OUT" "$HOME_OF_ROOT" "$@"
}

# opens FILE WORD...: a program like NCCL, called with these words, opens this file.
opens() {
	local said

	said=$(inside "$OPENER" "${@:2}" 2>"$OUT/said") || fail "no plugin: $(cat "$OUT/said")"
	[[ $said == "$1 Mesh"* ]] || fail "not $1, but: $said"
	OPENED=$said
}

opens_nothing() {
	! inside "$OPENER" >"$OUT/said" 2>&1 || fail "opened: $(cat "$OUT/said")"
}

# etc_make: what a distribution has there, and the program needs.
etc_make() {
	rm -rf "$ETC" "${OUT:?}/home"
	mkdir -p "$ETC" "$OUT/home"
	cp /etc/passwd /etc/nsswitch.conf /etc/ld.so.conf /etc/ld.so.cache "$ETC/"
	cp -a /etc/ld.so.conf.d /etc/alternatives "$ETC/"
}

# holds FILE TEXT: byte for byte.
holds() { [[ $(cat "$1"; echo .) == "$2." ]] || fail "$1: $(cat "$1")"; }

# The program in the build folder: no loader finds that folder, so the file has the path.
test_by_path() {
	etc_make
	opens_nothing
	inside "$FI_MESH" enable >"$OUT/said" || fail "enable: $(cat "$OUT/said")"
	grep -q "NCCL_NET_PLUGIN=$MESH_BUILD/libnccl-net-mesh.so" "$OUT/said" ||
		fail "$(cat "$OUT/said")"
	opens "$MESH_BUILD/libnccl-net-mesh.so"
	[[ $OPENED == *NCCL_NET_PLUGIN_REF_COUNT=1* ]] || fail "$OPENED"
	# The only NIC with a default route; all others are cables.
	[[ $OPENED == *NCCL_SOCKET_IFNAME==mgmt0* ]] || fail "$OPENED"
	[[ $OPENED == *"NCCL_NET=(not set)"* ]] || fail "$OPENED"
	inside "$FI_MESH" enable --strict --ifname none >/dev/null || fail "enable --strict"
	opens "$MESH_BUILD/libnccl-net-mesh.so"
	[[ $OPENED == *NCCL_NET=Mesh* && $OPENED == *"IFNAME=(not set)"* ]] || fail "$OPENED"
	[[ $(stat -c %a "$ETC/nccl.conf") == 644 ]] || fail "others cannot read it"
	inside "$FI_MESH" disable >/dev/null || fail disable
	[[ ! -e $ETC/nccl.conf ]] || fail "left: $(cat "$ETC/nccl.conf")"
	opens_nothing
	note "by path, strict, undone"
}

# Installed where the loader looks: the name is enough, also for the oldest NCCL and for RCCL.
test_by_name() {
	etc_make
	mkdir -p "$OUT/usr/bin" "$OUT/usr/lib"
	cp "$FI_MESH" "$OUT/usr/bin/"
	cp "$MESH_BUILD"/lib{nccl,rccl}-net-mesh.so "$OUT/usr/lib/"
	echo "$OUT/usr/lib" >"$ETC/ld.so.conf"
	inside ldconfig -X || fail ldconfig
	inside "$OUT/usr/bin/fi_mesh" enable --rccl >/dev/null || fail "enable --rccl"
	grep -qx NCCL_NET_PLUGIN=mesh "$ETC/nccl.conf" || fail "$(cat "$ETC/nccl.conf")"
	opens "$OUT/usr/lib/libnccl-net-mesh.so"
	opens "$OUT/usr/lib/libnccl-net-mesh.so" --before-2.21
	opens "$OUT/usr/lib/librccl-net-mesh.so" --rccl
	opens "$OUT/usr/lib/librccl-net-mesh.so" --rccl --before-2.21
	inside "$OUT/usr/bin/fi_mesh" disable --rccl >/dev/null || fail "disable --rccl"
	[[ ! -e $ETC/rccl.conf && -e $ETC/nccl.conf ]] || fail "$(ls "$ETC")"
	inside "$OUT/usr/bin/fi_mesh" disable >/dev/null || fail disable
	[[ ! -e $ETC/nccl.conf ]] || fail "nccl.conf is left"
	note "by name, for NCCL and RCCL of any version"
}

# The user's file takes precedence over the system's.
test_user() {
	etc_make
	printf 'NCCL_NET_PLUGIN=other\n' >"$ETC/nccl.conf"
	opens_nothing
	inside "$FI_MESH" enable --user >/dev/null || fail "enable --user"
	opens "$MESH_BUILD/libnccl-net-mesh.so"
	inside "$FI_MESH" disable --user >/dev/null || fail "disable --user"
	[[ -z $(ls -A "$OUT/home") ]] || fail "left: $(ls -A "$OUT/home")"
	holds "$ETC/nccl.conf" $'NCCL_NET_PLUGIN=other\n'
	note "--user"
}

# Each contradiction is named; the environment takes precedence.
test_foreign() {
	local said

	etc_make
	echo NCCL_NET_PLUGIN=ofi >"$ETC/nccl.conf"
	said=$(inside "$FI_MESH" enable 2>&1) && fail "enabled: $said"
	[[ $said == *'/etc/nccl.conf: line 1 has "NCCL_NET_PLUGIN=ofi'* ]] || fail "$said"
	holds "$ETC/nccl.conf" $'NCCL_NET_PLUGIN=ofi\n'
	echo A=1 >"$ETC/nccl.conf"
	inside "$FI_MESH" enable >/dev/null || fail enable
	said=$(inside env NCCL_NET_PLUGIN=none "$FI_MESH" enable) || fail "$said"
	[[ $said == *"But the environment has NCCL_NET_PLUGIN=none"* ]] || fail "$said"
	said=$(inside env NCCL_NET_PLUGIN=none "$FI_MESH" check --only environment 2>&1)
	[[ $said == *"/nccl.conf is not used: the environment takes precedence"* ]] || fail "$said"
	inside "$FI_MESH" disable >/dev/null || fail disable
	holds "$ETC/nccl.conf" $'A=1\n'
	chattr +i "$ETC/nccl.conf" 2>/dev/null || { note "foreign lines"; return; }
	said=$(inside "$FI_MESH" enable 2>&1) && fail "enabled: $said"
	chattr -i "$ETC/nccl.conf"
	holds "$ETC/nccl.conf" $'A=1\n'
	[[ $said == *"nothing was changed"* && $(find "$ETC" -name '*conf.??????') == "" ]] ||
		fail "$said"
	note "foreign lines, a file that cannot be written"
}

end() {
	local status=$?

	chattr -i "$ETC/nccl.conf" 2>/dev/null
	rm -rf "$OUT"
	(exit $status)
	mesh_cleanup
}

HOME_OF_ROOT=$(getent passwd root | cut -d: -f6)
mesh_init
trap end EXIT
mesh_up triangle
test_by_path
test_by_name
test_user
test_foreign
