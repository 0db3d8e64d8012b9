/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats.c - the page of counters: its entries, its reader's checks, its files. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/stats_folders.h"
#include "system/stats_file.h"
#include "wire/stats.h"

#include "child.h"
#include "log_capture.h"

static struct mesh_stats_page page, copy;
static char folder[64], path[PATH_MAX];

void tests_setup(void)
{
	mesh_stats_init(&page, 7, 42, "a", "train", 1000);
	strcpy(folder, "/tmp/mesh-stats-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

void tests_teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static struct mesh_stats_link link_to(const char *remote, const char *peer)
{
	struct mesh_stats_link link = {.nic = "ab",
				       .peer = peer,
				       .sending = true,
				       .provider = MESH_PROVIDER_TCP,
				       .via = MESH_STATS_ROUTED};

	assert_int_equal(mesh_addr_parse("10.1.0.1", &link.local), 0);
	assert_int_equal(mesh_addr_parse(remote, &link.remote), 0);
	return link;
}

/* ---- entries ----------------------------------------------------------------------------- */

TEST(open_and_close)
{
	struct mesh_stats_link link = link_to("10.1.0.2", "b");
	struct mesh_counters *first, *second;
	struct mesh_addr local, remote;

	first = mesh_stats_open(&page, &link, 2000);
	second = mesh_stats_open(&page, &link, 3000);
	assert_non_null(first);
	assert_ptr_not_equal(first, second);
	mesh_count(&first->bytes, 100);
	mesh_count(&first->bytes, 1);
	mesh_count(&second->bytes, 1000);
	mesh_count(&second->errors, 1);
	mesh_count(&first->losses, 2);
	mesh_count(&second->resent, 5);
	mesh_stats_down_set(second, true);
	assert_int_equal(stats_page_decode(&page, sizeof(page), &copy), 0);
	assert_int_equal(copy.entries[0].down, 0);
	assert_int_equal(copy.entries[1].down, 1);
	assert_int_equal(copy.entries[0].counters.bytes, 101);
	assert_int_equal(copy.entries[0].state, MESH_STATS_OPEN);
	assert_int_equal(copy.entries[1].counters.bytes, 1000);
	assert_string_equal(copy.entries[0].peer, "b");
	assert_int_equal(copy.entries[0].via, MESH_STATS_ROUTED);
	stats_entry_addresses(&copy.entries[0], &local, &remote);
	assert_true(mesh_addr_equal(&local, &link.local));
	assert_true(mesh_addr_equal(&remote, &link.remote));

	/* Closed paths of one link are one entry, and nothing of theirs is lost. */
	mesh_stats_close(&page, first);
	mesh_stats_close(&page, second);
	assert_int_equal(stats_page_decode(&page, sizeof(page), &copy), 0);
	assert_int_equal(copy.entries[0].state, MESH_STATS_CLOSED);
	assert_int_equal(copy.entries[0].paths, 2);
	assert_int_equal(copy.entries[0].counters.bytes, 1101);
	assert_int_equal(copy.entries[0].counters.errors, 1);
	assert_int_equal(copy.entries[0].counters.losses, 2);
	assert_int_equal(copy.entries[0].counters.resent, 5);
	assert_int_equal(copy.entries[0].down, 0);
	assert_int_equal(copy.entries[1].state, MESH_STATS_FREE);
}

TEST(other_links_stay_apart)
{
	struct mesh_stats_link links[] = {link_to("10.1.0.2", "b"), link_to("10.1.0.3", "b"),
					  link_to("10.1.0.2", "c"), link_to("10.1.0.2", "b"),
					  link_to("10.1.0.2", "b")};

	links[3].sending = false;
	links[4].nic = "ac";
	for (size_t i = 0; i < 5; i++)
		mesh_stats_close(&page, mesh_stats_open(&page, &links[i], 1));
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(page.entries[i].state, MESH_STATS_CLOSED);
	assert_int_equal(page.entries[5].state, MESH_STATS_FREE);
}

TEST(full)
{
	struct mesh_stats_link link = link_to("10.1.0.2", "b");

	for (int i = 0; i < MESH_STATS_PATHS; i++)
		assert_non_null(mesh_stats_open(&page, &link, 1));
	assert_null(mesh_stats_open(&page, &link, 1));
	assert_int_equal(page.header.counters.unlisted, 1);
	mesh_stats_close(&page, &page.entries[3].counters);
	mesh_stats_close(&page, &page.entries[4].counters);
	assert_ptr_equal(mesh_stats_open(&page, &link, 1), &page.entries[4].counters);
}

/* Closed circuits between two nodes are one entry; those of other nodes or NICs are not. */
TEST(circuits)
{
	struct mesh_circuit_counters *first, *second, *other;

	first = mesh_stats_circuit_open(&page, "a", "c", "ba", "bc", 2000);
	second = mesh_stats_circuit_open(&page, "a", "c", "ba", "bc", 3000);
	other = mesh_stats_circuit_open(&page, "c", "a", "bc", "ba", 3000);
	assert_non_null(first);
	assert_ptr_not_equal(first, second);
	mesh_count(&first->bytes, 100);
	mesh_count(&second->bytes, 1000);
	mesh_count(&second->segments, 2);
	mesh_count(&second->messages, 3);
	mesh_count(&first->copied, 6);
	mesh_count(&second->copied, 5);
	first->slots = 64;
	first->used = 5;
	first->memory = 4096;
	mesh_count(&other->bytes, 7);
	assert_int_equal(stats_page_decode(&page, sizeof(page), &copy), 0);
	assert_string_equal(copy.circuits[0].origin, "a");
	assert_string_equal(copy.circuits[0].target, "c");
	assert_string_equal(copy.circuits[0].nic_up, "ba");
	assert_string_equal(copy.circuits[0].nic_down, "bc");
	assert_int_equal(copy.circuits[0].counters.used, 5);
	mesh_stats_circuit_close(&page, first);
	mesh_stats_circuit_close(&page, second);
	mesh_stats_circuit_close(&page, other);
	assert_int_equal(stats_page_decode(&page, sizeof(page), &copy), 0);
	assert_int_equal(copy.circuits[0].state, MESH_STATS_CLOSED);
	assert_int_equal(copy.circuits[0].circuits, 2);
	assert_int_equal(copy.circuits[0].counters.bytes, 1100);
	assert_int_equal(copy.circuits[0].counters.segments, 2);
	assert_int_equal(copy.circuits[0].counters.messages, 3);
	assert_int_equal(copy.circuits[0].counters.copied, 11);
	assert_int_equal(copy.circuits[0].counters.used, 0);
	assert_int_equal(copy.circuits[0].counters.slots, 0);
	assert_int_equal(copy.circuits[0].counters.memory, 0);
	assert_int_equal(copy.circuits[1].state, MESH_STATS_FREE);
	assert_int_equal(copy.circuits[2].state, MESH_STATS_CLOSED);
	assert_int_equal(copy.circuits[2].counters.bytes, 7);
}

TEST(circuits_full)
{
	for (int i = 0; i < MESH_STATS_CIRCUITS; i++)
		assert_non_null(mesh_stats_circuit_open(&page, "a", "c", "ba", "bc", 1));
	assert_null(mesh_stats_circuit_open(&page, "a", "c", "ba", "bc", 1));
	assert_int_equal(page.header.counters.unlisted, 1);
}

/* ---- the reader's checks -------------------------------------------------------------------- */

static int decode_changed(void *at, char value, size_t size)
{
	char old = *(char *)at;
	int ret;

	*(char *)at = value;
	ret = stats_page_decode(&page, size, &copy);
	*(char *)at = old;
	return ret;
}

TEST(decode_refuses)
{
	struct mesh_stats_link link = link_to("10.1.0.2", "b");
	struct mesh_stats_entry *entry = &page.entries[0];
	const size_t all = sizeof(page);

	mesh_stats_open(&page, &link, 1);
	assert_int_equal(stats_page_decode(&page, all, &copy), 0);
	assert_int_equal(stats_page_decode(&page, all - 1, &copy), -EPROTO);
	assert_int_equal(stats_page_decode(&page, 0, &copy), -EPROTO);
	assert_int_equal(decode_changed(&page.header.magic, 1, all), -EPROTO);
	assert_int_equal(decode_changed(&page.header.version, 99, all), -EPROTONOSUPPORT);
	assert_int_equal(decode_changed(&page.header.header_size, 1, all), -EPROTO);
	assert_int_equal(decode_changed(&page.header.entry_size, 1, all), -EPROTO);
	assert_int_equal(decode_changed((char *)&page.header.num_entries + 3, 1, all), -EPROTO);
	assert_int_equal(decode_changed(&page.header.sequence, 1, all), -EAGAIN);
	assert_int_equal(decode_changed(&entry->state, 3, all), -EPROTO);
	assert_int_equal(decode_changed(&entry->sending, 2, all), -EPROTO);
	assert_int_equal(decode_changed(&entry->provider, 4, all), -EPROTO);
	assert_int_equal(decode_changed(&entry->via, MESH_STATS_VIAS, all), -EPROTO);
	assert_int_equal(decode_changed(&entry->family, 5, all), -EPROTO);
	memset(entry->peer, 'x', sizeof(entry->peer));
	assert_int_equal(stats_page_decode(&page, all, &copy), -EPROTO);
	memset(entry->peer, 0, sizeof(entry->peer));
	memset(entry->nic, 'x', sizeof(entry->nic));
	assert_int_equal(stats_page_decode(&page, all, &copy), -EPROTO);
}

TEST(decode_refuses_circuits)
{
	struct mesh_stats_circuit *circuit = &page.circuits[MESH_STATS_CIRCUITS - 1];
	char *const texts[] = {circuit->origin, circuit->target, circuit->nic_up,
			       circuit->nic_down};
	const size_t sizes[] = {sizeof(circuit->origin), sizeof(circuit->target),
				sizeof(circuit->nic_up), sizeof(circuit->nic_down)};
	const size_t all = sizeof(page);

	assert_int_equal(decode_changed(&page.header.circuit_size, 1, all), -EPROTO);
	assert_int_equal(decode_changed((char *)&page.header.num_circuits + 3, 1, all), -EPROTO);
	assert_int_equal(decode_changed(&page.header.num_circuits, 0, all), 0);
	assert_int_equal(decode_changed(&circuit->state, 3, all), -EPROTO);
	circuit->state = MESH_STATS_OPEN;
	for (size_t i = 0; i < 4; i++) {
		memset(texts[i], 'x', sizes[i]);
		assert_int_equal(stats_page_decode(&page, all, &copy), -EPROTO);
		texts[i][1] = '\0';
		texts[i][0] = '\033';
		assert_int_equal(stats_page_decode(&page, all, &copy), 0);
	}
	assert_string_equal(copy.circuits[MESH_STATS_CIRCUITS - 1].origin, "?");
	assert_string_equal(copy.circuits[MESH_STATS_CIRCUITS - 1].nic_down, "?");
}

/* Root looks at what other users' programs wrote. */
TEST(texts_are_printable)
{
	struct mesh_stats_link link = link_to("10.1.0.2", "b\x1b[2J");

	mesh_stats_open(&page, &link, 1);
	strcpy(page.header.node, "a\n");
	strcpy(page.header.program, "p\xff");
	strcpy(page.entries[0].nic, "n\r");
	memset(page.entries[1].nic, 1,
	       sizeof(page.entries[1].nic)); /* of a free one: not looked at */
	assert_int_equal(stats_page_decode(&page, sizeof(page), &copy), 0);
	assert_string_equal(copy.header.node, "a?");
	assert_string_equal(copy.header.program, "p?");
	assert_string_equal(copy.entries[0].nic, "n?");
	assert_string_equal(copy.entries[0].peer, "b?[2J");
}

TEST(decode_fewer_entries)
{
	struct mesh_stats_link link = link_to("10.1.0.2", "b");

	mesh_stats_open(&page, &link, 1);
	mesh_stats_open(&page, &link, 1);
	page.header.num_entries = 1;
	page.header.num_circuits = 0;
	assert_int_equal(
		stats_page_decode(&page, sizeof(page.header) + sizeof(page.entries[0]), &copy), 0);
	assert_int_equal(copy.entries[0].state, MESH_STATS_OPEN);
	assert_int_equal(copy.entries[1].state, MESH_STATS_FREE);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct seen {
	int count, errors;
	uint64_t bytes;
	uint32_t pid;
};

static void see(void *arg, const struct stats_found *found)
{
	struct seen *seen = arg;

	seen->count++;
	seen->errors += found->error != 0;
	seen->bytes += found->page.entries[0].counters.bytes;
	seen->pid = found->page.header.pid;
}

static struct seen seen_in(const char *setting)
{
	struct seen seen = {0};

	stats_files_read(setting, see, &seen);
	return seen;
}

TEST(file)
{
	struct mesh_stats_link link = link_to("10.1.0.2", "b");
	struct mesh_counters *counters;
	struct mesh_stats_file file;
	struct seen seen;
	struct stat stat_of;

	assert_int_equal(mesh_stats_file_open(folder, 7, "a", &file), 0);
	assert_int_equal(fstat(file.fd, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
	counters = mesh_stats_open(file.page, &link, 1);
	mesh_count(&counters->bytes, 5);
	seen = seen_in(folder);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.errors, 0);
	assert_int_equal(seen.bytes, 5);
	assert_int_equal(seen.pid, getpid());
	mesh_stats_file_close(&file);
	assert_int_equal(seen_in(folder).count, 0);
	assert_int_equal(rmdir(folder), 0);
	assert_non_null(mkdtemp(strcpy(folder, "/tmp/mesh-stats-XXXXXX")));
}

TEST(file_none)
{
	struct mesh_stats_file file;

	assert_int_equal(mesh_stats_file_open("none", 7, "a", &file), 0);
	assert_null(file.page);
	mesh_stats_file_close(&file);
}

/* A process that ends without closing its page. */
static int file_leave(void)
{
	struct mesh_stats_file file;

	return mesh_stats_file_open(folder, 7, "dead", &file) != 0;
}

static int files_in_folder(void)
{
	char command[128];
	int count = -1;
	FILE *pipe;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", folder);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%d", &count), 1);
	pclose(pipe);
	return count;
}

TEST(dead_files_go)
{
	struct mesh_stats_file file;

	assert_int_equal(child_run(file_leave), 0);
	assert_int_equal(files_in_folder(), 1);
	assert_int_equal(seen_in(folder).count, 0);
	assert_int_equal(files_in_folder(), 0);
	assert_int_equal(child_run(file_leave), 0);
	assert_int_equal(mesh_stats_file_open(folder, 7, "a", &file), 0);
	assert_int_equal(files_in_folder(), 1);
	mesh_stats_file_close(&file);
}

static int file_limited(void)
{
	struct rlimit limit = {0, 0};
	struct mesh_stats_file file;
	int bad;

	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 2;
	log_capture_start();
	bad = mesh_stats_file_open(folder, 7, "a", &file) != -EFBIG || file.page;
	bad |= log_captured_lines(MESH_LOG_WARN) || !log_captured(MESH_LOG_INFO, "ulimit -f");
	mesh_stats_file_close(&file);
	return bad;
}

/* `ulimit -f 0`, or a container's limit: the kernel ends a process that makes a larger file. */
TEST(file_size_limit)
{
	assert_int_equal(child_run(file_limited), 0);
	assert_int_equal(files_in_folder(), 0);
}

static int life[2], born[2];

static int child_leave(void)
{
	struct mesh_stats_file file;
	char byte = 0;

	close(life[1]);
	if (mesh_stats_file_open(folder, 7, "dead", &file))
		return 1;
	if (fork())
		return read(born[0], &byte, 1) != 1;
	if (write(born[1], &byte, 1) != 1)
		return 1;
	return read(life[0], &byte, 1) != 0; /* until the test ends it */
}

/* A data loader that outlives its process is not its process. */
TEST(child_lives_on)
{
	assert_int_equal(pipe(life), 0);
	assert_int_equal(pipe(born), 0);
	assert_int_equal(child_run(child_leave), 0);
	assert_int_equal(seen_in(folder).count, 0);
	for (int i = 0; i < 2; i++) {
		close(life[i]);
		close(born[i]);
	}
}

static void write_file(const char *name, const char *text)
{
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

TEST(other_files_stay)
{
	write_file("notes", "mine");
	write_file("1-00000000000000aa.mesh.bak", "mine");
	assert_int_equal(seen_in(folder).count, 0);
	assert_int_equal(files_in_folder(), 2);
}

TEST(links_are_not_followed)
{
	struct mesh_stats_file file;
	char name[PATH_MAX];

	/* A link in place of the folder. */
	snprintf(path, sizeof(path), "%s/link", folder);
	assert_int_equal(symlink("/tmp", path), 0);
	log_capture_start();
	assert_int_not_equal(mesh_stats_file_open(path, 7, "a", &file), 0);
	assert_true(log_captured(MESH_LOG_INFO, "no counters for `fi_mesh watch`"));
	assert_null(file.page);
	/* A link in place of a file. */
	snprintf(name, sizeof(name), "%s/1-00000000000000aa.mesh", folder);
	assert_int_equal(symlink("/etc/passwd", name), 0);
	assert_int_equal(seen_in(folder).count, 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	assert_int_equal(unlink(path), 0);
}

TEST(folder_that_others_can_write_to)
{
	struct mesh_stats_file file;

	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(mesh_stats_file_open(folder, 7, "a", &file), -EPERM);
	assert_null(file.page);
	assert_int_equal(stats_files_read(folder, see, NULL), -EPERM);
}

TEST(no_folder)
{
	assert_int_equal(stats_files_read("/nowhere/at/all", see, NULL), -ENOENT);
}
