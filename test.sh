#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh - all checks, on a clean checkout of a fresh machine as in CI.
#
# Usage: ./test.sh [quick | loaded | long | STEP...]      ./test.sh list names the steps
# quick    deps gcc unit lint
# loaded   what runs without arguments, beside 8 busy loops: no test may need an idle machine
# long     hours, for a release: also the tests that are marked as long (tests/jobs.sh), fuzzing for
#          an hour, and the steps packages (loads whole distributions), seeds (of the world), soak
#          (1,000 faults) and mutants
#
# FUZZ_SECONDS   time for each fuzz target (default 5; long: 240)
# FUZZ_SEED      where its search begins (default 1: all runs of a commit go the same way; 0: each
#                run goes another one)
# NCCL_SRC       an NCCL source tree: include/nccl is compared with its headers
# LIBFABRIC_PREFIX  where another libfabric is installed, to test with instead of Debian 13's
# TEST_TIMEOUT   seconds that one functional test may take
# TEST_JOBS      functional tests at a time (default: four times as many as there are cores)
# TEST_AGAIN     tests of each run that may fail once and are then run by themselves (default 3; see
#                tests/again.sh); they are printed as FLAKY
# Logs are in build/log. Ends with 'N passed, N failed, N skipped', where a step counts its tests
# or, having none, itself. Exit status 1 if anything failed.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
# shellcheck source=tests/again.sh
. tests/again.sh
# shellcheck source=tests/kallsyms.sh
. tests/kallsyms.sh
export TEST_AGAIN=${TEST_AGAIN:-3}

STEPS=(deps gcc unit lint install clang arm64 functional cost vm asan tsan fuzz nccl libfabric
	tree)
QUICK=(deps gcc unit lint)
LONG=(packages seeds soak mutants)
SKIP=77
FUZZ_SEED=${FUZZ_SEED:-1}
# With another libfabric: what asks the most of it.
LIBFABRIC_FUNCTIONAL=${LIBFABRIC_FUNCTIONAL:-test_close_in_flight test_descriptors
	test_libfabric_versions test_providers test_sizes}
# The others call nothing of libfabric.
LIBFABRIC_UNIT="control fabric nccl relay setup transport world"
JOBS=$(nproc)
LOGS=build/log
ASAN_BUILD=build/sanitize-address-undefined
TSAN_BUILD=build/sanitize-thread
# What the unit tests and the world do not reach: programs, bytes of strangers, the kernel's own
# errors. By hand all run: MESH_BUILD=build/sanitize-address-undefined tests/functional/run
ASAN_FUNCTIONAL=${ASAN_FUNCTIONAL:-test_abort test_close_in_flight test_connect_fails
	test_damaged_stream test_descriptors test_drain test_enable test_fault_soak
	test_foreign_handle test_forged_hello test_kills test_neighbour_flood
	test_plan_interrupt test_ranks test_serve_relay test_sizes test_watch}
# TSan is for races between the plugin's threads. Tests that read memory while it is being written
# (test_close_in_flight, test_ll_placement) race by design, and the first one also closes a comm
# before it joins the thread that tests its requests; all tests run under ASan.
TSAN_FUNCTIONAL=${TSAN_FUNCTIONAL:-test_close_asleep test_connect_fails test_cut_others
	test_descriptors test_firewall_reset test_foreign_handle test_peer_killed test_ranks
	test_sizes}
# The others have one thread.
TSAN_UNIT="base control fabric nccl neighbours relay setup system transport"

# Freed memory that is kept counts as used: less than what tests allow a process to keep.
ASAN_STANDARD=detect_stack_use_after_return=1:strict_string_checks=1:quarantine_size_mb=32
export ASAN_OPTIONS=${ASAN_OPTIONS:-$ASAN_STANDARD}
SUPPRESSIONS=$PWD/tests/sanitizers
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$SUPPRESSIONS/lsan.supp:print_suppressions=0}
# A test program that receives a signal exits from its signal handler.
TSAN_STANDARD=suppressions=$SUPPRESSIONS/tsan.supp:history_size=4:report_signal_unsafe=0
export TSAN_OPTIONS=${TSAN_OPTIONS:-$TSAN_STANDARD}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

