/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nccl_text.c - an NCCL library's bytes and its settings files: nothing out of bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check/nccl_library.h"
#include "common/nccl_setting.h"

#include "fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nccl_library library;
	char *text = fuzz_text(data, size), value[16];

	if (!text)
		return 0;
	/* Without a NUL behind them, as a file is mapped. */
	nccl_library_scan(data, size, &library);
	fuzz_check(!(library.asked & 1) && memchr(library.version, '\0', sizeof(library.version)));
	fuzz_check(nccl_version_number(library.version) >= 0);
	memset(value, 0x5a, sizeof(value));
	fuzz_check(nccl_conf_find(text, "NCCL_NET", value, sizeof(value))
			   ? strlen(value) < sizeof(value)
			   : value[0] == 0x5a);
	free(text);
	return 0;
}
