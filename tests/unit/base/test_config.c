/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c - the settings: every type, every limit, and the table itself; ranges of ports. */
#include "base/config.h"

#include "log_capture.h"
#include "unit.h"

/* One variable that is set; all others are not. */
struct fake_variable {
	const char *name;
	const char *value;
};

static const char *fake_lookup(void *arg, const char *name)
{
	const struct fake_variable *variable = arg;

	return variable->name && !strcmp(variable->name, name) ? variable->value : NULL;
}

static int load(const char *name, const char *value, struct mesh_config *config)
{
	struct fake_variable variable = {name, value};

	memset(config, 0xa5, sizeof(*config)); /* everything must be written */
	return mesh_config_load(fake_lookup, &variable, config);
}

static const struct mesh_setting *setting_named(const char *name)
{
	const struct mesh_setting *setting;

	for (setting = mesh_settings; setting->name; setting++) {
		if (!strcmp(setting->name, name))
			return setting;
	}
	fail_msg("there is no %s", name);
	return NULL;
}

static uint64_t number_of(const struct mesh_config *config, const struct mesh_setting *setting)
{
	uint64_t value;

	memcpy(&value, (const char *)config + setting->offset, sizeof(value));
	return value;
}

static void accepts(const char *name, const char *text, uint64_t expected)
{
	struct mesh_config config;

	log_capture_start();
	if (load(name, text, &config))
		fail_msg("%s=%s is refused", name, text);
	assert_int_equal(number_of(&config, setting_named(name)), expected);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* The value is refused and reported once, with its name and the default, which is used. */
static void refuses_with(const char *name, const char *text, int error)
{
	struct mesh_config config, standard;

	assert_int_equal(load(NULL, NULL, &standard), 0);
	log_capture_start();
	if (load(name, text, &config) != error)
		fail_msg("%s=\"%s\" is taken", name, text);
	assert_memory_equal(&config, &standard, sizeof(config));
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, name));
	if (!mesh_setting_is_text(setting_named(name)))
		assert_true(log_captured(MESH_LOG_WARN, setting_named(name)->default_text));
}

static void refuses(const char *name, const char *text)
{
	refuses_with(name, text, -EINVAL);
}

TEST(defaults)
{
	struct mesh_config config;

	assert_int_equal(load(NULL, NULL, &config), 0);
	assert_string_equal(config.nics, "");
	assert_string_equal(config.addresses, "");
	assert_string_equal(config.provider, "");
	assert_string_equal(config.node_name, "");
	assert_int_equal(config.connect_timeout_s, 60);
	assert_int_equal(config.accept_timeout_s, 600);
	assert_int_equal(config.dead_peer_timeout_s, 10);
	assert_int_equal(config.eager_limit_bytes, 16384);
	assert_int_equal(config.segment_bytes, 4 << 20);
}

/* Each entry is sound, and together they cover the struct: nothing is set by no variable. */
TEST(table)
{
	const struct mesh_setting *setting, *other;
	size_t covered = 0;

	for (setting = mesh_settings; setting->name; setting++) {
		assert_true(!strncmp(setting->name, "NCCL_MESH_", 10));
		assert_non_null(setting->default_text);
		assert_non_null(setting->help);
		assert_in_range(strlen(setting->help), 20, 400);
		assert_int_equal(setting->help[strlen(setting->help) - 1], '.');
		if (mesh_setting_is_text(setting)) {
			covered += setting->size;
			assert_in_range(setting->size, MESH_CONFIG_TEXT_MAX, MESH_CONFIG_TEXT_MOST);
			assert_string_equal(setting->default_text, "");
		} else {
			covered += setting->size;
			assert_int_equal(setting->size, sizeof(uint64_t));
			assert_true(setting->min < setting->max);
		}
		for (other = mesh_settings; other < setting; other++) {
			assert_string_not_equal(other->name, setting->name);
			assert_int_not_equal(other->offset, setting->offset);
		}
	}
	assert_int_equal(covered, sizeof(struct mesh_config));
}

/* The default's own text is legal, and both limits are taken while their neighbours are not. */
TEST(ranges)
{
	const struct mesh_setting *setting;
	struct mesh_config standard;
	char text[32];

	load(NULL, NULL, &standard);
	for (setting = mesh_settings; setting->name; setting++) {
		if (mesh_setting_is_text(setting))
			continue;
		accepts(setting->name, setting->default_text, number_of(&standard, setting));
		snprintf(text, sizeof(text), "%llu", (unsigned long long)setting->min);
		accepts(setting->name, text, setting->min);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)setting->max);
		accepts(setting->name, text, setting->max);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)setting->max + 1);
		refuses(setting->name, text);
		if (!setting->min)
			continue;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)setting->min - 1);
		refuses(setting->name, text);
	}
}

TEST(switch)
{
	accepts("NCCL_MESH_NEIGHBOURS", "off", 0);
	accepts("NCCL_MESH_NEIGHBOURS", "on", 1);
	refuses("NCCL_MESH_NEIGHBOURS", "of");
	refuses("NCCL_MESH_PORTS", "40100-40000");
	refuses("NCCL_MESH_PORTS", "any");
	refuses("NCCL_MESH_NEIGHBOURS", "yes");
}

