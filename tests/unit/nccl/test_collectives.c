/* SPDX-License-Identifier: Apache-2.0 */
/* test_collectives.c - the parts of tests/nccl that need neither a GPU nor NCCL. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <tests/nccl/bandwidth.h>
#include <tests/nccl/ranks.h>
#include <tests/nccl/values.h>

#include "unit.h"

#define COUNT 4096

/* --- bandwidth ------------------------------------------------------------------------------- */

static void check_near(double found, double wanted)
{
	assert_true(found > wanted * 0.999999 && found < wanted * 1.000001);
}

TEST(bus_bandwidth_is_that_of_nccl_tests)
{
	double algorithm = bandwidth_algorithm(1000000000, 0.5);

	check_near(algorithm, 2.0);
	/* nccl-tests, doc/PERFORMANCE.md: 2(n-1)/n for all-reduce, (n-1)/n, or 1 */
	check_near(bandwidth_bus(algorithm, BANDWIDTH_ALL_REDUCE, 4), 3.0);
	check_near(bandwidth_bus(algorithm, BANDWIDTH_ALL_BUT_OWN, 4), 1.5);
	check_near(bandwidth_bus(algorithm, BANDWIDTH_ONCE, 4), 2.0);
	/* field.md: an all-reduce of three ranks at 8.46 GB/s is 11.28 GB/s on the bus */
	check_near(bandwidth_bus(8.46, BANDWIDTH_ALL_REDUCE, 3), 11.28);
}

TEST(no_time_is_no_bandwidth)
{
	assert_true(bandwidth_algorithm(1000, 0) == 0);
}

/* --- values ---------------------------------------------------------------------------------- */

TEST(moved_elements_name_their_origin)
{
	struct values_origin origin = {.kind = VALUES_MOVED, .rank = 1, .first = 100};
	static uint32_t data[COUNT];
	size_t where = 0;
	char text[128];

	values_fill(data, VALUES_MOVED, 1, 100, COUNT);
	assert_int_equal(values_wrong(data, origin, COUNT, &where), 0);
	data[7] = values_sent(VALUES_MOVED, 2, 55);
	memset(&data[9], VALUES_POISON_BYTE, sizeof(data[9]));
	assert_int_equal(values_wrong(data, origin, COUNT, &where), 2);
	assert_int_equal(where, 7);
	values_explain(data[7], origin, 107, text, sizeof(text));
	assert_string_equal(text, "is rank 2's element 55, not rank 1's element 107");
	values_explain(data[9], origin, 109, text, sizeof(text));
	assert_string_equal(text, "was never written");
}

TEST(sums_are_those_of_all_ranks)
{
	float total, one;
	uint32_t bits, sum;

	for (size_t position = 0; position < COUNT; position++) {
		total = 0;
		sum = 0;
		for (int rank = 0; rank < 5; rank++) {
			bits = values_sent(VALUES_SUMMED_FLOAT, rank, position);
			memcpy(&one, &bits, sizeof(one));
			total += one;
			sum += values_sent(VALUES_SUMMED_INT, rank, position);
		}
		memcpy(&bits, &total, sizeof(bits));
		assert_int_equal(bits, values_sum(VALUES_SUMMED_FLOAT, 5, position));
		assert_int_equal(sum, values_sum(VALUES_SUMMED_INT, 5, position));
	}
}

/* A rank that was left out, or counted twice, changes nearly every sum. */
TEST(a_missing_rank_is_seen)
{
	size_t position, same = 0;

	for (position = 0; position < COUNT; position++)
		same += values_sum(VALUES_SUMMED_FLOAT, 3, position) ==
			values_sum(VALUES_SUMMED_FLOAT, 2, position);
	assert_true(same < COUNT / 100);
}

/* --- ranks ----------------------------------------------------------------------------------- */

#define WORLD 3

static void set_environment(int rank, const char *port)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", rank);
	setenv("RANK", number, 1);
	setenv("WORLD_SIZE", "3", 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", port, 1);
}

/* Exit status 0 if everything is as it should be on this rank. */
static int be_a_rank(int rank, const char *port)
{
	struct ranks ranks;
	char secret[32] = "";
	double value = rank * 10;

	set_environment(rank, port);
	if (!rank)
		strcpy(secret, "rank 0 knows it");
	if (ranks_meet(&ranks, 30) || ranks_broadcast(&ranks, secret, sizeof(secret)) ||
	    strcmp(secret, "rank 0 knows it") != 0)
		return 1;
	if (ranks_largest(&ranks, &value) || value != 20)
		return 2;
	/* The loss of a rank is detected, and ends the wait. */
	if (rank == 2)
		_exit(0);
	value = 1;
	if (rank == 0 && ranks_largest(&ranks, &value) != -ECONNRESET)
		return 3;
	ranks_part(&ranks);
	return 0;
}

TEST(ranks_meet_and_agree)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), rank, status;
	pid_t children[WORLD];
	char port[16];

	/* A port that is free now. */
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	snprintf(port, sizeof(port), "%d", ntohs(address.sin_port));
	close(fd);
	for (rank = 0; rank < WORLD; rank++) {
		children[rank] = fork();
		assert_true(children[rank] >= 0);
		if (!children[rank])
			_exit(be_a_rank(rank, port));
	}
	for (rank = 0; rank < WORLD; rank++) {
		assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

TEST(a_wrong_environment_is_said)
{
	struct ranks ranks;

	set_environment(3, "29500");
	assert_int_equal(ranks_meet(&ranks, 1), -EINVAL);
	set_environment(0, "29500");
	unsetenv("MASTER_ADDR");
	assert_int_equal(ranks_meet(&ranks, 1), -EINVAL);
	setenv("RANK", "1x", 1);
	assert_int_equal(ranks_meet(&ranks, 1), -EINVAL);
}
