/* signals.c - signals of the process, told in the loop's thread */
#include "server/signals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"

struct signals {
	struct loop *loop;
	void (*each)(void *context, int number);
	void *context;
	pthread_t thread;
	atomic_bool stopping;
};

/* One that came, on its way to the loop's thread. */
struct arrival {
	struct post post; /* first: one pointer is the other */
	struct signals *signals;
	int number;
};

static void fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
}

void signals_block(void)
{
	sigset_t set;
	fill(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

static void arrive(struct post *post)
{
	struct arrival *arrival = (struct arrival *)post;
	arrival->signals->each(arrival->signals->context, arrival->number);
	free(arrival);
}

static void *wait_for_signals(void *context)
{
	struct signals *signals = context;
	sigset_t set;
	int number;
	fill(&set);
	while (sigwait(&set, &number) == 0 && !atomic_load(&signals->stopping)) {
		struct arrival *arrival = NEW(struct arrival);
		arrival->post.run = arrive;
		arrival->signals = signals;
		arrival->number = number;
		loop_post(signals->loop, &arrival->post);
	}
	return NULL;
}

struct signals *signals_start(struct loop *loop, void (*each)(void *context, int number),
                              void *context)
{
	struct signals *signals = NEW(struct signals);
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
