/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - one thread at a time, and the clock. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

#define THREADS_MAX 256
/* What a call of the kernel takes, and a look at the clock. */
#define CALL_NS 500
#define LOOK_NS 50
/* One in so many calls is where another thread goes on. */
#define PREEMPT_ONE_IN 64
/* The wall clock at the start: 2026-01-01. */
#define WALL_NS (1767225600ull * WORLD_S)

struct thread {
	pthread_t pthread;
	sem_t turn;
	struct world_node *node;  /* for which it acts */
	struct world_node *owner; /* of whose process it is, and which one that was; NULL: ours */
	int life;
	bool (*ready)(void *arg);
	void *ready_arg;
	uint64_t until_ns;
	bool was_ready;
	bool used, ended, detached;
	void *(*main)(void *arg);
	void *arg, *result;
};

struct event {
	uint64_t ns, order;
	void (*what)(void *arg, uint64_t number);
	void *arg;
	uint64_t number;
};

struct world world = {.socket_bytes = 1 << 20};
static struct thread threads[THREADS_MAX];
static int num_threads;
static __thread struct thread *self;
static struct event *events; /* a heap, the next one first */
static size_t num_events, room_events;
static uint64_t events_order;

WORLD_REAL_OF(pthread_create)
WORLD_REAL_OF(pthread_join)
WORLD_REAL_OF(pthread_detach)
WORLD_REAL_OF(pthread_mutex_lock)
WORLD_REAL_OF(pthread_mutex_trylock)
WORLD_REAL_OF(pthread_mutex_unlock)
WORLD_REAL_OF(clock_gettime)
WORLD_REAL_OF(nanosleep)
WORLD_REAL_OF(sched_yield)
WORLD_REAL_OF(time)
WORLD_REAL_OF(sem_wait)
WORLD_REAL_OF(sem_post)
WORLD_REAL_OF(getrandom)

/* ---- words --------------------------------------------------------------------------------- */

void world_say(const char *format, ...)
{
	va_list args;

	if (!world.trace)
		return;
	printf("%11.6f %s: ", (double)world.now_ns / WORLD_S,
	       self && self->node ? self->node->name : "-");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void world_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "world, at %.6f s: ", (double)world.now_ns / WORLD_S);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

/* xorshift64*, Vigna 2016. */
uint64_t world_draw(uint64_t limit)
{
	uint64_t x = world.random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	world.random = x;
	return (x * 0x2545f4914f6cdd1dull >> 16) % limit;
}

/* ---- what happens at a time ---------------------------------------------------------------- */

