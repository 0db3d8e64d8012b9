/* SPDX-License-Identifier: Apache-2.0 */
/* rates.h - the rates between two samples. */
#ifndef MESH_FI_UTILS_WATCH_RATES_H
#define MESH_FI_UTILS_WATCH_RATES_H

#include <stdint.h>

#include "watch/sample.h"

/* Bytes a second below which a NIC counts as idle: for example neighbour discovery. */
#define WATCH_IDLE_RATE 100000.0

/** What a NIC has moved since @before. */
enum watch_traffic {
	WATCH_UNKNOWN, /* no earlier sample, or no counters */
	WATCH_IDLE,
	WATCH_KERNEL, /* through the kernel's network stack: TCP */
	WATCH_RDMA,   /* past it */
	WATCH_BOTH,
};

enum watch_traffic watch_traffic(const struct watch_nic *nic, const struct watch_nic *before,
				 double seconds);

/** "RDMA", "kernel (TCP)", ...: never NULL. */
const char *watch_traffic_text(enum watch_traffic traffic);

/** The same NIC, link or circuit in another sample, or NULL. */
const struct watch_nic *watch_nic_find(const struct watch_sample *sample,
				       const struct watch_nic *nic);
const struct watch_link *watch_link_find(const struct watch_sample *sample,
					 const struct watch_link *link);
const struct watch_circuit *watch_circuit_find(const struct watch_sample *sample,
					       const struct watch_circuit *circuit);

/** Units a second between two readings; 0 if the counter went back: it was reset. */
double watch_rate(uint64_t now, uint64_t before, double seconds);

#define WATCH_RATE_TEXT_MAX 32

/** A rate of bytes as bits a second: "12.40 Gb/s". @text: WATCH_RATE_TEXT_MAX bytes; returned */
const char *watch_rate_text(double bytes, char *text);

/** Seconds between two samples. */
double watch_seconds(const struct watch_sample *now, const struct watch_sample *before);

#endif
