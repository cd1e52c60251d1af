/* provider.c - a provider of OpenID Connect: its thread, and the tasks that wait for it */
#define _GNU_SOURCE /* pthread_tryjoin_np */
#include "api/login/provider.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "api/login/provider_local.h"
#include "base/clock.h"
#include "base/memory.h"

enum { TASKS_MAX = 64, STOP_MS = 1300, JOIN_LOOK_MS = 5 };

struct provider {
	struct loop *loop;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct provider_task *first, **end;       /* to be asked */
	struct provider_task *finished, **finish; /* to be handed to the loop's thread */
	size_t waiting;
	bool ended;
	bool abandoned; /* nobody waits for the thread any more: it touches nothing but this */
	bool is_posted;
	struct post post;
	struct provider_client client; /* the thread's */
	struct provider *next_abandoned;
};

/* Those whose thread may still be in a name lookup. They stay reachable: they are no leak. */
static struct provider *abandoned_providers;

void provider_task_free(struct provider_task *task)
{
	char *const secrets[] = { task->code, task->verifier, task->nonce };

	for (int i = 0; i < 3; i++) {
		if (secrets[i])
			explicit_bzero(secrets[i], strlen(secrets[i]));
		free(secrets[i]);
	}
	free(task->authorization_url);
	free(task->end_session_url);
	id_token_free(&task->token);
	device_answer_free(&task->device);
	free(task);
}

/* In the loop's thread. */
static void provider_hand_over(struct post *post)
{
	struct provider *provider =
	    (struct provider *)(void *)((char *)post - offsetof(struct provider, post));

	pthread_mutex_lock(&provider->lock);
	struct provider_task *list = provider->finished;
	provider->finished = NULL;
	provider->finish = &provider->finished;
	provider->is_posted = false;
	pthread_mutex_unlock(&provider->lock);
	while (list) {
		struct provider_task *task = list;
		list = task->next;
		task->next = NULL;
		task->done(task);
	}
}

/* Called with the lock, which it lets go while the provider is asked. */
static void work_on_first(struct provider *provider)
{
	struct provider_task *task = provider->first;

	provider->first = task->next;
	if (!provider->first)
		provider->end = &provider->first;
	task->next = NULL;
	pthread_mutex_unlock(&provider->lock);
	provider_client_ask(&provider->client, task);
	pthread_mutex_lock(&provider->lock);
	if (provider->abandoned)
		return;
	provider->waiting--;
	*provider->finish = task;
	provider->finish = &task->next;
	if (!provider->is_posted && !provider->ended) {
		loop_post(provider->loop, &provider->post);
		provider->is_posted = true;
	}
}

static void *provider_work(void *context)
{
	struct provider *provider = context;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_mutex_lock(&provider->lock);
	while (!provider->ended) {
		if (provider->first)
			work_on_first(provider);
		else
			pthread_cond_wait(&provider->wake, &provider->lock);
	}
	pthread_mutex_unlock(&provider->lock);
	return NULL;
}

struct provider *provider_start(struct loop *loop, const struct provider_settings *settings)
{
	struct provider *provider = NEW(struct provider);

	provider->loop = loop;
	provider->end = &provider->first;
	provider->finish = &provider->finished;
	provider->post.run = provider_hand_over;
	provider_client_begin(&provider->client, settings);
	pthread_mutex_init(&provider->lock, NULL);
	pthread_cond_init(&provider->wake, NULL);
	if (pthread_create(&provider->thread, NULL, provider_work, provider) != 0)
		panic("no thread can be started for sign-ins");
	return provider;
}

bool provider_ask(struct provider *provider, struct provider_task *task)
{
	pthread_mutex_lock(&provider->lock);
	bool ok = provider->waiting < TASKS_MAX;
	if (ok) {
		provider->waiting++;
		*provider->end = task;
		provider->end = &task->next;
		pthread_cond_signal(&provider->wake);
	}
	pthread_mutex_unlock(&provider->lock);
	return ok;
}

static void free_tasks(struct provider_task *list)
{
	while (list) {
		struct provider_task *task = list;
		list = task->next;
		provider_task_free(task);
	}
}

static bool has_ended(struct provider *provider)
{
	int64_t until_ms = clock_steady_ms() + STOP_MS;

	while (pthread_tryjoin_np(provider->thread, NULL) != 0) {
		if (clock_steady_ms() >= until_ms) {
			pthread_detach(provider->thread);
			return false;
		}
		poll(NULL, 0, JOIN_LOOK_MS);
	}
	return true;
}

void provider_stop(struct provider *provider)
{
	if (!provider)
		return;
	pthread_mutex_lock(&provider->lock);
	provider->ended = true;
	provider_client_stop(&provider->client);
	pthread_cond_broadcast(&provider->wake);
	pthread_mutex_unlock(&provider->lock);
	if (!has_ended(provider)) {
		pthread_mutex_lock(&provider->lock);
		provider->abandoned = true;
		pthread_mutex_unlock(&provider->lock);
		provider->next_abandoned = abandoned_providers;
		abandoned_providers = provider;
		return;
	}
	free_tasks(provider->first);
	free_tasks(provider->finished);
	provider_client_end(&provider->client);
	pthread_mutex_destroy(&provider->lock);
	pthread_cond_destroy(&provider->wake);
	free(provider);
}
