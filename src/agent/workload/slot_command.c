/* slot_command.c - how a model's server is started */
#include "agent/workload/slot_command.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/proxy/outbound.h"
#include "base/number.h"
#include "json/member.h"

#define CONTEXT_MIB 1024 /* that the context of a CUDA program and its libraries take */
#define PORT_TRIES 1000

/* The words of a command, or of a template for the shell, are filled from these. */
struct slot_values {
	const char *model, *path, *kv_cache;
	int64_t port, tensor_parallel, context, parallel, utilisation, memory_mib;
};

static bool bind_to(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool bound = fd >= 0 && bind(fd, address, size) == 0;
	bool absent = fd < 0 && errno == EAFNOSUPPORT;

	if (fd >= 0)
		close(fd);
	return bound || absent;
}

static bool is_free(int64_t port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };

	return bind_to(AF_INET, (const struct sockaddr *)&four, sizeof(four)) &&
	       bind_to(AF_INET6, (const struct sockaddr *)&six, sizeof(six));
}

/* A port that nobody listens on, and that nobody can guess: whoever listens there before the
 * server does keeps the model from being loaded. It is loaded again then, on another port. In a
 * network of its own the server is alone. 0: there is none. */
static int64_t free_port(const struct run_settings *settings, bool own_network)
{
	int64_t count = settings->port_last - settings->port_first + 1;

	if (own_network)
		return settings->port_first;
	for (int i = 0; count > 0 && i < PORT_TRIES; i++) {
		uint32_t random;
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return 0;
		int64_t port = settings->port_first + (int64_t)random % count;
		if (is_free(port))
			return port;
	}
	return 0;
}

static void quote(struct buffer *text, const char *word)
{
	buffer_text(text, "'");
	for (; *word; word++)
		if (*word == '\'')
			buffer_text(text, "'\\''");
		else
			buffer_bytes(text, word, 1);
	buffer_text(text, "'");
}

static void option_number(struct buffer *text, const char *option, int64_t number)
{
	if (number > 0)
		buffer_print(text, " %s %lld", option, (long long)number);
}

static void option_text(struct buffer *text, const char *option, const char *value)
{
	if (!value || !*value)
		return;
	buffer_print(text, " %s ", option);
	quote(text, value);
}

/* Thousandths as a decimal. */
static void option_share(struct buffer *text, const char *option, int64_t thousandths)
{
	if (thousandths > 0)
		buffer_print(text, " %s 0.%03lld", option, (long long)min64(thousandths, 999));
}

static void vllm_command(struct buffer *text, const struct slot_values *values)
{
	buffer_text(text, "exec vllm serve ");
	quote(text, values->path);
	option_text(text, "--served-model-name", values->model);
	option_text(text, "--host", "127.0.0.1");
	option_number(text, "--port", values->port);
	option_share(text, "--gpu-memory-utilization", values->utilisation);
	option_number(text, "--tensor-parallel-size", values->tensor_parallel);
	option_number(text, "--max-model-len", values->context);
	option_number(text, "--max-num-seqs", values->parallel);
	option_text(text, "--kv-cache-dtype", values->kv_cache);
}

/* Its port is in its environment: every user of the machine can read a command line. */
static void llama_command(struct environment *environment, const struct slot_values *values,
                          struct buffer *text)
{
	environment_set_number(environment, "LLAMA_ARG_PORT", values->port);
	buffer_text(text, "exec llama-server --host 127.0.0.1 --metrics --slots -ngl 999");
	option_text(text, "--model", values->path);
	option_text(text, "--alias", values->model);
	option_number(text, "--ctx-size", values->context);
	option_number(text, "--parallel", values->parallel);
	option_text(text, "--cache-type-k", values->kv_cache);
	option_text(text, "--cache-type-v", values->kv_cache);
}

static void ollama_command(struct environment *environment, const struct slot_values *values,
                           struct buffer *text)
{
	struct buffer host = { 0 };

	buffer_print(&host, "127.0.0.1:%lld", (long long)values->port);
	environment_set(environment, "OLLAMA_HOST", host.data);
	environment_default(environment, "OLLAMA_KEEP_ALIVE", "-1");
	if (values->parallel > 0)
		environment_set_number(environment, "OLLAMA_NUM_PARALLEL", values->parallel);
	if (values->context > 0)
		environment_set_number(environment, "OLLAMA_CONTEXT_LENGTH", values->context);
	buffer_text(text, "exec ollama serve");
	buffer_free(&host);
}

/* The value that a name in braces stands for; false: no such name. */
static bool slot_put_value(struct buffer *text, const char *name, size_t size,
                           const struct slot_values *values)
{
	const struct {
		const char *name, *text;
		int64_t number;
	} known[] = {
		{ "model", values->model, 0 },
		{ "path", values->path, 0 },
		{ "kv_cache", values->kv_cache, 0 },
		{ "port", NULL, values->port },
		{ "tensor_parallel", NULL, values->tensor_parallel },
		{ "context", NULL, values->context },
		{ "parallel", NULL, values->parallel },
		{ "memory_mib", NULL, values->memory_mib },
	};

	if (size == 11 && strncmp(name, "utilisation", size) == 0) {
		buffer_print(text, "0.%03lld", (long long)min64(values->utilisation, 999));
		return true;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strlen(known[i].name) != size || strncmp(known[i].name, name, size) != 0)
			continue;
		if (known[i].text)
			quote(text, known[i].text);
		else
			buffer_print(text, "%lld", (long long)known[i].number);
		return true;
	}
	return false;
}

