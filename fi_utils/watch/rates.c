/* SPDX-License-Identifier: Apache-2.0 */
/* rates.c - the rates between two samples. */
#include <stdio.h>
#include <string.h>

#include "watch/sample.h"

const struct watch_nic *watch_nic_find(const struct watch_sample *sample,
				       const struct watch_nic *nic)
{
	int i;

	for (i = 0; sample && i < sample->num_nics; i++)
		if (!strcmp(sample->nics[i].netdev, nic->netdev))
			return &sample->nics[i];
	return NULL;
}

const struct watch_link *watch_link_find(const struct watch_sample *sample,
					 const struct watch_link *link)
{
	int i;

	for (i = 0; sample && i < sample->num_links; i++)
		if (watch_link_is(&sample->links[i], &link->entry, link->pid))
			return &sample->links[i];
	return NULL;
}

const struct watch_circuit *watch_circuit_find(const struct watch_sample *sample,
					       const struct watch_circuit *circuit)
{
	int i;

	for (i = 0; sample && i < sample->num_circuits; i++)
		if (watch_circuit_is(&sample->circuits[i], &circuit->circuit, circuit->pid))
			return &sample->circuits[i];
	return NULL;
}

double watch_rate(uint64_t now, uint64_t before, double seconds)
{
	return now <= before || seconds <= 0 ? 0 : (double)(now - before) / seconds;
}

const char *watch_rate_text(double bytes, char *text)
{
	double bits = 8 * bytes;

	if (bits >= 1e9)
		snprintf(text, WATCH_RATE_TEXT_MAX, "%.2f Gb/s", bits / 1e9);
	else if (bits >= 1e6)
		snprintf(text, WATCH_RATE_TEXT_MAX, "%.1f Mb/s", bits / 1e6);
	else if (bits >= 1e3)
		snprintf(text, WATCH_RATE_TEXT_MAX, "%.0f kb/s", bits / 1e3);
	else
		snprintf(text, WATCH_RATE_TEXT_MAX, "%.0f b/s", bits);
	return text;
}

double watch_seconds(const struct watch_sample *now, const struct watch_sample *before)
{
	return before ? (double)(now->time_ns - before->time_ns) / 1e9 : 0;
}

static bool moves(uint64_t tx, uint64_t rx, uint64_t tx_before, uint64_t rx_before, double seconds)
{
	return watch_rate(tx, tx_before, seconds) + watch_rate(rx, rx_before, seconds) >
	       WATCH_IDLE_RATE;
}

enum watch_traffic watch_traffic(const struct watch_nic *nic, const struct watch_nic *before,
				 double seconds)
{
	bool kernel, rdma;

	if (!before || seconds <= 0 || (!nic->netdev_known && !nic->rdma_known))
		return WATCH_UNKNOWN;
	kernel = nic->netdev_known && moves(nic->netdev_tx, nic->netdev_rx, before->netdev_tx,
					    before->netdev_rx, seconds);
	rdma = nic->rdma_known &&
	       moves(nic->rdma_tx, nic->rdma_rx, before->rdma_tx, before->rdma_rx, seconds);
	if (kernel && rdma)
		return WATCH_BOTH;
	if (rdma)
		return WATCH_RDMA;
	return kernel ? WATCH_KERNEL : WATCH_IDLE;
}

const char *watch_traffic_text(enum watch_traffic traffic)
{
	static const char *const texts[] = {
		[WATCH_UNKNOWN] = "-",
		[WATCH_IDLE] = "idle",
		[WATCH_KERNEL] = "kernel (TCP)",
		[WATCH_RDMA] = "RDMA",
		[WATCH_BOTH] = "RDMA and kernel",
	};

	return texts[traffic];
}