static bool event_is_before(const struct event *a, const struct event *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static void events_swap(size_t a, size_t b)
{
	struct event kept = events[a];

	events[a] = events[b];
	events[b] = kept;
}

void world_at(uint64_t ns, void (*what)(void *arg, uint64_t number), void *arg, uint64_t number)
{
	size_t i = num_events++;

	if (num_events > room_events) {
		room_events = room_events ? 2 * room_events : 1024;
		events = realloc(events, room_events * sizeof(*events));
		if (!events)
			world_die("no memory");
	}
	events[i] = (struct event){ns, events_order++, what, arg, number};
	for (; i && event_is_before(&events[i], &events[(i - 1) / 2]); i = (i - 1) / 2)
		events_swap(i, (i - 1) / 2);
}

static struct event event_take(void)
{
	struct event first = events[0];
	size_t i = 0, child;

	events[0] = events[--num_events];
	while ((child = 2 * i + 1) < num_events) {
		if (child + 1 < num_events && event_is_before(&events[child + 1], &events[child]))
			child++;
		if (!event_is_before(&events[child], &events[i]))
			break;
		events_swap(i, child);
		i = child;
	}
	return first;
}

static void events_run(void)
{
	struct event event;

	while (num_events && events[0].ns <= world.now_ns) {
		event = event_take();
		event.what(event.arg, event.number);
	}
}

/* ---- whose turn it is ---------------------------------------------------------------------- */

static bool thread_is_alive(const struct thread *thread)
{
	const struct world_node *owner = thread->owner;

	return thread->used && !thread->ended &&
	       (!owner || (owner->lives == thread->life && !owner->frozen));
}

static bool thread_may_run(struct thread *thread)
{
	if (!thread_is_alive(thread))
		return false;
	thread->was_ready = !thread->ready || thread->ready(thread->ready_arg);
	return thread->was_ready || thread->until_ns <= world.now_ns;
}

static struct thread *thread_draw(void)
{
	int able[THREADS_MAX], num = 0, i;

	for (i = 0; i < num_threads; i++) {
		if (thread_may_run(&threads[i]))
			able[num++] = i;
	}
	return num ? &threads[able[world_draw((uint64_t)num)]] : NULL;
}

/* Lets time pass until something happens. */
static void time_pass(void)
{
	uint64_t next_ns = num_events ? events[0].ns : WORLD_NEVER;

	for (int i = 0; i < num_threads; i++) {
		if (thread_is_alive(&threads[i]) && threads[i].until_ns < next_ns)
			next_ns = threads[i].until_ns;
	}
	if (next_ns == WORLD_NEVER)
		world_die("all threads wait for ever");
	if (next_ns > world.now_ns)
		world.now_ns = next_ns;
	events_run();
}

static struct thread *next_thread(void)
{
	struct thread *next;

	events_run();
	while (!(next = thread_draw()))
		time_pass();
	return next;
}

static void turn_pass(void)
{
	struct thread *me = self, *next = next_thread();
	bool ended = me->ended; /* then another thread may reuse its slot at once */

	if (next == me)
		return;
	WORLD_REAL(sem_post)(&next->turn);
	if (ended)
		return;
	while (WORLD_REAL(sem_wait)(&me->turn))
		continue;
}

bool world_wait(bool (*ready)(void *arg), void *arg, uint64_t until_ns)
{
	self->ready = ready;
	self->ready_arg = arg;
	self->until_ns = until_ns;
	turn_pass();
	return self->was_ready;
}

static bool never(void *arg)
{
	return false;
}

void world_pause(uint64_t ns)
{
	world_wait(never, NULL, world.now_ns + ns);
}

void world_enter(void)
{
	world.now_ns += CALL_NS;
	events_run();
	if (!world_draw(PREEMPT_ONE_IN))
		world_wait(NULL, NULL, WORLD_NEVER);
}

void world_act_for(struct world_node *node)
{
	self->node = node;
}

struct world_node *world_acting(void)
{
	return self ? self->node : NULL;
}

/* Waits until the C library has ended the thread as well: it reuses its stack and its name. */
static void thread_free(struct thread *thread)
{
	WORLD_REAL(pthread_join)(thread->pthread, NULL);
	thread->used = false;
}

static struct thread *thread_add(void)
{
	struct thread *thread;
	int i;

	for (i = 0; i < num_threads; i++) {
		if (threads[i].used && threads[i].ended && threads[i].detached)
			thread_free(&threads[i]);
	}
	for (i = 0; i < num_threads && threads[i].used;)
		i++;
	if (i == THREADS_MAX)
		world_die("too many threads");
	if (i == num_threads)
		num_threads++;
	thread = &threads[i];
	memset(thread, 0, sizeof(*thread));
	sem_init(&thread->turn, 0, 0);
	thread->used = true;
	return thread;
}

/* Addresses of memory decide in which order some things are done: they are to be the same. */
__attribute__((constructor)) static void layout_fix(int argc, char **argv)
{
	int persona = personality(0xffffffff);

	if (persona >= 0 && !(persona & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned long)persona | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
}

void world_start(uint64_t seed)
{
	world.random = seed * 0x9e3779b97f4a7c15ull | 1;
	world.now_ns = 1000 * WORLD_S;
	world.trace = getenv("WORLD_TRACE");
	/* Libraries below it measure the processor when they are loaded. */
	if (!dlopen("libfabric.so.1", RTLD_NOW | RTLD_GLOBAL))
		world_die("%s", dlerror());
	self = thread_add();
	self->pthread = pthread_self();
}

/* ---- the C library's threads --------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	self = arg;
	while (WORLD_REAL(sem_wait)(&self->turn))
		continue;
	self->result = self->main(self->arg);
	self->ended = true;
	turn_pass();
	self = NULL; /* what the C library does now is outside of the world */
	return NULL;
}

int pthread_create(pthread_t *pthread, const pthread_attr_t *attributes, void *(*main)(void *),
		   void *arg)
{
	struct thread *thread;
	int ret;

	if (!self || !self->node)
		return WORLD_REAL(pthread_create)(pthread, attributes, main, arg);
	thread = thread_add();
	thread->node = thread->owner = self->node;
	thread->life = self->node->lives;
	thread->main = main;
	thread->arg = arg;
	ret = WORLD_REAL(pthread_create)(&thread->pthread, NULL, thread_main, thread);
	if (ret)
		world_die("no further thread: %s", strerror(ret));
	*pthread = thread->pthread;
	return 0;
}

int world_threads(const struct world_node *node)
{
	int i = num_threads, num = 0;

	while (i--)
		num += threads[i].owner == node && thread_is_alive(&threads[i]);
	return num;
}

static struct thread *thread_of(pthread_t pthread)
{
	for (int i = 0; i < num_threads; i++) {
		if (threads[i].used && !threads[i].detached && threads[i].pthread == pthread)
			return &threads[i];
	}
	return NULL;
}

static bool thread_has_ended(void *arg)
{
	return ((struct thread *)arg)->ended;
}

int pthread_join(pthread_t pthread, void **result)
{
	struct thread *thread = self ? thread_of(pthread) : NULL;

	if (!thread)
		return WORLD_REAL(pthread_join)(pthread, result);
	world_wait(thread_has_ended, thread, WORLD_NEVER);
	if (result)
		*result = thread->result;
	thread_free(thread);
	return 0;
}

int pthread_tryjoin_np(pthread_t pthread, void **result)
{
	struct thread *thread = thread_of(pthread);

	if (!thread)
		return ESRCH;
	return thread->ended ? pthread_join(pthread, result) : EBUSY;
}

int pthread_detach(pthread_t pthread)
{
	struct thread *thread = self ? thread_of(pthread) : NULL;

	if (!thread)
		return WORLD_REAL(pthread_detach)(pthread);
	thread->detached = true;
	return 0;
}

static bool mutex_is_free(void *mutex)
{
	if (WORLD_REAL(pthread_mutex_trylock)(mutex))
		return false;
	WORLD_REAL(pthread_mutex_unlock)(mutex);
	return true;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int ret;

	if (!self)
		return WORLD_REAL(pthread_mutex_lock)(mutex);
	while ((ret = WORLD_REAL(pthread_mutex_trylock)(mutex)) == EBUSY)
		world_wait(mutex_is_free, mutex, WORLD_NEVER);
	return ret;
}

struct condition_wait {
	void *condition;
	bool woken;
	struct condition_wait *next;
};

static struct condition_wait *waiting;

static bool condition_woken(void *arg)
{
	return ((struct condition_wait *)arg)->woken;
}

static int condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
	struct condition_wait wait = {condition, false, waiting}, **place;

	waiting = &wait;
	WORLD_REAL(pthread_mutex_unlock)(mutex);
	world_wait(condition_woken, &wait, until_ns);
	for (place = &waiting; *place != &wait; place = &(*place)->next)
		continue;
	*place = wait.next;
	pthread_mutex_lock(mutex);
	return wait.woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	return condition_wait(condition, mutex, WORLD_NEVER);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
			   const struct timespec *until)
{
	uint64_t ns = (uint64_t)until->tv_sec * WORLD_S + (uint64_t)until->tv_nsec;

	return condition_wait(condition, mutex, ns > WALL_NS ? ns - WALL_NS : ns);
}

