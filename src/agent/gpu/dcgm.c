/* dcgm.c - what DCGM knows of GPUs and NVML does not: profiling counters, and health */
#include "agent/gpu/dcgm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/gpu/dcgm_engine.h"
#include "agent/gpu/exposition.h"
#include "agent/gpu/nvml.h"
#include "agent/host/file.h"
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/log.h"
#include "base/number.h"
#include "fetch/fetch.h"

#define PAGE_BYTES ((size_t)16 << 20)
#define ASK_S 5
#define ANSWER_MS 3000
#define STALE_MS 30000
#define HEALTH_FAILS 20 /* DCGM_HEALTH_RESULT_FAIL; 10 is a warning */
#define URL_MAX 600

/* The mutex guards `page`, `asked_ms` and `stopping`. */
struct dcgm_source {
	struct gpu_source source; /* first: one pointer is the other */
	struct gpu_source *inner;
	struct dcgm_engine *engine; /* NULL: the exporter is asked */
	char url[URL_MAX], server[URL_MAX];
	struct fetcher *fetcher; /* the thread's */
	fetch_end_ms end_ms;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t stopped;
	struct buffer page; /* the last that came */
	int64_t answered_ms;
	bool stopping, answered;
};

static struct gpu_reading *dcgm_find(struct gpu_readings *readings, struct text uuid)
{
	for (size_t i = 0; i < readings->gpu_count; i++)
		if (text_is(uuid, readings->gpus[i].uuid))
			return &readings->gpus[i];
	return NULL;
}

static int64_t thousandths(double share)
{
	return share > 0 ? (int64_t)((share < 1 ? share : 1) * 1000 + 0.5) : 0;
}

/* The first reason stays: NVML's own goes before. */
static void dcgm_fail(struct gpu_readings *readings, struct gpu_reading *gpu, const char *reason)
{
	gpu->healthy = false;
	if (!gpu->reason)
		gpu->reason = arena_string(&readings->arena, reason);
}

static void take_health(struct gpu_readings *readings, struct gpu_reading *gpu,
                        const struct exposed *sample)
{
	struct text watch = { "", 0 };
	char reason[128];

	exposition_label(sample, "health_watch", &watch);
	snprintf(reason, sizeof(reason), "DCGM says that it is failing: %.*s",
	         (int)min64((int64_t)watch.size, 60), watch.data);
	if (sample->value >= HEALTH_FAILS)
		dcgm_fail(readings, gpu, reason);
}

