/* grpc_reflection.c - grpc.reflection: what can be called, told to tools
 *
 * v1 and v1alpha differ in nothing but their names, so one reading serves both. */
#include <stdlib.h>

#include "api/grpc/grpc_local.h"
#include "base/map.h"
#include "reflection_v1.pb-c.h"

extern const unsigned char proto_descriptors[];
extern const size_t proto_descriptors_size;

enum { FILES_MAX = 32, IMPORTS_MAX = 8 };
enum { TYPE_VARINT = 0, TYPE_FIXED64 = 1, TYPE_BYTES = 2, TYPE_FIXED32 = 5 };

/* Field numbers of descriptor.proto. */
enum { SET_FILE = 1 };
enum {
	FILE_NAME = 1,
	FILE_PACKAGE = 2,
	FILE_IMPORT = 3,
	FILE_MESSAGE = 4,
	FILE_ENUM = 5,
	FILE_SERVICE = 6
};
enum { NAME = 1, SERVICE_METHOD = 2, MESSAGE_NESTED = 3, MESSAGE_ENUM = 4 };

struct file {
	struct text bytes;
	char *name, *package;
	char *imports[IMPORTS_MAX];
	int import_count;
};

struct reflection {
	struct file files[FILES_MAX];
	int count;
	struct text_map by_symbol; /* full names to files */
	struct arena arena;
};

