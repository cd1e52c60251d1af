/* stream_listeners.h - many listeners to live events in one process */
#ifndef SERVER_BENCH_STREAM_LISTENERS_H
#define SERVER_BENCH_STREAM_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>

struct stream_result {
	uint64_t received; /* events of jobs, by all listeners together */
	double latest_ms;  /* how long after it happened the latest of them was read */
};

/* Connects so many to /api/v1/stream?topics=jobs; false, with errno, if that fails. */
bool stream_listeners_connect(uint16_t port, int count);
/* Reads for so long. */
void stream_listeners_receive(double seconds, struct stream_result *result);

#endif
