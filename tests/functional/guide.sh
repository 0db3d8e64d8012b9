# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# guide.sh - the commands of a guide, for the test that types it. To be sourced behind lib.sh.

# guide_blocks GUIDE FOLDER: writes each code block of docs/guides/GUIDE that follows a line
# <!-- tried: REMARK --> into FOLDER/block00, block01 ..., and prints its REMARK.
guide_blocks() {
	awk -v out="$2" '
		/^<!-- tried: .* -->$/ {remark = $0; gsub(/^<!-- tried: | -->$/, "", remark); next}
		/^```/ && inside {close(file); inside = 0; print remark; remark = ""; next}
		/^```/ && remark {inside = 1; file = sprintf("%s/block%02d", out, n++); next}
		inside {print >file}
	' "$MESH_TOP/docs/guides/$1"
}
