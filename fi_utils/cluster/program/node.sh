# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# node.sh - changes the network configuration of this node, and takes the change back by itself
# unless it is confirmed. Runs as root; POSIX shell.
#
# Usage: sh node.sh apply|down ID SECONDS       begins a change; prints "applied", or why not
#        sh node.sh confirm|cancel ID           keeps it; takes it back
#
# $S/next      what a change wants: tool, ports, want (lines PORT MTU ADDRESS), drop (lines PORT
#              ADDRESS), write and remove (paths), tree/ (content)
# $S/before    what the change found: tree/, absent and folders (paths that did not exist), runtime
# $S/original  the same, from before the first change, until `down`; files: all paths that changed,
#              removed: those of them that are gone since; made again they are not ours
S=${FI_MESH_STATE:-/var/lib/nccl-net-mesh/up}

say() { echo "$*"; }

# --- what a node has -------------------------------------------------------------------------

# save FOLDER PATH: keeps the file, or remembers that there was none.
save() {
	mkdir -p "$1/tree$(dirname "$2")"
	if [ -e "$2" ] || [ -L "$2" ]; then
		cp -a "$2" "$1/tree$2"
		return
	fi
	echo "$2" >>"$1/absent"
	folder=$(dirname "$2")
	while [ ! -d "$folder" ]; do
		echo "$folder" >>"$1/folders"
		folder=$(dirname "$folder")
	done
}

# restore FOLDER PATH: the file is again as save() found it.
restore() {
	if grep -qxF "$2" "$1/absent" 2>/dev/null; then
		rm -f "$2"
	else
		mkdir -p "$(dirname "$2")"
		rm -f "$2.mesh-new"
		cp -a "$1/tree$2" "$2.mesh-new" && mv -f "$2.mesh-new" "$2"
	fi
}

# folders_remove FOLDER: folders that did not exist, the deepest first; one in use stays.
folders_remove() {
	[ -e "$1/folders" ] || return 0
	sort -ru "$1/folders" | while read -r folder; do rmdir "$folder" 2>/dev/null; done
}

addresses_of() { ip -o address show dev "$1" scope global 2>/dev/null | awk '{print $4}'; }
mtu_of() { cat "/sys/class/net/$1/mtu" 2>/dev/null; }

# port_line PORT: "PORT MTU up|down ADDRESS..."
port_line() {
	state=down
	ip -o link show dev "$1" | grep -q '[<,]UP[,>]' && state=up
	# Set up to look for its cable, just before.
	! grep -qxF "$1" "$S/next/was_down" 2>/dev/null || state=down
	# shellcheck disable=SC2046 # one word for each address
	echo "$1 $(mtu_of "$1") $state" $(addresses_of "$1")
}

# as_found FILE: whether NICs are as port_line() found them, in any order of addresses; prints the
# first that is not.
as_found() {
	while read -r port rest; do
		# shellcheck disable=SC2046,SC2086 # one line for each word
		[ "$(printf '%s\n' $(port_line "$port") | sort)" = \
			"$(printf '%s\n' "$port" $rest | sort)" ] ||
			{
				say "$port is not as before: it had MTU, state and addresses $rest"
				return 1
			}
	done <"$1"
}

# runtime_restore FILE: NICs are again as port_line() found them.
runtime_restore() {
	while read -r port mtu state addresses; do
		for address in $(addresses_of "$port"); do
			case " $addresses " in
			*" $address "*) ;;
			*) ip address del "$address" dev "$port" ;;
			esac
		done
		ip link set dev "$port" mtu "$mtu"
		for address in $addresses; do
			ip address replace "$address" dev "$port"
		done
		[ "$state" = up ] || ip link set dev "$port" down
	done <"$1"
}

# sysctl_lines PATH: the present values of what a file for sysctl sets.
sysctl_lines() {
	sed -n 's/^ *\([a-z0-9_.]*\) *=.*/\1/p' "$1" | while read -r name; do
		echo "$name=$(sysctl -n "$name")"
	done
}