skip() { echo "SKIP: $*"; return $SKIP; }
have() { command -v "$1" >/dev/null; }
build() { scons -j "$JOBS" -Q werror=1 "$@"; }

# unit_targets BUILD: the targets of the unit tests in $UNIT_FOLDERS of tests/unit and of
# tests/world; "": of all.
unit_targets() {
	local folder name

	[[ ${UNIT_FOLDERS:-} ]] || echo test
	for folder in ${UNIT_FOLDERS:-}; do
		if [[ $folder == world ]]; then
			echo world
			continue
		fi
		for name in tests/unit/"$folder"/test_*.c; do
			echo "$1/unit/$(basename "$name" .c).passed"
		done
	done
}

# unit_tests BUILD SCONS_ARGUMENT...: runs those of unit_targets, unchanged ones too.
unit_tests() {
	local folder=$1 out status targets

	mapfile -t targets < <(unit_targets "$1")
	shift
	rm -f "$folder"/unit/*.passed
	out=$(mktemp)
	build -k "$@" "${targets[@]}" 2>&1 | sed -u 's/^FAIL /failed: /' | tee "$out"
	status=${PIPESTATUS[0]}
	if ((status)); then
		unit_tests_again "$folder" "$out" "$@"
		status=$?
	fi
	if ! grep -qE '^(PASS|FAIL|SKIP) ' "$out"; then
		echo "no unit test ran"
		status=1
	fi
	count_line "$out"
	rm -f "$out"
	return "$status"
}

# unit_tests_again FOLDER LOG SCONS_ARGUMENT...: runs the tests again that failed, one at a time.
# All that is printed is added to LOG. The targets are those of unit_tests().
unit_tests_again() {
	local folder=$1 log=$2 names name status JOBS=1

	mapfile -t names < <(sed -nE 's/^failed: (\S+).*/\1/p' "$log")
	((${#names[@]})) || return 1 # something was not built
	AGAIN=0
	for name in "${names[@]}"; do
		again_may "$log" && continue
		printf 'FAIL %s\n' "${names[@]}" | tee -a "$log"
		return 1
	done
	cp "$log" "$folder/unit/first.log"
	build -k "${@:3}" "${targets[@]}" 2>&1 | sed -u '/^SKIP /d' | tee -a "$log"
	status=${PIPESTATUS[0]}
	for name in "${names[@]}"; do
		! grep -q "^PASS $name\$" "$log" || again_print "$name" "$folder/unit/first.log"
	done
	return "$status"
}

# Adds up the PASS, FAIL and SKIP lines of a log.
count_line() {
	awk '/^PASS /{p++} /^FAIL /{f++} /^SKIP /{s++}
		END {printf "%d passed, %d failed, %d skipped\n", p, f, s}' "$1"
}

# counted COMMAND...: runs it, and counts the results in its output.
counted() {
	local log status

	log=$(mktemp)
	"$@" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	((status == SKIP)) || count_line "$log"
	rm -f "$log"
	return "$status"
}

# Children of the sanitizer's runtime need a layout of memory that it knows.
fixed_layout() {
	if setarch "$(uname -m)" -R true 2>/dev/null; then
		setarch "$(uname -m)" -R "$@"
	else
		"$@"
	fi
}

# --- the steps: status 0, 77 for a skip, anything else is a failure --------------------------

step_deps() { scripts/install-deps.sh test; }
step_gcc() { build CC=gcc; }
step_unit() { unit_tests build CC=gcc; }
step_lint() { tests/lint/run; }

# A second compiler's warnings, and the lock contract, which only clang checks. The unit tests run
# as gcc compiles them, and where char has no sign in the step arm64.
step_clang() {
	have clang || { skip "clang is not installed"; return; }
	build CC=clang CFLAGS=-funsigned-char
}

# Where DGX Spark lives.
step_arm64() { counted tests/arm64/run; }

step_functional() { tests/functional/run; }

# Random faults of all kinds in the world, SEEDS runs of each cabling.
step_seeds() {
	build CC=gcc world || return
	counted world_seeds
}

world_seeds() {
	local cabling

	for cabling in pair triangle line ring diamond; do
		seq -f "%g $cabling" "${SEEDS:-50}"
	done | xargs -P "$JOBS" -n 2 ./test.sh internal world_seed
}

# world_seed SEED CABLING: a run that can be repeated.
world_seed() {
	local log=build/log/world-$2-$1.log run="build/world/test_world $1 200 $2 all" status

	$run >"$log" 2>&1
	status=$?
	if ((status)); then
		echo "FAIL world_$2_$1: $(tail -n 1 "$log") (WORLD_TRACE=1 $run)"
	else
		echo "PASS world_$2_$1: $(tail -n 1 "$log")"
	fi
	return $status
}

# One long run of real kernels, of which half is waiting: two side by side.
step_soak() {
	build CC=gcc || return
	seq 2 | xargs -P 2 -n 1 tests/functional/soak 500
}

# A score to compare with that of other revisions (tests/mutants).
step_mutants() { build CC=gcc && tests/mutants; }

# Our own instructions for each message, against tests/bench/cost.json; what a start costs as the
# mesh grows.
step_cost() {
	build CC=gcc || return
	[[ ! ${MESH_AHEAD:-} ]] || flock "$MESH_AHEAD" true
	tests/bench/cost.py check && tests/bench/growth.py check
}

# Over RDMA devices.
step_vm() { build CC=gcc && tests/vm/run; }

step_asan() {
	build CC=gcc sanitize=address,undefined || return 1
	sanitized_tests $ASAN_BUILD sanitize=address,undefined "$ASAN_FUNCTIONAL"
}

step_tsan() {
	build CC=gcc sanitize=thread $TSAN_BUILD/{libnccl-net-mesh.so,fi_mesh,fabric_pingpong} \
		$TSAN_BUILD/functional || return 1
	UNIT_FOLDERS=$TSAN_UNIT sanitized_tests $TSAN_BUILD sanitize=thread "$TSAN_FUNCTIONAL"
}

# sanitized_tests BUILD OPTION FUNCTIONAL_TESTS: both kinds of tests.
sanitized_tests() {
	local log status=0

	log=$(mktemp)
	UNIT_FOLDERS=${UNIT_FOLDERS:-} \
		fixed_layout "$PWD/test.sh" internal unit_tests "$1" CC=gcc "$2" 2>&1 | tee "$log"
	((PIPESTATUS[0] == 0)) || status=1
	# shellcheck disable=SC2086 # one word per test
	TEST_TIMEOUT=${TEST_TIMEOUT:-1800} MESH_BUILD=$1 \
		fixed_layout tests/functional/run $3 2>&1 | tee -a "$log"
	((PIPESTATUS[0] == 0)) || status=1
	count_line "$log"
	rm -f "$log"
	return $status
}

# fuzz_one SOURCE: its whole output comes at the end, in one piece: others run beside it.
fuzz_one() {
	local name log seeds status=0

	name=$(basename "$1" .c)
	log=build/fuzz/$name.log
	seeds=("build/fuzz/corpus/$name")
	mkdir -p "${seeds[0]}"
	[[ ! -d tests/fuzz/corpus/$name ]] || seeds+=("tests/fuzz/corpus/$name")
	if "build/fuzz/$name" -max_total_time="$FUZZ_SECONDS" -seed="$FUZZ_SEED" \
		-timeout=30 -rss_limit_mb=2048 \
		-artifact_prefix=build/fuzz/ -verbosity=0 -print_final_stats=1 \
		"${seeds[@]}" >"$log" 2>&1; then
		echo "PASS $name" >>"$log"
	else
		status=1
		echo "FAIL $name (what broke it is in build/fuzz/)" >>"$log"
	fi
	flock build/fuzz/log cat "$log"
	return $status
}

# The logs of the targets that failed once more, at the end, where they are seen.
fuzz_failures() {
	local name

	sed -n 's/^FAIL \(\S*\) .*/\1/p' build/fuzz/log | while read -r name; do
		tail -n 60 "build/fuzz/$name.log"
	done
}

step_fuzz() {
	have clang || { skip "clang is not installed"; return; }
	compgen -G 'tests/fuzz/fuzz_*.c' >/dev/null || { skip "there are no fuzz targets"; return; }
	build fuzz || return 1
	export FUZZ_SECONDS FUZZ_SEED
	# Addresses are among what the search looks at: with a fixed layout it goes the same way.
	printf '%s\0' tests/fuzz/fuzz_*.c |
		fixed_layout xargs -0 -n 1 -P "$JOBS" ./test.sh internal fuzz_one |
		tee build/fuzz/log
	local status=${PIPESTATUS[1]}
	fuzz_failures
	count_line build/fuzz/log
	return "$status"
}

# Two ranks of the installed fabric_pingpong, as the guides start it: without --plugin.
installed_pingpong() {
	local port=$((20000 + $$ % 10000)) first status=0

	export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port NCCL_MESH_NICS=lo
	RANK=0 "$1" --check --check-max 8 --timeout 30 &
	first=$!
	RANK=1 "$1" || status=1
	wait $first && return $status
}

# What `scons install` leaves, and that the installed tools run.
step_install() {
	local box file status=0

	box=$(mktemp -d)
	build CC=gcc install PREFIX=/usr "--install-sandbox=$box" || return 1
	for file in lib/libnccl-net-mesh.so lib/librccl-net-mesh.so bin/fi_mesh \
		bin/fabric_pingpong share/doc/nccl-net-mesh/README.md; do
		[[ -e $box/usr/$file ]] || { echo "$file is not installed"; status=1; }
	done
	[[ ! -e $box/usr/lib/libnccl-net.so ]] ||
		{ echo "libnccl-net.so, which shadows other plugins, is installed"; status=1; }
	/sbin/ldconfig -n "$box/usr/lib"
	[[ -z $(find "$box/usr/lib" -type l) ]] ||
		{ echo "ldconfig makes a link: the soname is not the file's name"; status=1; }
	MESH_BUILD=$box/usr/lib tests/lint/run exports || status=1
	"$box/usr/bin/fi_mesh" --help >/dev/null || { echo "fi_mesh --help fails"; status=1; }
	"$box/usr/bin/nccl_mesh_test" --help >/dev/null &&
		"$box/usr/libexec/nccl-net-mesh/build/nccl/nccl_collectives" --help >/dev/null ||
		{ echo "the installed nccl_mesh_test fails"; status=1; }
	"$box/usr/bin/fi_mesh" plan triangle a b c |
		grep -q "NCCL_NET_PLUGIN='$box/usr/lib/libnccl-net-mesh.so'" ||
		{ echo "fi_mesh plan names another plugin than the installed one"; status=1; }
	(installed_pingpong "$box/usr/bin/fabric_pingpong") ||
		{ echo "the installed fabric_pingpong fails"; status=1; }
	(cd "$box" && find . -not -type d | sort)
	rm -rf "$box"
	return $status
}

# Packages, installed and removed in clean roots.
step_packages() { build CC=gcc && tests/packages/run; }

step_nccl() {
	[[ ${NCCL_SRC:-} ]] || { skip "NCCL_SRC names no NCCL source tree"; return; }
	build CC=gcc "nccl=$NCCL_SRC"
}

# libfabric_link FOLDER: linker options for programs that run with the libraries in FOLDER, whatever
# LD_LIBRARY_PATH is, and with the loader of the C library there, which is newer than the machine's:
# the linker would use the machine's by default.
libfabric_link() {
	local loader

	loader=$(compgen -G "$1/ld-linux*.so*")
	echo "-Wl,--disable-new-dtags,--allow-shlib-undefined,-rpath,$1"
	[[ ! $loader ]] || echo "-Wl,--dynamic-linker=$loader"
}

# libfabric_vm BUILD LIB: over RDMA devices.
libfabric_vm() {
	[[ $2 != @(/tmp|/run|/dev)/* ]] || { echo "the virtual machine does not see $2"; return; }
	MESH_BUILD=$1 tests/vm/run triangle
	(($? == 0 || $? == SKIP))
}

# libfabric_headers BUILD SCONS_ARGUMENT...: what calls libfabric compiles with the other headers,
# and its unit tests run.
libfabric_headers() {
	local folder=$1

	shift
	build -k CC=gcc "build=$folder" "$@" "$folder/libnccl-net-mesh.so" "$folder/fi_mesh" \
		"$folder/bench/libnccl-net-fabric.so" || return
	UNIT_FOLDERS=fabric unit_tests "$folder" CC=gcc "build=$folder" "$@"
}

# libfabric_tests PREFIX LIB VERSION: as programs of Debian 12 meet a newer libfabric, then compiled
# with its headers, too.
libfabric_tests() {
	local folder=build/libfabric-$3 link says options status=0

	link=$(libfabric_link "$2")
	options=(CC=gcc "build=$folder" objects=build "LDFLAGS=$link")
	build CC=gcc && build "${options[@]}" || return 1
	says=$("$folder/fi_mesh" check | sed -n 's/.* libfabric \([0-9]\S*\)$/\1/p' | head -1)
	echo "the programs in $folder run with libfabric $says"
	[[ $says == "$3".* ]] || { echo "which is not $3"; return 1; }
	UNIT_FOLDERS=$LIBFABRIC_UNIT unit_tests "$folder" "${options[@]}" || status=1
	# shellcheck disable=SC2086 # one word per test
	MESH_BUILD=$folder MESH_OTHER_BUILD=build tests/functional/run $LIBFABRIC_FUNCTIONAL ||
		status=1
	libfabric_vm "$folder" "$2" || status=1
	libfabric_headers "$folder-headers" "CFLAGS=-I$1/include" "LDFLAGS=$link -L$2" || status=1
	return $status
}

step_libfabric() {
	local prefix=${LIBFABRIC_PREFIX:-} lib version

	if [[ ! $prefix ]]; then
		! pkg-config --atleast-version=2 libfabric ||
			{ skip "this machine's own libfabric is 2.x: all steps use it"; return; }
		prefix=$(tests/libfabric/debian) || return # it has printed the reason
	fi
	prefix=$(realpath "$prefix")
	lib=$(find "$prefix" -name 'libfabric.so.1' -printf '%h\n' -quit)
	version=$(sed -nE 's/^#define FI_(MAJOR|MINOR)_VERSION +([0-9]+).*/\2/p' \
		"$prefix/include/rdma/fabric.h" | paste -sd.)
	[[ $lib && $version ]] || { echo "no libfabric with its headers in $prefix"; return 1; }
	counted libfabric_tests "$prefix" "$lib" "$version"
}

# Building and testing must leave the tree as it was.
step_tree() {
	git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { skip "not a git tree"; return; }
	git status --porcelain | diff "$LOGS/tree-before" - && return
	echo "the tree changed"
	return 1
}

# --- a job ahead of its step -----------------------------------------------------------------

# The kernel of the step vm takes minutes of CPU time, of which other steps leave enough. The job
# holds the lock MESH_AHEAD: what measures waits until it has ended.
AHEAD="" # its process group

# start_ahead STEP...: of the steps that will run.
start_ahead() {
	[[ " $* " == *" vm "* ]] || return 0
	export MESH_AHEAD=$LOGS/ahead.lock
	set -m
	nice -n 19 flock -o "$MESH_AHEAD" tests/vm/build >"$LOGS/vm-ahead.log" 2>&1 </dev/null &
	set +m
	AHEAD=$!
}

kill_ahead() { [[ ! $AHEAD ]] || kill -TERM -- "-$AHEAD" 2>/dev/null; }

# --- running them ----------------------------------------------------------------------------

passed=0 failed=0 skipped=0
SUMMARY=()
exec {NEVER}<> <(:) # nothing ever comes from it

# add_counts STATUS LOG: adds a step's counts to the totals, and prints them for the step's line.
add_counts() {
	local status=$1 last p f s

	last=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$2" | tail -1)
	if [[ ! $last || $status == "$SKIP" ]]; then
		case $status in
		0) ((passed++)) ;;
		"$SKIP") ((skipped++)) ;;
		*) ((failed++)) ;;
		esac
		return
	fi
	read -r p _ f _ s _ <<<"${last//,/}"
	((status == 0 || f > 0)) || f=1
	((passed += p, failed += f, skipped += s))
	detail=": $p passed, $f failed, $s skipped"
}

# tell_minutes STEP LOG: a line each minute, so that an output that ends early says where. Without
# a child, which would outlive it and hold the output.
tell_minutes() {
	local minutes=0

	until read -rt 60 -u "$NEVER"; do
		echo "  $1, $((++minutes)) min: $(grep -E '^(PASS|FAIL|SKIP) ' "$2" | tail -1)"
	done
}

run_step() {
	local name=$1 log=$LOGS/$1.log started=$SECONDS status verdict lines detail="" teller

	echo "==== $name"
	: >"$log"
	tell_minutes "$name" "$log" &
	teller=$!
	"step_$name" >"$log" 2>&1 </dev/null
	status=$?
	kill "$teller"
	wait "$teller" 2>/dev/null
	add_counts $status "$log"
	case $status in
	0) verdict=PASS ;;
	"$SKIP") verdict=SKIP detail=": $(sed -n 's/^SKIP: //p' "$log" | tail -1)" ;;
	*)
		verdict=FAIL
		tail -n "${TEST_LOG_LINES:-100}" "$log"
		detail+=", log $log"
		;;
	esac
	SUMMARY+=("$verdict $name ($((SECONDS - started)) s)$detail")
	echo "${SUMMARY[-1]}"
	mapfile -t lines < <(grep -E '^(FAIL|FLAKY|PASSES) ' "$log" | sort -u)
	SUMMARY+=("${lines[@]/#/  }")
	((${#lines[@]} == 0)) || printf '%s\n' "${lines[@]}"
}

# skips_print STEP...: the tests that these have skipped, by reason.
skips_print() {
	local step

	for step in "$@"; do
		sed -nE 's/^SKIP (\S+): (.*)/\2\t\1/p' "$LOGS/$step.log" | sort -u
	done | awk -F'\t' '{n[$1]++; names[$1] = names[$1] " " $2}
		END {for (why in n) printf "%d skipped, %s:%s\n", n[why], why, names[why]}'
}

# Busy loops as other work on the machine.
load_begin() {
	local loops=8

	while ((loops--)); do
		(while kill -0 $$ 2>/dev/null; do for _ in {1..100000}; do :; done; done) &
	done
}

main() {
	local step steps=("$@")

	case ${1:-all} in
	all) steps=("${STEPS[@]}") ;;
	quick) steps=("${QUICK[@]}") ;;
	loaded) steps=("${STEPS[@]}"); load_begin ;;
	long)
		steps=("${STEPS[@]}" "${LONG[@]}")
		export TEST_LONG=1 FUZZ_SECONDS=${FUZZ_SECONDS:-240}
		;;
	list) printf '%s\n' "${STEPS[@]}" "${LONG[@]}"; return ;;
	internal) "${@:2}"; return ;; # a function, for those that start it as a command
	esac
	for step in "${steps[@]}"; do
		if ! declare -F "step_$step" >/dev/null; then
			echo "there is no step '$step'; there are: ${STEPS[*]}" >&2
			return 2
		fi
	done
	FUZZ_SECONDS=${FUZZ_SECONDS:-5}
	mkdir -p $LOGS
	git status --porcelain >"$LOGS/tree-before" 2>/dev/null
	trap kill_ahead EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	for step in "${steps[@]}"; do
		# What the job needs is there when the step deps is done.
		[[ $step == deps || $AHEAD ]] || start_ahead "${steps[@]}"
		run_step "$step"
	done
	echo "==== summary, $SECONDS s"
	printf '%s\n' "${SUMMARY[@]}"
	skips_print "${steps[@]}"
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0))
}

kallsyms_hide ./test.sh "$@"
main "$@"
