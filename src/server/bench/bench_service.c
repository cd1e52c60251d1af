/* bench_service.c - what the whole service does in a second, and what that costs
 *
 * bench_service OUTPUT.json [NAME...] - starts bin/gpu-scheduler, and loads it with wrk, h2load and
 * listeners of our own, all on this machine; with NAMEs (idle, submits, leases, bulk, grpc,
 * latency, stream, slurm) by those loads alone. Where SLURM_CONF and SLURM_SUBMIT (a program
 * that submits through Slurm's library) are set, does the same to Slurm. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "job_events.h"
#include "lease_load.h"
#include "service_process.h"
#include "wire/bench/measure.h"

enum {
	SECONDS = 8,
	CONNECTIONS = 256,
	BULK_JOBS = 500,
	BULK_CONNECTIONS = 8,
	GRPC_CONNECTIONS = 8,
	GRPC_STREAMS = 64,
	LISTENERS = 2000,
	EVENTS_PER_S = 100,
	STREAM_SECONDS = 6,
	NODES = 125, /* of 8 GPUs */
	SLURM_PROCESSES = 8,
	LEASE_CONNECTIONS = 64,
	WARM_TRIES = 300, /* of 100 ms, until a slot is ready */
};

/* What was measured; a value below zero was not. */
struct metric {
	const char *name, *unit;
	double value, least, most; /* 0: no bound */
};

static struct metric metrics[] = {
	{ "rest_submits_per_s", "1/s", -1, 47000, 0 },
	{ "cpu_ms_per_submit", "ms", -1, 0, 0 },
	{ "rest_bulk_jobs_per_s", "1/s", -1, 100000, 0 },
	{ "grpc_submits_per_s", "1/s", -1, 60000, 0 },
	{ "rest_p99_ms_half_load", "ms", -1, 0, 10 },
	{ "lease_cycles_per_s", "1/s", -1, 0, 0 },
	{ "lease_p99_ms_half_load", "ms", -1, 0, 10 },
	{ "cycles_against_submits", "times", -1, 1, 0 },
	{ "ws_events_per_s", "1/s", -1, LISTENERS *EVENTS_PER_S * 0.999, 0 },
	{ "ws_latest_ms", "ms", -1, 0, 1000 },
	{ "rss_idle_mib", "MiB", -1, 0, 64 },
	{ "slurm_submits_per_s", "1/s", -1, 0, 0 },
	{ "slurm_cpu_ms_per_submit", "ms", -1, 0, 0 },
	{ "submits_against_slurm", "times", -1, 20, 0 },
	{ "cpu_against_slurm", "times", -1, 20, 0 },
};

static struct metric *metric(const char *name)
{
	size_t at = 0;
	while (strcmp(metrics[at].name, name) != 0)
		at++;
	return &metrics[at];
}

static const char job[] =
    "{\"tenant_id\":\"tenant-1\",\"name\":\"train\",\"priority\":500,\"gpu_count\":1,"
    "\"gpu_memory_mb\":40000,\"cpu_cores\":4,\"memory_mb\":16384,"
    "\"command\":[\"python\",\"train.py\"],\"environment\":{\"EPOCHS\":\"10\"}}";

/* Writes a file for a client that is started. */
static void write_file(char path[64], const void *data, size_t size)
{
	snprintf(path, 64, "/tmp/bench-service-XXXXXX");
	int file = mkstemp(path);
	if (file < 0 || write(file, data, size) != (ssize_t)size) {
		perror(path);
		exit(1);
	}
	close(file);
}

/* wrk with one body for all requests; what it says a second. */
static double load_http(const struct service_process *service, const char *type, const char *body,
                        int connections)
{
	size_t room = strlen(body) + 256;
	char *script = malloc(room), path[64], command[256];
	int size = snprintf(script, room,
	                    "wrk.method = 'POST'\nwrk.headers['Content-Type'] = '%s'\n"
	                    "wrk.body = [[%s]]\n",
	                    type, body);
	write_file(path, script, (size_t)size);
	snprintf(command, sizeof(command),
	         "wrk -t1 -c%d -d%d -s %s http://127.0.0.1:%u/api/v1/jobs 2>&1", connections,
	         SECONDS, path, service->http_port);
	double rate = command_number(command, "Requests/sec:", false);
	unlink(path);
	free(script);
	return rate;
}

