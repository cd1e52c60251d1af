/* engine_intake.c - how requests reach the engine, and what the loop's thread reads of it */
#include "server/engine_local.h"

#include "server/librarian.h"

static void engine_refuse(struct engine *engine, struct engine_request *request,
                          enum error_code code, const char *text)
{
	while (request) {
		/* Once delivered, it belongs to the loop's thread. */
		struct engine_request *next = request->together;
		request->ok = false;
		error_set(&request->error, code, "%s", text);
		delivery_ask(engine->delivery, request);
		request = next;
	}
}

static void take_request(struct engine_port *port, struct engine_request *request)
{
	struct engine *engine = (struct engine *)port;

	INVARIANT(request->done);
	if (request->read) {
		librarian_ask(engine->librarian, request);
		return;
	}
	int state = atomic_load(&engine->state);
	if (state != ENGINE_LEADING)
		engine_refuse(engine, request, ERROR_UNAVAILABLE,
		              state == ENGINE_WAITING
		                  ? "this scheduler is not the active one: it waits to take over"
		                  : "the scheduler is stopping");
	else if (!request->patient && !request->look && atomic_load(&engine->store_fails))
		engine_refuse(engine, request, ERROR_UNAVAILABLE,
		              "the store cannot commit now: nothing was changed, try again later");
	else if (!request->patient && atomic_load(&engine->inbox.count) >= engine->options.asks_max)
		engine_refuse(engine, request, ERROR_FULL,
		              "too much is waiting for the scheduler: try again later");
	else if (request->patient && request->has_command && engine_is_fact(request->command.kind))
		inbox_put_lazily(&engine->inbox, request);
	else
		inbox_put(&engine->inbox, request);
}

static void tell_health(struct engine_port *port, struct engine_health *health)
{
	struct engine *engine = (struct engine *)port;
	*health = (struct engine_health){
		.leading = atomic_load(&engine->state) == ENGINE_LEADING,
		.term = atomic_load(&engine->term),
		.waiting = atomic_load(&engine->inbox.count),
		.passes = atomic_load(&engine->passes),
		.pass_us_total = atomic_load(&engine->pass_us_total),
		.clock_off_ms = atomic_load(&engine->clock_off_ms),
		.clock_steps = atomic_load(&engine->clock_steps),
	};
	if (!health->leading)
		return;
	writer_health(engine->writer, &health->writer);
	health->has_redis = engine->redis != NULL;
	if (engine->redis)
		redis_health(engine->redis, &health->redis);
}

static int64_t tell_time_ms(struct engine_port *port)
{
	struct engine *engine = (struct engine *)port;
	if (atomic_load(&engine->state) != ENGINE_LEADING)
		return clock_unix_ms();
	return (clock_boot_us() + atomic_load(&engine->offset_us)) / 1000;
}

/* SQLite's lock is held as long as the process lives. */
static int64_t tell_active_ms(struct engine_port *port)
{
	struct engine *engine = (struct engine *)port;
	if (atomic_load(&engine->state) != ENGINE_LEADING)
		return 0;
	return store_is_postgres(engine->store) ? atomic_load(&engine->active_ms)
	                                        : clock_steady_ms();
}

void engine_open_port(struct engine *engine)
{
	engine->port = (struct engine_port){
		.send = take_request,
		.health = tell_health,
		.active_ms = tell_active_ms,
		.time_ms = tell_time_ms,
		.catalogue = catalogue_new(),
		.loop = engine->options.loop,
	};
}
