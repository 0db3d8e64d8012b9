/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_enable.c - the block in NCCL's files: foreign bytes stay as they are. */
#include <sys/stat.h>

#include "commands.h"
#include "common/nccl_setting.h"
#include "common/output.h"
#include "common/own_plugin.h"
#include "enable/enable.h"

#include "child.h"
#include "printed.h"

#define NUM_VALUES 4
/* More than the hundred that a user may do by hand. */
#define NUM_EDITS 3000
#define TEXTS_MAX 64

static const struct conf_value values[NUM_VALUES] = {
	{CONF_NEEDED, "NCCL_NET_PLUGIN", "mesh", false},
	{CONF_OPTIONAL, "NCCL_NET_PLUGIN_REF_COUNT", "1", false},
	{CONF_WATCHED, "NCCL_NET", "Mesh", true},
	{CONF_OPTIONAL, "NCCL_SOCKET_IFNAME", "=eno1", false},
};

static struct conf_obstacle obstacle;

static struct conf_text text_of(const char *bytes)
{
	return (struct conf_text){(char *)bytes, strlen(bytes)};
}

/* Texts that a test made, which are freed behind it. */
static char *texts[TEXTS_MAX];
static int num_texts;

static void texts_free(void)
{
	while (num_texts)
		free(texts[--num_texts]);
}

TESTS_USE(NULL, texts_free);

static char *keep(char *text)
{
	assert_true(num_texts < TEXTS_MAX);
	return texts[num_texts++] = text;
}

__attribute__((format(printf, 1, 2))) static char *format(const char *words, ...)
{
	va_list args;
	char *text;

	va_start(args, words);
	assert_true(vasprintf(&text, words, args) >= 0);
	va_end(args);
	return keep(text);
}

/* The text with the block, or NULL with the error in errno. */
static char *put(const char *old, bool is_new)
{
	struct conf_text text = text_of(old), made;
	int ret = conf_block_put(&text, is_new, values, NUM_VALUES, &made, &obstacle);

	errno = -ret;
	if (ret)
		return NULL;
	assert_int_equal(strlen(made.bytes), made.size);
	return keep(made.bytes);
}

static char *take(const char *old, bool *unmake)
{
	struct conf_text text = text_of(old), made;
	int ret = conf_block_remove(&text, &made, unmake, &obstacle);

	errno = ret < 0 ? -ret : 0;
	return ret == 1 ? keep(made.bytes) : NULL;
}

/* The block is there, and the rest is @wanted. */
static void assert_rest(const char *text, const char *wanted, bool unmakes)
{
	bool unmake = !unmakes;
	const char *rest = take(text, &unmake);

	assert_non_null(rest);
	assert_string_equal(rest, wanted);
	assert_int_equal(unmake, unmakes);
}

static void assert_value(const char *text, const char *name, const char *want)
{
	char value[NCCL_CONF_VALUE_MAX + 1] = "(none)";

	nccl_conf_find(text, name, value, sizeof(value));
	assert_string_equal(value, want);
}

/* Puts the block into @old, twice, and takes it out: nothing of @old may be different. */
static void assert_undone(const char *old)
{
	char *with = put(old, false), *again;

	assert_non_null(with);
	assert_value(with, "NCCL_NET_PLUGIN", "mesh");
	again = put(with, false);
	assert_string_equal(again, with);
	assert_rest(again, old, false);
}

TEST(undone)
{
	assert_undone("");
	assert_undone("\n");
	assert_undone("NCCL_DEBUG=INFO\n");
	assert_undone("NCCL_DEBUG=INFO");
	assert_undone("# a\r\nNCCL_DEBUG=INFO\r\n\r\n");
	assert_undone("NCCL_DEBUG=INFO\r");
	assert_undone("\n\n\n");
	assert_undone("NCCL_NET_PLUGIN=mesh\n"); /* by hand, to the same effect */
	assert_undone("NCCL_NET=mesh\nNCCL_NET_PLUGINS=x\n# NCCL_NET_PLUGIN=other\n");
	assert_undone(" NCCL_NET_PLUGIN=other\n"); /* a variable " NCCL_NET_PLUGIN" */
}

TEST(new_file)
{
	char *with = put("", true);

	assert_rest(put(with, false), "", true);
	/* The user has added a line to our file, which belongs to the user from then on. */
	assert_rest(format("%sNCCL_DEBUG=INFO", with), "NCCL_DEBUG=INFO", false);
}

