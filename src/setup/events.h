/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - what set-up and transport do when a frame arrives or a peer is lost. */
#ifndef MESH_SETUP_EVENTS_H
#define MESH_SETUP_EVENTS_H

#include "control/peer.h"

/** A row for each frame that the control layer does not handle itself. */
extern const struct mesh_peer_events mesh_setup_events;

#endif
