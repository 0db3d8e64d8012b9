/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_pair.c - both ends of a TCP connection over the loopback interface. */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "system/tcp_look.h"

#include "namespace.h"
#include "tcp_pair.h"
#include "unit.h"

void tcp_pair_open(int ends[2])
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&addr, len), 0);
	ends[1] = accept(listener, NULL, NULL);
	assert_true(ends[1] >= 0);
	close(listener);
}

bool tcp_pair_has_info(void)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int ends[2];

	tcp_pair_open(ends);
	assert_int_equal(getsockopt(ends[0], IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	close(ends[0]);
	close(ends[1]);
	if (len < sizeof(info))
		fprintf(stderr, "skipped: TCP_INFO has %u bytes here\n", len);
	return len >= sizeof(info);
}

void tcp_pair_silence(int end)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {.len = 1, .filter = &nothing};

	assert_int_equal(setsockopt(end, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), 0);
}

void tcp_pair_cut_off(int ends[2])
{
	uint64_t deadline_ms = mesh_clock_ms() + 30000;
	struct mesh_tcp_look before, after;

	tcp_pair_silence(ends[1]);
	assert_int_equal(send(ends[0], "", 1, 0), 1);
	namespace_ip("route flush table local");
	assert_int_equal(mesh_tcp_look(ends[0], &before), 0);
	do
		assert_int_equal(mesh_tcp_look(ends[0], &after), 0);
	while (after.retries == before.retries && mesh_clock_ms() < deadline_ms);
	assert_true(after.retries > before.retries);
}