/* A line behind the block needs the newline that was added before it. */
TEST(new_line)
{
	assert_rest(format("%sB=2\n", put("A=1", false)), "A=1\nB=2\n", false);
}

static void assert_refused(const char *old, int error, int line, const char *text)
{
	char *with = put(old, false);

	assert_null(with);
	assert_int_equal(errno, error);
	assert_int_equal(obstacle.line, line);
	assert_string_equal(obstacle.text, text);
}

TEST(foreign_values)
{
	char *with;

	assert_refused("# x\nNCCL_NET_PLUGIN=ofi\n", EEXIST, 2, "NCCL_NET_PLUGIN=ofi");
	assert_refused("NCCL_NET_PLUGIN=", EEXIST, 1, "NCCL_NET_PLUGIN=");
	assert_refused("NCCL_NET=IB\n", EEXIST, 1, "NCCL_NET=IB");
	assert_refused("NCCL_NET_PLUGIN=mesh\r\n", EEXIST, 1, "NCCL_NET_PLUGIN=mesh");
	assert_refused("NCCL_NET_PLUGIN=\033[31m\n", EEXIST, 1, "NCCL_NET_PLUGIN=?[31m");
	with = put("NCCL_SOCKET_IFNAME=eth7\nNCCL_NET_PLUGIN_REF_COUNT=0\n", false);
	assert_value(with, "NCCL_SOCKET_IFNAME", "eth7");
	assert_null(strstr(with, "=eno1"));
	assert_null(strstr(with, "COUNT=1"));
}

/* A line that the user has written between our markers belongs to the user. */
TEST(foreign_inside)
{
	char *with = put("A=1\n", false), *edited, *end = strstr(with, "# fi_mesh enable: end");

	edited = format("%.*sNCCL_DEBUG=WARN\n%s", (int)(end - with), with, end);
	assert_rest(edited, "A=1\nNCCL_DEBUG=WARN\n", false);
	/* Our line, with another value. */
	edited = format("%.*sNCCL_NET_PLUGIN=ofi\n%s", (int)(end - with), with, end);
	assert_null(put(edited, false));
	assert_int_equal(errno, EEXIST);
	assert_rest(edited, "A=1\nNCCL_NET_PLUGIN=ofi\n", false);
}

TEST(markers)
{
	char *with = put("A=1\n", false), *end = strstr(with, "# fi_mesh enable: end"), *line;
	char *half = format("%.*s", (int)(end - with), with);
	bool unmake;

	assert_null(take(half, &unmake));
	assert_int_equal(errno, EBADMSG);
	assert_null(put(half, false));
	assert_int_equal(errno, EBADMSG);
	assert_null(take(end, &unmake));
	assert_int_equal(errno, EBADMSG);
	assert_null(take("A=1\n", &unmake)); /* there is none */
	assert_int_equal(errno, 0);
	/* No marker may look like a setting: NCCL before 2.26 knew no comments. */
	assert_null(memchr(with, '=', 1));
	for (line = strtok(with, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(*line != '#' || !strchr(line, '='));
}

/* A line that an editor has turned into CRLF is still ours. */
TEST(carriage_returns)
{
	char *with = put("", false), dos[4096], *to = dos, *from;

	for (from = with; *from; from++) {
		if (*from == '\n')
			*to++ = '\r';
		*to++ = *from;
	}
	*to = '\0';
	assert_rest(dos, "", false);
	/* The last newline may be missing; `enable` would add it behind a lone marker. */
	to[-1] = '\0';
	assert_rest(dos, "", false);
	assert_null(put(strstr(dos, "# fi_mesh enable: end"), false));
	assert_int_equal(errno, EBADMSG);
}

/* ---- random edits ------------------------------------------------------------------------ */

static const char *const pieces[] = {
	"NCCL_DEBUG=INFO",
	"# comment",
	"NCCL_NET_PLUGIN=mesh",
	"NCCL_NET=Mesh",
	"X",
	"=",
	"#NCCL_NET_PLUGIN=ofi",
	" ",
	"\t",
	"\r",
	"\n",
	"\n",
	"\n",
	"\r\n",
	"\xff\x01",
	"NCCL_NET_PLUGIN=ofi\n",
	"NCCL_SOCKET_IFNAME=eth0\n",
	"# fi_mesh enable",
	"NCCL_MESH_NICS==ab",
};

static void random_text(char *text, size_t size)
{
	int num = rand() % 12;
	const char *piece;

	*text = '\0';
	while (num-- > 0) {
		piece = pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))];
		if (strlen(text) + strlen(piece) < size)
			strcat(text, piece);
	}
}

