/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - latency and bandwidth to a peer, over one link or over relays. What is measured is
 * what NCCL will use: both ends connect by the plugin's own layers (end.h).
 */
#ifndef MESH_FI_UTILS_PEER_MEASURE_H
#define MESH_FI_UTILS_PEER_MEASURE_H

#include "common/finding.h"
#include "peer/checker.h"
#include "peer/wire.h"
#include "wire/protocol.h"

struct peer_end;

#define PEER_WORDS_MAX 512

/* What comes of a measurement: a child process hands it over as it is. */
struct peer_measured {
	int error;		     /* 0, or a negative errno */
	char step[64];		     /* what failed if something has */
	char words[PEER_WORDS_MAX];  /* why, from here or there; "" */
	struct peer_numbers numbers; /* those that were measured */
	int num_paths;		     /* of the connection to the peer */
	struct {
		char nic[MESH_CHECK_NETDEV_MAX]; /* ours */
		char via[128];			 /* the relays, "b,c"; "" */
	} paths[MESH_PATHS_MAX];
};

/* The first members are the caller's; the others begin as zero. */
struct peer_measurement {
	const struct peer_checker *checker;
	const struct peer *peer;
	const char *nic;	    /* ours, whose link is measured; NULL: over relays */
	struct peer_stream *stream; /* HELLO was exchanged; for a link: over it */
	struct peer_measured measured;
	struct peer_end *end;					    /* here, in the child */
	uint8_t ours[MESH_HANDLE_BYTES], theirs[MESH_HANDLE_BYTES]; /* of both listeners */
};

/**
 * Measures, and closes the stream.
 *
 * Returns 0; -EBUSY if the peer measures with another node all the time; -EINTR; another negative
 * errno: measured.step and .words say what failed, and why.
 */
int peer_measure(struct peer_measurement *measurement);

/** The share of a processor that the measurement had, at the end that had less; 0 to 1. */
double peer_numbers_cpu_share(const struct peer_numbers *numbers);

/** Why a measurement failed with @error. */
const char *peer_measured_words(const struct peer_measured *measured, int error);

/** Reports that the peer measured with another node, if @error says so. Returns true then. */
bool peer_measured_busy_say(const struct peer_measured *measured, int error,
			    struct check_result *result);

/** Measures one link, and judges the figures. The link's stream is open, and is closed. */
void peer_link_measure(struct peer_link *link, struct check_result *result);

#endif
