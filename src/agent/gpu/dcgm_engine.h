/* dcgm_engine.h - what DCGM's host engine tells, by NVIDIA's library
 *
 * libdcgm is loaded when the agent starts; nothing of it is needed to build. Of its interface
 * only that is used whose layout is the same in versions 3 and 4 and is said with each value;
 * other versions are refused. */
#ifndef AGENT_GPU_DCGM_ENGINE_H
#define AGENT_GPU_DCGM_ENGINE_H

#include "base/buffer.h"
#include "base/error.h"

struct dcgm_engine;

/* `address`: of the host engine, HOST[:PORT]. `library`: its path; NULL: libdcgm.so.4 or
 * libdcgm.so.3, where the system finds them. NULL with a reason: there is no library, or one
 * that is not understood. */
struct dcgm_engine *dcgm_engine_open(const char *address, const char *library, struct error *error);
void dcgm_engine_close(struct dcgm_engine *engine);

/* The last values of all GPUs, as an exporter's page would have them; connects where there is
 * no connection. May take some seconds. False with a reason: the connection is given up. */
bool dcgm_engine_page(struct dcgm_engine *engine, struct buffer *page, struct error *error);

#endif
