/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - the processes of one node find each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "neighbours/members.h"

/* The number is that of struct mesh_member_report: processes with another one cannot be members. */
static const char name[] = "nccl-net-mesh neighbours 3";
#define BACKLOG 128

static socklen_t name_fill(struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	/* The first byte stays zero: an abstract name. */
	memcpy(address->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int socket_open(void)
{
	int fd = mesh_descriptor_hide(
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	return fd < 0 ? -errno : fd;
}

/* The user whose process is at the other end. */
static uid_t user_of(int fd)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return peer.uid;
}

static bool is_foreign(uid_t user)
{
	return user && user != geteuid();
}

/*
 * Watches the socket @fd for input, unless @ret says that it has failed already; in that case, and
 * if it cannot be watched, closes it. Returns 0 or a negative errno.
 */
MESH_HOLDS(process)
static int socket_watch(struct mesh_members *members, struct mesh_watch *watch, int fd, int ret)
{
	watch->fd = fd;
	if (!ret)
		ret = mesh_engine_watch(members->engine, watch, EPOLLIN);
	if (ret) {
		mesh_descriptor_close(fd);
		watch->fd = -1;
	}
	return ret;
}

/* What is sent on to other nodes has to pass their check, which also cleans its texts. */
static bool about_is_valid(struct mesh_neighbour about)
{
	return !about.num_processes &&
	       !mesh_neighbour_decode(&about, mesh_neighbour_finish(&about, MESH_NEIGHBOUR_ANSWER),
				      &about);
}

static bool family_is_valid(enum mesh_family family)
{
	return family == MESH_FAMILY_NONE || mesh_addr_size(family);
}

bool mesh_member_report_is_valid(const struct mesh_member_report *report, size_t size)
{
	uint32_t i;

	if (size < mesh_member_report_size(0) || report->num_links > MESH_NICS_MAX ||
	    size != mesh_member_report_size((int)report->num_links))
		return false;
	for (i = 0; i < report->num_links; i++) {
		if (!about_is_valid(report->links[i].about) ||
		    !family_is_valid(report->links[i].ask_from.family))
			return false;
	}
	return true;
}

/* Returns 0 or a negative errno. */
MESH_HOLDS(process)
static int report_send(const struct mesh_members *members, int fd)
{
	struct mesh_member_report report = {.process = members->self->process,
					    .num_links = (uint32_t)members->num_links};
	size_t size = mesh_member_report_size(members->num_links);

	if (members->num_links)
		memcpy(report.links, members->links, size - mesh_member_report_size(0));
	return send(fd, &report, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- the speaker --------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void member_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_member *member = mesh_container_of(watch, struct mesh_member, watch);
	struct mesh_member_report report;
	ssize_t size = recv(watch->fd, &report, sizeof(report), MSG_DONTWAIT | MSG_TRUNC);

	(void)events;
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size > 0 && mesh_member_report_is_valid(&report, (size_t)size)) {
		member->process = report.process;
		member->num_links = (int)report.num_links;
		memcpy(member->links, report.links, report.num_links * sizeof(report.links[0]));
		return;
	}
	mesh_engine_unwatch(member->members->engine, watch);
	member->num_links = 0;
}

/* A free slot for a process of @user, or NULL. Slots are never freed while the engine runs. */
MESH_HOLDS(process)
static struct mesh_member *member_slot(struct mesh_members *members, uid_t user)
{
	int i, at = MESH_MEMBERS_MAX, theirs = 0;

	for (i = 0; i < MESH_MEMBERS_MAX && members->all[i]; i++) {
		if (members->all[i]->watch.fd < 0)
			at = i;
		else
			theirs += members->all[i]->user == user;
	}
	if (is_foreign(user) && theirs >= MESH_MEMBERS_MAX / 2)
		return NULL;
	if (at == MESH_MEMBERS_MAX && i < MESH_MEMBERS_MAX)
		members->all[at = i] = malloc(sizeof(*members->all[i]));
	return at < MESH_MEMBERS_MAX ? members->all[at] : NULL;
}

/* Without a free descriptor the socket would stay ready. */
MESH_HOLDS(process)
static void listener_pause(struct mesh_members *members)
{
	mesh_engine_rewatch(members->engine, &members->listener, 0);
	mesh_engine_timer_set(members->engine, &members->timer,
			      mesh_clock_ms() + MESH_MEMBERS_PAUSE_MS);
}

MESH_HOLDS(process)
static void listener_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_members *members = mesh_container_of(watch, struct mesh_members, listener);
	struct mesh_member *member;
	uid_t user;
	int fd;

	(void)events;
	fd = mesh_descriptor_hide(accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			listener_pause(members);
		return;
	}
	user = user_of(fd);
	member = member_slot(members, user);
	if (!member) {
		mesh_descriptor_close(fd);
		return;
	}
	memset(member, 0, sizeof(*member));
	member->watch.ready = member_ready;
	member->members = members;
	member->user = user;
	socket_watch(members, &member->watch, fd, 0); /* if it fails, the slot is free again */
}

/* Returns 0; -EADDRINUSE if another process has it. */
MESH_HOLDS(process)
static int speaker_become(struct mesh_members *members)
{
	struct sockaddr_un address;
	socklen_t len = name_fill(&address);
	int fd = socket_open(), ret;

	if (fd < 0)
		return fd;
	ret = bind(fd, (struct sockaddr *)&address, len) || listen(fd, BACKLOG) ? -errno : 0;
	ret = socket_watch(members, &members->listener, fd, ret);
	if (!ret)
		members->speaks(members);
	return ret;
}

/* ---- a member ------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static int member_become(struct mesh_members *members)
{
	struct sockaddr_un address;
	socklen_t len = name_fill(&address);
	int fd = socket_open(), ret;

	if (fd < 0)
		return fd;
	ret = connect(fd, (struct sockaddr *)&address, len) ? -errno : 0;
	if (!ret && is_foreign(user_of(fd)))
		mesh_info("a process of user %u answers other nodes for this one: if they do not "
			  "see this node, end it (ss -xp)",
			  user_of(fd));
	if (!ret)
		ret = report_send(members, fd);
	return socket_watch(members, &members->uplink, fd, ret);
}

MESH_HOLDS(process)
static void join(struct mesh_members *members)
{
	uint64_t now_ms = mesh_clock_ms();
	int ret = speaker_become(members);

	if (ret == -EADDRINUSE)
		ret = member_become(members);
	if (!ret) {
		members->retry.up_ms = now_ms;
		return;
	}
	if (!members->retry.pause_ms)
		mesh_info("this process is not listed among those of this node yet: %s",
			  strerror(-ret));
	mesh_retry_later(&members->retry, now_ms);
	mesh_engine_timer_set(members->engine, &members->timer, members->retry.not_before_ms);
}

MESH_HOLDS(process)
static void join_again(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_members *members = mesh_container_of(timer, struct mesh_members, timer);

	(void)now_ms;
	if (mesh_members_speak(members))
		mesh_engine_rewatch(members->engine, &members->listener, EPOLLIN);
	else
		join(members);
}

/* The speaker has ended, or has no place for us. That of an earlier version reports that it has. */
MESH_HOLDS(process)
static void uplink_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_members *members = mesh_container_of(watch, struct mesh_members, uplink);
	char byte;
	ssize_t size = recv(watch->fd, &byte, 1, MSG_DONTWAIT);

	(void)events;
	if (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	mesh_engine_unwatch(members->engine, watch);
	mesh_engine_timer_set(members->engine, &members->timer,
			      mesh_retry_due_ms(&members->retry, mesh_clock_ms()));
}

/* ---- both ---------------------------------------------------------------------------------- */

void mesh_members_open(struct mesh_members *members)
{
	members->listener = (struct mesh_watch){.fd = -1, .ready = listener_ready};
	members->uplink = (struct mesh_watch){.fd = -1, .ready = uplink_ready};
	members->timer = (struct mesh_timer){.expired = join_again};
	join(members);
}

void mesh_members_links_set(struct mesh_members *members, const struct mesh_neighbour_link *links,
			    int num_links)
{
	members->links = links;
	members->num_links = num_links;
	/* If it fails, the connection has ended, and wakes us. */
	if (members->uplink.fd >= 0)
		report_send(members, members->uplink.fd);
}

void mesh_members_close(struct mesh_members *members)
{
	int i;

	mesh_engine_timer_cancel(members->engine, &members->timer);
	mesh_engine_unwatch(members->engine, &members->uplink);
	mesh_engine_unwatch(members->engine, &members->listener);
	for (i = 0; i < MESH_MEMBERS_MAX && members->all[i]; i++) {
		mesh_engine_unwatch(members->engine, &members->all[i]->watch);
		free(members->all[i]);
		members->all[i] = NULL;
	}
}

static int links_add(struct mesh_neighbour_link *links, int num, int max,
		     const struct mesh_neighbour_link *more, int num_more)
{
	int i, k;

	for (i = 0; i < num_more; i++) {
		for (k = 0; k < num && links[k].ifindex != more[i].ifindex; k++)
			continue;
		if (k < num)
			links[k].about.flags |= more[i].about.flags & MESH_NEIGHBOUR_DRAINED;
		else if (num < max)
			links[num++] = more[i];
	}
	return num;
}

int mesh_members_links(const struct mesh_members *members, struct mesh_neighbour_link *links,
		       int max)
{
	int i, num = links_add(links, 0, max, members->links, members->num_links);

	for (i = 0; i < MESH_MEMBERS_MAX && members->all[i]; i++)
		num = links_add(links, num, max, members->all[i]->links,
				members->all[i]->num_links);
	return num;
}

bool mesh_members_link(const struct mesh_members *members, unsigned int ifindex,
		       struct mesh_neighbour_link *link)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	int i, num = mesh_members_links(members, links, MESH_NICS_MAX);

	for (i = 0; i < num && links[i].ifindex != ifindex; i++)
		continue;
	if (i < num)
		*link = links[i];
	return i < num;
}

