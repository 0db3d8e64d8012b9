#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install-deps.sh - installs the packages that this project needs and that are missing.
#
# Usage: scripts/install-deps.sh [build|demo|test]   (default test: everything)
# Debian and Ubuntu (apt), Fedora (dnf), Arch (pacman): installs, as root or through sudo; on the
# last two what building and the demo need, as their test tools have other versions. Elsewhere:
# prints what is missing.
set -u

BUILD=(gcc libc6-dev pkg-config scons python3 libfabric-dev libnl-3-dev
	libjansson-dev libmicrohttpd-dev)
BUILD_DNF=(gcc glibc-devel pkgconf-pkg-config python3-scons python3 libfabric-devel libnl3-devel
	jansson-devel libmicrohttpd-devel)
BUILD_PACMAN=(gcc pkgconf scons python libfabric libnl jansson libmicrohttpd)
DEMO_DNF=(iproute procps-ng)
DEMO_PACMAN=(iproute2 procps-ng)
DEMO=(iproute2 procps)
# The virtual machine: its kernel's build, its tools, and what the plugin is compared with. Ubuntu
# lacks the key of Debian's archive, which a second libfabric comes from, too.
VM=(bc bison busybox debian-archive-keyring flex ibverbs-providers make xz-utils)
TEST=(libcmocka-dev mmdebstrap rpm rpmlint g++ clang clang-format shellcheck codespell cppcheck
	binutils git iputils-ping strace valgrind mandoc netplan.io gir1.2-nm-1.0 python3-gi
	python3-yaml nftables iptables ethtool libfabric-bin openssh-client openssh-server slurm-wlm
	graphviz systemd-container)
# arm64, emulated; its libraries come from Debian's archive on any system.
[[ $(uname -m) != x86_64 ]] || TEST+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	qemu-user-static)

say() { echo "install-deps: $*" >&2; }

installed() {
	[[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) == i* ]]
}

available() { apt-cache show "$1" >/dev/null 2>&1; }

as_root() {
	if ((EUID == 0)); then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		say "needs root: run as root, or install: $*"
		return 1
	fi
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
		--no-install-recommends "$@" >&2
}

# The fuzzer and the sanitizers of clang are in a package of their own that has clang's version.
clang_runtime() {
	local version

	version=$(clang -dumpversion 2>/dev/null) || return 0
	echo "libclang-rt-${version%%.*}-dev"
}

missing_of() {
	local package

	for package in "$@"; do
		installed "$package" || echo "$package"
	done
}

install_debian() {
	local missing runtime

	mapfile -t missing < <(missing_of "$@")
	if ((${#missing[@]})); then
		say "installing ${missing[*]}"
		as_root apt-get update -q >&2 || say "apt-get update failed; trying what is known"
		apt_install "${missing[@]}" || return 1
	fi
	runtime=$(clang_runtime)
	if [[ " $* " == *" clang "* && $runtime ]] && ! installed "$runtime" &&
		available "$runtime"; then
		apt_install "$runtime" || return 1
	fi
	# A test looks at the page with a real browser, where the system has one without a desktop.
	if [[ " $* " == *" clang "* ]] && ! installed chromium-headless-shell &&
		available chromium-headless-shell; then
		apt_install chromium-headless-shell fonts-dejavu-core || return 1
	fi
}

# Elsewhere the commands and the pkg-config modules are known, but not the packages' names.
report_other() {
	local what=$1 name missing=()

	for name in gcc pkg-config scons python3; do
		command -v "$name" >/dev/null || missing+=("$name")
	done
	for name in libfabric libnl-3.0 jansson; do
		pkg-config --exists "$name" 2>/dev/null || missing+=("$name (development files)")
	done
	if [[ $what != build ]]; then
		command -v ip >/dev/null || missing+=(iproute2)
	fi
	if [[ $what == test ]]; then
		for name in clang clang-format shellcheck codespell cppcheck; do
			command -v "$name" >/dev/null || missing+=("$name")
		done
	fi
	((${#missing[@]})) || return 0
	say "this system has none of apt, dnf and pacman; please install:"
	printf '  %s\n' "${missing[@]}" >&2
	return 1
}

main() {
	local what=${1:-test} packages=("${BUILD[@]}")

	case $what in
	build) ;;
	demo) packages+=("${DEMO[@]}") ;;
	test) packages+=("${DEMO[@]}" "${TEST[@]}" "${VM[@]}") ;;
	*)
		say "usage: $0 [build|demo|test]"
		return 2
		;;
	esac
	if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
		install_debian "${packages[@]}"
	elif command -v dnf >/dev/null; then
		[[ $what == build ]] || BUILD_DNF+=("${DEMO_DNF[@]}")
		as_root dnf install -y "${BUILD_DNF[@]}" >&2
	elif command -v pacman >/dev/null; then
		[[ $what == build ]] || BUILD_PACMAN+=("${DEMO_PACMAN[@]}")
		as_root pacman -S --needed --noconfirm "${BUILD_PACMAN[@]}" >&2
	else
		report_other "$what"
	fi
}

main "$@"
