# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# root.sh - arm64's libraries on another machine, and the build with them. To be sourced, in the
# tree's top folder. They are unpacked into build/arm64/root from Debian's archive; nothing is
# installed.
. tests/debian.sh

ARM64_TRIPLET=aarch64-linux-gnu
ARM64_ROOT=$PWD/build/arm64/root
ARM64_SUITE=bookworm
ARM64_PACKAGES=(libcmocka-dev libfabric-dev libjansson-dev libmicrohttpd-dev libnl-3-dev)

arm64_packages_fetch() {
	mkdir -p "$DEBIAN_STATE" "$1/partial" || return
	echo 'APT::Architecture "arm64"; APT::Architectures "arm64";' >"$DEBIAN_STATE/arm64.conf"
	export APT_CONFIG=$DEBIAN_STATE/arm64.conf
	apt_own_update $ARM64_SUITE && apt_own apt-get install --yes --download-only \
		--no-install-recommends -o "Dir::Cache::archives=$1" "${ARM64_PACKAGES[@]}" >&2
}

# arm64_root_make: status 1 if the archive does not give them.
arm64_root_make() {
	local package packages=build/arm64/packages
	# shellcheck disable=SC2034 # of debian.sh
	local DEBIAN_STATE=$PWD/build/arm64/apt

	# With other packages it is made anew.
	[[ $(cat "$ARM64_ROOT/complete" 2>/dev/null) != "${ARM64_PACKAGES[*]}" ]] || return 0
	rm -rf "$ARM64_ROOT"
	(arm64_packages_fetch "$PWD/$packages") || return
	# The cross compiler has a C library of its own; linker scripts are for a root file system.
	rm -f "$packages"/{libc6-dev,linux-libc-dev}_*.deb
	for package in "$packages"/*.deb; do
		dpkg-deb --extract "$package" "$ARM64_ROOT" || return
	done
	rm -rf "$packages"
	echo "${ARM64_PACKAGES[*]}" >"$ARM64_ROOT/complete"
}

# arm64_scons LDFLAGS ARGUMENT...: builds for arm64. The libraries that their packages keep in /lib
# are as good as those in /usr/lib.
arm64_scons() {
	local folder flags=$1

	shift
	for folder in "$ARM64_ROOT/usr/lib/$ARM64_TRIPLET" "$ARM64_ROOT/lib/$ARM64_TRIPLET"; do
		flags+=" -L$folder -Wl,-rpath-link,$folder"
	done
	PKG_CONFIG_SYSROOT_DIR=$ARM64_ROOT \
		PKG_CONFIG_LIBDIR=$ARM64_ROOT/usr/lib/$ARM64_TRIPLET/pkgconfig \
		scons -Q CC=$ARM64_TRIPLET-gcc "CFLAGS=-isystem $ARM64_ROOT/usr/include" \
		"LDFLAGS=$flags" "$@"
}
