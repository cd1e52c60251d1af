/* service_process.c - a gpu-scheduler of the benchmark's own, and what it costs */
#include "service_process.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/bench/measure.h"

enum { HEALTHY_TRIES = 200, TRY_MS = 50 };

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client >= 0 && connect(client, (struct sockaddr *)&address, sizeof(address)) == 0)
		return client;
	if (client >= 0)
		close(client);
	return -1;
}

/* A port that is free now. */
static uint16_t free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server < 0 || bind(server, (struct sockaddr *)&address, size) != 0 ||
	    getsockname(server, (struct sockaddr *)&address, &size) != 0) {
		perror("a free port");
		exit(1);
	}
	close(server);
	return ntohs(address.sin_port);
}

int service_process_call(const struct service_process *service, const char *method,
                         const char *path, const char *body, char *answer, size_t answer_size)
{
	char request[8192], received[8192];
	int client = connect_to(service->http_port), status = -1;
	size_t size = 0;
	if (client < 0)
		return -1;
	int length = snprintf(request, sizeof(request),
	                      "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	                      method, path, strlen(body), body);
	if (length > 0 && write(client, request, (size_t)length) == length) {
		ssize_t count;
		while ((count = read(client, received + size, sizeof(received) - 1 - size)) > 0)
			size += (size_t)count;
		received[size] = '\0';
		if (sscanf(received, "HTTP/1.1 %d", &status) != 1)
			status = -1;
		const char *end = strstr(received, "\r\n\r\n");
		if (answer)
			snprintf(answer, answer_size, "%s", end ? end + 4 : "");
	}
	close(client);
	return status;
}

static void become_service(const struct service_process *service)
{
	char http[16], grpc[16], log[96];
	snprintf(http, sizeof(http), "%u", service->http_port);
	snprintf(grpc, sizeof(grpc), "%u", service->grpc_port);
	snprintf(log, sizeof(log), "%s/log", service->directory);
	if (!freopen(log, "w", stderr) || !freopen("/dev/null", "w", stdout))
		_exit(1);
	execl("bin/gpu-scheduler", "gpu-scheduler", "--data", service->directory, "--http-port",
	      http, "--grpc-port", grpc, "--metrics-port", "0", NULL);
	_exit(1);
}

bool service_process_start(struct service_process *service)
{
	snprintf(service->directory, sizeof(service->directory), "/tmp/bench-service-XXXXXX");
	if (!mkdtemp(service->directory))
		return false;
	service->http_port = free_port();
	service->grpc_port = free_port();
	service->process = fork();
	if (service->process == 0)
		become_service(service);
	for (int i = 0; i < HEALTHY_TRIES; i++) {
		if (service_process_call(service, "GET", "/health", "", NULL, 0) == 200)
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = TRY_MS * 1000000L }, NULL);
	}
	fprintf(stderr, "bin/gpu-scheduler does not become healthy; %s/log says why\n",
	        service->directory);
	return false;
}

void service_process_stop(struct service_process *service)
{
	char command[96];
	kill(service->process, SIGTERM);
	waitpid(service->process, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", service->directory);
	if (system(command) != 0) /* NOLINT(cert-env33-c): a name of our own */
		fprintf(stderr, "%s is left behind\n", service->directory);
}

double process_rss_mib(pid_t process)
{
	char command[96];
	snprintf(command, sizeof(command), "grep VmRSS /proc/%d/status", (int)process);
	return command_number(command, "VmRSS:", false) / 1024;
}
