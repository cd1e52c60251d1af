/* listeners.h - many WebSocket clients in one process, for benchmarks */
#ifndef WIRE_BENCH_LISTENERS_H
#define WIRE_BENCH_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all of them received together. */
struct listeners_result {
	uint64_t events;
	double latest_ms; /* how long after it happened the latest of them was read */
};

/* Finds the events in what one of them read, and counts each. */
typedef void (*listeners_take)(const char *data, size_t size, struct listeners_result *result);

/* Connects `count` listeners to /path; false, with errno, if that fails. */
bool listeners_connect(uint16_t port, const char *target, int count);
/* Reads for the given number of seconds. */
void listeners_receive(double seconds, listeners_take take, struct listeners_result *result);
/* One more event, read so long after it happened; 0 where that is not known. */
void listeners_count(struct listeners_result *result, double late_ms);

#endif
