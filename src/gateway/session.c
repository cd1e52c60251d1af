/* session.c - the gateway's side of its session with the scheduler */
#include "gateway/session.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "wire/loop_state.h"

enum {
	TICK_MS = 20,
	LOAD_MS = 100,  /* between reports of what changes all the time */
	BEAT_MS = 1000, /* between reports when nothing does: signs of life */
	USAGE_MS = 200,
	BOOTS_MAX = 64,
	ROWS_MAX = 20000, /* numbers in one message of usage */
	QUESTIONS_MAX = 10000,
};

/* A token that the scheduler was asked about. */
struct question {
	int64_t number;
	struct question *next;
	size_t size;
	char token[];
};

struct session {
	struct program *program;
	struct uplink *link;
	uv_timer_t tick;
	uv_prepare_t prepare;
	struct question *questions;
	int64_t question_count, last_question;
	uint64_t load_ms, usage_ms; /* when they were last sent */
	bool is_welcome, is_dirty;
	struct spool_range asked; /* of usage that is not acknowledged; to 0: none is */
	int handles;
};

static void session_send(struct session *session, const Gateway__Envelope *envelope)
{
	size_t size = gateway__envelope__get_packed_size(envelope);
	uint8_t *bytes = memory_alloc(size + 1);

	gateway__envelope__pack(envelope, bytes);
	uplink_send(session->link, (struct text){ (char *)bytes, size });
	free(bytes);
}

static void session_connected(void *context)
{
	struct session *session = context;
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Hello hello = GATEWAY__HELLO__INIT;
	int64_t boots[BOOTS_MAX];

	hello.name = (char *)session->program->settings.name;
	hello.boot = spool_boot(session->program->spool);
	hello.version = (char *)GPU_SCHEDULER_VERSION;
	hello.n_boots = (size_t)spool_boots(session->program->spool, boots, BOOTS_MAX);
	hello.boots = boots;
	hello.url = (char *)session->program->url;
	envelope.hello = &hello;
	session_send(session, &envelope);
}

static void forget_questions(struct session *session)
{
	while (session->questions) {
		struct question *question = session->questions;
		session->questions = question->next;
		free(question);
	}
	session->question_count = 0;
}

static void session_disconnected(void *context, const char *reason)
{
	struct session *session = context;

	(void)reason;
	session->is_welcome = false;
	session->asked.to = 0;
	forget_questions(session);
	passage_no_verdicts(session->program);
}

/* The scheduler may have counted what we do not know of, before the connection broke. */
static void take_welcome(struct session *session, const Gateway__Welcome *welcome)
{
	for (size_t i = 0; i < welcome->n_counted; i++)
		spool_counted(session->program->spool, welcome->counted[i]->boot,
		              welcome->counted[i]->to);
	session->is_welcome = true;
	session->is_dirty = true;
	session->asked.to = 0;
	log_at(LOG_INFO, "the scheduler has welcomed this gateway",
	       LOG_NUMBER("term", welcome->term));
}

static void take_verdict(struct session *session, const Gateway__Verdict *verdict)
{
	struct question **link = &session->questions, *question;

	while ((question = *link) != NULL && question->number != verdict->number)
		link = &question->next;
	if (!question)
		return;
	*link = question->next;
	session->question_count--;
	struct text token = { question->token, question->size };
	signin_verdict(&session->program->gateway->signin, token, verdict,
	               program_now_ms(session->program), clock_unix_ms());
	passage_verdict(session->program, token);
	free(question);
}

static void take_usage(struct session *session, const Gateway__UsageTaken *taken)
{
	spool_counted(session->program->spool, taken->boot, taken->to);
	if (session->asked.boot == taken->boot && session->asked.to <= taken->to)
		session->asked.to = 0;
}

static void session_received(void *context, struct text message)
{
	struct session *session = context;
	struct gateway *gateway = session->program->gateway;
	int64_t now_ms = program_now_ms(session->program);
	Gateway__Envelope *envelope =
	    gateway__envelope__unpack(NULL, message.size, (const uint8_t *)message.data);

	if (!envelope) {
		log_at(LOG_WARNING, "the scheduler sent what is not a gateway.Envelope");
		return;
	}
	if (envelope->welcome)
		take_welcome(session, envelope->welcome);
	if (envelope->routes) {
		gateway_routes(gateway, envelope->routes, now_ms);
		envelope->routes = NULL;
	}
	if (envelope->tokens) {
		signin_take(&gateway->signin, envelope->tokens, now_ms);
		envelope->tokens = NULL;
		session->is_dirty = true;
	}
	if (envelope->shares)
		gateway_shares(gateway, envelope->shares);
	if (envelope->served)
		gateway_served(gateway, envelope->served);
	if (envelope->usage_taken)
		take_usage(session, envelope->usage_taken);
	if (envelope->verdict)
		take_verdict(session, envelope->verdict);
	gateway__envelope__free_unpacked(envelope, NULL);
	gateway_serve(gateway, now_ms);
}

static void send_load(struct session *session)
{
	struct gateway *gateway = session->program->gateway;
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;

	envelope.load = gateway_load(gateway, program_now_ms(session->program));
	session_send(session, &envelope);
	gateway__load__free_unpacked(envelope.load, NULL);
	gateway->news = false;
	session->is_dirty = false;
	session->load_ms = uv_now(&session->program->loop->uv);
}

