/* misreports.c - what nodes said about things that are not theirs: counted, logged, audited */
#include "api/service/misreports.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/engine/engine_pool.h"
#include "api/service/service.h"
#include "api/service/service_state.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"

enum { QUIET_MS = 60000 };

/* Of one node: when the last one was told, and how many came since. */
struct teller {
	int64_t told_ms, untold;
};

struct misreports {
	struct engine_port *port;
	struct audit *audit;
	struct text_map tellers; /* by the node's name */
	int64_t total;
	struct engine_pool notes; /* of struct note */
};

/* An entry of the audit log on its way to the store. */
struct note {
	struct engine_request engine; /* first: one pointer is the other */
	struct misreports *misreports;
};

struct misreports *misreports_new(struct engine_port *port, struct audit *audit)
{
	struct misreports *misreports = NEW(struct misreports);

	misreports->port = port;
	misreports->notes.size = sizeof(struct note);
	misreports->audit = audit;
	return misreports;
}

void misreports_free(struct misreports *misreports)
{
	if (!misreports)
		return;
	engine_pool_free(&misreports->notes, NULL);
	for (size_t i = 0; i < misreports->tellers.capacity; i++)
		free(misreports->tellers.entries[i].value);
	text_map_free(&misreports->tellers);
	free(misreports);
}

static void misreports_on_kept(struct engine_request *engine)
{
	struct note *note = (struct note *)engine;

	audit_settle(note->misreports->audit, engine);
	engine_pool_give_back(&note->misreports->notes, note);
}

static void misreports_keep(struct misreports *misreports, const char *node, const char *detail)
{
	struct note *note = engine_pool_take(&misreports->notes);
	struct identity identity = { .role = ROLE_AGENT };

	snprintf(identity.name, sizeof(identity.name), "node %.60s", node);
	note->misreports = misreports;
	note->engine.done = misreports_on_kept;
	audit_note(misreports->audit, &note->engine,
	           &(struct audit_entry){ .action = "misreport",
	                                  .object = node,
	                                  .detail = detail,
	                                  .identity = &identity,
	                                  .unix_ms = clock_unix_ms() });
	engine_port_send(misreports->port, &note->engine);
}

static struct teller *teller_of(struct misreports *misreports, const char *node)
{
	struct teller *teller = text_map_get(&misreports->tellers, node);

	if (!teller) {
		teller = NEW(struct teller);
		teller->told_ms = -QUIET_MS;
		text_map_put(&misreports->tellers, node, teller);
	}
	return teller;
}

void misreports_note(struct misreports *misreports, const char *node, const char *sentence)
{
	struct teller *teller = teller_of(misreports, node);
	int64_t now_ms = loop_now_ms(misreports->port->loop);

	misreports->total++;
	teller->untold++;
	if (now_ms - teller->told_ms < QUIET_MS)
		return;
	log_at(LOG_WARNING, sentence, LOG_TEXT("node", node),
	       LOG_NUMBER("misreports", teller->untold));
	misreports_keep(misreports, node, sentence);
	teller->told_ms = now_ms;
	teller->untold = 0;
}

int64_t misreports_total(const struct misreports *misreports)
{
	return misreports->total;
}