static void measure_submits(const struct service_process *service)
{
	double cpu_s = process_cpu_s(service->process);
	double rate = load_http(service, "application/json", job, CONNECTIONS);
	cpu_s = process_cpu_s(service->process) - cpu_s;
	metric("rest_submits_per_s")->value = rate;
	metric("cpu_ms_per_submit")->value = cpu_s * 1000 / (rate * SECONDS);
}

static void measure_bulk(const struct service_process *service)
{
	char *body = malloc(BULK_JOBS * sizeof(job) + 1), *at = body;
	for (int i = 0; i < BULK_JOBS; i++)
		at += sprintf(at, "%s\n", job);
	double rate = load_http(service, "application/x-ndjson", body, BULK_CONNECTIONS);
	metric("rest_bulk_jobs_per_s")->value = rate < 0 ? -1 : rate * BULK_JOBS;
	free(body);
}

/* A protobuf field: a text, or a number. */
static char *service_put_text(char *at, int field, const char *text)
{
	size_t size = strlen(text);
	*at++ = (char)(field << 3 | 2);
	*at++ = (char)size;
	memcpy(at, text, size);
	return at + size;
}

static char *service_put_number(char *at, int field, uint64_t number)
{
	*at++ = (char)(field << 3);
	for (; number >= 128; number >>= 7)
		*at++ = (char)(number | 128);
	*at++ = (char)number;
	return at;
}

/* The length that gRPC wants before a message. */
static void prefix_message(char *message, const char *end)
{
	size_t size = (size_t)(end - message) - 5;
	memset(message, 0, 5);
	message[3] = (char)(size >> 8);
	message[4] = (char)size;
}

static double load_grpc(const struct service_process *service, const char *method,
                        const char *message, const char *end, const char *load)
{
	char path[64], command[512];
	write_file(path, message, (size_t)(end - message));
	snprintf(command, sizeof(command),
	         "h2load -t1 %s -d %s -H 'content-type: application/grpc' -H 'te: trailers' "
	         "http://127.0.0.1:%u/%s 2>&1",
	         load, path, service->grpc_port, method);
	double rate = command_number(command, "req/s", true);
	unlink(path);
	return rate;
}

static void measure_grpc(const struct service_process *service)
{
	char message[512], load[64], *at = message + 5;
	at = service_put_text(at, 1, "tenant-1");
	at = service_put_text(at, 2, "train");
	at = service_put_number(at, 3, 500);
	at = service_put_number(at, 4, 1);
	at = service_put_number(at, 5, 40000);
	at = service_put_number(at, 6, 4);
	at = service_put_number(at, 7, 16384);
	at = service_put_text(at, 11, "python");
	at = service_put_text(at, 11, "train.py");
	prefix_message(message, at);
	snprintf(load, sizeof(load), "-c%d -m%d -D%d", GRPC_CONNECTIONS, GRPC_STREAMS, SECONDS);
	metric("grpc_submits_per_s")->value =
	    load_grpc(service, "scheduler.SchedulerService/SubmitJob", message, at, load);
}

static void register_node(const struct service_process *service, int number)
{
	char message[2048], gpu[256], text[64], *at = message + 5;
	snprintf(text, sizeof(text), "node-%d", number);
	at = service_put_text(at, 1, text);
	at = service_put_text(at, 2, text);
	at = service_put_number(at, 4, 8);
	at = service_put_number(at, 5, 128);
	at = service_put_number(at, 6, 1 << 20);
	for (int i = 0; i < 8; i++) {
		char *end = gpu;
		snprintf(text, sizeof(text), "GPU-%d-%d", number, i);
		end = service_put_text(end, 1, text);
		end = service_put_number(end, 2, (uint64_t)i);
		end = service_put_text(end, 3, "H100");
		end = service_put_number(end, 4, 81920);
		*at++ = 7 << 3 | 2;
		*at++ = (char)(end - gpu);
		memcpy(at, gpu, (size_t)(end - gpu));
		at += end - gpu;
	}
	prefix_message(message, at);
	load_grpc(service, "agent.AgentService/RegisterAgent", message, at, "-c1 -m1 -n1");
}

