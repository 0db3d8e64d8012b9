/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay.c - the longest round trip of 8 bytes on one comm, alone, while large messages are sent on
 * another comm of the same two ranks, and while a large region is registered there.
 *
 * Each rank has one thread for both comms, as NCCL's proxy has: a long call for the one delays the
 * other. Registrations are made by a second thread, as NCCL makes them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"
#include "../stamp.h"

#define SMALL sizeof(uint64_t)
#define SMALL_SLOTS 8
#define LARGE_SLOTS 2
/* In a message: the number of the round trip, its sender's waited_ns(), and the last one. */
#define NUMBER_BITS 16
#define NUMBER_MASK (((uint64_t)1 << NUMBER_BITS) - 1)
#define LAST ((uint64_t)1 << 63)
/* What is registered: the same pages again and again, so that it needs little memory. */
#define REGION_BYTES ((size_t)4 << 30)
#define PAGES_BYTES ((size_t)64 << 20)
/* Between two registrations. */
#define PAUSE_US 1000

struct delay {
	struct bench *bench;
	struct lane out, in;
	struct lane large; /* from rank 0 to rank 1 */
	size_t size;	   /* of its messages */
	bool streams;	   /* they are sent in this part */
	int schedstat;	   /* descriptor */
	uint64_t worst_ns, round_trips;
	uint64_t registering_ns; /* of the longest registration in this part; 0: none */
	double started;		 /* this part, in seconds */
};

/* ---- the large messages ------------------------------------------------------------------- */

/* One message at a time: the next one when the last one is done. */
static void large_advance(struct delay *delay, bool more)
{
	struct lane *lane = &delay->large;

	if (lane->posted == lane->done) {
		if (!more)
			return;
		if (lane->sending)
			stamp_put(lane_slot(lane, lane->posted), delay->size, lane->posted,
				  STAMP_PAGES);
		(void)(lane->sending ? lane_send(lane, delay->size)
				     : lane_receive(lane, delay->size));
		return;
	}
	if (lane_test(lane, delay->size) && !lane->sending &&
	    !stamp_is_right(lane_slot(lane, lane->done - 1), delay->size, lane->done - 1,
			    STAMP_PAGES))
		fatal("wrong bytes in message %llu of %zu bytes",
		      (unsigned long long)lane->done - 1, delay->size);
}

/* The receiver may have posted one receive more than the sender has sent messages. */
static void large_finish(struct delay *delay)
{
	uint64_t posted[MEET_RANKS_MAX], end, idle = 0;

	meet_gather(&delay->bench->meet, &delay->large.posted, sizeof(posted[0]), posted);
	end = posted[0] > posted[1] ? posted[0] : posted[1];
	while (delay->large.done < end) {
		large_advance(delay, delay->large.posted < end);
		bench_idle(++idle, YIELD_SELDOM);
	}
}

/* ---- the small messages ------------------------------------------------------------------- */

static void small_send(struct delay *delay, uint64_t value)
{
	struct lane *lane = &delay->out;
	uint64_t idle = 0;

	while (lane->posted - lane->done >= SMALL_SLOTS)
		lane_test(lane, SMALL);
	*(uint64_t *)(void *)lane_slot(lane, lane->posted) = value;
	while (!lane_send(lane, SMALL))
		bench_idle(++idle, YIELD_SELDOM);
}

/* The next message, with the large ones going on meanwhile. */
static uint64_t small_await(struct delay *delay)
{
	struct lane *lane = &delay->in;
	uint64_t idle = 0;

	while (lane->posted - lane->done < SMALL_SLOTS)
		if (!lane_receive(lane, SMALL))
			break;
	while (!lane_test(lane, SMALL)) {
		if (delay->streams)
			large_advance(delay, true);
		if (lane->posted == lane->done)
			lane_receive(lane, SMALL);
		bench_idle(++idle, YIELD_SELDOM);
	}
	while (delay->out.done < delay->out.posted && lane_test(&delay->out, SMALL))
		continue;
	return *(uint64_t *)(void *)lane_slot(lane, lane->done - 1);
}

static void expect(uint64_t value, uint64_t number)
{
	if ((value & NUMBER_MASK) != (number & NUMBER_MASK))
		fatal("wrong bytes in round trip %llu: %llx", (unsigned long long)number,
		      (unsigned long long)value);
}

