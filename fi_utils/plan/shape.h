/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - the regular meshes that people cable: what they need, and their cables. */
#ifndef MESH_FI_UTILS_PLAN_SHAPE_H
#define MESH_FI_UTILS_PLAN_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "plan/topology.h"

#define MESH_TORUS_DIMENSIONS_MAX 4
/* More cables than this between two nodes are taken for a typing error. */
#define MESH_PARALLEL_MAX 16
/* "torus:1024x1024x1024x1024" */
#define MESH_SHAPE_TEXT_MAX 40

enum mesh_shape_kind {
	MESH_SHAPE_TRIANGLE,
	MESH_SHAPE_FULL, /* every node to every other */
	MESH_SHAPE_RING,
	MESH_SHAPE_LINE,
	MESH_SHAPE_STAR,   /* the first node to every other */
	MESH_SHAPE_TORUS,  /* a grid whose rows and columns are rings */
	MESH_SHAPE_CABLES, /* no regular shape: a list of cables */
};

struct mesh_shape {
	enum mesh_shape_kind kind;
	int sizes[MESH_TORUS_DIMENSIONS_MAX]; /* of a torus; the last one counts fastest */
	int num_sizes;
	int parallel; /* cables between each two neighbours, from 1 */
};

/**
 * Reads "triangle", "full", "ring", "line", "star", or "torus:3x4" with up to
 * MESH_TORUS_DIMENSIONS_MAX sizes.
 *
 * Returns 0, or -EINVAL (logged); @shape is written on success only, with one cable between two
 * neighbours.
 */
int mesh_shape_parse(const char *text, struct mesh_shape *shape);

/** Writes what mesh_shape_parse() reads into @text (MESH_SHAPE_TEXT_MAX bytes); returns @text. */
const char *mesh_shape_text(const struct mesh_shape *shape, char *text);

/** The most ports that a node needs for @shape of @num_nodes. */
int mesh_shape_num_ports(const struct mesh_shape *shape, int num_nodes);

/**
 * The number of cables of @shape with @num_nodes, which may exceed the limit of a topology; -1 for
 * MESH_SHAPE_CABLES.
 */
int64_t mesh_shape_num_cables(const struct mesh_shape *shape, int num_nodes);

/**
 * Makes the cables of @shape. Neighbouring nodes have adjacent numbers if the shape allows it;
 * cable 0 of a ring joins its last node to its first, and cable i the nodes i - 1 and i.
 *
 * Returns 0; -EINVAL (logged) if the shape cannot have this many nodes; -E2BIG (logged); -ENOMEM.
 * @topology is to be freed after success only.
 */
int mesh_shape_build(const struct mesh_shape *shape, int num_nodes, struct mesh_topology *topology);

/**
 * Writes the shapes that @num_nodes nodes with @num_ports ports each can be cabled to, with the
 * ports they need: "torus:3x4 (4 ports), ring (2 ports), line (2 ports)". "none" if there is none.
 *
 * @text: @size bytes, returned
 */
const char *mesh_shapes_fitting(int num_nodes, int num_ports, int parallel, char *text,
				size_t size);

/**
 * An order of the nodes in which each is cabled to the next, and the last to the first where the
 * shape has such a ring at all.
 *
 * @order: num_nodes numbers
 *
 * Returns 0; -EINVAL for MESH_SHAPE_CABLES, whose order must be searched (rank_order.h); -ENOMEM.
 */
int mesh_shape_order(const struct mesh_shape *shape, int num_nodes, int *order);

#endif
