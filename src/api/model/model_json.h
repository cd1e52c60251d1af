/* model_json.h - a model as people send it and read it */
#ifndef API_MODEL_MODEL_JSON_H
#define API_MODEL_MODEL_JSON_H

#include "api/read/roster.h"
#include "api/read/serving.h"
#include "core/sched.h"
#include "seal/secret.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

struct model_reading {
	struct arena *arena;
	const struct roster *roster;
	const struct identity *identity;
	const struct secret_keys *secret_keys; /* NULL: secret_environment is refused */
};

/* Changes `model` as the JSON says: what is left out stays, null takes the default. Texts
 * and rows are in the arena. False with a sentence that names the field. */
bool model_json_read(struct text body, const struct model_reading *reading,
                     struct model_record *model, struct error *error);
struct model_record model_json_default(void);

/* What gateways say about it. */
struct model_service {
	const struct serving_model *seen;
	const char *url; /* NULL: of no gateway is known where it is */
};

/* Writes it; `load` is NULL where the core was not asked, `service` where no gateway was. Who only
 * uses it gets its name, its state and its sizes, but not its command, owner or users. */
void model_json_write(struct json_writer *json, const struct model_record *model,
                      const struct model_load *load, const struct model_service *service,
                      bool is_owner, struct arena *arena);

#endif
