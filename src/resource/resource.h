/* resource.h - the public resources: each is described once, by a table of its fields */
#ifndef RESOURCE_RESOURCE_H
#define RESOURCE_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "resource/places.h"

/* Of the name of a group of tasks. */
#define JOB_GROUP_BYTES_MAX 63

/* A resource is what users see of a record: a job, a tenant, a node. Its table has one row for
 * each public field, in the order in which answers show them. REST, gRPC, gpu-cli, the
 * dashboard, openapi.json and the reference pages are made from the tables, so a field exists in
 * all of them or its row says why it does not. */

enum value_kind {
	VALUE_INTEGER,
	VALUE_DECIMAL,  /* with at most `digits` decimals */
	VALUE_FLAG,     /* true or false */
	VALUE_TEXT,     /* UTF-8, at most `most` bytes */
	VALUE_WORD,     /* one of `words` */
	VALUE_ID,       /* "job-12": the id of the resource `refers` */
	VALUE_DURATION, /* "1h2m3s"; the range is in milliseconds */
	VALUE_TIME,     /* RFC 3339 in UTC */
	VALUE_TEXTS,    /* a list of at most `items` texts */
	VALUE_WORDS,    /* a list of at most `items` of `words` */
	VALUE_IDS,      /* a list of at most `items` ids of the resource `refers` */
	VALUE_MAP,      /* at most `items` names, each with a text */
	VALUE_OBJECT,   /* the fields of `nested` */
	VALUE_LIST,     /* at most `items` objects of `nested` */
};

enum value_unit {
	UNIT_NONE,
	UNIT_MIB,
	UNIT_BYTES,
	UNIT_GPUS,
	UNIT_CORES,
	UNIT_TASKS,
	UNIT_MILLISECONDS,
	UNIT_SECONDS,
	UNIT_MINUTES,
	UNIT_HOURS,
	UNIT_JOULES,
	UNIT_WATTS,
	UNIT_CELSIUS,
	UNIT_CURRENCY,
	UNIT_MIB_HOURS,
};

/* Other forms in which a request may give a value. */
enum value_forms {
	ALSO_LIST = 1,      /* a list of at most `items` such values */
	ALSO_NAME = 2,      /* VALUE_ID: the number alone, or the name of the resource */
	ALSO_MEMBER = 4,    /* VALUE_LIST: an element may be its first member alone */
	ALSO_UNLIMITED = 8, /* -1, for no limit */
	ALSO_FLAG = 16,     /* VALUE_TEXT: true or false */
	ALSO_SECONDS = 32,  /* VALUE_DURATION: a number */
};

/* Who may set a field. */
enum field_setter {
	SET_BY_SERVICE,       /* nobody else */
	SET_AT_CREATION,      /* who creates the resource */
	SET_ANY_TIME,         /* who creates it, or changes it later */
	SET_BY_ADMINISTRATOR, /* the service, or an administrator who creates the resource */
};

/* What an answer shows where the stored value is `none`. */
enum field_empty {
	EMPTY_SHOWN, /* the value as it is: 0, false, "" */
	EMPTY_NULL,
	EMPTY_OMITTED,
};

/* The sections of the dashboard's form. */
enum form_section {
	SECTION_NONE,
	SECTION_GENERAL,
	SECTION_WORK, /* what to run */
	SECTION_GPUS,
	SECTION_TASKS,
	SECTION_TIME,
	SECTION_PLACEMENT,
	SECTION_LIMITS,
	SECTION_SERVING,
	SECTION_NOTIFY,
	SECTION_MORE,
};

/* Where a field is kept: a member of a record of the core. */
struct field_storage {
	bool is_set; /* false: the field is computed, or kept in the record's payload */
	int record;  /* enum record_kind */
	int kind;    /* enum field_kind of the member */
	size_t offset;
};

/* Protocol buffers. A number is never used again for another field. `request` is the field's
 * number in the message that creates or changes the resource, `reply` its number in the message
 * that shows it. 0: not there, and `absent` says why where it could be. */
struct field_proto {
	int request, reply;
	const char *type; /* of the request's field where it was published as something narrower
	                     than the kind: "int32" */
	/* A further field of the request for what `type` cannot hold. */
	int extra;
	const char *extra_name, *extra_type;
	const char *absent;
};

/* The option of gpu-cli. A field without one says in `absent` why. */
struct field_option {
	const char *name, *letter; /* "--gpus", "-g" */
	const char *argument;      /* "N"; NULL: a switch */
	const char *negative;      /* "--no-preemptible": sets it to false */
	const char *help;          /* where the field's own help does not fit a command line */
	bool repeats;
	const char *absent;
};

/* The place in the dashboard's form. A field without one says in `absent` why. */
struct field_form {
	enum form_section section;
	const char *absent;
};

struct resource;
struct words; /* core/field.h */

enum { JOB_RECIPIENTS_MAX = 8 }; /* of notifications, that a job names */

/* A row. `least` and `most` bound what a request may give: a number times 10^digits, the bytes
 * of a text or of each item, milliseconds. Both 0: any value of the kind.
 * A stored number is the public one times 10^digits times `scale`; a `scale` of 0 is 1. */
