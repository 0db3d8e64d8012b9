/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bandwidth.h - the two figures that nccl-tests prints (its doc/PERFORMANCE.md defines them).
 * Algorithm bandwidth is bytes over time; bus bandwidth takes out how often an operation has to
 * move each byte, so that it can be compared with a link whatever the operation and the number of
 * ranks are.
 */
#ifndef COLLECTIVES_BANDWIDTH_H
#define COLLECTIVES_BANDWIDTH_H

#include <stdint.h>

enum bandwidth_shape {
	BANDWIDTH_ALL_REDUCE,  /* every byte is reduced and handed out again: 2 (n - 1) / n */
	BANDWIDTH_ALL_BUT_OWN, /* a rank has its own part already: (n - 1) / n */
	BANDWIDTH_ONCE,	       /* through each link once: 1 */
};

/** In GB/s (10^9). @seconds is the time of one operation. */
static inline double bandwidth_algorithm(uint64_t bytes, double seconds)
{
	return seconds > 0 ? (double)bytes / seconds / 1e9 : 0;
}

/** In GB/s (10^9), over @ranks. */
static inline double bandwidth_bus(double algorithm, enum bandwidth_shape shape, int ranks)
{
	switch (shape) {
	case BANDWIDTH_ALL_REDUCE:
		return algorithm * 2 * (ranks - 1) / ranks;
	case BANDWIDTH_ALL_BUT_OWN:
		return algorithm * (ranks - 1) / ranks;
	default:
		return algorithm;
	}
}

#endif
