/* dcgm.h - what DCGM knows of GPUs and NVML does not: profiling counters, and health */
#ifndef AGENT_GPU_DCGM_H
#define AGENT_GPU_DCGM_H

#include "agent/gpu/gpu_source.h"
#include "base/text.h"

/* Whom to ask: an exporter, at a URL (http://HOST[:PORT][/PATH]), or a host engine, at
 * HOST[:PORT], by NVIDIA's library (NULL: where the system finds it). One of them is NULL. */
struct dcgm_settings {
	const char *exporter;
	const char *engine, *library;
};

/* A source that adds to another what DCGM tells: how much of the time SMs and memory are
 * active, and why a GPU is failing. It is asked in a thread of its own, every few seconds; what
 * it said counts while it answers. The other source is this one's from now on. NULL with a
 * reason, and the other is closed: the URL makes no sense, or the library is not there or not
 * understood. */
struct gpu_source *dcgm_open(struct gpu_source *inner, const struct dcgm_settings *settings,
                             struct error *error);

/* What a page of an exporter says, for readings: those that it names are filled in. Texts are
 * in the readings' arena. */
void dcgm_apply(struct text page, struct gpu_readings *readings);

#endif
