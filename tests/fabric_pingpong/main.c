/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fabric_pingpong: drives an NCCL net plugin between ranks as NCCL does. */
#include <signal.h>
#include <stdlib.h>

#include "control.h"
#include "options.h"

#define EXIT_WRONG_USE 2

int main(int argc, char **argv)
{
	struct options *options = calloc(1, sizeof(*options));
	int status = EXIT_WRONG_USE;

	if (!options)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	switch (options_parse(argc, argv, options)) {
	case OPTIONS_RUN:
		status = control_run(options);
		break;
	case OPTIONS_DONE:
		status = 0;
		break;
	case OPTIONS_WRONG:
		break;
	}
	free(options);
	return status;
}
