/* librarian.c - a thread that reads what is stored, so that nobody else waits for the disk */
#include "server/librarian.h"

#include <stdlib.h>

#include "server/inbox.h"

enum { WAITING_MAX = 1000 };

struct librarian {
	struct store_options options;
	struct delivery *delivery;
	struct inbox inbox;
	pthread_t thread;
	struct store *store; /* NULL: not connected */
};

static bool librarian_connect(struct librarian *librarian, struct error *error)
{
	if (librarian->store)
		return true;
	struct store *store = store_new(&librarian->options);
	if (store_read_only(store, error) != STORE_DONE) {
		store_free(store);
		return false;
	}
	librarian->store = store;
	return true;
}

static void librarian_serve(struct librarian *librarian, struct engine_request *request)
{
	request->ok = librarian_connect(librarian, &request->error) &&
	              request->read(request, librarian->store, &request->error);
	if (!request->ok && request->error.code == ERROR_UNAVAILABLE && librarian->store) {
		store_free(librarian->store);
		librarian->store = NULL;
	}
	delivery_ask(librarian->delivery, request);
}

static void *librarian_run(void *context)
{
	struct librarian *librarian = context;
	while (!inbox_is_closed(&librarian->inbox)) {
		struct engine_request *request = inbox_take(&librarian->inbox, -1);
		while (request) {
			struct engine_request *next = request->next;
			librarian_serve(librarian, request);
			request = next;
		}
	}
	return NULL;
}

struct librarian *librarian_start(const struct store_options *options, struct delivery *delivery)
{
	struct librarian *librarian = NEW(struct librarian);
	librarian->options = *options;
	librarian->delivery = delivery;
	inbox_init(&librarian->inbox);
	if (pthread_create(&librarian->thread, NULL, librarian_run, librarian) != 0)
		panic("a thread for reading could not be started");
	return librarian;
}

void librarian_ask(struct librarian *librarian, struct engine_request *request)
{
	INVARIANT(request->read && !request->has_command && request->keep_count == 0);
	if (atomic_load(&librarian->inbox.count) < WAITING_MAX) {
		inbox_put(&librarian->inbox, request);
		return;
	}
	request->ok = false;
	error_set(&request->error, ERROR_FULL, "too many reads are waiting: try again later");
	delivery_ask(librarian->delivery, request);
}

void librarian_stop(struct librarian *librarian)
{
	if (!librarian)
		return;
	inbox_close(&librarian->inbox);
	pthread_join(librarian->thread, NULL);
	store_free(librarian->store);
	inbox_destroy(&librarian->inbox);
	free(librarian);
}
