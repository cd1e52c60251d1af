/* signals.c - signals of the process, told in the loop's thread */
#include "server/signals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"

struct signals {
	struct post post; /* first: one pointer is the other */
	struct loop *loop;
	void (*each)(void *context, int number);
	void *context;
	pthread_t thread;
	atomic_uint arrived; /* a bit for each number on its way to the loop's thread */
	atomic_bool stopping;
};

static void signals_fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
}

void signals_block(void)
{
	sigset_t set;
	signals_fill(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

static void arrive(struct post *post)
{
	struct signals *signals = (struct signals *)post;
	unsigned arrived = atomic_exchange(&signals->arrived, 0);
	for (int number = 1; arrived >> number; number++)
		if (arrived >> number & 1)
			signals->each(signals->context, number);
}

/* One that comes again before it was told is told once. What the loop does not get to any
 * more is forgotten with it. */
static void *wait_for_signals(void *context)
{
	struct signals *signals = context;
	sigset_t set;
	int number;
	signals_fill(&set);
	while (sigwait(&set, &number) == 0 && !atomic_load(&signals->stopping))
		if (atomic_fetch_or(&signals->arrived, 1U << number) == 0)
			loop_post(signals->loop, &signals->post);
	return NULL;
}

struct signals *signals_start(struct loop *loop, void (*each)(void *context, int number),
                              void *context)
{
	struct signals *signals = NEW(struct signals);
	signals->post.run = arrive;
	signals->loop = loop;
	signals->each = each;
	signals->context = context;
	if (pthread_create(&signals->thread, NULL, wait_for_signals, signals) != 0)
		panic("a thread for signals could not be started");
	return signals;
}

void signals_stop(struct signals *signals)
{
	if (!signals)
		return;
	atomic_store(&signals->stopping, true);
	pthread_kill(signals->thread, SIGHUP);
	pthread_join(signals->thread, NULL);
	free(signals);
}
