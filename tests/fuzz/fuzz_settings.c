/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_settings.c - every NCCL_MESH_ variable with any text, up to the choice of NICs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "nic/addr.h"
#include "nic/user_lists.h"
#include "nic/nic_select.h"

#include "fuzz_text.h"

static void log_ignore(enum mesh_log_level level, const char *file, int line, const char *text)
{
	fuzz_check(strlen(text) < MESH_LOG_LINE_MAX);
}

static const char *lookup(void *arg, const char *name)
{
	return arg;
}

/* Numbers are within their range and texts are terminated, whatever the user wrote. */
static void config_check(const struct mesh_config *config)
{
	const struct mesh_setting *setting;
	uint64_t value;

	for (setting = mesh_settings; setting->name; setting++) {
		const char *member = (const char *)config + setting->offset;

		if (mesh_setting_is_text(setting)) {
			fuzz_check(memchr(member, 0, setting->size));
			continue;
		}
		memcpy(&value, member, sizeof(value));
		fuzz_check(value >= setting->min && value <= setting->max);
	}
}

static void nic_init(struct mesh_nic *nic, const char *netdev, const char *device,
		     const char *const *addrs)
{
	memset(nic, 0, sizeof(*nic));
	strcpy(nic->netdev, netdev);
	strcpy(nic->rdma.device, device);
	nic->rdma.port = 1;
	strcpy(nic->rdma.state, "4: ACTIVE");
	nic->state = MESH_NIC_RUNS;
	for (; *addrs; addrs++)
		mesh_addr_parse(*addrs, &nic->addrs[nic->num_addrs++]);
}

static void nics_select(const char *names, const char *addresses)
{
	static const char *const first[] = {"10.1.0.1/24", "fd00::1/64", "fe80::1/64", NULL};
	static const char *const second[] = {"169.254.0.1/16", "192.168.1.1/30", NULL};
	struct mesh_nic nics[3];
	struct mesh_nic_table table = {.nics = nics, .num_nics = 3};
	int i, ret;

	nic_init(&nics[0], "eth0", "mlx5_0", first);
	nic_init(&nics[1], "eth1", "", second);
	nic_init(&nics[2], "wlan0", "mlx5_1", first);
	ret = mesh_nic_select(names, addresses, &table);
	if (ret)
		return;
	fuzz_check(table.num_taken >= 0 && table.num_taken <= table.num_nics);
	for (i = 0; i < table.num_nics; i++) {
		const struct mesh_nic *nic = &table.nics[i];

		fuzz_check(mesh_nic_is_taken(nic) == (i < table.num_taken) &&
			   (!mesh_nic_is_taken(nic) || nic->source.family != MESH_FAMILY_NONE) &&
			   memchr(nic->reason, 0, sizeof(nic->reason)));
	}
}

static void filter_parse(const char *text)
{
	struct mesh_nic_filter filter = {.num_items = -7};

	if (mesh_nic_filter_parse(text, &filter)) {
		fuzz_check(filter.num_items == -7);
		return;
	}
	fuzz_check(filter.num_items >= 0 && filter.num_items <= MESH_NIC_FILTER_MAX);
	for (int i = 0; i < filter.num_items; i++) {
		const struct mesh_nic_filter_item *item = &filter.items[i];

		fuzz_check(item->name[0] && memchr(item->name, 0, sizeof(item->name)) &&
			   item->port >= 0 && item->port <= 255);
	}
}

static void rails_parse(const char *text)
{
	struct mesh_rails rails = {.num_subnets = -7};
	struct mesh_addr addr;

	if (mesh_rails_parse(text, &rails)) {
		fuzz_check(rails.num_subnets == -7);
		return;
	}
	fuzz_check(rails.num_subnets >= 0 && rails.num_subnets <= MESH_RAIL_SUBNETS_MAX);
	for (int i = 0; i < rails.num_subnets; i++) {
		addr = rails.subnets[i].subnet;
		fuzz_check(mesh_rail_of(&rails, &addr) >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct mesh_config config;

	if (!text)
		return 0;
	mesh_log_sink_set(log_ignore);
	mesh_config_load(lookup, text, &config);
	config_check(&config);
	mesh_config_log(&config);
	fuzz_check(mesh_provider_id_parse(config.provider) <= MESH_PROVIDER_ID_MAX);
	filter_parse(text);
	rails_parse(text);
	nics_select(config.nics, config.addresses);
	/* Longer than a setting may be. */
	nics_select(text, "");
	nics_select("", text);
	free(text);
	return 0;
}
