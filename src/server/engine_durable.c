/* engine_durable.c - what follows when the writer has stored something, or cannot */
#include "server/engine_local.h"

#include <stdio.h>

void engine_on_durable(void *context, const struct batch *batch)
{
	struct engine *engine = context;
	bool is_committed = batch->began_us > 0;
	if (is_committed) {
		atomic_store(&engine->active_ms, batch->began_us / 1000);
		catalogue_apply(engine->port.catalogue, batch);
	}
	delivery_batch(engine->delivery, batch);
	int64_t replies = (int64_t)batch->reply_count;
	int64_t durable = atomic_fetch_add(&engine->durable, replies) + replies;
	INVARIANT(durable <= atomic_load(&engine->added));
	if (engine->redis && is_committed)
		redis_publish(engine->redis, batch, store_position(engine->store).batch);
}

void engine_on_failed(void *context, const struct error *error)
{
	struct engine *engine = context;
	engine->options.failed(engine->options.context, error);
}

void engine_tell_changed(void *context)
{
	struct engine *engine = context;
	if (engine->port.listener.changed)
		engine->port.listener.changed(engine->port.listener.context);
}

void engine_on_changed(void *context)
{
	struct engine *engine = context;
	struct writer *writer = atomic_load(&engine->writer);
	struct writer_health health;
	if (!writer) /* it has only just begun */
		return;
	writer_health(writer, &health);
	atomic_store(&engine->store_fails, !health.ok);
	char sentence[ERROR_TEXT_MAX + 64];
	snprintf(sentence, sizeof(sentence), "%s%s",
	         health.ok ? "the store commits again" : "the store cannot commit: ",
	         health.ok ? "" : health.reason);
	engine_note(engine, sentence);
	delivery_call(engine->delivery, engine_tell_changed, engine);
}
