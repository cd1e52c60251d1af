/* engine_request.h - a request to the core or to the store, and its outcome */
#ifndef API_ENGINE_ENGINE_REQUEST_H
#define API_ENGINE_ENGINE_REQUEST_H

#include "core/record/command.h"
#include "core/sched.h"
#include "store/store.h"
#include "wire/loop.h"

/* One of three:
 * - a command for the core (`has_command`), or only things to keep: answered when all of
 *   it is durable, or refused and nothing changed;
 * - a look at the core (`look`), which changes nothing: called in the core's thread, and
 *   answered when what it may have seen is durable. For explanations and positions;
 *   use the catalogue for what it has;
 * - a read of what is stored (`read`): called in the librarian's thread with a store that
 *   does not lead. For what has left memory, and for history.
 * Everything it points to lives in its arena, or as long as the engine request. Between
 * engine_port_send and `done` it is the engine's, and nobody else may touch it. */
struct engine_request {
	struct arena arena;
	struct command command; /* its time is filled in by the engine */
	bool has_command;
	/* The next of several submissions of which all are taken or none: the first is handed
	 * in, each is answered. One that is not taken only because another was refused has an
	 * error without a code. */
	struct engine_request *together;
	const struct kept *keeps; /* written in the same transaction as the command's effects */
	size_t keep_count;
	/* While the store cannot commit: waits for it, however long. Others are answered
	 * ERROR_UNAVAILABLE at once. For what must not be lost: facts from nodes. */
	bool patient;
	/* Each returns false with a reason. `text` is theirs to fill. */
	bool (*look)(struct engine_request *engine, struct sched *sched, struct error *error);
	bool (*read)(struct engine_request *engine, struct store *store, struct error *error);

	/* Called once, in the loop's thread. The request is the caller's again. */
	void (*done)(struct engine_request *engine);
	void *context;

	/* What came of it. */
	bool ok;
	struct error error;            /* where not */
	int64_t reply_id, reply_count; /* as in struct effects */
	bool repeated;
	struct buffer text;

	/* The engine's. */
	struct engine_request *next;
	/* The pool's that it is from. */
	struct engine_request *next_spare, *next_of_all;
};

/* Empties it for the next use; keeps the memory. */
void engine_request_reset(struct engine_request *engine);
/* Frees what it holds, not the engine request itself. */
void engine_request_free(struct engine_request *engine);

#endif
