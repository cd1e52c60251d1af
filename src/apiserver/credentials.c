/* credentials.c - who we are to the API server, read again while the program runs */
#include "apiserver/credentials.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "kube/kubeconfig.h"
#include "json/member.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define AGAIN_MS 60000
#define REFUSED_AGAIN_MS 1000
#define EXEC_MS 60000
#define EXEC_AHEAD_MS 60000 /* before its credential expires */
enum { EXEC_WORDS_MAX = 64 };

struct credentials {
	struct kubeconfig config;
	uv_loop_t *loop;
	char *ca_pem, *cert_pem, *key_pem, *token; /* as they were last read */
	int64_t read_ms, due_ms;
	bool changed, freed;
	/* The command that prints them. */
	uv_process_t process;
	uv_pipe_t output;
	struct buffer printed;
	bool runs, there;
	int handles;
	int64_t began_ms;
};

static bool read_file(const char *path, struct buffer *text, struct error *error)
{
	FILE *file = fopen(path, "re");
	char data[4096];
	size_t size;

	if (!file)
		return error_set(error, ERROR_INVALID, "%.150s: %s", path, strerror(errno));
	while ((size = fread(data, 1, sizeof(data), file)) > 0 && text->size < FILE_BYTES_MAX)
		buffer_bytes(text, data, size);
	fclose(file);
	buffer_text(text, "");
	return true;
}

/* The text of the file, where one is named, else the text that was given. `*to` is replaced. */
static bool credentials_take_text(char **to, const char *given, const char *path, bool *changed,
                                  struct error *error)
{
	struct buffer text = { 0 };

	if (given || !path)
		buffer_text(&text, given ? given : "");
	else if (!read_file(path, &text, error))
		return false;
	INVARIANT(text.data);
	if (!*to || strcmp(*to, text.data) != 0) {
		*changed = *to != NULL;
		if (*to)
			explicit_bzero(*to, strlen(*to));
		free(*to);
		*to = text.data;
	} else {
		explicit_bzero(text.data, text.size);
		buffer_free(&text);
	}
	return true;
}

static bool read_all(struct credentials *credentials, struct error *error)
{
	const struct kubeconfig *config = &credentials->config;
	bool changed = false, token_changed = false;
	bool right = credentials_take_text(&credentials->ca_pem, config->ca_pem, config->ca_file,
	                                   &changed, error);

	if (right && !config->exec)
		right = credentials_take_text(&credentials->cert_pem, config->cert_pem,
		                              config->cert_file, &changed, error) &&
		        credentials_take_text(&credentials->key_pem, config->key_pem,
		                              config->key_file, &changed, error) &&
		        credentials_take_text(&credentials->token, config->token,
		                              config->token_file, &token_changed, error);
	if (right && credentials->token)
		credentials->token[strcspn(credentials->token, " \t\r\n")] = '\0';
	credentials->changed |= changed;
	return right;
}

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct buffer text = { 0 };

	buffer_print(&text, "%.*s", slash ? (int)(slash + 1 - path) : 0, path);
	return text.data;
}

static bool read_config(struct credentials *credentials, const char *path, const char *context,
                        struct error *error)
{
	struct buffer text = { 0 };
	struct error reason;

	if (!*path)
		return kubeconfig_in_cluster(
		    getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
		    KUBECONFIG_ACCOUNT_DIRECTORY, &credentials->config, error);
	if (!read_file(path, &text, error))
		return false;
	char *directory = directory_of(path);
	bool right = kubeconfig_read(text.data, text.size, context, directory, &credentials->config,
	                             &reason);
	free(directory);
	explicit_bzero(text.data, text.size);
	buffer_free(&text);
	return right || error_set(error, reason.code, "%.100s: %s", path, reason.text);
}

static void credentials_free_texts(struct credentials *credentials)
{
	kubeconfig_free(&credentials->config);
	free(credentials->ca_pem);
	free(credentials->cert_pem);
	free(credentials->key_pem);
	if (credentials->token)
		explicit_bzero(credentials->token, strlen(credentials->token));
	free(credentials->token);
	buffer_free(&credentials->printed);
	free(credentials);
}

