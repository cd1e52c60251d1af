/* kubernetes.c - pods of a Kubernetes cluster: start, rounds, end */
#include "server/kubernetes/kubernetes.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/kubernetes/kubernetes_local.h"
#include "wire/loop_state.h"

enum { TICK_MS = 100 };
#define USER_AGENT "gpu-scheduler/" GPU_SCHEDULER_VERSION

static struct client *new_client(struct kubernetes *kubernetes, struct error *error)
{
	struct client_settings settings = { .loop = kubernetes->loop, .user_agent = USER_AGENT };

	credentials_fill(kubernetes->credentials, &settings);
	return client_new(&settings, error);
}

static const char **names_of(const struct config *config)
{
	size_t count = config->kubernetes.scheduler_names.count;
	const char **names = memory_zero(count + 2, sizeof(*names));

	names[0] = "gpu-scheduler";
	for (size_t i = 0; i < count; i++)
		names[i] = config->kubernetes.scheduler_names.at[i];
	return names;
}

struct kubernetes *kubernetes_new(struct engine_port *port, const struct config *config,
                                  struct error *error)
{
	struct kubernetes *kubernetes = NEW(struct kubernetes);

	kubernetes->port = port;
	kubernetes->config = config;
	kubernetes->loop = &port->loop->uv;
	kubernetes->credentials =
	    credentials_new(kubernetes->loop, config->kubernetes.kubeconfig_path,
	                    config->kubernetes.context, error);
	if (kubernetes->credentials)
		kubernetes->watches = new_client(kubernetes, error);
	if (kubernetes->watches)
		kubernetes->writes = new_client(kubernetes, error);
	if (!kubernetes->writes) {
		client_free(kubernetes->watches);
		credentials_free(kubernetes->credentials);
		free(kubernetes);
		return NULL;
	}
	kubernetes->names = names_of(config);
	const struct pods_port pods_port = kubernetes_port(kubernetes);
	kubernetes->pods = pods_new(
	    &(struct pods_settings){ .scheduler_names = kubernetes->names,
	                             .default_tenant = config->kubernetes.default_tenant,
	                             .tenants = config->kubernetes.tenants.at,
	                             .kai_queues = config->kubernetes.kai_queues,
	                             .force_release_ms = config->kubernetes.force_release_ms,
	                             .replace_ms = config->kubernetes.replace_ms },
	    &pods_port);
	kubernetes_listen(kubernetes);
	return kubernetes;
}

static void renew(struct kubernetes *kubernetes)
{
	struct client_settings settings = { .loop = kubernetes->loop, .user_agent = USER_AGENT };
	struct error error;

	credentials_fill(kubernetes->credentials, &settings);
	if (!client_renew(kubernetes->watches, &settings, &error) ||
	    !client_renew(kubernetes->writes, &settings, &error))
		log_at(LOG_ERROR, "the changed credentials for the API server cannot be used",
		       LOG_TEXT("reason", error.text));
}

static void kubernetes_tick(uv_timer_t *timer)
{
	struct kubernetes *kubernetes = timer->data;

	if (kubernetes->refused)
		credentials_were_refused(kubernetes->credentials);
	kubernetes->refused = false;
	if (credentials_time(kubernetes->credentials, clock_unix_ms()))
		renew(kubernetes);
	if (credentials_are_there(kubernetes->credentials)) {
		kubernetes_follow_due(kubernetes);
		if (kubernetes->webhook)
			webhook_tick(kubernetes->webhook);
	}
	kubernetes->dirty = true;
}

/* After each round of events: what came of them goes out together. */
static void kubernetes_before_wait(uv_prepare_t *handle)
{
	struct kubernetes *kubernetes = handle->data;

	if (!kubernetes->dirty || kubernetes->stopped)
		return;
	kubernetes->dirty = false;
	pods_time(kubernetes->pods, kubernetes->port->time_ms(kubernetes->port));
	pods_flush(kubernetes->pods);
	kubernetes_write_due(kubernetes);
	if (pods_is_ready(kubernetes->pods))
		kubernetes_ask_why(kubernetes);
	client_flush(kubernetes->watches);
	client_flush(kubernetes->writes);
}

/* Without it pods are scheduled all the same. */
static void open_webhook(struct kubernetes *kubernetes)
{
	struct error error = { 0 };

	if (kubernetes->config->kubernetes.webhook_port == 0)
		return;
	kubernetes->webhook = webhook_new(kubernetes, &error);
	if (!kubernetes->webhook)
		log_at(LOG_ERROR, "the webhook cannot be served", LOG_TEXT("reason", error.text));
}

void kubernetes_begin(struct kubernetes *kubernetes)
{
	if (kubernetes->begun || kubernetes->stopped)
		return;
	kubernetes->begun = true;
	uv_timer_init(kubernetes->loop, &kubernetes->timer);
	uv_prepare_init(kubernetes->loop, &kubernetes->before_wait);
	kubernetes->timer.data = kubernetes->before_wait.data = kubernetes;
	uv_timer_start(&kubernetes->timer, kubernetes_tick, 0, TICK_MS);
	uv_prepare_start(&kubernetes->before_wait, kubernetes_before_wait);
	kubernetes_know(kubernetes);
	pods_begin(kubernetes->pods);
	kubernetes_follow(kubernetes);
	open_webhook(kubernetes);
	log_at(LOG_INFO, "pods of Kubernetes are scheduled",
	       LOG_TEXT("scheduler_name", kubernetes->names[0]));
}

void kubernetes_stop(struct kubernetes *kubernetes)
{
	if (!kubernetes || kubernetes->stopped)
		return;
	kubernetes->stopped = true;
	kubernetes_unfollow(kubernetes);
	client_free(kubernetes->watches);
	client_free(kubernetes->writes);
	credentials_free(kubernetes->credentials);
	if (kubernetes->begun) {
		uv_close((uv_handle_t *)&kubernetes->timer, NULL);
		uv_close((uv_handle_t *)&kubernetes->before_wait, NULL);
	}
}

void kubernetes_free(struct kubernetes *kubernetes)
{
	if (!kubernetes)
		return;
	/* The engine has stopped: what it did not answer is ours again. */
	while (kubernetes->all) {
		struct asked *asked = kubernetes->all;
		kubernetes->all = asked->next_of_all;
		engine_request_free(&asked->engine);
		free(asked);
	}
	for (size_t i = 0; i < kubernetes->followed_count; i++)
		reflector_free(&kubernetes->followed[i].reflector);
	webhook_free(kubernetes->webhook);
	pods_free(kubernetes->pods);
	free(kubernetes->names);
	free(kubernetes);
}
