/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - the processes of one node find each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/private_descriptor.h"
#include "neighbours/members.h"

/* The number is that of struct report: processes with another one cannot be members. */
static const char speaker_name[] = "nccl-net-mesh neighbours 1";
#define BACKLOG 128
/* After a failure, in milliseconds times the number of tries. */
#define TRY_AGAIN_MS 20
#define TRIES_MAX 10
/* A speaker that ends after this had taken us. */
#define LIVED_MS 1000
/* The speaker's pause after accept() ran out of descriptors. */
#define PAUSE_MS 1000

/* What a member sends: never leaves the node. */
struct report {
	struct mesh_neighbour_process process;
	uint32_t num_links;
	uint32_t reserved;
	struct mesh_neighbour_link links[MESH_NICS_MAX]; /* num_links are sent */
};

static size_t report_size(int num_links)
{
	return offsetof(struct report, links) +
	       (size_t)num_links * sizeof(struct mesh_neighbour_link);
}

static socklen_t name_fill(struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	/* The first byte stays zero: an abstract name. */
	memcpy(address->sun_path + 1, speaker_name, sizeof(speaker_name) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(speaker_name));
}

static int socket_open(void)
{
	int fd = mesh_descriptor_hide(
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	return fd < 0 ? -errno : fd;
}

/* ---- the speaker --------------------------------------------------------------------------- */

/* Another user's process may have sent this: what is printed or sent on is checked again there. */
static bool report_is_valid(const struct report *report, size_t size)
{
	uint32_t i;

	if (size < report_size(0) || report->num_links > MESH_NICS_MAX ||
	    size != report_size((int)report->num_links))
		return false;
	for (i = 0; i < report->num_links; i++) {
		const struct mesh_neighbour *about = &report->links[i].about;

		if (about->num_addrs > MESH_NEIGHBOUR_ADDRS_MAX || about->num_processes)
			return false;
	}
	return true;
}

static int report_receive(struct mesh_member *member)
{
	struct report report;
	ssize_t size = recv(member->watch.fd, &report, sizeof(report), MSG_DONTWAIT | MSG_TRUNC);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
	if (!report_is_valid(&report, (size_t)size))
		return -EPROTO;
	member->process = report.process;
	member->num_links = (int)report.num_links;
	memcpy(member->links, report.links, report.num_links * sizeof(report.links[0]));
	return 0;
}

MESH_HOLDS(process)
static void member_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_member *member = mesh_container_of(watch, struct mesh_member, watch);
	int ret = report_receive(member);

	(void)events;
	if (!ret || ret == -EAGAIN)
		return;
	mesh_engine_unwatch(member->members->engine, watch);
	member->num_links = 0;
}

/* A free slot, or NULL. Slots are never freed while the engine runs. */
MESH_HOLDS(process)
static struct mesh_member *member_slot(struct mesh_members *members)
{
	struct mesh_member *member;
	int i;

	for (i = 0; i < MESH_MEMBERS_MAX; i++) {
		member = members->all[i];
		if (!member)
			break;
		if (member->watch.fd < 0)
			return member;
	}
	if (i < MESH_MEMBERS_MAX)
		members->all[i] = malloc(sizeof(*members->all[i]));
	return i < MESH_MEMBERS_MAX ? members->all[i] : NULL;
}

/* Without a free descriptor the socket would stay ready. */
MESH_HOLDS(process)
static void listener_pause(struct mesh_members *members)
{
	mesh_engine_rewatch(members->engine, &members->listener, 0);
	mesh_engine_timer_set(members->engine, &members->timer, mesh_clock_ms() + PAUSE_MS);
}

MESH_HOLDS(process)
static void listener_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_members *members = mesh_container_of(watch, struct mesh_members, listener);
	struct mesh_member *member;
	int fd;

	(void)events;
	fd = mesh_descriptor_hide(accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			listener_pause(members);
		return;
	}
	member = member_slot(members);
	if (!member) {
		mesh_descriptor_close(fd);
		return;
	}
	memset(member, 0, sizeof(*member));
	member->watch = (struct mesh_watch){.fd = fd, .ready = member_ready};
	member->members = members;
	if (mesh_engine_watch(members->engine, &member->watch, EPOLLIN)) {
		mesh_descriptor_close(fd);
		member->watch.fd = -1;
	}
}

/* Returns 0; -EADDRINUSE if another process is the speaker. */
MESH_HOLDS(process)
static int speaker_become(struct mesh_members *members)
{
	struct sockaddr_un address;
	socklen_t len = name_fill(&address);
	int fd = socket_open(), ret;

	if (fd < 0)
		return fd;
	ret = bind(fd, (struct sockaddr *)&address, len) || listen(fd, BACKLOG) ? -errno : 0;
	members->listener.fd = fd;
	if (!ret)
		ret = mesh_engine_watch(members->engine, &members->listener, EPOLLIN);
	if (ret) {
		mesh_descriptor_close(fd);
		members->listener.fd = -1;
		return ret;
	}
	members->speaker = true;
	members->speaks(members);
	return 0;
}

