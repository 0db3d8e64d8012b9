/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - the text of --help. */
#ifndef PINGPONG_HELP_H
#define PINGPONG_HELP_H

#include <stdio.h>

/** The short form: how to start it. */
void help_print_usage(FILE *file);

/** The whole page. */
void help_print(FILE *file);

#endif