static uint64_t take_varint(struct text *bytes)
{
	uint64_t value = 0;

	for (int shift = 0;; shift += 7) {
		INVARIANT(bytes->size > 0 && shift < 64);
		uint8_t byte = (uint8_t)*bytes->data;
		*bytes = text_from(*bytes, 1);
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
}

/* The next field of our own descriptors; `value` is empty for numbers. False at the end. */
static bool next_field(struct text *bytes, uint64_t *field, struct text *value)
{
	if (bytes->size == 0)
		return false;
	uint64_t tag = take_varint(bytes);
	*field = tag >> 3;
	*value = (struct text){ 0 };
	if ((tag & 7) == TYPE_VARINT) {
		take_varint(bytes);
		return true;
	}
	size_t size = (tag & 7) == TYPE_BYTES     ? (size_t)take_varint(bytes)
	              : (tag & 7) == TYPE_FIXED64 ? 8
	                                          : 4;
	INVARIANT(size <= bytes->size);
	*value = (struct text){ bytes->data, size };
	*bytes = text_from(*bytes, size);
	return true;
}

static char *own(struct reflection *reflection, struct text text)
{
	char *copy = arena_alloc(&reflection->arena, text.size + 1);

	if (text.size > 0)
		memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

static char *grpc_reflection_join(struct reflection *reflection, const char *scope,
                                  struct text name)
{
	size_t size = strlen(scope);
	char *full = arena_alloc(&reflection->arena, size + name.size + 2);

	memcpy(full, scope, size);
	full[size] = '.';
	if (name.size > 0)
		memcpy(full + size + 1, name.data, name.size);
	full[size + 1 + name.size] = '\0';
	return size > 0 ? full : full + 1;
}

static struct text name_in(struct text bytes)
{
	struct text value;
	uint64_t field;

	while (next_field(&bytes, &field, &value))
		if (field == NAME)
			return value;
	return TEXT("");
}

/* A message with what is in it, or a service with its methods. */
static void add_symbols(struct reflection *reflection, struct file *file, const char *scope,
                        struct text bytes, bool is_service)
{
	char *full = grpc_reflection_join(reflection, scope, name_in(bytes));
	struct text value;
	uint64_t field;

	text_map_put(&reflection->by_symbol, full, file);
	while (next_field(&bytes, &field, &value)) {
		if (is_service ? field == SERVICE_METHOD : field == MESSAGE_ENUM)
			text_map_put(&reflection->by_symbol,
			             grpc_reflection_join(reflection, full, name_in(value)), file);
		else if (!is_service && field == MESSAGE_NESTED)
			add_symbols(reflection, file, full, value, false);
	}
}

static void add_file(struct reflection *reflection, struct text bytes)
{
	INVARIANT(reflection->count < FILES_MAX);
	struct file *file = &reflection->files[reflection->count++];
	struct text rest = bytes, value;
	uint64_t field;

	*file = (struct file){ .bytes = bytes, .name = "", .package = "" };
	while (next_field(&rest, &field, &value)) {
		if (field == FILE_NAME)
			file->name = own(reflection, value);
		else if (field == FILE_PACKAGE)
			file->package = own(reflection, value);
		else if (field == FILE_IMPORT && file->import_count < IMPORTS_MAX)
			file->imports[file->import_count++] = own(reflection, value);
	}
	rest = bytes;
	while (next_field(&rest, &field, &value)) {
		if (field == FILE_MESSAGE || field == FILE_SERVICE)
			add_symbols(reflection, file, file->package, value, field == FILE_SERVICE);
		else if (field == FILE_ENUM)
			text_map_put(
			    &reflection->by_symbol,
			    grpc_reflection_join(reflection, file->package, name_in(value)), file);
	}
}

static struct reflection *grpc_reflection_load(void)
{
	struct reflection *reflection = NEW(struct reflection);
	struct text rest = { (const char *)proto_descriptors, proto_descriptors_size }, value;
	uint64_t field;

	while (next_field(&rest, &field, &value))
		if (field == SET_FILE)
			add_file(reflection, value);
	return reflection;
}

static struct file *file_named(struct reflection *reflection, const char *name)
{
	for (int i = 0; i < reflection->count; i++)
		if (strcmp(reflection->files[i].name, name) == 0)
			return &reflection->files[i];
	return NULL;
}

typedef Grpc__Reflection__V1__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse reflection_response;
#define ASKS(what) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##what
#define SAYS(what) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##what

/* The file, then what it imports, each once. */
static void grpc_reflection_collect(struct reflection *reflection, struct file *file,
                                    struct file **list, size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		if (list[i] == file)
			return;
	list[(*count)++] = file;
	for (int i = 0; i < file->import_count; i++) {
		struct file *import = file_named(reflection, file->imports[i]);
		if (import)
			grpc_reflection_collect(reflection, import, list, count);
	}
}

static void say_error(reflection_response *response, struct arena *arena, enum grpc_status code,
                      const char *text)
{
	Grpc__Reflection__V1__ErrorResponse *error = arena_alloc(arena, sizeof(*error));

	grpc__reflection__v1__error_response__init(error);
	error->error_code = (int32_t)code;
	error->error_message = arena_string(arena, text);
	response->message_response_case = SAYS(ERROR_RESPONSE);
	response->error_response = error;
}

static void say_file(struct reflection *reflection, struct file *file,
                     reflection_response *response, struct arena *arena)
{
	struct file *list[FILES_MAX];
	size_t count = 0;

	if (!file) {
		say_error(response, arena, GRPC_NOT_FOUND, "there is no such file or symbol here");
		return;
	}
	grpc_reflection_collect(reflection, file, list, &count);
	Grpc__Reflection__V1__FileDescriptorResponse *files = arena_alloc(arena, sizeof(*files));
	grpc__reflection__v1__file_descriptor_response__init(files);
	files->file_descriptor_proto =
	    arena_alloc(arena, count * sizeof(*files->file_descriptor_proto));
	files->n_file_descriptor_proto = count;
	for (size_t i = 0; i < count; i++)
		files->file_descriptor_proto[i] =
		    (ProtobufCBinaryData){ list[i]->bytes.size, (uint8_t *)list[i]->bytes.data };
	response->message_response_case = SAYS(FILE_DESCRIPTOR_RESPONSE);
	response->file_descriptor_response = files;
}

static void say_services(reflection_response *response, struct arena *arena)
{
	Grpc__Reflection__V1__ListServiceResponse *list = arena_alloc(arena, sizeof(*list));
	size_t count = 0;

	grpc__reflection__v1__list_service_response__init(list);
	while (grpc_service_names[count])
		count++;
	list->service = arena_alloc(arena, count * sizeof(*list->service));
	for (size_t i = 0; i < count; i++) {
		Grpc__Reflection__V1__ServiceResponse *service =
		    arena_alloc(arena, sizeof(*service));
		grpc__reflection__v1__service_response__init(service);
		service->name = arena_string(arena, grpc_service_names[i]);
		list->service[list->n_service++] = service;
	}
	response->message_response_case = SAYS(LIST_SERVICES_RESPONSE);
	response->list_services_response = list;
}

static void say_no_extensions(const char *type, reflection_response *response, struct arena *arena)
{
	Grpc__Reflection__V1__ExtensionNumberResponse *numbers =
	    arena_alloc(arena, sizeof(*numbers));

	grpc__reflection__v1__extension_number_response__init(numbers);
	numbers->base_type_name = arena_string(arena, type);
	response->message_response_case = SAYS(ALL_EXTENSION_NUMBERS_RESPONSE);
	response->all_extension_numbers_response = numbers;
}

static void grpc_reflection_answer(struct reflection *reflection, const reflection_request *message,
                                   reflection_response *response, struct arena *arena)
{
	switch ((int)message->message_request_case) {
	case ASKS(FILE_BY_FILENAME):
		say_file(reflection, file_named(reflection, message->file_by_filename), response,
		         arena);
		break;
	case ASKS(FILE_CONTAINING_SYMBOL):
		say_file(reflection,
		         text_map_get(&reflection->by_symbol, message->file_containing_symbol),
		         response, arena);
		break;
	case ASKS(LIST_SERVICES):
		say_services(response, arena);
		break;
	case ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE):
		if (text_map_get(&reflection->by_symbol, message->all_extension_numbers_of_type))
			say_no_extensions(message->all_extension_numbers_of_type, response, arena);
		else
			say_error(response, arena, GRPC_NOT_FOUND, "there is no such type here");
		break;
	case ASKS(FILE_CONTAINING_EXTENSION):
		say_error(response, arena, GRPC_NOT_FOUND, "there are no extensions here");
		break;
	default:
		say_error(response, arena, GRPC_INVALID_ARGUMENT, "nothing was asked");
	}
}

static void grpc_reflection_on_body(struct exchange *exchange, struct text part)
{
	struct request *request = exchange->context;
	struct grpc_services *services = request->service->services;
	struct arena arena = { 0 };
	reflection_request *message = protobuf_read(
	    &grpc__reflection__v1__server_reflection_request__descriptor, part, &arena);
	reflection_response response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;

	if (!services->reflection)
		services->reflection = grpc_reflection_load();
	if (message) {
		response.valid_host = message->host;
		response.original_request = message;
		grpc_reflection_answer(services->reflection, message, &response, &arena);
	}
	/* A client that asks faster than it reads is not waited for. */
	if (!message)
		request_reject(request, ERROR_INVALID, "this is not a ServerReflectionRequest");
	else if (!grpc_send(exchange, protobuf_write(&response, &arena)))
		request_finish(request, GRPC_RESOURCE_EXHAUSTED,
		               "answers are not read as fast as questions are asked");
	arena_free(&arena);
}

static void grpc_reflection_on_end(struct exchange *exchange)
{
	request_finish(exchange->context, GRPC_OK, NULL);
}

static void grpc_reflection_on_gone(struct exchange *exchange)
{
	request_finish(exchange->context, GRPC_CANCELLED, NULL);
}

static const struct exchange_events events = { .body = grpc_reflection_on_body,
	                                       .body_end = grpc_reflection_on_end,
	                                       .gone = grpc_reflection_on_gone };

void grpc_reflection_open(struct request *request)
{
	request->exchange->events = &events;
	grpc_stream(request->exchange);
}

void grpc_reflection_free(struct grpc_services *services)
{
	if (!services->reflection)
		return;
	text_map_free(&services->reflection->by_symbol);
	arena_free(&services->reflection->arena);
	free(services->reflection);
}