/* ---- a member ------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static int report_send(const struct mesh_members *members)
{
	struct report report = {.process = members->self->process,
				.num_links = (uint32_t)members->num_links};

	if (members->num_links)
		memcpy(report.links, members->links,
		       (size_t)members->num_links * sizeof(report.links[0]));
	return send(members->uplink.fd, &report, report_size(members->num_links),
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0
		       ? -errno
		       : 0;
}

MESH_HOLDS(process)
static int member_become(struct mesh_members *members)
{
	struct sockaddr_un address;
	socklen_t len = name_fill(&address);
	int fd = socket_open(), ret;

	if (fd < 0)
		return fd;
	ret = connect(fd, (struct sockaddr *)&address, len) ? -errno : 0;
	members->uplink.fd = fd;
	if (!ret)
		ret = report_send(members);
	if (!ret)
		ret = mesh_engine_watch(members->engine, &members->uplink, EPOLLIN);
	members->joined_ms = mesh_clock_ms();
	if (!ret)
		return 0;
	mesh_descriptor_close(fd);
	members->uplink.fd = -1;
	return ret;
}

MESH_HOLDS(process)
static void join(struct mesh_members *members)
{
	int ret = speaker_become(members);

	if (ret == -EADDRINUSE)
		ret = member_become(members);
	if (!ret)
		return;
	if (++members->tries < TRIES_MAX)
		mesh_engine_timer_set(members->engine, &members->timer,
				      mesh_clock_ms() + TRY_AGAIN_MS * (uint64_t)members->tries);
	else
		mesh_info("this process is not listed among those of this node: %s",
			  strerror(-ret));
}

MESH_HOLDS(process)
static void join_again(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_members *members = mesh_container_of(timer, struct mesh_members, timer);

	(void)now_ms;
	if (members->speaker)
		mesh_engine_rewatch(members->engine, &members->listener, EPOLLIN);
	else
		join(members);
}

/* The speaker sends nothing: it has ended, or has no place for us. */
MESH_HOLDS(process)
static void uplink_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_members *members = mesh_container_of(watch, struct mesh_members, uplink);

	(void)events;
	mesh_engine_unwatch(members->engine, watch);
	if (mesh_clock_elapsed_ms(members->joined_ms, mesh_clock_ms()) > LIVED_MS)
		members->tries = 0;
	if (++members->tries < TRIES_MAX)
		mesh_engine_timer_set(members->engine, &members->timer, mesh_clock_ms());
}

/* ---- both ---------------------------------------------------------------------------------- */

void mesh_members_open(struct mesh_members *members, struct mesh_engine *engine,
		       const struct mesh_neighbour_self *self,
		       void (*speaks)(struct mesh_members *members))
{
	memset(members, 0, sizeof(*members));
	members->engine = engine;
	members->self = self;
	members->speaks = speaks;
	members->listener = (struct mesh_watch){.fd = -1, .ready = listener_ready};
	members->uplink = (struct mesh_watch){.fd = -1, .ready = uplink_ready};
	members->timer.expired = join_again;
	join(members);
}

void mesh_members_links_set(struct mesh_members *members, const struct mesh_neighbour_link *links,
			    int num_links)
{
	members->links = links;
	members->num_links = num_links;
	members->tries = 0;
	if (members->uplink.fd >= 0)
		report_send(members); /* if it fails, the connection has ended, and wakes us */
	else if (!members->speaker)
		mesh_engine_timer_advance(members->engine, &members->timer, mesh_clock_ms());
}

void mesh_members_close(struct mesh_members *members)
{
	int i;

	mesh_engine_timer_cancel(members->engine, &members->timer);
	mesh_engine_unwatch(members->engine, &members->uplink);
	mesh_engine_unwatch(members->engine, &members->listener);
	members->speaker = false;
	for (i = 0; i < MESH_MEMBERS_MAX && members->all[i]; i++) {
		mesh_engine_unwatch(members->engine, &members->all[i]->watch);
		free(members->all[i]);
		members->all[i] = NULL;
	}
}

const struct mesh_neighbour_link *mesh_members_link(const struct mesh_members *members,
						    unsigned int ifindex)
{
	const struct mesh_member *member;
	int i, k;

	for (i = 0; i < members->num_links; i++) {
		if (members->links[i].ifindex == ifindex)
			return &members->links[i];
	}
	for (i = 0; i < MESH_MEMBERS_MAX && members->all[i]; i++) {
		member = members->all[i];
		for (k = 0; k < member->num_links; k++) {
			if (member->links[k].ifindex == ifindex)
				return &member->links[k];
		}
	}
	return NULL;
}

/* Counts a process, and lists it if it belongs to this turn and there is room. */
static void process_list(struct mesh_neighbour *answer,
			 const struct mesh_neighbour_process *process, bool own_job)
{
	if ((answer->job && process->job == answer->job) != own_job)
		return;
	answer->total_processes++;
	if (answer->num_processes < MESH_NEIGHBOUR_PROCESSES_MAX)
		answer->processes[answer->num_processes++] = *process;
}

void mesh_members_list(const struct mesh_members *members, struct mesh_neighbour *answer)
{
	const struct mesh_member *member;
	int turn, i;

	answer->num_processes = 0;
	answer->total_processes = 0;
	for (turn = 0; turn < 2; turn++) {
		process_list(answer, &members->self->process, !turn);
		for (i = 0; i < MESH_MEMBERS_MAX && members->all[i]; i++) {
			member = members->all[i];
			if (member->watch.fd >= 0 && member->process.role)
				process_list(answer, &member->process, !turn);
		}
	}
}
