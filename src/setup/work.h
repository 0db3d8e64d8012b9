/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what the plugin's own thread does. */
#ifndef MESH_SETUP_WORK_H
#define MESH_SETUP_WORK_H

#include "setup/setup.h"

/** For the engine, whose owner is the mesh_process. */
extern const struct mesh_engine_work mesh_setup_work;

#endif
