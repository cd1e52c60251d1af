/* bench_wire.c - how many requests, calls and messages wire carries, and what they cost
 *
 * bench_wire OUTPUT.json - serves in a process of its own, with wrk, h2load and listeners of
 * our own as clients, all on this machine. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server.h"
#include "wire/bench/listeners.h"
#include "wire/bench/measure.h"

enum {
	SECONDS = 5,
	CONNECTIONS = 64,
	PIPELINED = 16,
	HTTP2_CONNECTIONS = 8,
	HTTP2_STREAMS = 32,
	LISTENERS = 2000,
	EVENTS_PER_SECOND = 100,
	STAMP_BYTES = 15,
};

/* What was measured; a value below zero was not. */
struct metric {
	const char *name, *unit;
	double value, least;
};

static struct metric metrics[] = {
	{ "http1_requests_per_s", "1/s", -1, 47000 },
	{ "http1_cpu_us_per_request", "us", -1, 0 },
	{ "http1_pipelined_requests_per_s", "1/s", -1, 0 },
	{ "http1_pipelined_cpu_us_per_request", "us", -1, 0 },
	{ "grpc_calls_per_s", "1/s", -1, 60000 },
	{ "grpc_cpu_us_per_call", "us", -1, 0 },
	{ "ws_events_per_s", "1/s", -1, LISTENERS *EVENTS_PER_SECOND * 0.99 },
	{ "ws_latest_ms", "ms", -1, 0 },
	{ "ws_cpu_us_per_event", "us", -1, 0 },
};

static void wire_put(const char *name, double value)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		if (strcmp(metrics[i].name, name) == 0)
			metrics[i].value = value;
}

/* One load, by a command that prints a rate. */
static void wire_measure(const char *rate_name, const char *cpu_name, const char *command,
                         const char *word, bool before, pid_t server)
{
	double cpu = process_cpu_s(server);
	double rate = command_number(command, word, before);
	cpu = process_cpu_s(server) - cpu;
	if (rate < 0) {
		fprintf(stderr, "not measured, is it installed? %s\n", command);
		return;
	}
	wire_put(rate_name, rate);
	wire_put(cpu_name, cpu / (rate * SECONDS) * 1e6);
}

/* Writes a file for a client that is started; its name is returned in `path`. */
static void write_file(char path[64], const void *data, size_t size)
{
	strcpy(path, "/tmp/bench-wire-XXXXXX");
	int file = mkstemp(path);
	if (file < 0 || write(file, data, size) != (ssize_t)size) {
		perror(path);
		exit(1);
	}
	close(file);
}

static void measure_http1(uint16_t port, pid_t server)
{
	/* wrk.format needs the host, which is known when wrk calls `init`. */
	static const char format[] =
	    "init = function()\n"
	    "  local one = wrk.format('POST', '/api/v1/jobs',\n"
	    "    {['Content-Type'] = 'application/json'}, string.rep('x', 300))\n"
	    "  all = string.rep(one, %d)\n"
	    "end\n"
	    "request = function() return all end\n";
	const struct {
		int depth;
		const char *rate, *cpu;
	} loads[] = {
		{ 1, "http1_requests_per_s", "http1_cpu_us_per_request" },
		{ PIPELINED, "http1_pipelined_requests_per_s",
		  "http1_pipelined_cpu_us_per_request" },
	};
	for (size_t i = 0; i < 2; i++) {
		char script[1024], path[64], command[512];
		int size = snprintf(script, sizeof(script), format, loads[i].depth);
		write_file(path, script, (size_t)size);
		snprintf(command, sizeof(command),
		         "wrk -t1 -c%d -d%d -s %s http://127.0.0.1:%u/ 2>/dev/null", CONNECTIONS,
		         SECONDS, path, port);
		wire_measure(loads[i].rate, loads[i].cpu, command, "Requests/sec:", false, server);
		unlink(path);
	}
}

