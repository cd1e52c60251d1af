/* meter.h - tokens that an answer says it took, found in its bytes as they pass */
#ifndef GATEWAY_TEXT_METER_H
#define GATEWAY_TEXT_METER_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

/* How the answer is written. */
enum meter_form {
	METER_NOTHING, /* not JSON */
	METER_JSON,    /* one document */
	METER_EVENTS,  /* server-sent events, each with a document */
	METER_LINES,   /* a document in each line, as Ollama streams */
};

enum { METER_KEY_MAX = 32, METER_DEPTH_MAX = 64 };

/* A scan of one document that may arrive in any pieces. */
struct meter_scan {
	enum { SCAN_VALUE, SCAN_STRING, SCAN_ESCAPE, SCAN_NUMBER } stage;
	int depth;
	uint64_t objects; /* bit n: level n is an object */
	int usage_depth;  /* of the object 'usage' that we are in; 0: none */
	bool is_key;      /* the string is a name, or the next one is */
	bool has_key;     /* `key` is the name of the value that follows */
	char key[METER_KEY_MAX + 1];
	size_t key_size;
	int64_t number;
	bool choices_empty, in_choices; /* `choices` is an array without members */
	bool has_usage;
};

/* Counts; -1: the answer has not said. */
struct meter_counts {
	int64_t prompt, cached, completion;
};

struct meter {
	enum meter_form form;
	struct meter_scan scan;
	struct meter_counts counts;
	int64_t events;              /* documents so far: about a token each in a stream */
	int64_t bytes;               /* of the body */
	bool in_data, line_is_empty; /* METER_EVENTS: the line is of data; has nothing yet */
	bool line_has_return;        /* but perhaps a carriage return */
	char field[6];
	int field_size;
	/* Only where the client did not ask for the event that has nothing but usage. */
	bool cuts;
	struct buffer held; /* an event that is not complete */
};

void meter_start(struct meter *meter, enum meter_form form, bool cuts);
void meter_free(struct meter *meter);

/* Takes bytes of the body as they pass. */
void meter_take(struct meter *meter, struct text bytes);
/* Like meter_take() for one that cuts: appends to `out` what is to be passed on. Events are passed
 * whole, without those that have nothing but usage. */
void meter_cut(struct meter *meter, struct text bytes, struct buffer *out);
/* The answer has ended: appends what was held. */
void meter_end(struct meter *meter, struct buffer *out);

#endif
