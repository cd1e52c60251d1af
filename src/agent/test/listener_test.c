/* listener_test.c - who listens on a port, and where servers of models are told to */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/host/listener.h"
#include "agent/workload/run.h"

/* Listens on the port, or (0) on any that is free, together with others that say so too. */
static int listen_on(int family, int64_t *port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)*port) };
	struct sockaddr *address = family == AF_INET ? (void *)&four : (void *)&six;
	socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int));
	assert_int_equal(bind(fd, address, size), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, address, &size), 0);
	*port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	return fd;
}

/* A process of the group, which is what descends from this one. It holds what is open now. */
static pid_t fork_member(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end_member(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static enum listener_owner owner_of(int64_t port)
{
	struct cgroup group = { .keeper = getpid() };
	int64_t uid = -2;
	enum listener_owner owner = listener_look(&group, port, &uid);

	assert_int_equal(uid, owner == LISTENER_FOREIGN ? (int64_t)getuid() : -1);
	return owner;
}

static void a_listener_belongs_to_any_process_of_the_group_that_holds_it(void **state)
{
	int64_t port = 0;
	int fd = listen_on(AF_INET, &port);
	pid_t worker = fork_member();

	(void)state;
	close(fd); /* as a server does that leaves the port to its workers */
	assert_int_equal(owner_of(port), LISTENER_OWN);
	end_member(worker);
	assert_int_equal(owner_of(port), LISTENER_NONE);
}

static void a_listener_of_any_other_process_is_foreign(void **state)
{
	int64_t port = 0;
	int fd = listen_on(AF_INET, &port);

	(void)state;
	/* This process is not in the group: it only began it. */
	assert_int_equal(owner_of(port), LISTENER_FOREIGN);
	close(fd);
}

static void a_second_listener_on_the_same_port_is_seen(void **state)
{
	int64_t port = 0;
	int own = listen_on(AF_INET, &port);
	pid_t worker = fork_member();

	(void)state;
	close(own);
	assert_int_equal(owner_of(port), LISTENER_OWN);
	int thief = listen_on(AF_INET, &port);
	assert_int_equal(owner_of(port), LISTENER_FOREIGN);
	close(thief);
	assert_int_equal(owner_of(port), LISTENER_OWN);
	end_member(worker);
}

static void listeners_of_both_families_count(void **state)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6 };
	int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int64_t port = 0;

	(void)state;
	bool six = probe >= 0 && bind(probe, (void *)&address, sizeof(address)) == 0;
	if (probe >= 0)
		close(probe);
	if (!six)
		skip();
	int fd = listen_on(AF_INET6, &port);
	assert_int_equal(owner_of(port), LISTENER_FOREIGN);
	pid_t worker = fork_member();
	close(fd);
	assert_int_equal(owner_of(port), LISTENER_OWN);
	end_member(worker);
}

static void only_sockets_that_listen_on_the_port_are_read_from_a_table(void **state)
{
	static const char head[] = "  sl  local_address rem_address   st tx_queue rx_queue tr "
				   "tm->when retrnsmt   uid  timeout inode";
	static const char listens[] = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 "
				      "00:00000000 00000000  1000        0 54321 1 "
				      "0000000000000000 100 0 0 10 0";
	static const char six[] = "  12: 00000000000000000000000000000000:1F90 "
				  "00000000000000000000000000000000:0000 0A 00000000:00000000 "
				  "00:00000000 00000000 65534        0 777 1 0 100 0 0 10 0";
	static const char connected[] = "   1: 0100007F:1F90 0100007F:A2B4 01 00000000:00000000 "
					"00:00000000 00000000  1000        0 54322 1 0 20 4 30";
	struct listener listener;

	(void)state;
	assert_false(listener_read_line(head, 8080, &listener));
	assert_false(listener_read_line(connected, 8080, &listener));
	assert_false(listener_read_line(listens, 8081, &listener));
	assert_false(listener_read_line("", 8080, &listener));
	assert_true(listener_read_line(listens, 8080, &listener));
	assert_int_equal(listener.inode, 54321);
	assert_int_equal(listener.uid, 1000);
	assert_true(listener_read_line(six, 8080, &listener));
	assert_int_equal(listener.inode, 777);
	assert_int_equal(listener.uid, 65534);
}

static bool plan_slot(struct arena *arena, enum runtime runtime, int64_t first, int64_t last,
                      struct run_plan *plan, struct error *error)
{
	struct run_settings settings = { .node = "n",
		                         .allow_root = true,
		                         .default_user = "root",
		                         .port_first = first,
		                         .port_last = last };
	struct node_order order = { .kind = ORDER_LOAD,
		                    .reservation_id = 1,
		                    .payload = "",
		                    .model = "m",
		                    .runtime = (int32_t)runtime };

	return run_plan_slot(arena, &settings, &order, plan, error);
}

static void a_port_that_somebody_listens_on_is_not_given_to_a_model(void **state)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct run_plan plan;
	int64_t taken = 0;
	int fd = listen_on(AF_INET, &taken);

	(void)state;
	assert_false(plan_slot(&arena, RUNTIME_VLLM, taken, taken, &plan, &error));
	assert_non_null(strstr(error.text, "no free port"));
	close(fd);
	assert_true(plan_slot(&arena, RUNTIME_VLLM, taken, taken, &plan, &error));
	assert_int_equal(plan.port, taken);
	arena_free(&arena);
}

static void ports_do_not_follow_one_another(void **state)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct run_plan plan;
	int64_t least = INT64_MAX, most = 0;

	(void)state;
	for (int i = 0; i < 32; i++) {
		assert_true(plan_slot(&arena, RUNTIME_VLLM, 19000, 28999, &plan, &error));
		assert_in_range(plan.port, 19000, 28999);
		least = plan.port < least ? plan.port : least;
		most = plan.port > most ? plan.port : most;
	}
	/* Thirty-two at random are nearly never within a tenth of the range. */
	assert_true(most - least > 1000);
	arena_free(&arena);
}

static void a_port_is_on_the_command_line_only_where_a_runtime_knows_no_other_way(void **state)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct run_plan plan;
	char port[32], variable[64];

	(void)state;
	assert_true(plan_slot(&arena, RUNTIME_LLAMA_CPP, 19000, 28999, &plan, &error));
	snprintf(port, sizeof(port), "%lld", (long long)plan.port);
	snprintf(variable, sizeof(variable), "LLAMA_ARG_PORT=%s", port);
	assert_null(strstr(plan.spec.arguments[2], port));
	bool found = false;
	for (char **at = plan.spec.environment; *at; at++)
		found = found || strcmp(*at, variable) == 0;
	assert_true(found);
	assert_true(plan_slot(&arena, RUNTIME_OLLAMA, 19000, 28999, &plan, &error));
	snprintf(port, sizeof(port), "%lld", (long long)plan.port);
	assert_null(strstr(plan.spec.arguments[2], port));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_belongs_to_any_process_of_the_group_that_holds_it),
		cmocka_unit_test(a_listener_of_any_other_process_is_foreign),
		cmocka_unit_test(a_second_listener_on_the_same_port_is_seen),
		cmocka_unit_test(listeners_of_both_families_count),
		cmocka_unit_test(only_sockets_that_listen_on_the_port_are_read_from_a_table),
		cmocka_unit_test(a_port_that_somebody_listens_on_is_not_given_to_a_model),
		cmocka_unit_test(ports_do_not_follow_one_another),
		cmocka_unit_test(
		    a_port_is_on_the_command_line_only_where_a_runtime_knows_no_other_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
