# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# containers.sh - the Dockerfile and the CDI file with podman; sourced by run.
#
# Images come from the clean root of Ubuntu 24.04, not from a registry, and lie in a folder of their
# own. GPUs are not needed: containers run on the host's network, over the loopback interface.

PODMAN=()
CONTAINERS=
CDI=

containers_leave() {
	local status=$?

	trap - EXIT
	[[ ! $CDI ]] || rm -f "$CDI"
	if [[ $CONTAINERS ]]; then
		"${PODMAN[@]}" rmi --all --force >/dev/null 2>&1
		umount "$CONTAINERS/root/overlay" 2>/dev/null
		rm -rf --one-file-system "$CONTAINERS"
	fi
	exit $status
}

# in_container OPTION... -- COMMAND...: with limits that this machine surely allows.
in_container() {
	local options=()

	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	timeout 300 "${PODMAN[@]}" run --rm --network host --ulimit nofile=1024:1024 \
		--ulimit nproc=4096:4096 "${options[@]}" localhost/mesh "$@" \
		2>"$CONTAINERS/errors" || fail "in a container: $(tail -n 5 "$CONTAINERS/errors")"
}

image_build() {
	local tar

	tar=$(root_tar noble) || skip "containers: the archive of Ubuntu 24.04 cannot be reached"
	"${PODMAN[@]}" import --quiet "$tar" localhost/noble >/dev/null 2>&1 ||
		skip "containers: podman cannot import an image here"
	mkdir "$CONTAINERS/packages"
	cp "$PACKAGES/nccl-net-mesh_$(cat VERSION)-1_amd64.deb" "$CONTAINERS/packages/"
	"${PODMAN[@]}" build --isolation chroot --network host --build-arg IMAGE=localhost/noble \
		--file packaging/container/Dockerfile --tag localhost/mesh "$CONTAINERS/packages" \
		>"$CONTAINERS/build" 2>&1 || fail "Dockerfile: $(tail -n 5 "$CONTAINERS/build")"
	note "containers: podman builds the Dockerfile"
}

# The devices of this node are stand-ins: what counts is that they are where RDMA looks for them.
cdi_works() {
	local root=$CONTAINERS/node kind=nccl-net-mesh-test-$$ said name
	local plugin=/opt/nccl-net-mesh/libnccl-net-mesh.so

	mkdir -p "$root/dev/infiniband" "$root/usr/lib/x86_64-linux-gnu" /var/run/cdi
	for name in uverbs0 uverbs1 rdma_cm; do
		mknod "$root/dev/infiniband/$name" c 1 3 || fail "mknod"
	done
	cp "${MESH_BUILD:-build}/libnccl-net-mesh.so" "$root/usr/lib/x86_64-linux-gnu/"
	CDI=/var/run/cdi/$kind.json
	packaging/container/cdi.py --root "$root" | sed "s|nccl-net-mesh/node|$kind/node|" >"$CDI"
	said=$(in_container --device "$kind/node=all" -v "$PWD/$OPENER:/opener:ro" -- \
		sh -c 'ls /dev/infiniband; printenv NCCL_NET; /opener') || exit 1
	[[ $said == $'rdma_cm\nuverbs0\nuverbs1\nMesh\n'"$plugin Mesh"* ]] || fail "CDI: $said"
	note "containers: the CDI file brings devices, plugin and variables"
}

# rank N: fabric_pingpong in a container of its own.
rank() {
	in_container -e NCCL_MESH_NICS=lo -e RANK="$1" -e WORLD_SIZE=2 -e MASTER_ADDR=127.0.0.1 \
		-e MASTER_PORT=$((20000 + $$ % 10000)) -- fabric_pingpong --check --check-max 8
}

containers_run() {
	local said

	for tool in podman runc; do
		command -v $tool >/dev/null || skip "containers: '$tool' is missing"
	done
	trap containers_leave EXIT
	CONTAINERS=$(mktemp -d)
	PODMAN=(podman --root "$CONTAINERS/root" --runroot "$CONTAINERS/run" --runtime runc
		--cgroup-manager cgroupfs)
	image_build
	said=$(in_container -v "$PWD/$OPENER:/opener:ro" -- /opener) || exit 1
	[[ $said == */libnccl-net-mesh.so" Mesh"* ]] || fail "the image's plugin: $said"
	cdi_works
	rank 0 >"$CONTAINERS/rank0" &
	rank 1 >"$CONTAINERS/rank1" || fail "rank 1"
	wait $! || fail "rank 0: $(cat "$CONTAINERS/rank0")"
	grep -q '^ok$' "$CONTAINERS/rank0" || fail "$(cat "$CONTAINERS/rank0")"
	note "containers: two of them, without a setting of the plugin's, move data"
}
