# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# debian.sh - packages of another Debian, through an apt state of their own. To be sourced.
#
# DEBIAN_STATE        the folder of that state, which the caller sets
# MESH_DEBIAN_MIRROR  a Debian archive (default: this machine's own, or deb.debian.org)
DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

debian_mirror() {
	local site

	# shellcheck disable=SC2016 # apt-get's own variable
	site=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m1 '/debian/\?$')
	echo "${MESH_DEBIAN_MIRROR:-${site:-http://deb.debian.org/debian}}"
}

# apt_own COMMAND ARGUMENT...: apt, apart from the machine's, which has no package installed.
apt_own() {
	local state=$DEBIAN_STATE command=$1

	shift
	"$command" -qq -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" \
		-o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache" \
		-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=- \
		-o Acquire::Languages=none -o APT::Sandbox::User=root \
		-o Acquire::http::Timeout=30 "$@"
}

# apt_own_update SUITE: makes the state, and asks the archive what SUITE has.
apt_own_update() {
	local state=$DEBIAN_STATE

	mkdir -p "$state/lists/partial" "$state/cache/archives/partial" || return
	: >"$state/status"
	echo "deb [signed-by=$DEBIAN_KEYRING] $(debian_mirror) $1 main" >"$state/sources.list"
	apt_own apt-get update -o APT::Update::Error-Mode=any >&2
}

# apt_own_candidate PACKAGE: the version that would be installed; status 1 if there is none.
apt_own_candidate() {
	local version

	version=$(apt_own apt-cache policy "$1" | sed -n 's/^ *Candidate: //p')
	[[ $version && $version != "(none)" ]] && echo "$version"
}
