/* service_process.h - a gpu-scheduler of the benchmark's own, and what it costs */
#ifndef SERVER_BENCH_SERVICE_PROCESS_H
#define SERVER_BENCH_SERVICE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct service_process {
	pid_t process;
	char directory[64];
	uint16_t http_port, grpc_port;
};

/* Starts bin/gpu-scheduler with a store in a directory of its own, and waits until it is
 * healthy. False: it is not; what it said is on standard error. */
bool service_process_start(struct service_process *service);
/* Ends it, and removes its directory. */
void service_process_stop(struct service_process *service);

/* Sends one HTTP/1.1 request with a JSON body ("" for none); the status, or -1. The
 * beginning of the answer's body goes to `answer`, if that is not NULL. */
int service_process_call(const struct service_process *service, const char *method,
                         const char *path, const char *body, char *answer, size_t answer_size);

/* The memory of a process, in MiB. */
double process_rss_mib(pid_t process);

#endif