/* The processes of the node. @next: 0 at first; counts on. Returns NULL behind the last one. */
static const struct mesh_neighbour_process *process_next(const struct mesh_members *members,
							 int *next)
{
	const struct mesh_member *member;
	int i = (*next)++;

	if (!i)
		return &members->self->process;
	for (i--; i < MESH_MEMBERS_MAX && members->all[i]; i++) {
		member = members->all[i];
		*next = i + 2;
		if (member->watch.fd >= 0 && member->process.role)
			return &member->process;
	}
	return NULL;
}

void mesh_members_count(const struct mesh_members *members, uint64_t job,
			struct mesh_links_answer *answer)
{
	const struct mesh_neighbour_process *process;
	uint32_t lowest = UINT32_MAX;
	int next = 0;

	while ((process = process_next(members, &next))) {
		if (mesh_neighbour_serves(process, job))
			answer->flags |= MESH_LINKS_RELAY;
		if (process->role != MESH_NEIGHBOUR_RANK || (job && process->job != job))
			continue;
		answer->num_ranks++;
		if (process->rank < lowest)
			lowest = process->rank; /* 0 is the lowest */
	}
	if (!answer->num_ranks)
		return;
	answer->flags |= MESH_LINKS_SAME_JOB;
	answer->first_rank = lowest;
}

/* The turn in which a process is listed. */
static int turn_of(const struct mesh_neighbour_process *process, uint64_t job)
{
	if (job && process->job == job)
		return 0;
	return mesh_neighbour_serves(process, job) ? 1 : 2;
}

void mesh_members_list(const struct mesh_members *members, struct mesh_neighbour *answer)
{
	const struct mesh_neighbour_process *process;
	int turn, next;

	answer->num_processes = 0;
	answer->total_processes = 0;
	for (turn = 0; turn < 3; turn++) {
		for (next = 0; (process = process_next(members, &next));) {
			if (turn_of(process, answer->job) != turn)
				continue;
			answer->total_processes++;
			if (answer->num_processes < MESH_NEIGHBOUR_PROCESSES_MAX)
				answer->processes[answer->num_processes++] = *process;
		}
	}
}
