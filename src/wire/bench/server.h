/* server.h - what the benchmark's clients talk to */
#ifndef WIRE_BENCH_SERVER_H
#define WIRE_BENCH_SERVER_H

/* Serves on a port of 127.0.0.1, which it writes to `ready` as two bytes, until the
 * process is ended. POST is answered like a submitted job, calls likewise, from another
 * thread as the core would; every WebSocket gets an event so many times a second with the
 * time in it. */
void server_run(int ready, int events_per_second);

#endif
