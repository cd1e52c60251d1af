/* wiring.h - settings as the engine and the service take them */
#ifndef SERVER_WIRING_H
#define SERVER_WIRING_H

#include "api/notify/notify.h"
#include "api/service/service.h"
#include "server/engine.h"
#include "server/settings/config.h"

/* What both are started with, but for the loop and those that are called back. Its
 * texts are the config's, which must outlive it. */
struct wiring {
	struct engine_options engine;
	struct service_settings service;
	struct journal_options journal;
	struct redis_options redis;
	struct notify_settings notify;
	struct login_settings login;
	struct secret_keys *secret_keys;
	struct gate_key *keys;
	struct buffer *materials; /* of the keys */
	size_t key_count;
};

/* Reads the files of keys. NULL with a reason. */
struct wiring *wiring_new(struct config *config, struct error *error);
/* Wipes and frees; NULL is allowed. */
void wiring_free(struct wiring *wiring);

#endif