TEST(units)
{
	static const char segment[] = "NCCL_MESH_DEBUG_SEGMENT_SIZE";

	accepts(segment, "4K", 4096);
	accepts(segment, "4k", 4096);
	accepts(segment, "3M", 3 << 20);
	accepts(segment, "3m", 3 << 20);
	accepts(segment, "1G", 1 << 30);
	accepts(segment, "1g", 1 << 30);
	accepts(segment, "0008K", 8192);
	accepts("NCCL_MESH_DEBUG_EAGER_LIMIT", "0K", 0);
	accepts("NCCL_MESH_DEBUG_EAGER_LIMIT", "64K", 65536);
	refuses("NCCL_MESH_DEBUG_EAGER_LIMIT", "65K");
	refuses(segment, "2G");
	refuses(segment, "3K");
	refuses("NCCL_MESH_CONNECT_TIMEOUT", "1K"); /* seconds have no units */
}

/* Numbers that fit only if bits are lost: 2^64 and more, before and after the unit. */
TEST(overflow)
{
	static const char *const huge[] = {
		"18446744073709551615",	 "18446744073709551616",
		"18446744073709555712",	 "99999999999999999999999999999999",
		"18014398509481984K",	 "18014398509481988K",
		"17592186044417M",	 "17179869185G",
		"18446744073709551615G",
	};

	FOR_EACH(i, huge) {
		refuses("NCCL_MESH_DEBUG_SEGMENT_SIZE", huge[i]);
		refuses("NCCL_MESH_DEBUG_EAGER_LIMIT", huge[i]);
	}
	refuses("NCCL_MESH_ACCEPT_TIMEOUT", "18446744073709551617");
}

TEST(number_syntax)
{
	static const char *const bad[] = {
		" ",   "x",	"K",	 "-1",	  "+8192", " 8192",  "8192 ",	  "8192\n", "8 K",
		"8KB", "8KK",	"8Ki",	 "8T",	  "8.5K",  "0x2000", "1e4",	  "8192x",  "8 ",
		"8\v", "8\xcb", "8\x01", "8,192", "--8",   "8-",     "8192,4096",
	};

	FOR_EACH(i, bad) {
		refuses("NCCL_MESH_DEBUG_EAGER_LIMIT", bad[i]);
		refuses("NCCL_MESH_DEAD_PEER_TIMEOUT", bad[i]);
	}
	/* Scripts set variables to the empty string. */
	accepts("NCCL_MESH_DEBUG_EAGER_LIMIT", "", 16384);
	accepts("NCCL_MESH_DEAD_PEER_TIMEOUT", "", 10);
	refuses("NCCL_MESH_DEBUG_EAGER_LIMIT",
		"0 "); /* whatever a blank is taken for: 0 times it is 0 */
}

TEST(text)
{
	static const char *const names[] = {"NCCL_MESH_NICS", "NCCL_MESH_ADDRESSES",
					    "NCCL_MESH_PROVIDER", "NCCL_MESH_NODE_NAME"};
	char text[MESH_CONFIG_TEXT_MAX + 1];
	struct mesh_config config;

	memset(text, 'e', sizeof(text));
	FOR_EACH(i, names) {
		const char *member = (const char *)&config + setting_named(names[i])->offset;

		assert_int_equal(load(names[i], "^=eth0, mlx5_1:1 ", &config), 0);
		assert_string_equal(member, "^=eth0, mlx5_1:1 ");
		assert_int_equal(load(names[i], "", &config), 0);
		assert_string_equal(member, "");
		text[MESH_CONFIG_TEXT_MAX - 1] = '\0';
		assert_int_equal(load(names[i], text, &config), 0);
		assert_string_equal(member, text);
		text[MESH_CONFIG_TEXT_MAX - 1] = 'e';
		text[MESH_CONFIG_TEXT_MAX] = '\0';
		/* Nothing starts without the NICs that the user chose; a name matters less. */
		refuses_with(names[i], text, i < 3 ? -E2BIG : -EINVAL);
	}
}

/* A relative one would make a folder wherever the job was started. */
TEST(stats_dir)
{
	static const char name[] = "NCCL_MESH_STATS_DIR";
	struct mesh_config config;

	assert_int_equal(load(name, "/dev/shm/x", &config), 0);
	assert_string_equal(config.stats_dir, "/dev/shm/x");
	assert_int_equal(load(name, "none", &config), 0);
	assert_string_equal(config.stats_dir, "none");
	refuses(name, "stats");
	refuses(name, "./stats");
	refuses(name, "nones");
	refuses(name, " /dev/shm/x");
}

TEST(environment)
{
	struct mesh_config config;

	setenv("NCCL_MESH_NICS", "eth7", 1);
	setenv("NCCL_MESH_DEBUG_SEGMENT_SIZE", "3M", 1);
	assert_int_equal(mesh_config_load(NULL, NULL, &config), 0);
	assert_string_equal(config.nics, "eth7");
	assert_int_equal(config.segment_bytes, 3 << 20);
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_DEBUG_SEGMENT_SIZE");
}