static void take_errors(struct gpu_readings *readings, struct gpu_reading *gpu,
                        const struct exposed *sample)
{
	char reason[128];

	if (text_is(sample->name, "DCGM_FI_DEV_XID_ERRORS") && sample->value > 0 &&
	    sample->value < 1000 && nvml_is_fatal((unsigned long long)sample->value)) {
		snprintf(reason, sizeof(reason), "DCGM tells of Xid %d", (int)sample->value);
		dcgm_fail(readings, gpu, reason);
	} else if (text_is(sample->name, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") && sample->value > 0) {
		dcgm_fail(readings, gpu,
		          "DCGM tells of errors of its memory that could not be corrected");
	} else if (text_is(sample->name, "DCGM_FI_DEV_ROW_REMAP_FAILURE") && sample->value > 0) {
		dcgm_fail(readings, gpu,
		          "DCGM tells that rows of its memory could not be remapped");
	}
}

static void take_sample(struct gpu_readings *readings, const struct exposed *sample)
{
	struct text uuid;
	struct gpu_reading *gpu =
	    exposition_label(sample, "UUID", &uuid) ? dcgm_find(readings, uuid) : NULL;

	/* Numbers of an instance are not those of its GPU, which has the UUID. */
	if (!gpu || gpu->mig_mode)
		return;
	if (text_is(sample->name, "DCGM_FI_PROF_SM_ACTIVE")) {
		gpu->profiled = true;
		gpu->sm_active = thousandths(sample->value);
	} else if (text_is(sample->name, "DCGM_FI_PROF_DRAM_ACTIVE")) {
		gpu->profiled = true;
		gpu->dram_active = thousandths(sample->value);
	} else if (text_is(sample->name, "DCGM_EXP_GPU_HEALTH_STATUS")) {
		take_health(readings, gpu, sample);
	} else {
		take_errors(readings, gpu, sample);
	}
}

void dcgm_apply(struct text page, struct gpu_readings *readings)
{
	struct exposed sample;

	while (exposition_next(&page, &sample))
		take_sample(readings, &sample);
}

/* The page of the exporter; false with a reason for anything but 200. */
static bool get_exposition(struct dcgm_source *dcgm, struct buffer *page, struct error *error)
{
	static const char *const headers[] = { "Accept: text/plain", NULL };
	const struct fetch_request request = { .url = dcgm->url,
		                               .server = dcgm->server,
		                               .headers = headers,
		                               .user_agent = "gpu-agent",
		                               .connect_ms = ANSWER_MS,
		                               .total_ms = ANSWER_MS,
		                               .answer_bytes = PAGE_BYTES,
		                               .end_ms = &dcgm->end_ms };
	struct fetch_answer answer = { 0 };
	bool good = fetcher_ask(dcgm->fetcher, &request, &answer, error);

	if (good && answer.status != 200)
		good = error_set(error, ERROR_UNAVAILABLE, "%s answered with %d", dcgm->server,
		                 answer.status);
	buffer_clear(page);
	if (good)
		buffer_bytes(page, answer.body.data, answer.body.size);
	buffer_text(page, "");
	fetch_answer_free(&answer);
	return good;
}

static bool get_page(struct dcgm_source *dcgm, struct buffer *page, struct error *error)
{
	return dcgm->engine ? dcgm_engine_page(dcgm->engine, page, error)
	                    : get_exposition(dcgm, page, error);
}

static void tell_change(const struct dcgm_source *dcgm, bool good, const struct error *error)
{
	if (good)
		log_at(LOG_INFO, "DCGM answers",
		       LOG_TEXT("asked", dcgm->engine ? "host engine" : "exporter"));
	else
		log_at(LOG_WARNING, "DCGM does not answer", LOG_TEXT("reason", error->text));
}

static void *dcgm_ask(void *context)
{
	struct dcgm_source *dcgm = context;
	struct buffer page = { 0 };
	bool first = true;

	pthread_mutex_lock(&dcgm->mutex);
	while (!dcgm->stopping) {
		pthread_mutex_unlock(&dcgm->mutex);
		struct error error = { 0 };
		bool good = get_page(dcgm, &page, &error);
		pthread_mutex_lock(&dcgm->mutex);
		if (first || good != dcgm->answered)
			tell_change(dcgm, good, &error);
		first = false;
		dcgm->answered = good;
		if (good) {
			struct buffer before = dcgm->page;
			dcgm->page = page;
			page = before;
			dcgm->answered_ms = clock_boot_ms();
		}
		struct timespec until = clock_after_us(CLOCK_REALTIME, ASK_S * INT64_C(1000000));
		if (!dcgm->stopping)
			pthread_cond_timedwait(&dcgm->stopped, &dcgm->mutex, &until);
	}
	pthread_mutex_unlock(&dcgm->mutex);
	buffer_free(&page);
	return NULL;
}

static bool dcgm_read(struct gpu_source *source, int64_t now_ms, const struct gpu_user *users,
                      size_t user_count, struct gpu_readings *readings, struct error *error)
{
	struct dcgm_source *dcgm = (struct dcgm_source *)source;

	if (!dcgm->inner->kind->read(dcgm->inner, now_ms, users, user_count, readings, error))
		return false;
	pthread_mutex_lock(&dcgm->mutex);
	if (dcgm->answered_ms > 0 && clock_boot_ms() - dcgm->answered_ms < STALE_MS)
		dcgm_apply((struct text){ dcgm->page.data, dcgm->page.size }, readings);
	pthread_mutex_unlock(&dcgm->mutex);
	return true;
}

static void dcgm_devices(struct gpu_source *source, const char *uuid, struct buffer *rules)
{
	struct dcgm_source *dcgm = (struct dcgm_source *)source;

	dcgm->inner->kind->devices(dcgm->inner, uuid, rules);
}

static void dcgm_close(struct gpu_source *source)
{
	struct dcgm_source *dcgm = (struct dcgm_source *)source;

	pthread_mutex_lock(&dcgm->mutex);
	dcgm->stopping = true;
	atomic_store(&dcgm->end_ms, 1);
	pthread_cond_signal(&dcgm->stopped);
	pthread_mutex_unlock(&dcgm->mutex);
	pthread_join(dcgm->thread, NULL);
	if (dcgm->engine)
		dcgm_engine_close(dcgm->engine);
	fetcher_free(dcgm->fetcher);
	gpu_source_close(dcgm->inner);
	pthread_cond_destroy(&dcgm->stopped);
	pthread_mutex_destroy(&dcgm->mutex);
	buffer_free(&dcgm->page);
	free(dcgm);
}

/* The exporter's own port and path, if the URL has none. */
static bool read_url(struct dcgm_source *dcgm, const char *url, struct error *error)
{
	struct endpoint endpoint;

	if (!endpoint_read(text_of(url), &endpoint) || strlen(url) + 20 > sizeof(dcgm->url))
		return error_set(
		    error, ERROR_INVALID,
		    "--dcgm-exporter is '%.160s'; it is like http://localhost:9400/metrics", url);
	snprintf(dcgm->server, sizeof(dcgm->server), "DCGM's exporter at %.*s",
	         (int)endpoint.authority.size, endpoint.authority.data);
	snprintf(dcgm->url, sizeof(dcgm->url), "%.*s%s%s", (int)(endpoint.target.data - url), url,
	         endpoint.has_port ? "" : ":9400",
	         endpoint.target.size > 0 ? endpoint.target.data : "/metrics");
	dcgm->fetcher = fetcher_new();
	return true;
}

struct gpu_source *dcgm_open(struct gpu_source *inner, const struct dcgm_settings *settings,
                             struct error *error)
{
	static const struct gpu_source_kind kind = { "nvml with dcgm", dcgm_read, dcgm_devices,
		                                     dcgm_close, true };
	struct dcgm_source *dcgm = NEW(struct dcgm_source);

	dcgm->source.kind = &kind;
	dcgm->inner = inner;
	if (settings->engine)
		dcgm->engine = dcgm_engine_open(settings->engine, settings->library, error);
	if (settings->engine ? !dcgm->engine : !read_url(dcgm, settings->exporter, error)) {
		gpu_source_close(inner);
		free(dcgm);
		return NULL;
	}
	pthread_mutex_init(&dcgm->mutex, NULL);
	pthread_cond_init(&dcgm->stopped, NULL);
	if (pthread_create(&dcgm->thread, NULL, dcgm_ask, dcgm) != 0)
		panic("a thread for DCGM's exporter could not be started");
	return &dcgm->source;
}