struct credentials *credentials_new(uv_loop_t *loop, const char *kubeconfig, const char *context,
                                    struct error *error)
{
	struct credentials *credentials = NEW(struct credentials);

	credentials->loop = loop;
	if (!read_config(credentials, kubeconfig, context, error) ||
	    !read_all(credentials, error)) {
		credentials_free_texts(credentials);
		return NULL;
	}
	credentials->there = credentials->config.exec == NULL;
	credentials->due_ms = clock_unix_ms() + (credentials->there ? AGAIN_MS : 0);
	return credentials;
}

static void exec_closed(uv_handle_t *handle)
{
	struct credentials *credentials = handle->data;

	if (--credentials->handles > 0)
		return;
	credentials->runs = false;
	if (credentials->freed)
		credentials_free_texts(credentials);
}

void credentials_free(struct credentials *credentials)
{
	if (!credentials)
		return;
	credentials->freed = true;
	if (!credentials->runs) {
		credentials_free_texts(credentials);
		return;
	}
	uv_process_kill(&credentials->process, SIGKILL);
}

static void take_printed(struct credentials *credentials)
{
	struct exec_credential credential;
	struct error error;

	if (!exec_credential_read(credentials->printed.data, credentials->printed.size, &credential,
	                          &error)) {
		log_at(LOG_ERROR, "no credentials for the API server",
		       LOG_TEXT("reason", error.text));
		credentials->due_ms = clock_unix_ms() + AGAIN_MS;
		return;
	}
	bool changed = false, token_changed = false;
	credentials_take_text(&credentials->token, credential.token, NULL, &token_changed, &error);
	credentials_take_text(&credentials->cert_pem, credential.cert_pem, NULL, &changed, &error);
	credentials_take_text(&credentials->key_pem, credential.key_pem, NULL, &changed, &error);
	credentials->changed |= changed || !credentials->there;
	credentials->there = true;
	int64_t now_ms = clock_unix_ms();
	credentials->due_ms = credential.expires_ms
	                          ? max64(credential.expires_ms - EXEC_AHEAD_MS, now_ms + 5000)
	                          : INT64_MAX;
	exec_credential_free(&credential);
}

static void exec_ended(uv_process_t *process, int64_t status, int signal)
{
	struct credentials *credentials = process->data;

	if (!credentials->freed && (status != 0 || signal != 0)) {
		log_at(LOG_ERROR, "the exec command of the kubeconfig failed",
		       LOG_TEXT("command", member_text(credentials->config.exec, "command")),
		       LOG_NUMBER("status", status), LOG_NUMBER("signal", signal));
		credentials->due_ms = clock_unix_ms() + AGAIN_MS;
		buffer_clear(&credentials->printed);
	}
	uv_close((uv_handle_t *)process, exec_closed);
}

static void exec_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	static char data[16384];

	(void)handle, (void)suggested;
	*buffer = uv_buf_init(data, sizeof(data));
}

static void exec_printed(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct credentials *credentials = stream->data;

	if (size > 0 && credentials->printed.size < FILE_BYTES_MAX)
		buffer_bytes(&credentials->printed, buffer->base, (size_t)size);
	if (size >= 0)
		return;
	buffer_text(&credentials->printed, "");
	if (!credentials->freed && credentials->printed.size > 0)
		take_printed(credentials);
	explicit_bzero(credentials->printed.data, credentials->printed.capacity);
	buffer_clear(&credentials->printed);
	uv_close((uv_handle_t *)stream, exec_closed);
}

/* The environment of the program, and what the kubeconfig adds. */
static char **exec_environment(const json_t *exec)
{
	extern char **environ;
	const json_t *pair;
	size_t count = 0, at = 0, i;

	while (environ[count])
		count++;
	size_t more = json_array_size(json_object_get(exec, "env"));
	char **all = memory_zero(count + more + 2, sizeof(*all));
	for (; at < count; at++)
		all[at] = memory_text(environ[at]);
	json_array_foreach(json_object_get(exec, "env"), i, pair)
	{
		struct buffer text = { 0 };
		buffer_print(&text, "%s=%s", member_text(pair, "name"), member_text(pair, "value"));
		all[at++] = text.data;
	}
	struct buffer info = { 0 };
	buffer_print(&info,
	             "KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\","
	             "\"spec\":{\"interactive\":false}}",
	             member_text(exec, "apiVersion"));
	all[at] = info.data;
	return all;
}