static int condition_wake(pthread_cond_t *condition, bool all)
{
	struct condition_wait *wait;

	for (wait = waiting; wait; wait = wait->next) {
		if (wait->condition != condition || wait->woken)
			continue;
		wait->woken = true;
		if (!all)
			break;
	}
	return 0;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	return condition_wake(condition, false);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	return condition_wake(condition, true);
}

static bool spin_is_free(void *lock)
{
	if (pthread_spin_trylock(lock))
		return false;
	pthread_spin_unlock(lock);
	return true;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	while (pthread_spin_trylock(lock))
		world_wait(spin_is_free, (void *)(uintptr_t)lock, WORLD_NEVER);
	return 0;
}

static bool semaphore_is_up(void *semaphore)
{
	int value = 0;

	return !sem_getvalue(semaphore, &value) && value > 0;
}

int sem_wait(sem_t *semaphore)
{
	if (!self)
		return WORLD_REAL(sem_wait)(semaphore);
	while (sem_trywait(semaphore))
		world_wait(semaphore_is_up, semaphore, WORLD_NEVER);
	return 0;
}

int sched_yield(void)
{
	if (!self)
		return WORLD_REAL(sched_yield)();
	world.now_ns += CALL_NS;
	world_wait(NULL, NULL, WORLD_NEVER);
	return 0;
}

/* ---- the clock ----------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns;

	if (!self)
		return WORLD_REAL(clock_gettime)(clock, now);
	world.now_ns += LOOK_NS;
	ns = world.now_ns + (clock == CLOCK_REALTIME ? WALL_NS : 0);
	now->tv_sec = (time_t)(ns / WORLD_S);
	now->tv_nsec = (long)(ns % WORLD_S);
	return 0;
}

time_t time(time_t *now)
{
	time_t seconds = (time_t)((world.now_ns + WALL_NS) / WORLD_S);

	if (!self)
		return WORLD_REAL(time)(now);
	if (now)
		*now = seconds;
	return seconds;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	if (!self)
		return WORLD_REAL(nanosleep)(pause, left);
	world_pause((uint64_t)pause->tv_sec * WORLD_S + (uint64_t)pause->tv_nsec);
	return 0;
}

int usleep(useconds_t us)
{
	const struct timespec pause = {us / 1000000, us % 1000000 * 1000};

	return nanosleep(&pause, NULL);
}

unsigned int sleep(unsigned int seconds)
{
	return usleep(seconds * 1000000) ? seconds : 0;
}

ssize_t getrandom(void *bytes, size_t size, unsigned int flags)
{
	uint8_t *byte = bytes;

	if (!self)
		return WORLD_REAL(getrandom)(bytes, size, flags);
	for (size_t i = 0; i < size; i++)
		byte[i] = (uint8_t)world_draw(256);
	return (ssize_t)size;
}