/* Rows of usage with the same key, added up. */
struct sums {
	Gateway__Usage usage;
	struct text_map by_key;
	size_t capacity;
};

static void add_row(void *context, const struct spool_row *spooled)
{
	struct sums *sums = context;
	struct buffer key = { 0 };

	buffer_print(&key, "%lld/%lld/%s/%s", (long long)spooled->tenant_id,
	             (long long)spooled->model_id, spooled->key, spooled->adapter);
	Gateway__Usage__Row *row = text_map_get(&sums->by_key, key.data);
	if (!row) {
		row = memory_alloc(sizeof(*row));
		gateway__usage__row__init(row);
		row->tenant_id = spooled->tenant_id;
		row->model_id = spooled->model_id;
		row->key = memory_text(spooled->key);
		row->adapter = memory_text(spooled->adapter);
		text_map_put(&sums->by_key, key.data, row);
		array_reserve(sums->usage.rows, sums->capacity, sums->usage.n_rows + 1);
		sums->usage.rows[sums->usage.n_rows++] = row;
	}
	row->requests++;
	row->prompt_tokens += spooled->prompt;
	row->cached_tokens += spooled->cached;
	row->completion_tokens += spooled->completion;
	row->errors += spooled->is_error;
	row->cut += spooled->is_cut;
	buffer_free(&key);
}

static void send_usage(struct session *session)
{
	struct spool *spool = session->program->spool;
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	struct sums sums = { .usage = GATEWAY__USAGE__INIT };
	struct spool_range range;

	if (session->asked.to > 0 || !spool_next(spool, &range))
		return;
	if (range.to - range.from >= ROWS_MAX)
		range.to = range.from + ROWS_MAX - 1;
	session->asked = range;
	spool_each(spool, &range, add_row, &sums);
	sums.usage.boot = range.boot;
	sums.usage.from = range.from;
	sums.usage.to = range.to;
	envelope.usage = &sums.usage;
	session_send(session, &envelope);
	session->usage_ms = uv_now(&session->program->loop->uv);
	for (size_t i = 0; i < sums.usage.n_rows; i++)
		protobuf_c_message_free_unpacked(&sums.usage.rows[i]->base, NULL);
	free(sums.usage.rows);
	text_map_free(&sums.by_key);
}

static void session_on_tick(uv_timer_t *timer)
{
	struct session *session = timer->data;
	const struct gateway *gateway = session->program->gateway;
	uint64_t now_ms = uv_now(&session->program->loop->uv);
	bool busy = gateway->waiting > 0 || gateway->in_flight > 0 || session->is_dirty;

	if (!session->is_welcome)
		return;
	if (gateway->news || now_ms >= session->load_ms + (busy ? LOAD_MS : BEAT_MS))
		send_load(session);
	if (now_ms >= session->usage_ms + USAGE_MS)
		send_usage(session);
}

static void before_wait(uv_prepare_t *prepare)
{
	struct session *session = prepare->data;

	uplink_flush(session->link);
}

void session_touch(struct session *session)
{
	/* The next round; several changes of one round go together. */
	if (session->is_welcome)
		uv_timer_start(&session->tick, session_on_tick, 0, TICK_MS);
}

bool session_ask(struct session *session, struct text token)
{
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Question asked = GATEWAY__QUESTION__INIT;

	if (!session->is_welcome || session->question_count >= QUESTIONS_MAX)
		return false;
	/* One who asked already is waited for. */
	for (struct question *at = session->questions; at; at = at->next)
		if (at->size == token.size && memcmp(at->token, token.data, token.size) == 0)
			return true;
	struct question *question = memory_alloc(sizeof(*question) + token.size + 1);
	question->number = ++session->last_question;
	question->size = token.size;
	memcpy(question->token, token.data, token.size);
	question->token[token.size] = '\0';
	question->next = session->questions;
	session->questions = question;
	session->question_count++;
	asked.number = question->number;
	asked.token = question->token;
	envelope.question = &asked;
	session_send(session, &envelope);
	return true;
}

struct session *session_new(struct program *program, const struct uplink_settings *link,
                            struct error *error)
{
	struct session *session = NEW(struct session);
	struct uplink_settings settings = *link;
	uv_loop_t *loop = &program->loop->uv;

	session->program = program;
	settings.loop = loop;
	settings.path = "/gateway.GatewayService/Connect";
	settings.user_agent = "gpu-gateway/" GPU_SCHEDULER_VERSION;
	settings.connected = session_connected;
	settings.disconnected = session_disconnected;
	settings.received = session_received;
	settings.context = session;
	session->link = uplink_new(&settings, error);
	if (!session->link) {
		free(session);
		return NULL;
	}
	uv_timer_init(loop, &session->tick);
	uv_prepare_init(loop, &session->prepare);
	session->tick.data = session->prepare.data = session;
	session->handles = 2;
	uv_timer_start(&session->tick, session_on_tick, TICK_MS, TICK_MS);
	uv_prepare_start(&session->prepare, before_wait);
	return session;
}

static void handle_closed(uv_handle_t *handle)
{
	struct session *session = handle->data;

	if (--session->handles == 0)
		free(session);
}

void session_close(struct session *session)
{
	forget_questions(session);
	uplink_free(session->link);
	uv_close((uv_handle_t *)&session->tick, handle_closed);
	uv_close((uv_handle_t *)&session->prepare, handle_closed);
}