static void run_exec(struct credentials *credentials)
{
	const json_t *exec = credentials->config.exec, *word;
	char *words[EXEC_WORDS_MAX + 2] = { (char *)member_text(exec, "command") };
	size_t i;

	json_array_foreach(json_object_get(exec, "args"), i,
	                   word) if (i < EXEC_WORDS_MAX && json_is_string(word)) words[i + 1] =
	    (char *)json_string_value(word);
	char **environment = exec_environment(exec);
	uv_pipe_init(credentials->loop, &credentials->output, 0);
	credentials->output.data = credentials->process.data = credentials;
	uv_stdio_container_t files[3] = { { .flags = UV_IGNORE },
		                          { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		                            .data.stream = (uv_stream_t *)&credentials->output },
		                          { .flags = UV_INHERIT_FD, .data.fd = 2 } };
	const uv_process_options_t options = { .exit_cb = exec_ended,
		                               .file = words[0],
		                               .args = words,
		                               .env = environment,
		                               .stdio = files,
		                               .stdio_count = 3 };
	credentials->runs = true;
	credentials->handles = 2;
	credentials->began_ms = clock_unix_ms();
	credentials->due_ms = INT64_MAX;
	int status = uv_spawn(credentials->loop, &credentials->process, &options);
	if (status < 0) {
		log_at(LOG_ERROR, "the exec command of the kubeconfig cannot be run",
		       LOG_TEXT("command", words[0]), LOG_TEXT("reason", uv_strerror(status)));
		credentials->due_ms = clock_unix_ms() + AGAIN_MS;
		uv_close((uv_handle_t *)&credentials->output, exec_closed);
		uv_close((uv_handle_t *)&credentials->process, exec_closed);
	} else {
		uv_read_start((uv_stream_t *)&credentials->output, exec_allocate, exec_printed);
	}
	for (char **at = environment; *at; at++)
		free(*at);
	free(environment);
}

bool credentials_are_there(const struct credentials *credentials)
{
	return credentials->there;
}

static const char *or_null(const char *text)
{
	return text && *text ? text : NULL;
}

static void authorize(void *context, struct buffer *value)
{
	const struct credentials *credentials = context;

	if (credentials->token && *credentials->token)
		buffer_print(value, "Bearer %s", credentials->token);
}

void credentials_fill(const struct credentials *credentials, struct client_settings *settings)
{
	settings->server = credentials->config.server;
	settings->server_name = credentials->config.server_name;
	settings->ca_pem = or_null(credentials->ca_pem);
	settings->trust_all = credentials->config.trust_all;
	settings->cert_pem = or_null(credentials->cert_pem);
	settings->key_pem = or_null(credentials->key_pem);
	settings->authorize = authorize;
	settings->context = (void *)credentials;
}

bool credentials_time(struct credentials *credentials, int64_t now_ms)
{
	struct error error;
	bool changed;

	if (credentials->runs && now_ms - credentials->began_ms > EXEC_MS)
		uv_process_kill(&credentials->process, SIGKILL);
	if (now_ms >= credentials->due_ms && credentials->config.exec && !credentials->runs) {
		run_exec(credentials);
	} else if (now_ms >= credentials->due_ms && !credentials->config.exec) {
		credentials->due_ms = now_ms + AGAIN_MS;
		credentials->read_ms = now_ms;
		if (!read_all(credentials, &error))
			log_at(LOG_ERROR, "the credentials for the API server cannot be read",
			       LOG_TEXT("reason", error.text));
	}
	changed = credentials->changed;
	credentials->changed = false;
	return changed;
}

void credentials_were_refused(struct credentials *credentials)
{
	int64_t now_ms = clock_unix_ms();

	if (now_ms - max64(credentials->read_ms, credentials->began_ms) >= REFUSED_AGAIN_MS)
		credentials->due_ms = min64(credentials->due_ms, now_ms);
}