static void measure_idle(const struct service_process *service)
{
	char answer[1024];
	for (int i = 0; i < NODES; i++)
		register_node(service, i);
	service_process_call(service, "GET", "/api/v1/cluster/status", "", answer, sizeof(answer));
	const char *gpus = strstr(answer, "\"total_gpus\":");
	if (!gpus || strtol(gpus + strlen("\"total_gpus\":"), NULL, 10) != NODES * 8)
		fprintf(stderr, "the nodes did not register: %s\n", answer);
	else
		metric("rss_idle_mib")->value = process_rss_mib(service->process);
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The 99th of a hundred in the third column of h2load's log: microseconds. */
static double percentile_ms(const char *path)
{
	FILE *file = fopen(path, "r");
	double *times = NULL, time_us;
	size_t count = 0, capacity = 0;
	if (!file)
		return -1;
	while (fscanf(file, "%*d %*d %lf", &time_us) == 1) {
		if (count == capacity) {
			capacity = capacity ? capacity * 2 : 1024;
			times = realloc(times, capacity * sizeof(*times));
		}
		times[count++] = time_us;
	}
	fclose(file);
	if (count > 0)
		qsort(times, count, sizeof(*times), compare_numbers);
	double result = count > 0 ? times[count * 99 / 100] / 1000 : -1;
	free(times);
	return result;
}

/* Half of what was measured before, evenly. */
static void measure_latency(const struct service_process *service)
{
	enum { CLIENTS = 64 };
	char body[64], log[64], command[512];
	double rate = metric("rest_submits_per_s")->value / 2 / CLIENTS;
	write_file(body, job, sizeof(job) - 1);
	write_file(log, "", 0);
	snprintf(command, sizeof(command),
	         "h2load --h1 -t1 -c%d -D%d --rps=%.0f -d %s --log-file=%s "
	         "-H 'content-type: application/json' http://127.0.0.1:%u/api/v1/jobs 2>&1",
	         CLIENTS, SECONDS, rate, body, log, service->http_port);
	double reached = command_number(command, "req/s", true);
	if (reached > rate * CLIENTS * 0.9)
		metric("rest_p99_ms_half_load")->value = percentile_ms(log);
	else
		fprintf(stderr, "half of the load was not reached: %.0f/s of %.0f/s\n", reached,
		        rate * CLIENTS);
	unlink(body);
	unlink(log);
}

/* A node of the tests, which loads what it is told to. */
static pid_t begin_node(const struct service_process *service)
{
	char port[16];
	pid_t process = fork();
	if (process != 0)
		return process;
	snprintf(port, sizeof(port), "%u", service->grpc_port);
	execl("/usr/bin/python3", "python3", "-B", "tests/service/warm_node.py", port, NULL);
	_exit(1);
}

/* A model with a slot that is ready. */
static bool warm_up(const struct service_process *service)
{
	static const char model[] = "{\"tenant_id\":\"tenant-1\",\"name\":\"tiny\",\"runtime\":"
				    "\"vllm\",\"gpu_memory_mb\":1000,\"max_concurrency\":1000}";
	if (service_process_call(service, "POST", "/api/v1/models", model, NULL, 0) != 201)
		return false;
	for (int i = 0; i < WARM_TRIES; i++) {
		if (service_process_call(service, "POST", "/api/v1/models/model-1/leases", "", NULL,
		                         0) == 201)
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000L }, NULL);
	}
	return false;
}

static void run_leases(const struct service_process *service)
{
	struct lease_load load = { .port = service->http_port,
		                   .connections = LEASE_CONNECTIONS,
		                   .seconds = SECONDS };
	struct lease_result result;
	if (!lease_load_run(&load, &result) || result.failures > 0) {
		fprintf(stderr, "%lld leases failed\n", (long long)result.failures);
		return;
	}
	metric("lease_cycles_per_s")->value = result.cycles_per_s;
	metric("cycles_against_submits")->value =
	    result.cycles_per_s / metric("rest_submits_per_s")->value;
	load.cycles_per_s = result.cycles_per_s / 2;
	if (!lease_load_run(&load, &result) || result.failures > 0 ||
	    result.cycles_per_s < load.cycles_per_s * 0.9)
		fprintf(stderr, "half of the load of leases was not reached: %.0f/s of %.0f/s\n",
		        result.cycles_per_s, load.cycles_per_s);
	else
		metric("lease_p99_ms_half_load")->value = result.p99_ms;
}

static void measure_leases(const struct service_process *service)
{
	pid_t node = begin_node(service);
	if (warm_up(service))
		run_leases(service);
	else
		fprintf(stderr, "no slot of the model becomes ready\n");
	kill(node, SIGTERM);
	waitpid(node, NULL, 0);
}