static void measure_grpc(uint16_t port, pid_t server)
{
	unsigned char message[5 + 200] = { 0, 0, 0, 0, 200 };
	char path[64], command[512];
	write_file(path, message, sizeof(message));
	snprintf(command, sizeof(command),
	         "h2load -t1 -c%d -m%d -D%d -d %s -H 'content-type: application/grpc' "
	         "-H 'te: trailers' http://127.0.0.1:%u/scheduler.SchedulerService/SubmitJob "
	         "2>/dev/null",
	         HTTP2_CONNECTIONS, HTTP2_STREAMS, SECONDS, path, port);
	wire_measure("grpc_calls_per_s", "grpc_cpu_us_per_call", command, "req/s", true, server);
	unlink(path);
}

/* An event begins with when it happened. One that is cut off at the end of what was read
 * is counted by its first byte and not timed. */
static void take_events(const char *data, size_t size, struct listeners_result *result)
{
	static const char mark[] = "{\"at_us\":";
	double now_s = clock_s(CLOCK_MONOTONIC);
	const char *end = data + size;
	for (const char *at = data; (at = memchr(at, '{', (size_t)(end - at))); at++) {
		char stamp[STAMP_BYTES + 1] = { 0 };
		bool is_whole = (size_t)(end - at) >= sizeof(mark) - 1 + STAMP_BYTES &&
		                memcmp(at, mark, sizeof(mark) - 1) == 0;
		if (is_whole)
			memcpy(stamp, at + sizeof(mark) - 1, STAMP_BYTES);
		double happened_us = strtod(stamp, NULL);
		listeners_count(result, is_whole ? now_s * 1000 - happened_us / 1000 : 0);
	}
}

static void measure_websocket(uint16_t port, pid_t server)
{
	struct listeners_result result;
	if (!listeners_connect(port, "/api/v1/stream", LISTENERS)) {
		fprintf(stderr, "not measured: %d listeners cannot be connected: %s\n", LISTENERS,
		        strerror(errno));
		return;
	}
	/* What came while they were connecting is not counted. */
	listeners_receive(1, take_events, &result);
	double cpu = process_cpu_s(server);
	listeners_receive(SECONDS, take_events, &result);
	cpu = process_cpu_s(server) - cpu;
	wire_put("ws_events_per_s", (double)result.events / SECONDS);
	wire_put("ws_latest_ms", result.latest_ms);
	wire_put("ws_cpu_us_per_event", result.events > 0 ? cpu / (double)result.events * 1e6 : -1);
}

static int wire_report(const char *path)
{
	FILE *file = path ? fopen(path, "w") : NULL;
	int missed = 0;
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		const struct metric *metric = &metrics[i];
		bool is_met = metric->value >= metric->least;
		missed += !is_met;
		printf("%-36s %12.2f %-4s", metric->name, metric->value, metric->unit);
		if (metric->least > 0)
			printf("  at least %.0f: %s", metric->least, is_met ? "met" : "MISSED");
		printf("\n");
		if (file)
			fprintf(file, "%s\"%s\": %.3f", i == 0 ? "{" : ", ", metric->name,
			        metric->value);
	}
	if (file && (fprintf(file, "}\n") < 0 || fclose(file) != 0))
		perror(path);
	printf("%d of the targets missed\n", missed);
	return 0;
}

int main(int argc, char **argv)
{
	int ready[2];
	uint16_t port = 0;
	if (pipe(ready) != 0)
		return 1;
	pid_t server = fork();
	if (server == 0) {
		close(ready[0]);
		server_run(ready[1], EVENTS_PER_SECOND);
		_exit(0);
	}
	close(ready[1]);
	if (server < 0 || read(ready[0], &port, sizeof(port)) != sizeof(port)) {
		fprintf(stderr, "bench_wire: the server did not start\n");
		return 1;
	}
	measure_http1(port, server);
	measure_grpc(port, server);
	measure_websocket(port, server);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return wire_report(argc > 1 ? argv[1] : NULL);
}
