/* reading.h - fields of JSON objects, with errors that say which one is wrong */
#ifndef SIM_WORLD_READING_H
#define SIM_WORLD_READING_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "core/record/field.h"

/* Readers give a harmless value when something is wrong and remember only the
 * first such thing, so that many fields can be read before one looks whether
 * all were right. Texts belong to the JSON. A field that is null counts as
 * missing. */
struct reading {
	char where[128];    /* the object that is being read: "jobs[2]" */
	struct error error; /* the first thing that was wrong */
};

static inline bool reading_failed(const struct reading *reading)
{
	return reading->error.code != ERROR_NONE;
}

/* Says which object the next fields are of; "" for the outermost. */
void reading_at(struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Something is wrong, in words that follow the object's place. */
void reading_refuse(struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool read_has(const json_t *object, const char *name);

/* Fields that must be there. Texts are not empty; what is wrong reads as "". */
const char *read_text(struct reading *reading, const json_t *object, const char *name);
int64_t read_number(struct reading *reading, const json_t *object, const char *name,
                    int64_t at_least, int64_t at_most);
/* Lists and objects; NULL, which jansson takes for an empty one, if wrong. */
json_t *read_list(struct reading *reading, const json_t *object, const char *name);
json_t *read_object(struct reading *reading, const json_t *object, const char *name);
/* How many entries a list has; 0 if there are more than `most`, which is wrong. */
int64_t read_size(struct reading *reading, const json_t *list, const char *name, int64_t most);

/* Fields that may be missing, and what they are then. */
const char *read_text_or(struct reading *reading, const json_t *object, const char *name,
                         const char *otherwise);
int64_t read_number_or(struct reading *reading, const json_t *object, const char *name,
                       int64_t at_least, int64_t at_most, int64_t otherwise);
bool read_flag_or(struct reading *reading, const json_t *object, const char *name, bool otherwise);
/* A number that need not be whole, in thousandths, to the nearest. */
int64_t read_thousandths_or(struct reading *reading, const json_t *object, const char *name,
                            int64_t at_most, int64_t otherwise);

/* GiB, which need not be whole, as MiB: rounded up for what is asked for, down
 * for what there is. */
enum rounding { ROUND_UP, ROUND_DOWN };
int64_t read_gib(struct reading *reading, const json_t *object, const char *name,
                 enum rounding rounding);
int64_t read_gib_or(struct reading *reading, const json_t *object, const char *name,
                    enum rounding rounding, int64_t otherwise);
/* Like read_gib(), for a value that is not a field, such as an element of a list. */
int64_t read_gib_value(struct reading *reading, const json_t *value, const char *name,
                       enum rounding rounding);
/* One of the words, by its number. */
int read_word(struct reading *reading, const json_t *object, const char *name,
              const struct words *words);

/* True if `name` is one of the words in `list`, which a blank separates. */
bool read_is_listed(const char *name, const char *list);

#endif
