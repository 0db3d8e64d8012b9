#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - compiles check.cc against an NCCL source tree; success means that the ABI agrees.
#
# usage: check.sh NCCL-SOURCE-TREE BUILD-FOLDER [CXX]
#
# Neither CUDA nor a built NCCL is needed: nccl.h is made from nccl.h.in as NCCL's makefile does
# it, and empty files stand in for CUDA's headers.
set -eu

if [ $# -lt 2 ]; then
	echo "usage: $0 NCCL-SOURCE-TREE BUILD-FOLDER [CXX]" >&2
	exit 2
fi
tree=$1
build=$2
cxx=${3:-c++}
here=$(dirname "$0")

if [ ! -f "$tree/src/nccl.h.in" ] || [ ! -f "$tree/makefiles/version.mk" ]; then
	echo "$tree is not an NCCL source tree: it has no src/nccl.h.in or makefiles/version.mk" >&2
	exit 2
fi

version() {
	sed -n "s/^NCCL_$1 *:= *\([0-9]*\).*/\1/p" "$tree/makefiles/version.mk"
}
major=$(version MAJOR)
minor=$(version MINOR)
patch=$(version PATCH)

mkdir -p "$build"
sed -e "s/\${nccl:Major}/$major/" -e "s/\${nccl:Minor}/$minor/" -e "s/\${nccl:Patch}/$patch/" \
	-e "s/\${nccl:Suffix}//" -e "s/\${nccl:Version}/$((major * 10000 + minor * 100 + patch))/" \
	"$tree/src/nccl.h.in" >"$build/nccl.h"
: >"$build/cuda_fp16.h"
cat >"$build/cuda_runtime.h" <<END
#include <stddef.h>
#include <stdint.h>
typedef struct CUstream_st *cudaStream_t;
END

# -isystem: warnings in NCCL's headers are not ours.
"$cxx" -std=c++14 -Wall -Wextra -Werror -Wno-invalid-offsetof -Wno-ignored-attributes \
	-fsyntax-only -I"$here/../../include" -isystem "$build" \
	-isystem "$tree/src/include/plugin" -isystem "$tree/src/include" "$here/check.cc"
echo "NCCL $major.$minor.$patch: our declarations of its net and tuner ABI agree"
