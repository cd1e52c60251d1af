/* envelope.c - what goes over the connection: agent.Envelope of proto/agent.proto */
#include "agent/uplink/envelope.h"

#include <agent.pb-c.h>

static ProtobufCBinaryData bytes_of(struct text text)
{
	/* protobuf-c only reads it, and has no const of its own. */
	return (ProtobufCBinaryData){ .len = text.size, .data = (uint8_t *)text.data };
}

/* protobuf-c leaves out this empty string, and no other. */
static char *string_of(struct text text, struct arena *arena)
{
	if (text.size == 0)
		return (char *)protobuf_c_empty_string;
	char *copy = arena_alloc(arena, text.size + 1);
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

static void append_message(struct buffer *buffer, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	if (size == 0)
		return;
	array_reserve(buffer->data, buffer->capacity, buffer->size + size);
	protobuf_c_message_pack(message, (uint8_t *)buffer->data + buffer->size);
	buffer->size += size;
}

static size_t list_size(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

static Agent__SessionOpen session_message(const struct session_open *open, struct arena *arena)
{
	Agent__SessionOpen message = AGENT__SESSION_OPEN__INIT;

	message.channel = open->channel;
	message.reservation_id = open->reservation_id;
	message.session_id = string_of(open->session_id, arena);
	message.kind = (int32_t)open->kind;
	message.n_command = list_size(open->command);
	message.command = open->command;
	message.n_environment = list_size(open->environment);
	message.environment = open->environment;
	message.terminal = open->terminal;
	message.columns = (int32_t)open->columns;
	message.rows = (int32_t)open->rows;
	message.port = (int32_t)open->port;
	message.offset = open->offset;
	message.idle_ms = open->idle_ms;
	return message;
}

static void leases_message(Agent__LeaseKeys *message, const struct told_leases *leases,
                           struct arena *arena)
{
	Agent__LeaseKey *keys = arena_alloc(arena, (leases->count + 1) * sizeof(*keys));

	message->all = leases->all;
	message->first_id = leases->first_id;
	message->n_keys = leases->count;
	message->keys = arena_alloc(arena, (leases->count + 1) * sizeof(*message->keys));
	for (size_t i = 0; i < leases->count; i++) {
		const struct told_lease *lease = &leases->at[i];
		agent__lease_key__init(&keys[i]);
		keys[i].reservation_id = lease->reservation_id;
		keys[i].lease_id = lease->lease_id;
		keys[i].valid_ms = lease->valid_ms;
		keys[i].key = string_of(lease->key, arena);
		message->keys[i] = &keys[i];
	}
}

void envelope_encode(struct buffer *buffer, const struct envelope *envelope)
{
	Agent__Envelope message = AGENT__ENVELOPE__INIT;
	Agent__OutputRequest request = AGENT__OUTPUT_REQUEST__INIT;
	Agent__OutputChunk chunk = AGENT__OUTPUT_CHUNK__INIT;
	Agent__OutputTaken taken = AGENT__OUTPUT_TAKEN__INIT;
	Agent__OutputStop stop = AGENT__OUTPUT_STOP__INIT;
	Agent__AgentSettings settings = AGENT__AGENT_SETTINGS__INIT;
	Agent__SlotKey slot_key = AGENT__SLOT_KEY__INIT;
	Agent__LeaseKeys lease_keys = AGENT__LEASE_KEYS__INIT;
	Agent__LeaseKeyTaken lease_taken = AGENT__LEASE_KEY_TAKEN__INIT;
	Agent__InputChunk input = AGENT__INPUT_CHUNK__INIT;
	Agent__InputTaken input_taken = AGENT__INPUT_TAKEN__INIT;
	Agent__InputStop input_stop = AGENT__INPUT_STOP__INIT;
	Agent__SessionOpen session = AGENT__SESSION_OPEN__INIT;
	Agent__SessionData session_data = AGENT__SESSION_DATA__INIT;
	Agent__SessionClose session_close = AGENT__SESSION_CLOSE__INIT;
	struct arena arena = { 0 };

	switch (envelope->kind) {
	case ENVELOPE_MESSAGE:
		message.message = bytes_of(envelope->message);
		break;
	case ENVELOPE_OUTPUT_REQUEST:
		request.request_id = envelope->request.request_id;
		request.reservation_id = envelope->request.reservation_id;
		request.job_id = envelope->request.job_id;
		request.task = envelope->request.task;
		request.follow = envelope->request.follow;
		request.offset = envelope->request.offset;
		request.errors = envelope->request.errors;
		request.window = envelope->request.window;
		message.output_request = &request;
		break;
	case ENVELOPE_OUTPUT_CHUNK:
		chunk.request_id = envelope->chunk.request_id;
		chunk.offset = envelope->chunk.offset;
		chunk.data = bytes_of(envelope->chunk.data);
		chunk.end = envelope->chunk.end;
		chunk.error = string_of(envelope->chunk.error, &arena);
		message.output_chunk = &chunk;
		break;
	case ENVELOPE_OUTPUT_TAKEN:
		taken.request_id = envelope->request_id;
		taken.offset = envelope->taken;
		message.output_taken = &taken;
		break;
	case ENVELOPE_OUTPUT_STOP:
		stop.request_id = envelope->request_id;
		message.output_stop = &stop;
		break;
	case ENVELOPE_SETTINGS:
		settings.heartbeat_interval_ms = envelope->settings.heartbeat_ms;
		settings.metrics_interval_ms = envelope->settings.metrics_ms;
		settings.container_runtime =
		    string_of(envelope->settings.container_runtime, &arena);
		settings.sign_in = envelope->settings.sign_in;
		message.settings = &settings;
		break;
	case ENVELOPE_SLOT_KEY:
		slot_key.reservation_id = envelope->reservation_id;
		slot_key.key = string_of(envelope->key, &arena);
		slot_key.lease_keys = envelope->has_lease_keys;
		slot_key.certificate_sha256 = string_of(envelope->certificate, &arena);
		slot_key.tls_only = envelope->tls_only;
		message.slot_key = &slot_key;
		break;
	case ENVELOPE_LEASE_KEYS:
		leases_message(&lease_keys, &envelope->leases, &arena);
		message.lease_keys = &lease_keys;
		break;
	case ENVELOPE_LEASE_KEY_TAKEN:
		lease_taken.lease_id = envelope->request_id;
		lease_taken.error = string_of(envelope->error, &arena);
		message.lease_key_taken = &lease_taken;
		break;
	case ENVELOPE_INPUT_CHUNK:
		input.request_id = envelope->input.request_id;
		input.reservation_id = envelope->input.reservation_id;
		input.offset = envelope->input.offset;
		input.data = bytes_of(envelope->input.data);
		input.end = envelope->input.end;
		message.input_chunk = &input;
		break;
	case ENVELOPE_INPUT_TAKEN:
		input_taken.request_id = envelope->input_taken.request_id;
		input_taken.offset = envelope->input_taken.offset;
		input_taken.closed = envelope->input_taken.closed;
		input_taken.error = string_of(envelope->input_taken.error, &arena);
		message.input_taken = &input_taken;
		break;
	case ENVELOPE_INPUT_STOP:
		input_stop.request_id = envelope->request_id;
		message.input_stop = &input_stop;
		break;
	case ENVELOPE_SESSION_OPEN:
		session = session_message(&envelope->session, &arena);
		message.session_open = &session;
		break;
	case ENVELOPE_SESSION_DATA:
		session_data.channel = envelope->request_id;
		session_data.frame = bytes_of(envelope->session_frame);
		message.session_data = &session_data;
		break;
	case ENVELOPE_SESSION_CLOSE:
		session_close.channel = envelope->request_id;
		session_close.error = string_of(envelope->error, &arena);
		session_close.code = (int32_t)envelope->code;
		message.session_close = &session_close;
		break;
	case ENVELOPE_EMPTY:
		break;
	}
	append_message(buffer, &message.base);
	arena_free(&arena);
}

static void *arena_give(void *context, size_t size)
{
	return arena_alloc(context, size > 0 ? size : 1);
}

static void arena_keep(void *context, void *memory)
{
	(void)context;
	(void)memory;
}

static struct text text_from_bytes(ProtobufCBinaryData bytes)
{
	return (struct text){ (const char *)bytes.data, bytes.len };
}

static struct output_request request_of(const Agent__OutputRequest *request)
{
	return (struct output_request){ .request_id = request->request_id,
		                        .reservation_id = request->reservation_id,
		                        .job_id = request->job_id,
		                        .task = request->task,
		                        .follow = request->follow,
		                        .errors = request->errors,
		                        .offset = request->offset,
		                        .window = request->window };
}

static struct output_chunk chunk_of(const Agent__OutputChunk *chunk)
{
	return (struct output_chunk){ .request_id = chunk->request_id,
		                      .offset = chunk->offset,
		                      .data = text_from_bytes(chunk->data),
		                      .end = chunk->end,
		                      .error = text_of(chunk->error) };
}

static struct told_settings settings_of(const Agent__AgentSettings *settings)
{
	return (struct told_settings){ .heartbeat_ms = settings->heartbeat_interval_ms,
		                       .metrics_ms = settings->metrics_interval_ms,
		                       .container_runtime = text_of(settings->container_runtime),
		                       .sign_in = settings->sign_in };
}

static struct input_chunk input_of(const Agent__InputChunk *chunk)
{
	return (struct input_chunk){ .request_id = chunk->request_id,
		                     .reservation_id = chunk->reservation_id,
		                     .offset = chunk->offset,
		                     .data = text_from_bytes(chunk->data),
		                     .end = chunk->end };
}

static struct input_taken input_taken_of(const Agent__InputTaken *taken)
{
	return (struct input_taken){ .request_id = taken->request_id,
		                     .offset = taken->offset,
		                     .closed = taken->closed,
		                     .error = text_of(taken->error) };
}

static char **list_of(char **list, size_t count, struct arena *arena)
{
	char **copy = arena_alloc(arena, (count + 1) * sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		copy[i] = list[i];
	copy[count] = NULL;
	return copy;
}

static struct session_open session_of(const Agent__SessionOpen *open, struct arena *arena)
{
	return (struct session_open){
		.channel = open->channel,
		.reservation_id = open->reservation_id,
		.session_id = text_of(open->session_id),
		.kind = open->kind,
		.command = list_of(open->command, open->n_command, arena),
		.environment = list_of(open->environment, open->n_environment, arena),
		.terminal = open->terminal,
		.columns = open->columns,
		.rows = open->rows,
		.port = open->port,
		.offset = open->offset,
		.idle_ms = open->idle_ms,
	};
}

/* Takes one part; false if there was another before. */
static bool envelope_take_part(struct envelope *envelope, enum envelope_kind kind)
{
	bool is_first = envelope->kind == ENVELOPE_EMPTY;

	envelope->kind = kind;
	return is_first;
}

/* The parts about standard input; `good` is how the others were. */
static bool envelope_take_input(struct envelope *envelope, const Agent__Envelope *message,
                                bool good)
{
	if (message->input_chunk) {
		good = good && envelope_take_part(envelope, ENVELOPE_INPUT_CHUNK);
		envelope->input = input_of(message->input_chunk);
	}
	if (message->input_taken) {
		good = good && envelope_take_part(envelope, ENVELOPE_INPUT_TAKEN);
		envelope->input_taken = input_taken_of(message->input_taken);
	}
	if (message->input_stop) {
		good = good && envelope_take_part(envelope, ENVELOPE_INPUT_STOP);
		envelope->request_id = message->input_stop->request_id;
	}
	return good;
}

static bool envelope_take_session(struct envelope *envelope, const Agent__Envelope *message,
                                  struct arena *arena, bool good)
{
	if (message->session_open) {
		good = good && envelope_take_part(envelope, ENVELOPE_SESSION_OPEN);
		envelope->session = session_of(message->session_open, arena);
	}
	if (message->session_data) {
		good = good && envelope_take_part(envelope, ENVELOPE_SESSION_DATA);
		envelope->request_id = message->session_data->channel;
		envelope->session_frame = text_from_bytes(message->session_data->frame);
	}
	if (message->session_close) {
		good = good && envelope_take_part(envelope, ENVELOPE_SESSION_CLOSE);
		envelope->request_id = message->session_close->channel;
		envelope->error = text_of(message->session_close->error);
		envelope->code = message->session_close->code;
	}
	return good;
}

static struct told_leases leases_of(const Agent__LeaseKeys *message, struct arena *arena)
{
	struct told_leases leases = { .all = message->all,
		                      .first_id = message->first_id,
		                      .count = message->n_keys };

	leases.at = arena_alloc(arena, (leases.count + 1) * sizeof(*leases.at));
	for (size_t i = 0; i < leases.count; i++)
		leases.at[i] =
		    (struct told_lease){ .reservation_id = message->keys[i]->reservation_id,
			                 .lease_id = message->keys[i]->lease_id,
			                 .valid_ms = message->keys[i]->valid_ms,
			                 .key = text_of(message->keys[i]->key) };
	return leases;
}

/* The parts about keys of slots and of leases on them. */
static bool envelope_take_keys(struct envelope *envelope, const Agent__Envelope *message,
                               struct arena *arena, bool good)
{
	if (message->slot_key) {
		good = good && envelope_take_part(envelope, ENVELOPE_SLOT_KEY);
		envelope->reservation_id = message->slot_key->reservation_id;
		envelope->key = text_of(message->slot_key->key);
		envelope->has_lease_keys = message->slot_key->lease_keys;
		envelope->certificate = text_of(message->slot_key->certificate_sha256);
		envelope->tls_only = message->slot_key->tls_only;
	}
	if (message->lease_keys) {
		good = good && envelope_take_part(envelope, ENVELOPE_LEASE_KEYS);
		envelope->leases = leases_of(message->lease_keys, arena);
	}
	if (message->lease_key_taken) {
		good = good && envelope_take_part(envelope, ENVELOPE_LEASE_KEY_TAKEN);
		envelope->request_id = message->lease_key_taken->lease_id;
		envelope->error = text_of(message->lease_key_taken->error);
	}
	return good;
}

bool envelope_decode(struct text data, struct arena *arena, struct envelope *envelope)
{
	ProtobufCAllocator allocator = { arena_give, arena_keep, arena };
	Agent__Envelope *message =
	    agent__envelope__unpack(&allocator, data.size, (const uint8_t *)data.data);
	bool good = message != NULL;

	*envelope = (struct envelope){ 0 };
	if (!message)
		return false;
	if (message->message.len > 0) {
		good = good && envelope_take_part(envelope, ENVELOPE_MESSAGE);
		envelope->message = text_from_bytes(message->message);
	}
	if (message->output_request) {
		good = good && envelope_take_part(envelope, ENVELOPE_OUTPUT_REQUEST);
		envelope->request = request_of(message->output_request);
	}
	if (message->output_chunk) {
		good = good && envelope_take_part(envelope, ENVELOPE_OUTPUT_CHUNK);
		envelope->chunk = chunk_of(message->output_chunk);
	}
	if (message->output_taken) {
		good = good && envelope_take_part(envelope, ENVELOPE_OUTPUT_TAKEN);
		envelope->request_id = message->output_taken->request_id;
		envelope->taken = message->output_taken->offset;
	}
	if (message->output_stop) {
		good = good && envelope_take_part(envelope, ENVELOPE_OUTPUT_STOP);
		envelope->request_id = message->output_stop->request_id;
	}
	if (message->settings) {
		good = good && envelope_take_part(envelope, ENVELOPE_SETTINGS);
		envelope->settings = settings_of(message->settings);
	}
	good = envelope_take_keys(envelope, message, arena, good);
	good = envelope_take_session(envelope, message, arena, good);
	return envelope_take_input(envelope, message, good);
}