# --- the node's own tool ---------------------------------------------------------------------

# tool_apply TOOL PORTS: makes the files count.
tool_apply() {
	case $1 in
	netplan) netplan apply ;;
	nm)
		nmcli connection reload || return 1
		for port in $2; do
			[ -e "/etc/NetworkManager/system-connections/mesh-$port.nmconnection" ] ||
				continue
			nmcli -w 15 connection up "mesh-$port" || return 1
		done
		;;
	networkd)
		networkctl reload || return 1
		# shellcheck disable=SC2086 # one word for each NIC
		networkctl reconfigure $2
		;;
	ip)
		[ -e "$S/next/want" ] || return 0
		while read -r port mtu address; do
			ip link set dev "$port" mtu "$mtu" up &&
				ip address replace "$address" dev "$port" || return 1
		done <"$S/next/want"
		;;
	esac
}

# tool_back TOOL: as tool_apply, after the files are back. A failure is not the end: the
# addresses are restored behind it.
tool_back() {
	case $1 in
	netplan) netplan apply ;;
	nm)
		nmcli connection reload
		while read -r port uuid; do
			if [ "$uuid" ]; then
				nmcli -w 15 connection up uuid "$uuid"
			else
				nmcli device disconnect "$port"
			fi
		done <"$2/connections"
		;;
	networkd)
		networkctl reload
		# shellcheck disable=SC2046
		networkctl reconfigure $(cut -d' ' -f1 "$2/runtime")
		;;
	esac
}

# wanted: whether the NICs have what was asked for; prints the first that has not.
wanted() {
	[ -e "$S/next/want" ] || return 0
	while read -r port mtu address; do
		if [ "$(mtu_of "$port")" != "$mtu" ]; then
			say "$port has MTU $(mtu_of "$port" | grep . || echo unknown), not $mtu"
			return 1
		fi
		case " $(addresses_of "$port" | tr '\n' ' ') " in
		*" $address "*) ;;
		*) say "$port has no address $address"; return 1 ;;
		esac
		[ "$(addresses_of "$port" | grep -vc '^169\.254\.')" = 1 ] ||
			{ say "$port also has other addresses, from another file"; return 1; }
	done <"$S/next/want"
}

# --- a change --------------------------------------------------------------------------------

paths_of() { cat "$S/next/write" "$S/next/remove" 2>/dev/null; }

# before_save: everything that the change touches.
before_save() {
	rm -rf "$S/before"
	mkdir -p "$S/before/tree"
	: >"$S/before/absent"
	paths_of | while read -r path; do
		save "$S/before" "$path" || { say "cannot save $path"; exit 1; }
	done || return 1
	: >"$S/before/runtime"
	: >"$S/before/connections"
	: >"$S/before/sysctl"
	tr ' ' '\n' <"$S/next/ports" | grep . | while read -r port; do
		port_line "$port" >>"$S/before/runtime"
		[ ! -e "/sys/class/net/$port" ] ||
			{ ip -o address show dev "$port" >/dev/null && [ "$(mtu_of "$port")" ]; } ||
			{ say "cannot read what $port has"; exit 1; }
		[ "$(cat "$S/next/tool")" != nm ] || echo "$port" "$(nmcli -g GENERAL.CON-UUID \
			device show "$port" 2>/dev/null)" >>"$S/before/connections"
	done || return 1
	paths_of | grep '^/etc/sysctl.d/' | while read -r path; do
		for file in "$S/next/tree$path" "$path"; do
			[ ! -e "$file" ] || sysctl_lines "$file"
		done
	done >>"$S/before/sysctl"
	cp "$S/next/tool" "$S/before/tool" && sync # before a file goes
}

