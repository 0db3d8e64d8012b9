/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - the release of nccl-net-mesh. */
#include "base/version.h"

/* SConstruct defines it from the file VERSION. */
_Static_assert(sizeof(MESH_VERSION) <= MESH_VERSION_MAX, "VERSION has too many characters");

const char *mesh_version(void)
{
	return MESH_VERSION;
}