static void fill_template(struct buffer *text, const char *template,
                          const struct slot_values *values)
{
	while (*template) {
		const char *end = *template == '{' ? strchr(template, '}') : NULL;
		if (end &&
		    slot_put_value(text, template + 1, (size_t)(end - template) - 1, values)) {
			template = end + 1;
			continue;
		}
		buffer_bytes(text, template ++, 1);
	}
	buffer_text(text, "");
}

static int64_t least_utilisation(const struct node_order *order)
{
	int64_t least = WHOLE_GPU;

	for (int64_t i = 0; i < order->utilisation.count; i++)
		least = min64(least, order->utilisation.at[i]);
	return order->utilisation.count > 0 ? least : 0;
}

/* Under the guard a GPU has as much memory as the slot may use. Of that a server leaves what
 * its context takes, which it cannot have. */
static int64_t guarded_utilisation(const struct node_order *order)
{
	int64_t least_mib = INT64_MAX;

	for (int64_t i = 0; i < order->part_count; i++)
		least_mib = min64(least_mib, order->parts[i].memory_mib);
	int64_t context_mib = min64(CONTEXT_MIB, least_mib / 5);
	return muldiv_down(least_mib - context_mib, WHOLE_GPU, max64(least_mib, 1));
}

static const char *slot_text(const json_t *payload, const char *name, const char *otherwise)
{
	const char *text = member_text(payload, name);

	return *text ? text : otherwise;
}

static const char *build(const struct node_order *order, const struct slot_values *values,
                         struct environment *environment, struct buffer *text)
{
	switch ((enum runtime)order->runtime) {
	case RUNTIME_VLLM:
		vllm_command(text, values);
		return "/health";
	case RUNTIME_LLAMA_CPP:
		llama_command(environment, values, text);
		return "/health";
	case RUNTIME_OLLAMA:
		ollama_command(environment, values, text);
		return "/api/version";
	default:
		fill_template(text, order->command ? order->command : "", values);
		return "/health";
	}
}

/* In a network of its own a server reaches others through its proxy. A model that names a proxy
 * itself stays in the network of the node. */
static void set_network(const struct run_settings *settings, struct environment *environment,
                        struct run_plan *plan)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy",
		                             "HTTP_PROXY", NULL };
	char way_out[64];

	plan->spec.own_network = settings->slot_networks;
	for (int i = 0; names[i]; i++)
		if (environment_get(environment, names[i]))
			plan->spec.own_network = false;
	if (!plan->spec.own_network)
		return;
	snprintf(way_out, sizeof(way_out), "http://127.0.0.1:%d", OUTBOUND_PORT);
	for (int i = 0; names[i]; i++)
		environment_set(environment, names[i], way_out);
	environment_default(environment, "no_proxy", "localhost,127.0.0.1,::1");
	environment_default(environment, "NO_PROXY", "localhost,127.0.0.1,::1");
	/* Some libraries look for an address by themselves, and find none. */
	environment_default(environment, "VLLM_HOST_IP", "127.0.0.1");
	environment_default(environment, "GLOO_SOCKET_IFNAME", "lo");
	environment_default(environment, "NCCL_SOCKET_IFNAME", "lo");
}

bool slot_command_plan(struct arena *arena, const struct run_settings *settings,
                       const struct node_order *order, const json_t *payload,
                       struct environment *environment, struct run_plan *plan, struct error *error)
{
	set_network(settings, environment, plan);
	struct slot_values values = { .model = order->model,
		                      .kv_cache = order->kv_cache ? order->kv_cache : "",
		                      .port = free_port(settings, plan->spec.own_network),
		                      .tensor_parallel = order->tensor_parallel,
		                      .context = order->context,
		                      .parallel = order->parallel,
		                      .utilisation = least_utilisation(order) };
	struct buffer text = { 0 };

	if (plan->guarded && values.utilisation > 0)
		values.utilisation = guarded_utilisation(order);
	values.path = slot_text(payload, "path", order->model);
	for (int64_t i = 0; i < order->part_count; i++)
		values.memory_mib += order->parts[i].memory_mib;
	if (values.port == 0)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "no free port for the model from %lld to %lld",
		                 (long long)settings->port_first, (long long)settings->port_last);
	const char *health = build(order, &values, environment, &text);
	plan->health_path = arena_string(arena, slot_text(payload, "health_path", health));
	plan->port = plan->spec.server_port = values.port;
	plan->spec.proxy = settings->slot_proxy;
	plan->spec.any_path = order->runtime == RUNTIME_CUSTOM;
	environment_set_number(environment, "PORT", values.port);
	environment_set_number(environment, "GPU_SCHEDULER_PORT", values.port);
	environment_set(environment, "GPU_SCHEDULER_MODEL", order->model);

	char **arguments = arena_alloc(arena, 4 * sizeof(*arguments));
	arguments[0] = text.size > 0 ? arena_string(arena, "/bin/sh") : NULL;
	arguments[1] = arena_string(arena, "-c");
	arguments[2] = arena_string(arena, text.size > 0 ? text.data : "");
	arguments[3] = NULL;
	plan->spec.arguments = arguments;
	plan->spec.failure = "the model says no command to serve it with";
	buffer_free(&text);
	return true;
}