files_install() {
	while read -r path; do
		mkdir -p "$(dirname "$path")"
		cp -a "$S/next/tree$path" "$path.mesh-new" && mv -f "$path.mesh-new" "$path" ||
			return 1
		command -v restorecon >/dev/null && restorecon "$path"
		case $path in
		/etc/sysctl.d/*) sysctl -q -p "$path" || return 1 ;;
		esac
	done <"$S/next/write"
	[ ! -e "$S/next/remove" ] || while read -r path; do rm -f "$path"; done <"$S/next/remove"
	return 0
}

# change_make: status 1 with the reason in $S/reason if the node is not as wanted.
change_make() {
	files_install || { say "cannot write the files" >"$S/reason"; return 1; }
	if [ "$(cat "$S/kind")" = down ]; then
		tool_back "$(cat "$S/next/tool")" "$S/original"
		runtime_restore "$S/original/runtime"
		sysctl_restore "$S/original"
		folders_remove "$S/original"
		return 0
	fi
	# First: what the tool adds again is in a file that is not ours.
	[ ! -e "$S/next/drop" ] || while read -r port address; do
		ip address del "$address" dev "$port"
	done <"$S/next/drop"
	tool_apply "$(cat "$S/next/tool")" "$(cat "$S/next/ports")" ||
		{ say "$(cat "$S/next/tool") refuses the configuration: $(tail -n 1 "$S/log")" \
			>"$S/reason"; return 1; }
	tries=40
	until wanted >"$S/reason"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.5
	done
}

sysctl_restore() {
	[ -s "$1/sysctl" ] || return 0
	while read -r line; do sysctl -q -w "$line"; done <"$1/sysctl"
}

change_undo() {
	paths_of | while read -r path; do restore "$S/before" "$path"; done
	folders_remove "$S/before"
	tool_back "$(cat "$S/before/tool")" "$S/before"
	runtime_restore "$S/before/runtime"
	sysctl_restore "$S/before"
	tries=10
	until as_found "$S/before/runtime" >"$S/differs"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || break
		sleep 0.5
	done
}

# change_keep: what was found becomes part of the original, unless it is our own.
change_keep() {
	mkdir -p "$S/original/tree"
	touch "$S/original/runtime" "$S/original/connections" "$S/original/sysctl" "$S/files" \
		"$S/original/absent" "$S/original/folders"
	paths_of | while read -r path; do
		! grep -qxF "$path" "$S/files" || continue
		if grep -qxF "$path" "$S/before/absent"; then
			echo "$path" >>"$S/original/absent"
		else
			mkdir -p "$S/original/tree$(dirname "$path")" &&
				cp -a "$S/before/tree$path" "$S/original/tree$path" || exit 1
		fi
		echo "$path" >>"$S/files"
	done || return 1
	cat "$S/original/removed" "$S/next/remove" 2>/dev/null |
		grep -vxF -f "$S/next/write" >"$S/removed"
	mv "$S/removed" "$S/original/removed"
	[ ! -e "$S/before/folders" ] || cat "$S/before/folders" >>"$S/original/folders"
	for file in runtime connections sysctl; do
		while read -r line; do
			key=${line%%[ =]*}
			grep -q "^${key}[ =]" "$S/original/$file" ||
				echo "$line" >>"$S/original/$file"
		done <"$S/before/$file"
	done
	cp "$S/next/tool" "$S/original/tool" && sync
}

finish() { rm -rf "$S/pending" "$S/next" "$S/before" "$S/confirmed" "$S/cancelled" "$S/kind" \
	"$S/differs"; }

# work SECONDS: the change itself, which must not end with the connection that began it.
work() {
	trap '' HUP
	if change_make; then
		say applied >"$S/result"
		left=$(($1 * 2))
		while [ $left -gt 0 ] && [ ! -e "$S/cancelled" ]; do
			if [ -e "$S/confirmed" ]; then
				# The result first: answer() reads it when the change has ended.
				if [ "$(cat "$S/kind")" = down ]; then
					say restored >"$S/result"
					rm -rf "$S"
					rmdir "$(dirname "$S")" 2>/dev/null
				elif change_keep; then
					say kept >"$S/result"
					finish
				else
					say "$S cannot be written" >"$S/reason"
					break
				fi
				return
			fi
			sleep 0.5
			left=$((left - 1))
		done
		[ -e "$S/cancelled" ] || [ -s "$S/reason" ] ||
			say "not confirmed within $1 s" >"$S/reason"
	fi
	change_undo
	say "reverted: $(cat "$S/reason" 2>/dev/null)$(sed 's/^/; but /' "$S/differs")" >"$S/result"
	finish
}

guard_lives() {
	[ -e "$S/pending" ] && kill -0 "$(sed -n 2p "$S/pending")" 2>/dev/null
}

# leftover_undo: a change whose guard ended with the machine.
leftover_undo() {
	[ -e "$S/pending" ] || return 0
	if guard_lives; then
		say "another change of this node is not finished yet"
		return 1
	fi
	[ ! -e "$S/before/runtime" ] || change_undo >/dev/null 2>&1
	sed 's/^/; but /' "$S/differs" 2>/dev/null
	finish
}

# down_prepare: the next change is the original.
down_prepare() {
	mkdir -p "$S/next/tree"
	: >"$S/next/write"
	: >"$S/next/remove"
	while read -r path; do
		to=$path
		! grep -sqxF "$path" "$S/original/removed" || [ ! -e "$path" ] ||
			to=$path.before-mesh
		if grep -qxF "$path" "$S/original/absent"; then
			[ "$to" != "$path" ] || echo "$path" >>"$S/next/remove"
		else
			mkdir -p "$S/next/tree$(dirname "$path")"
			cp -a "$S/original/tree$path" "$S/next/tree$to"
			echo "$to" >>"$S/next/write"
		fi
	done <"$S/files"
	cut -d' ' -f1 "$S/original/runtime" | tr '\n' ' ' >"$S/next/ports"
	cp "$S/original/tool" "$S/next/tool"
}

# begin KIND ID SECONDS
begin() {
	[ "$(id -u)" = 0 ] || { say "needs root"; exit 1; }
	mkdir -p "$S" && chmod 700 "$S" || exit 1
	rm -f "$S/result" "$S/reason"
	[ "$1" = apply ] || {
		[ -e "$S/files" ] || { say "nothing to undo"; rm -rf "$S"; exit 0; }
		down_prepare
	}
	echo "$1" >"$S/kind"
	before_save || { finish; exit 1; }
	echo "$2" >"$S/pending"
	setsid sh "$S/node.sh" work "$3" >"$S/log" 2>&1 </dev/null &
	echo $! >>"$S/pending"
	tries=200
	while [ ! -e "$S/result" ] && [ $tries -gt 0 ]; do
		sleep 0.25
		tries=$((tries - 1))
	done
	cat "$S/result" 2>/dev/null || say "the change did not end"
	grep -qx applied "$S/result" 2>/dev/null || { tail -n 3 "$S/log" >&2; exit 1; }
}

# answer FILE ID: confirms or cancels, and waits for the end of the change.
answer() {
	[ "$(sed -n 1p "$S/pending" 2>/dev/null)" = "$2" ] ||
		{ cat "$S/result" 2>/dev/null || say "there is no such change"; exit 1; }
	: >"$S/$1"
	tries=160
	while [ -e "$S/pending" ] && [ $tries -gt 0 ]; do
		sleep 0.25
		tries=$((tries - 1))
	done
	cat "$S/result" 2>/dev/null || say restored
}

case $1 in
apply | down) begin "$1" "$2" "$3" ;;
confirm) answer confirmed "$2" ;;
cancel) answer cancelled "$2" ;;
work) work "$2" ;;
leftover) leftover_undo ;;
esac
