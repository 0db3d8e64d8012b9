/* SPDX-License-Identifier: Apache-2.0 */
/* rates.c - what the NICs of this node move now: their counters, and a second later again. */
#include <errno.h>
#include <stdio.h>

#include "base/config.h"
#include "system/stats_file.h"

#include "common/interrupt.h"
#include "topo/rates.h"
#include "watch/rates.h"
#include "watch/sample.h"

static int sample_read(struct watch_sample *sample)
{
	struct watch_filter filter = {.pid = 0};
	struct mesh_config config;

	mesh_config_load(NULL, NULL, &config);
	/* The counters of processes are not needed here. */
	snprintf(config.stats_dir, sizeof(config.stats_dir), "%s", MESH_STATS_NONE);
	return watch_sample_read("/sys", &config, &filter, sample);
}

int topo_rates_begin(struct topo_rates *rates)
{
	return sample_read(&rates->before);
}

static void nic_enter(struct topo_map *map, int node, const struct watch_nic *now,
		      const struct watch_nic *before, double seconds)
{
	int nic = topo_map_nic_find(map, node, now->netdev);

	if (nic < 0 || !before || !(now->netdev_known || now->rdma_known))
		return;
	map->nics[nic].rates_known = true;
	map->nics[nic].sends = watch_rate(now->netdev_tx, before->netdev_tx, seconds) +
			       watch_rate(now->rdma_tx, before->rdma_tx, seconds);
	map->nics[nic].receives = watch_rate(now->netdev_rx, before->netdev_rx, seconds) +
				  watch_rate(now->rdma_rx, before->rdma_rx, seconds);
}

int topo_rates_enter(struct topo_rates *rates, struct topo_map *map, int node)
{
	uint64_t due_ms = rates->before.time_ns / 1000000 + TOPO_RATES_MS;
	struct watch_sample now;
	int i, ret;

	if (interrupt_wait(-1, 0, due_ms) == -EINTR)
		return -EINTR;
	ret = sample_read(&now);
	if (ret)
		return ret;
	for (i = 0; i < now.num_nics; i++)
		nic_enter(map, node, &now.nics[i], watch_nic_find(&rates->before, &now.nics[i]),
			  watch_seconds(&now, &rates->before));
	watch_sample_free(&now);
	return 0;
}

void topo_rates_end(struct topo_rates *rates)
{
	watch_sample_free(&rates->before);
}