/* All of @foreign's lines stand in @text, in their order and whole. */
static void assert_lines_kept(const char *foreign, const char *text)
{
	const char *at = text;
	size_t len;

	for (; *foreign; foreign += len + (foreign[len] == '\n')) {
		len = strcspn(foreign, "\n");
		while (strncmp(at, foreign, len) || (at[len] && at[len] != '\n')) {
			at = strchr(at, '\n');
			assert_non_null(at);
			at++;
		}
		at += len + (at[len] == '\n');
	}
}

TEST(random_edits)
{
	char old[512], behind[512], *with, *again, *without;
	int i, num_put = 0;
	bool unmake;

	srand(16);
	for (i = 0; i < NUM_EDITS; i++) {
		random_text(old, sizeof(old));
		with = put(old, false);
		if (!with) {
			assert_int_equal(errno, EEXIST);
			continue;
		}
		num_put++;
		assert_rest(with, old, false);
		/* The user edits the file behind the block, and enables again. */
		random_text(behind, sizeof(behind));
		again = put(format("%s%s", with, behind), false);
		without = again ? take(again, &unmake) : NULL;
		if (without) {
			assert_lines_kept(old, without);
			assert_lines_kept(behind, without);
			assert_true(strlen(without) <= strlen(old) + strlen(behind) + 1);
		}
		texts_free();
	}
	assert_true(num_put > NUM_EDITS / 10);
}

/* ---- files ------------------------------------------------------------------------------- */

static char folder[] = "/tmp/mesh-enable-XXXXXX", conf[64], other[64];