/* One bad value does not spoil the others. */
TEST(bad_among_good)
{
	struct mesh_config config;

	setenv("NCCL_MESH_NICS", "eth7", 1);
	setenv("NCCL_MESH_CONNECT_TIMEOUT", "soon", 1);
	setenv("NCCL_MESH_DEBUG_SEGMENT_SIZE", "3M", 1);
	log_capture_start();
	assert_int_equal(mesh_config_load(NULL, NULL, &config), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "\"soon\""));
	assert_string_equal(config.nics, "eth7");
	assert_int_equal(config.connect_timeout_s, 60);
	assert_int_equal(config.segment_bytes, 3 << 20);
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_CONNECT_TIMEOUT");
	unsetenv("NCCL_MESH_DEBUG_SEGMENT_SIZE");
}

/* A mistyped name, or one of another plugin, is reported without its value. */
TEST(unknown_name)
{
	struct mesh_config config;

	setenv("NCCL_MESH_NIC", "eth7", 1);
	setenv("NCCL_MESH_NICS_", "eth7", 1);
	setenv("NCCL_MESHED", "1", 1);
	setenv("NCCL_MESH_NICS", "eth7", 1);
	log_capture_start();
	assert_int_equal(mesh_config_load(NULL, NULL, &config), -EINVAL);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 2);
	assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_NIC: unknown setting"));
	assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_NICS_: unknown setting"));
	assert_string_equal(config.nics, "eth7");
	unsetenv("NCCL_MESH_NIC");
	unsetenv("NCCL_MESH_NICS_");
	unsetenv("NCCL_MESHED");
	unsetenv("NCCL_MESH_NICS");
	log_capture_start();
	assert_int_equal(mesh_config_load(NULL, NULL, &config), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

TEST(log)
{
	struct mesh_config config;

	load(NULL, NULL, &config);
	log_capture_start();
	mesh_config_log(&config);
	assert_int_equal(log_captured_lines(MESH_LOG_INFO), 0);
	strcpy(config.nics, "eth7");
	config.segment_bytes = 8192;
	mesh_config_log(&config);
	assert_int_equal(log_captured_lines(MESH_LOG_INFO), 2);
	assert_true(log_captured(MESH_LOG_INFO, "NCCL_MESH_NICS=eth7"));
	assert_true(log_captured(MESH_LOG_INFO, "NCCL_MESH_DEBUG_SEGMENT_SIZE=8192 (default 4M)"));
}

/* One of several words, as a whole. */
TEST(choices)
{
	struct mesh_config config;

	assert_int_equal(load("NCCL_MESH_TUNER", "ring", &config), 0);
	assert_string_equal(config.tuner, "ring");
	assert_int_equal(load("NCCL_MESH_TUNER", "off", &config), 0);
	assert_int_equal(load("NCCL_MESH_TUNER", "", &config), 0);
	assert_string_equal(config.tuner, "");
	log_capture_start();
	assert_int_equal(load("NCCL_MESH_TUNER", "rin", &config), -EINVAL);
	assert_int_equal(load("NCCL_MESH_TUNER", "ring|off", &config), -EINVAL);
	assert_int_equal(load("NCCL_MESH_TUNER", "Ring", &config), -EINVAL);
	assert_string_equal(config.tuner, "");
	assert_true(
		log_captured(MESH_LOG_WARN, "NCCL_MESH_TUNER=\"Ring\" is none of auto|ring|off"));
}

static void reads(const char *text, unsigned int first, unsigned int last)
{
	struct mesh_port_range range;

	assert_int_equal(mesh_port_range_parse(text, &range), 0);
	assert_int_equal(range.first, first);
	assert_int_equal(range.last, last);
}

TEST(parse)
{
	static const char *const bad[] = {"0",	   "-",	   "1-",	  "-1",	   "0-5",
					  "65536", "9-8",  "1-65536",	  "1 - 5", "1-5 ",
					  " 1",	   "a",	   "1-2-3",	  "+1",	   "0x10",
					  "1,2",   "1--2", "99999999999", "1-0",   "40000:40100"};
	struct mesh_port_range range;

	reads("", 0, 0);
	reads("40000-40100", 40000, 40100);
	reads("1-65535", 1, 65535);
	reads("7", 7, 7);
	FOR_EACH(i, bad) {
		if (mesh_port_range_parse(bad[i], &range) != -EINVAL)
			fail_msg("\"%s\" is read", bad[i]);
		assert_int_equal(range.first, 0);
		assert_int_equal(range.last, 0);
	}
}

TEST(each_once)
{
	struct mesh_port_range range = {65530, 65535}, any = {0, 0}, all = {1, 65535};
	unsigned int i, seen[6] = {0};

	assert_int_equal(mesh_port_range_size(&range), 6);
	assert_int_equal(mesh_port_range_size(&all), 65535);
	for (i = 0; i < 6; i++)
		seen[mesh_port_range_get(&range, i) - 65530]++;
	for (i = 0; i < 6; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(mesh_port_range_size(&any), 1);
	assert_int_equal(mesh_port_range_get(&any, 0), 0);
}
