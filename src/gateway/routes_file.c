/* routes_file.c - routes from a file, where there is no scheduler */
#include "gateway/routes_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "json/json_reader.h"

enum { FILE_BYTES_MAX = 1 << 20, CONCURRENCY = 256 };

static const char *text_of_member(const json_t *object, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : otherwise;
}

static char **texts_of(const json_t *array, size_t *count)
{
	char **texts = memory_zero(json_array_size(array) + 1, sizeof(*texts));

	*count = 0;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));
		if (text)
			texts[(*count)++] = memory_text(text);
	}
	return texts;
}

static Gateway__Model *read_model(const json_t *object, int64_t id)
{
	Gateway__Model *model = memory_alloc(sizeof(*model));

	gateway__model__init(model);
	model->model_id = id;
	model->name = memory_text(text_of_member(object, "name", "model"));
	model->runtime = memory_text(text_of_member(object, "runtime", "vllm"));
	model->keep_alive = memory_text(text_of_member(object, "keep_alive", ""));
	model->message = memory_text("");
	model->shared = true;
	model->aliases = texts_of(json_object_get(object, "aliases"), &model->n_aliases);
	return model;
}

static void read_slots(Gateway__Routes *routes, const json_t *object, int64_t model_id)
{
	const json_t *addresses = json_object_get(object, "slots");
	json_int_t share = json_integer_value(json_object_get(object, "concurrency"));
	size_t count = json_array_size(addresses);

	routes->slots =
	    memory_resize(routes->slots, (routes->n_slots + count + 1) * sizeof(*routes->slots));
	for (size_t i = 0; i < count; i++) {
		const char *address = json_string_value(json_array_get(addresses, i));
		Gateway__Slot *slot = memory_alloc(sizeof(*slot));
		gateway__slot__init(slot);
		slot->slot_id = (int64_t)routes->n_slots + 1;
		slot->model_id = model_id;
		slot->address = memory_text(address ? address : "");
		slot->key = memory_text(text_of_member(object, "key", ""));
		slot->certificate_sha256 =
		    memory_text(text_of_member(object, "certificate_sha256", ""));
		slot->state = GATEWAY__SLOT__STATE__READY;
		slot->share = share > 0 ? share : CONCURRENCY;
		routes->slots[routes->n_slots++] = slot;
	}
}

static Gateway__Routes *read_routes(const json_t *document)
{
	const json_t *models = json_object_get(document, "models");
	Gateway__Routes *routes = memory_alloc(sizeof(*routes));

	gateway__routes__init(routes);
	routes->version = 1;
	routes->models = memory_zero(json_array_size(models) + 1, sizeof(*routes->models));
	for (size_t i = 0; i < json_array_size(models); i++) {
		const json_t *object = json_array_get(models, i);
		int64_t id = (int64_t)i + 1;
		routes->models[routes->n_models++] = read_model(object, id);
		read_slots(routes, object, id);
	}
	return routes;
}

bool routes_file_read(struct gateway *gateway, const char *path, int64_t now_ms,
                      struct error *error)
{
	FILE *file = fopen(path, "re");
	char *text = memory_alloc(FILE_BYTES_MAX);
	size_t size = file ? fread(text, 1, FILE_BYTES_MAX, file) : 0;
	json_t *document = NULL;

	if (file)
		fclose(file);
	if (!file)
		error_set(error, ERROR_NOT_FOUND, "the routes %s cannot be read", path);
	else
		document = json_read((struct text){ text, size }, NULL, error);
	free(text);
	if (!document)
		return false;
	gateway_routes(gateway, read_routes(document), now_ms);
	Gateway__Tokens *tokens = memory_alloc(sizeof(*tokens));
	gateway__tokens__init(tokens);
	tokens->open = true;
	signin_take(&gateway->signin, tokens, now_ms);
	json_decref(document);
	return true;
}
