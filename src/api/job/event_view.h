/* event_view.h - something that happened, as people read it */
#ifndef API_JOB_EVENT_VIEW_H
#define API_JOB_EVENT_VIEW_H

#include "api/read/catalogue.h"
#include "core/record/effects.h"
#include "wire/text/json_writer.h"

/* What an event is about, for those who choose. */
enum event_topic { TOPIC_JOBS, TOPIC_NODES, TOPIC_SLOTS, TOPIC_TENANTS, TOPICS };
extern const char *const event_topic_names[TOPICS];
enum event_topic event_topic(enum event_kind kind);

/* As a JSON object in an array, or at the top. The catalogue, which is locked, tells names. */
void event_view_write(struct json_writer *json, const struct event *event,
                      const struct catalogue *catalogue);

#endif
