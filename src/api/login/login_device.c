/* login_device.c - sign-in with a device code (RFC 8628): for programs without a browser */
#include <stdio.h>
#include <stdlib.h>

#include "api/login/login_local.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/log.h"
#include "base/memory.h"
#include "json/json_reader.h"

enum { CODE_MAX = 4096 };

static void login_device_fail(struct request *request, const struct error *error)
{
	log_at(LOG_WARNING, "single sign-on failed", LOG_TEXT("reason", error->text),
	       LOG_TEXT("request_id", request->request_id));
	request_fail(request, error);
}

static void on_device(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct provider_task *task = request->state;
	const struct device_answer *device = &task->device;

	if (task->outcome != PROVIDER_ANSWERED) {
		login_device_fail(request, &task->error);
	} else {
		struct json_writer *json = request_object(request);
		json_put_string(json, "device_code", device->device_code);
		json_put_string(json, "user_code", device->user_code);
		json_put_string(json, "verification_uri", device->url);
		json_put_string(json, "verification_uri_complete", device->complete_url);
		json_put_integer(json, "expires_in", device->expires_s);
		json_put_integer(json, "interval", device->interval_s);
		json_close(json);
		request_answer_secret(request, 200);
	}
	provider_task_free(task);
}

void login_device(struct request *request)
{
	struct login *login = login_of(request);

	if (!login)
		return;
	struct provider_task *task = NEW(struct provider_task);
	task->question = PROVIDER_DEVICE;
	login_ask(login, request, task, on_device);
}

static void answer_waiting(struct request *request, bool slower)
{
	struct json_writer *json = request_object(request);

	json_put_string(json, "status", slower ? "slow_down" : "pending");
	json_close(json);
	request_answer_json(request, 202);
}

static void on_begun(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct login_session *session = request->state;
	const struct identity *identity = &session->token.identity;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	login_session_begin(request->service->login, session);
	struct json_writer *json = request_object(request);
	json_put_string(json, "status", "signed_in");
	json_put_string(json, "token", session->text);
	json_put_string(json, "id", session->token.id);
	json_put_string(json, "user", session->token.user);
	json_put_string(json, "role", gate_role_name(identity->role));
	json_put_id(json, "tenant_id", ID_TENANT, identity->tenant_id);
	json_put_time(json, "expires_at", session->token.expires_ms);
	json_close(json);
	request_answer_secret(request, 200);
}

static void on_polled(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct provider_task *task = request->state;
	struct error error = task->error;

	if (task->outcome == PROVIDER_PENDING || task->outcome == PROVIDER_SLOW_DOWN)
		answer_waiting(request, task->outcome == PROVIDER_SLOW_DOWN);
	else if (task->outcome != PROVIDER_ANSWERED ||
	         !login_session_keep(request->service->login, request, &task->token, on_begun,
	                             &error))
		login_device_fail(request, &error);
	provider_task_free(task);
}

void login_device_token(struct request *request)
{
	static const char *const known[] = { "device_code", NULL };
	struct login *login = login_of(request);
	struct error error = { 0 };

	if (!login)
		return;
	json_t *document = json_read(request->exchange->body, NULL, &error);
	struct json_reader reader = json_reader_of(document, "", &error);
	struct text code = json_get_text(&reader, "device_code", CODE_MAX);
	if (document && !reader.failed && (code.size == 0 || text_has_control(code)))
		json_fail(&reader, "device_code", "is missing, or not a code");
	if (!document || !json_reader_end(&reader, known)) {
		request_fail(request, &error);
		json_decref(document);
		return;
	}
	struct provider_task *task = NEW(struct provider_task);
	task->question = PROVIDER_POLL;
	task->code = memory_zero(1, code.size + 1);
	memcpy(task->code, code.data, code.size);
	json_decref(document);
	login_ask(login, request, task, on_polled);
}
