/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the settings, NCCL_MESH_*. One table: the parser, the log, `fi_mesh config` and
 * the settings reference in docs/ all read it.
 */
#ifndef MESH_BASE_CONFIG_H
#define MESH_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Longer values are refused, not cut. */
#define MESH_CONFIG_TEXT_MAX 512
/* A subnet of IPv6 for each of 64 rails: src/nic/user_lists.c checks that it suffices. */
#define MESH_CONFIG_RAILS_MAX (64 * 44)
/* Endpoints of a NIC, as src/wire/protocol.h has them. */
#define MESH_CONFIG_LANES_MAX 8
/* No text has more room. */
#define MESH_CONFIG_TEXT_MOST MESH_CONFIG_RAILS_MAX

struct mesh_config {
	char nics[MESH_CONFIG_TEXT_MAX];      /* NCCL_MESH_NICS */
	char addresses[MESH_CONFIG_TEXT_MAX]; /* NCCL_MESH_ADDRESSES */
	char provider[MESH_CONFIG_TEXT_MAX];  /* NCCL_MESH_PROVIDER */
	char routed[MESH_CONFIG_TEXT_MAX];    /* NCCL_MESH_ROUTED */
	char rails[MESH_CONFIG_RAILS_MAX];    /* NCCL_MESH_RAILS: mesh_rails_parse() */
	char near[MESH_CONFIG_TEXT_MAX];      /* NCCL_MESH_NEAR */
	char node_name[MESH_CONFIG_TEXT_MAX]; /* NCCL_MESH_NODE_NAME */
	char site[MESH_CONFIG_TEXT_MAX];      /* NCCL_MESH_SITE */
	uint64_t connect_timeout_s;	      /* NCCL_MESH_CONNECT_TIMEOUT */
	uint64_t accept_timeout_s;	      /* NCCL_MESH_ACCEPT_TIMEOUT */
	uint64_t dead_peer_timeout_s;	      /* NCCL_MESH_DEAD_PEER_TIMEOUT */
	uint64_t eager_limit_bytes;	      /* NCCL_MESH_DEBUG_EAGER_LIMIT */
	uint64_t max_paths;		      /* NCCL_MESH_DEBUG_MAX_PATHS */
	uint64_t lanes;			      /* NCCL_MESH_DEBUG_LANES; 0: by the round trip */
	uint64_t segment_bytes;		      /* NCCL_MESH_DEBUG_SEGMENT_SIZE */
	uint64_t recovery_timeout_s;	      /* NCCL_MESH_RECOVERY_TIMEOUT */
	uint64_t neighbours;		      /* NCCL_MESH_NEIGHBOURS: 1 or 0 */
	char relay[MESH_CONFIG_TEXT_MAX];     /* NCCL_MESH_RELAY; "": job */
	uint64_t relay_memory_bytes;	      /* NCCL_MESH_RELAY_MEMORY */
	char stats_dir[MESH_CONFIG_TEXT_MAX]; /* NCCL_MESH_STATS_DIR */
	char tuner[MESH_CONFIG_TEXT_MAX];     /* NCCL_MESH_TUNER */
	char plan[MESH_CONFIG_TEXT_MAX];      /* NCCL_MESH_PLAN */
	char ports[MESH_CONFIG_TEXT_MAX];     /* NCCL_MESH_PORTS: mesh_port_range_parse() */
};

enum mesh_setting_type {
	MESH_SETTING_TEXT,
	MESH_SETTING_LIST,   /* a text, without which the plugin does not start if it is too long */
	MESH_SETTING_PATH,   /* a text: an absolute path, or "none" */
	MESH_SETTING_PORTS,  /* a text: a range of TCP ports */
	MESH_SETTING_NUMBER, /* a whole number */
	MESH_SETTING_SWITCH, /* "on" or "off": 1 or 0, which may be written as well */
	MESH_SETTING_SECONDS, /* a whole number */
	MESH_SETTING_BYTES,   /* a whole number, with an optional K, M or G (powers of 1024) */
};

/* What only tests and measurements need: the last ones of the table. */
#define MESH_SETTING_DEBUG "NCCL_MESH_DEBUG_"

struct mesh_setting {
	const char *name; /* the environment variable */
	enum mesh_setting_type type;
	size_t offset;		  /* in struct mesh_config */
	size_t size;		  /* of that member */
	const char *default_text; /* parsed like a user's value */
	uint64_t min, max;	  /* of numbers */
	const char *choices;	  /* a text: one of these words, "a|b|c"; NULL: any */
	const char *help;
};

static inline bool mesh_setting_is_text(const struct mesh_setting *setting)
{
	return setting->type < MESH_SETTING_NUMBER;
}

static inline bool mesh_setting_is_debug(const struct mesh_setting *setting)
{
	return !strncmp(setting->name, MESH_SETTING_DEBUG, sizeof(MESH_SETTING_DEBUG) - 1);
}

/** The table, ended by an entry whose name is NULL. */
extern const struct mesh_setting mesh_settings[];

/**
 * Looks up a variable: getenv in the plugin, a fake in tests.
 *
 * Returns the value, or NULL where it is not set.
 */
typedef const char *(*mesh_config_lookup)(void *arg, const char *name);

/**
 * Fills @config from the defaults and from @lookup (NULL: the environment). A value that cannot be
 * used is reported at WARN with the value, the range and the default that is used instead. An
 * environment variable that has the prefix of a setting and an unknown name is reported at WARN,
 * too. An empty value counts as not set.
 *
 * Returns 0; -EINVAL if a value was refused or a name is unknown; -E2BIG if one of them is a list
 * or provider that is too long: the plugin must not start without it. @config is complete in every
 * case.
 */
int mesh_config_load(mesh_config_lookup lookup, void *arg, struct mesh_config *config);

/** Logs at INFO each setting that differs from its default. */
void mesh_config_log(const struct mesh_config *config);

struct mesh_port_range {
	uint16_t first, last; /* both 0: any port, the kernel chooses */
};

/**
 * Reads "40000-40100" or "40000"; "" is any port.
 *
 * Returns 0, or -EINVAL: not that, a port below 1 or above 65535, or the last before the first;
 * @range is any port then.
 */
int mesh_port_range_parse(const char *text, struct mesh_port_range *range);

/** How many ports the range has; 1 for any port, which one attempt gets. */
unsigned int mesh_port_range_size(const struct mesh_port_range *range);

/**
 * The port to try at attempt @number, from 0: each port of the range once. Processes begin at
 * different ones, so that they seldom try the same. 0 for any port.
 */
uint16_t mesh_port_range_get(const struct mesh_port_range *range, unsigned int number);

#endif