static void folder_make(void)
{
	strcpy(strrchr(folder, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(conf, sizeof(conf), "%s/nccl.conf", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
}

static void folder_remove(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void file_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *path, const char *text)
{
	struct conf_file file;

	assert_int_equal(conf_file_read(path, &file), 0);
	assert_true(file.exists);
	assert_string_equal(file.text.bytes, text);
	conf_file_free(&file);
}

static int replace(const char *path, const char *bytes)
{
	struct conf_text text = text_of(bytes);
	struct conf_file file;
	int ret = conf_file_read(path, &file);

	if (ret)
		return ret;
	ret = conf_file_replace(&file, &text);
	conf_file_free(&file);
	return ret;
}

static int entries(void)
{
	char command[100];

	snprintf(command, sizeof(command), "exit $(ls -A %s | wc -l)", folder);
	return WEXITSTATUS(system(command));
}

TEST_WITH(file, folder_make, folder_remove)
{
	struct stat info;
	struct conf_file file;

	assert_int_equal(replace(conf, "A=1\n"), 0);
	assert_file(conf, "A=1\n");
	assert_int_equal(stat(conf, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0644);
	assert_int_equal(chmod(conf, 0640), 0);
	if (!geteuid())
		assert_int_equal(chown(conf, 7, 8), 0);
	assert_int_equal(replace(conf, "A=2\n"), 0);
	assert_int_equal(stat(conf, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0640);
	assert_int_equal(info.st_uid, geteuid() ? geteuid() : 7);
	assert_int_equal(conf_file_read(conf, &file), 0);
	assert_int_equal(conf_file_remove(&file), 0);
	conf_file_free(&file);
	assert_int_equal(entries(), 0); /* nor a temporary file */
}

TEST_WITH(link, folder_make, folder_remove)
{
	struct stat info;

	assert_int_equal(symlink("other", conf), 0);
	assert_int_equal(replace(conf, "A=1\n"), -ENOENT);
	file_write(other, "A=1\n");
	assert_int_equal(replace(conf, "A=2\n"), 0);
	assert_int_equal(lstat(conf, &info), 0);
	assert_true(S_ISLNK(info.st_mode));
	assert_file(other, "A=2\n");
	assert_int_equal(entries(), 2);
}

TEST_WITH(no_file, folder_make, folder_remove)
{
	assert_int_equal(mkdir(conf, 0755), 0);
	assert_int_equal(replace(conf, ""), -EINVAL);
	assert_int_equal(rmdir(conf), 0);
	assert_int_equal(mkfifo(conf, 0644), 0);
	assert_int_equal(replace(conf, ""), -EINVAL);
	assert_int_equal(unlink(conf), 0);
	file_write(conf, "");
	assert_int_equal(truncate(conf, 2 << 20), 0);
	assert_int_equal(replace(conf, ""), -EFBIG);
	assert_int_equal(replace("/nonexistent/nccl.conf", ""), -ENOENT);
}

/* Another program writes between our reading and our writing. */
TEST_WITH(changed_meanwhile, folder_make, folder_remove)
{
	struct conf_text text = text_of("ours\n");
	struct conf_file file;

	assert_int_equal(conf_file_read(conf, &file), 0);
	file_write(conf, "theirs, new\n");
	assert_int_equal(conf_file_replace(&file, &text), -EBUSY);
	conf_file_free(&file);
	assert_int_equal(conf_file_read(conf, &file), 0);
	file_write(conf, "theirs\n");
	assert_int_equal(conf_file_replace(&file, &text), -EBUSY);
	assert_int_equal(conf_file_remove(&file), -EBUSY);
	conf_file_free(&file);
	assert_file(conf, "theirs\n");
	assert_int_equal(entries(), 1);
}

static int replace_unprivileged(void)
{
	if (!geteuid() && setresuid(65534, 65534, 65534))
		return 2;
	return replace(conf, "A=2\n") != -EACCES;
}

/* A user who may write the folder, but not the file. */
TEST_WITH(read_only, folder_make, folder_remove)
{
	file_write(conf, "A=1\n");
	assert_int_equal(chmod(conf, 0444), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(child_run(replace_unprivileged), 0);
	assert_file(conf, "A=1\n");
	assert_int_equal(entries(), 1);
}

/* ---- values ------------------------------------------------------------------------------ */

TEST_WITH(cache, folder_make, folder_remove)
{
	char cache[1000], path[100];

	file_write(other, "");
	snprintf(path, sizeof(path), "%s/../%s/other", folder, strrchr(folder, '/'));
	snprintf(cache, sizeof(cache),
		 "2 libs found in cache `/etc/ld.so.cache'\n\tlibother.so (libc6) => %s\n"
		 "\tother (libc6,x86-64) => %s\n",
		 other, path);
	assert_true(enable_cache_has(cache, other));
	assert_false(enable_cache_has(cache, conf));
	file_write(conf, "");
	assert_false(enable_cache_has(cache, conf));
	assert_false(enable_cache_has("\tother (libc6) => /nonexistent/other\n", other));
	assert_false(enable_cache_has("\tother (libc6)\n\tother", other));
	assert_false(enable_cache_has("", other));
}

TEST(ifname)
{
	struct mesh_nic nics[3] = {
		{.netdev = "ab", .verdict = MESH_NIC_TAKEN, .management = MESH_NIC_DEFAULT_ROUTE},
		{.netdev = "eno1"},
		{.netdev = "eno2"},
	};
	struct mesh_nic_table table = {.nics = nics, .num_nics = 3};

	assert_null(enable_ifname_find(&table));
	nics[1].management = MESH_NIC_DEFAULT_ROUTE;
	assert_string_equal(enable_ifname_find(&table), "eno1");
	nics[2].management = MESH_NIC_DEFAULT_ROUTE;
	assert_null(enable_ifname_find(&table));
}

TEST(own_name)
{
	assert_true(own_plugin_is_named("mesh"));
	assert_true(own_plugin_is_named("/opt/x/libnccl-net-mesh.so"));
	assert_true(own_plugin_is_named("librccl-net-mesh.so"));
	assert_false(own_plugin_is_named("Mesh"));
	assert_false(own_plugin_is_named(""));
	assert_false(own_plugin_is_named("/libnccl-net-mesh.so/"));
}

TEST(usage)
{
	COMMAND_ROWS(command_disable, {"--strict", COMMAND_MISUSE});
	COMMAND_ROWS(command_enable, {"--ifname=a,b", COMMAND_MISUSE}, {"now", COMMAND_MISUSE});
}
