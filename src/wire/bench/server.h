/* server.h - what the benchmark's clients talk to */
#ifndef WIRE_BENCH_SERVER_H
#define WIRE_BENCH_SERVER_H

/* Serves on a port of 127.0.0.1, which it writes to `ready` as two bytes, until the
 * process is killed. POST requests and gRPC calls are answered like a submitted job, from
 * another thread as the core would. Every WebSocket gets a number of events a second, each
 * with the time in it. */
void server_run(int ready, int events_per_second);

#endif
