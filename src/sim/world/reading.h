/* reading.h - fields of scenarios in units that only scenarios have */
#ifndef SIM_WORLD_READING_H
#define SIM_WORLD_READING_H

#include "core/record/field.h"
#include "json/json_reader.h"
#include "json/member.h"

/* A number that need not be whole, in thousandths, to the nearest; `otherwise` if missing. */
int64_t read_thousandths_or(struct json_reader *reader, const char *name, int64_t at_most,
                            int64_t otherwise);

/* GiB, which need not be whole, as MiB: rounded up for what is requested, down for what there
 * is. */
enum rounding { ROUND_UP, ROUND_DOWN };
int64_t read_gib(struct json_reader *reader, const char *name, enum rounding rounding);
int64_t read_gib_or(struct json_reader *reader, const char *name, enum rounding rounding,
                    int64_t otherwise);
/* Like read_gib(), for a value that is not a field, such as an element of a list. */
int64_t read_gib_value(struct json_reader *reader, const json_t *value, const char *name,
                       enum rounding rounding);
/* One of the words, which must be there, by its number; 0 if it is wrong. */
int read_word(struct json_reader *reader, const char *name, const struct words *words);

/* True if `name` is one of the words in `list`, which are separated by blanks. */
bool read_is_listed(const char *name, const char *list);

#endif
