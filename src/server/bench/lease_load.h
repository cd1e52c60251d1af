/* lease_load.h - clients that take a place in a slot of a model and give it back */
#ifndef SERVER_BENCH_LEASE_LOAD_H
#define SERVER_BENCH_LEASE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct lease_load {
	uint16_t port;
	int connections;
	double seconds;
	double cycles_per_s; /* for all connections together; 0: as many as can be */
};

struct lease_result {
	double cycles_per_s; /* that were completed */
	double p99_ms;       /* of a cycle, from its first byte sent to its last received */
	int64_t failures;    /* answers other than 201 and 200 */
};

/* Takes and gives back leases of model-1, one cycle after the other on each connection. False: no
 * connection could be made. */
bool lease_load_run(const struct lease_load *load, struct lease_result *result);

#endif
