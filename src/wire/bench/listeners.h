/* listeners.h - many WebSocket clients in one process, for the benchmark */
#ifndef WIRE_BENCH_LISTENERS_H
#define WIRE_BENCH_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>

/* What all of them received together. */
struct listeners_result {
	uint64_t events;
	double latest_ms; /* how long after it happened the latest of them was read */
};

/* Connects so many; false, with errno, if that cannot be done. */
bool listeners_connect(uint16_t port, int count);
/* Reads for so many seconds. */
void listeners_receive(int seconds, struct listeners_result *result);

#endif