/* Submits at an even rate, in a process of its own. */
static pid_t begin_events(const struct service_process *service, int count)
{
	pid_t process = fork();
	if (process != 0)
		return process;
	struct timespec next = clock_after_us(CLOCK_MONOTONIC, 0);
	for (int i = 0; i < count; i++) {
		if (service_process_call(service, "POST", "/api/v1/jobs", job, NULL, 0) != 201)
			_exit(1);
		next.tv_nsec += 1000000000L / EVENTS_PER_S;
		next.tv_sec += next.tv_nsec / 1000000000L;
		next.tv_nsec %= 1000000000L;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	_exit(0);
}

static void measure_stream(const struct service_process *service)
{
	struct listeners_result result;
	int status = 0;
	if (!listeners_connect(service->http_port, "/api/v1/stream?topics=jobs", LISTENERS)) {
		fprintf(stderr, "%d listeners cannot be connected: %s\n", LISTENERS,
		        strerror(errno));
		return;
	}
	pid_t process = begin_events(service, STREAM_SECONDS * EVENTS_PER_S);
	listeners_receive(STREAM_SECONDS + 2, job_events_take, &result);
	waitpid(process, &status, 0);
	if (status != 0)
		fprintf(stderr, "the events could not be made\n");
	metric("ws_events_per_s")->value = (double)result.events / STREAM_SECONDS;
	metric("ws_latest_ms")->value = result.latest_ms;
}

static void measure_slurm(void)
{
	const char *submit = getenv("SLURM_SUBMIT"), *controller = getenv("SLURM_CONTROLLER_PID");
	char command[512];
	if (!submit || !controller) {
		fprintf(stderr, "Slurm is not measured: run this by scripts/private-slurm\n");
		return;
	}
	pid_t process = (pid_t)strtol(controller, NULL, 10);
	double cpu_s = process_cpu_s(process);
	snprintf(command, sizeof(command), "'%s' %d %d", submit, SECONDS, SLURM_PROCESSES);
	double count = command_number(command, "submitted ", false);
	cpu_s = process_cpu_s(process) - cpu_s;
	if (count <= 0)
		return;
	metric("slurm_submits_per_s")->value = count / SECONDS;
	metric("slurm_cpu_ms_per_submit")->value = cpu_s * 1000 / count;
	metric("submits_against_slurm")->value =
	    metric("rest_submits_per_s")->value * SECONDS / count;
	metric("cpu_against_slurm")->value =
	    cpu_s * 1000 / count / metric("cpu_ms_per_submit")->value;
}

static void service_report(const char *path)
{
	FILE *file = path ? fopen(path, "w") : NULL;
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		const struct metric *m = &metrics[i];
		bool met =
		    m->value >= 0 && m->value >= m->least && (m->most <= 0 || m->value <= m->most);
		if (m->value < 0)
			printf("%-26s %12s %-5s", m->name, "-", m->unit);
		else
			printf("%-26s %12.3f %-5s", m->name, m->value, m->unit);
		if (m->value >= 0 && m->least > 0)
			printf("  at least %.0f: %s", m->least, met ? "met" : "MISSED");
		if (m->value >= 0 && m->most > 0)
			printf("  at most %.0f: %s", m->most, met ? "met" : "MISSED");
		printf("\n");
		if (file)
			fprintf(file, "%s\"%s\": %.4f", i == 0 ? "{" : ", ", m->name, m->value);
	}
	if (file && (fprintf(file, "}\n") < 0 || fclose(file) != 0))
		perror(path);
}

/* Each load gets a service that is new, so that none waits for what another left. */
static void with_service(void (*measure)(const struct service_process *service))
{
	struct service_process service;
	if (!service_process_start(&service))
		exit(1);
	service_process_call(&service, "POST", "/api/v1/tenants", "{\"name\":\"lab\"}", NULL, 0);
	measure(&service);
	service_process_stop(&service);
}

static const struct load {
	const char *name;
	void (*measure)(const struct service_process *service);
} loads[] = {
	{ "idle", measure_idle },     { "submits", measure_submits },
	{ "leases", measure_leases }, { "bulk", measure_bulk },
	{ "grpc", measure_grpc },     { "latency", measure_latency },
	{ "stream", measure_stream },
};

static bool load_is_named(const char *name, char **names, int count)
{
	bool is_named = count == 0;
	for (int i = 0; i < count; i++)
		is_named = is_named || strcmp(names[i], name) == 0;
	return is_named;
}

int main(int argc, char **argv)
{
	char **names = argv + 2;
	int count = argc > 2 ? argc - 2 : 0;
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (load_is_named(loads[i].name, names, count))
			with_service(loads[i].measure);
	if (load_is_named("slurm", names, count))
		measure_slurm();
	service_report(argc > 1 ? argv[1] : NULL);
	return 0;
}