struct resource_field {
	const char *name;
	size_t name_size;
	const char *label; /* for people: "Max runtime" */
	const char *help;  /* one line, as a sentence without a period */
	enum value_kind kind;
	enum value_unit unit;
	unsigned also; /* enum value_forms */
	int digits;
	int64_t least, most, items, scale;
	bool plain;          /* VALUE_TEXT: without control characters */
	const char *pattern; /* VALUE_TEXT: a regular expression that requests must match */
	bool required;       /* a resource cannot be created without it */
	const struct words *words;
	const char *refers;            /* VALUE_ID: "job" */
	const struct resource *nested; /* VALUE_OBJECT, VALUE_LIST */
	const char *initial;           /* the default as JSON; NULL: see the help */
	enum field_setter setter;
	bool repeatable;      /* set by the service, yet a request may repeat it: it is ignored */
	const char *hidden;   /* why no answer shows it; NULL: answers do */
	const char *shown_as; /* a secret: answers show this word instead */
	enum field_empty empty;
	bool nullable;   /* may be null where it is shown, although `empty` is another form */
	bool owner_only; /* only shown to the tenant that owns the resource, those above it and
	                    administrators */
	int64_t none;    /* the stored number that means 'none' */
	bool in_payload; /* kept as JSON in the record's payload */
	struct field_storage stored;
	struct field_proto proto;
	struct field_option option;
	struct field_form form;
	const char *since; /* the version that brought it; NULL: the first */
};

/* The resources that have a place in an interface of their own. */
enum resource_id {
	RESOURCE_NESTED, /* only a part of others */
	RESOURCE_JOB,
	RESOURCE_TENANT,
	RESOURCE_MODEL,
	RESOURCE_SLOT,
	RESOURCE_NODE,
	RESOURCE_GPU,
	RESOURCE_TOKEN,
	RESOURCE_DECISION,
	RESOURCE_RUN,
	RESOURCE_REPORT,
	RESOURCE_ACCURACY,
	RESOURCE_WINDOW,
	RESOURCE_QUOTA,
	RESOURCE_COUNT,
};

struct resource {
	enum resource_id id;
	const char *name; /* "job" */
	const char *help;
	const struct resource_field *fields;
	int field_count;
	bool null_is_default; /* null in a request takes the default; else it counts as left out */
	/* The schemas of openapi.json; NULL: the one that it is nested in has it inline. */
	const char *schema, *request_schema;
	/* The messages of scheduler.proto; NULL: none. */
	const char *request_message, *reply_message;
	/* Why an interface does not have the resource at all, or cannot set it; else NULL. */
	const char *no_proto, *no_option, *no_form;
};

extern const struct resource job_resource, tenant_resource, model_resource, slot_resource,
    node_resource, gpu_resource, token_resource, decision_resource, run_resource, report_resource,
    accuracy_resource, window_resource, quota_resource;
/* Nested in others. */
extern const struct resource guard_resource;

/* All resources by their id; NULL for RESOURCE_NESTED. */
extern const struct resource *const resources[RESOURCE_COUNT];

/* The resource of that name, or NULL. */
const struct resource *resource_named(const char *name);

/* The place of a field in the table, by its name of `size` bytes; -1 where there is none. */
int resource_find(const struct resource *resource, const char *name, size_t size);

/* The field that a request most likely meant by an unknown name: the one with the longest
 * common start, of three bytes or more. NULL: none comes near. */
const struct resource_field *resource_nearest(const struct resource *resource, const char *name,
                                              size_t size);

/* True if a request may name the field: it sets it, or repeats what an answer said. */
static inline bool field_is_accepted(const struct resource_field *field)
{
	return field->setter != SET_BY_SERVICE || field->repeatable;
}
/* True if a request can set the field. */
static inline bool field_is_settable(const struct resource_field *field)
{
	return field->setter != SET_BY_SERVICE;
}

/* Checks a number times 10^digits against the field's range. False with the sentence that all
 * interfaces give: 'tasks must be a whole number from 1 to 4096'. */
bool field_check_number(const struct resource_field *field, int64_t value, struct error *error);
/* Says what the field's values must be. Returns false. */
bool field_refuse(const struct resource_field *field, struct error *error);
/* Like field_check_number(), for the bytes of a text. */
bool field_check_size(const struct resource_field *field, size_t size, struct error *error);
/* The place of a word among the field's words; -1 where it is none of them. */
int field_word(const struct resource_field *field, const char *word, size_t size);
/* The word at that place; NULL behind the last. */
const char *field_word_at(const struct resource_field *field, int place);

/* What a stored field holds, in units of the table: the public value times 10^digits. What is
 * `none` or unlimited (INT64_MAX) has no unit. The record must be of the kind
 * `field->stored.record`. Numbers, flags and words only. */
int64_t field_load_number(const struct resource_field *field, const void *record);
void field_store_number(const struct resource_field *field, void *record, int64_t value);
/* Stores the row's default, or `none` and an empty text where it has none. Stored fields only. */
void field_store_initial(const struct resource_field *field, void *record);
/* Does so for all fields that a request can set. */
void resource_store_initial(const struct resource *resource, void *record);
const char *field_load_text(const struct resource_field *field, const void *record);
/* `text` must live as long as the record. */
void field_store_text(const struct resource_field *field, void *record, const char *text);

/* "integer", "MiB", "any_time", "gpus": for what is generated. */
const char *value_kind_name(enum value_kind kind);
const char *value_unit_name(enum value_unit unit);
const char *field_setter_name(enum field_setter setter);
const char *field_empty_name(enum field_empty empty);
const char *form_section_name(enum form_section section);

#endif