/*
 * How long this thread has been ready to run while others had its CPU, in ns; 0 where the kernel
 * does not count it. proc(5), schedstat: the time on the CPU, the time of waiting, and turns.
 */
static uint64_t waited_ns(const struct delay *delay)
{
	char text[96] = "";
	char *second;

	if (pread(delay->schedstat, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	second = strchr(text, ' ');
	return second ? strtoull(second, NULL, 10) : 0;
}

static bool is_over(const struct delay *delay, const atomic_bool *busy)
{
	double now = (double)now_ns() / (double)NS_PER_S;

	return now >= delay->started + delay->bench->seconds && !(busy && atomic_load(busy));
}

/* The CPU time of the thread that registers; 0 without one. */
static uint64_t worker_ns(const clockid_t *worker)
{
	struct timespec used;

	if (!worker || clock_gettime(*worker, &used))
		return 0;
	return (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
}

struct instant {
	uint64_t ns;
	uint64_t waited_ns, their_waited_ns; /* of both ranks */
	uint64_t worker_ns;
};

/* What other programs had of the CPUs meanwhile says nothing about the plugin. */
static uint64_t took_ns(const struct instant *from, const struct instant *to)
{
	uint64_t took = to->ns - from->ns, own = to->worker_ns - from->worker_ns;
	uint64_t waited = to->waited_ns - from->waited_ns;

	waited += to->their_waited_ns - from->their_waited_ns;
	waited = waited > own ? waited - own : 0;
	return took > waited ? took - waited : 0;
}

/* Rank 0: until the time is over, and nothing is @busy. */
static void ask(struct delay *delay, const atomic_bool *busy, const clockid_t *worker)
{
	struct instant before = {0}, now;
	uint64_t i, value = 0;

	for (i = 0; !(value & LAST); i++) {
		value = (i & NUMBER_MASK) | (is_over(delay, busy) ? LAST : 0);
		small_send(delay, value);
		now.their_waited_ns = small_await(delay);
		expect(now.their_waited_ns, i);
		now.their_waited_ns >>= NUMBER_BITS;
		now.waited_ns = waited_ns(delay);
		now.worker_ns = worker_ns(worker);
		now.ns = now_ns();
		/* The first one begins when both ranks have come here. */
		if (i && took_ns(&before, &now) > delay->worst_ns)
			delay->worst_ns = took_ns(&before, &now);
		before = now;
	}
	delay->round_trips = i;
}

static void answer(struct delay *delay)
{
	uint64_t value = 0, i;

	for (i = 0; !(value & LAST); i++) {
		value = small_await(delay);
		expect(value, i);
		small_send(delay,
			   (value & NUMBER_MASK) | (waited_ns(delay) << NUMBER_BITS & ~LAST));
	}
}

/* ---- registering -------------------------------------------------------------------------- */

struct registering {
	struct delay *delay;
	uint8_t *region;
	atomic_bool busy; /* until it has registered at least once */
	atomic_bool stop;
};

static uint8_t *region_map(void)
{
	uint8_t *region = mmap(NULL, REGION_BYTES, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("region", MFD_CLOEXEC);

	if (region == MAP_FAILED || fd < 0 || ftruncate(fd, (off_t)PAGES_BYTES))
		fatal("no memory for a region of %zu bytes", REGION_BYTES);
	for (size_t at = 0; at < REGION_BYTES; at += PAGES_BYTES)
		if (mmap(region + at, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			fatal("cannot map a region of %zu bytes", REGION_BYTES);
	close(fd);
	return region;
}

/* The rank's own CPU polls. */
static void cpus_all(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *registering_main(void *argument)
{
	struct registering *registering = argument;
	struct delay *delay = registering->delay;
	const struct lane *lane = &delay->large;
	enum nccl_result result;
	uint64_t from_ns, took;
	void *registration;

	cpus_all();
	while (!atomic_load(&registering->stop)) {
		from_ns = now_ns();
		result = adapter_reg_mr(lane->adapter, lane->comm, registering->region,
					REGION_BYTES, NCCL_POINTER_HOST, &registration);
		took = now_ns() - from_ns;
		if (took > delay->registering_ns)
			delay->registering_ns = took;
		if (!result)
			result = adapter_dereg_mr(lane->adapter, lane->comm, registration);
		if (result)
			fatal("a registration of %zu bytes returned %s", REGION_BYTES,
			      adapter_result_text(result));
		atomic_store(&registering->busy, false);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void ask_beside_registering(struct delay *delay)
{
	struct registering registering = {.delay = delay, .region = region_map(), .busy = true};
	clockid_t worker;
	pthread_t thread;

	if (pthread_create(&thread, NULL, registering_main, &registering) ||
	    pthread_getcpuclockid(thread, &worker))
		fatal("no thread to register memory");
	ask(delay, &registering.busy, &worker);
	atomic_store(&registering.stop, true);
	pthread_join(thread, NULL);
	munmap(registering.region, REGION_BYTES);
}

/* ---- the parts ---------------------------------------------------------------------------- */

/*
 * While a part runs nothing else of the machine gets this rank's CPU, if that is permitted: a turn
 * of another program takes milliseconds. This is for all threads of the process, because one that
 * holds a lock would not get the CPU back from another one. The kernel takes the CPU away from such
 * a process that uses 95 % of a second: so the rank sleeps afterwards.
 */
static void cpu_take(bool take)
{
	const struct sched_param param = {.sched_priority = take ? 1 : 0};
	const struct dirent *entry;
	cpu_set_t set;
	DIR *threads;

	/* Only a CPU of its own: bench/run pins each rank where there are enough. */
	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) != 1 ||
	    sysconf(_SC_NPROCESSORS_ONLN) == 1)
		return;
	threads = opendir("/proc/self/task");
	while (threads && (entry = readdir(threads)))
		if (entry->d_name[0] != '.')
			sched_setscheduler((pid_t)strtol(entry->d_name, NULL, 10),
					   take ? SCHED_FIFO : SCHED_OTHER, &param);
	if (threads)
		closedir(threads);
}

static void part(struct delay *delay, const char *beside, bool streams, bool registers)
{
	delay->streams = streams;
	delay->worst_ns = delay->registering_ns = 0;
	meet_barrier(&delay->bench->meet);
	cpu_take(true);
	delay->started = (double)now_ns() / (double)NS_PER_S;
	if (delay->bench->rank)
		answer(delay);
	else if (registers)
		ask_beside_registering(delay);
	else
		ask(delay, NULL, NULL);
	cpu_take(false);
	usleep((useconds_t)(delay->bench->seconds * 2e6));
	large_finish(delay);
	if (!delay->bench->rank && beside)
		printf("{\"workload\": \"delay\", \"beside\": \"%s\", \"round_trips\": %llu, "
		       "\"large\": %llu, \"worst_us\": %.1f, \"registering_us\": %.1f}\n",
		       beside, (unsigned long long)delay->round_trips,
		       (unsigned long long)delay->large.done, (double)delay->worst_ns / 1e3,
		       (double)delay->registering_ns / 1e3);
}

void bench_delay(struct bench *bench)
{
	static struct delay delay; /* large */
	const bool first = bench->rank == 0;
	const int other = 1 - bench->rank;

	if (bench->ranks != 2)
		fatal("delay is for two ranks");
	delay.bench = bench;
	delay.size = bench->sizes[0];
	delay.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	delay.out.fd = delay.in.fd = delay.large.fd = -1;
	lanes_open(&bench->maker, &bench->meet, other, other, &delay.out, &delay.in, 1, SMALL_SLOTS,
		   4096);
	lanes_open(&bench->maker, &bench->meet, first ? 1 : -1, first ? -1 : 0, &delay.large,
		   &delay.large, 1, LARGE_SLOTS, (delay.size + 4095) / 4096 * 4096);
	part(&delay, NULL, true, false); /* to warm up */
	part(&delay, "nothing", false, false);
	part(&delay, "send", true, false);
	if (!bench->maker.address)
		part(&delay, "registration", false, true);
	if (delay.schedstat >= 0)
		close(delay.schedstat);
	lane_close(&delay.large);
	lane_close(&delay.out);
	lane_close(&delay.in);
}
