# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# kallsyms.sh - hides /proc/kallsyms from the tests. To be sourced.
#
# libfabric's verbs provider reads it to its end, twice in each process, to learn whether the
# kernel has peer memory for GPUs (ib_register_peer_memory_client). The tests start thousands of
# processes, and where the kernel prints 120,000 symbols this is a third of their CPU time. An
# empty file says what is true of the test machines: no peer memory.

# kallsyms_hide COMMAND...: runs it in a mount namespace of its own, in place of the caller, if that
# can be made and the file is not hidden already. Mounts of the machine are still seen there.
kallsyms_hide() {
	read -r _ 2>/dev/null </proc/kallsyms || return 0
	unshare -m --propagation slave mount --bind /dev/null /proc/kallsyms 2>/dev/null || return 0
	exec unshare -m --propagation slave \
		sh -c 'mount --bind /dev/null /proc/kallsyms && exec "$@"' sh "$@"
}
