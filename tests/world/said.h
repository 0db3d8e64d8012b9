/* SPDX-License-Identifier: Apache-2.0 */
/* said.h - what the plugin has said by NCCL's logger. */
#ifndef TESTS_WORLD_SAID_H
#define TESTS_WORLD_SAID_H

#include <nccl/types.h>

#include "world.h"

/** A line of the acting process, from this place in the source. */
void said(enum nccl_level level, const char *file, int line, const char *text);

/** True if the process has said a WARN at this time or later. */
bool said_warn_since(const struct world_node *node, uint64_t ns);

/** True if a basic regular expression matches a part of the text. */
bool said_matches(const char *text, const char *pattern);

/** How many lines the process has said that match, or whose place's last one does. */
int said_times(const struct world_node *node, const char *pattern);

/** Fails if a WARN was said, or an INFO more than @limit times by a process. */
void said_check_quiet(int limit);

#endif
