/* SPDX-License-Identifier: Apache-2.0 */
/* frames.h - the frames of the control connection that are for a comm. */
#ifndef MESH_TRANSPORT_FRAMES_H
#define MESH_TRANSPORT_FRAMES_H

#include "control/peer.h"

/** CLOSE, CLOSED, ASK and SENT. */
mesh_frame_handler mesh_comm_frame_handle;

/** CUT. */
mesh_frame_handler mesh_cut_frame_handle;

#endif
