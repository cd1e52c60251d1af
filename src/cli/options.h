/* options.h - what options of gpu-cli have beside those of other programs */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h" // IWYU pragma: export

/* What a shell offers for a value or an operand: `completes` of an option. */
enum completes {
	COMPLETES_NOTHING,
	COMPLETES_FILES,
	COMPLETES_WORDS,
	COMPLETES_JOBS,
	COMPLETES_NODES,
	COMPLETES_TENANTS,
	COMPLETES_MODELS,
	COMPLETES_WINDOWS,
	COMPLETES_TOKENS,
	COMPLETES_CONTEXTS,
	COMPLETES_COMMANDS,
};

/* A number as people write it: 32768, 8k (8 x 1024), 1m. From 1 to `most`. */
bool options_number(const char *name, const char *text, int64_t most, int64_t *number,
                    struct error *error);

/* Numbers with commas between them; how many, or -1 with the reason. */
int options_numbers(const char *name, const char *text, int64_t most, int64_t *numbers,
                    int numbers_max, struct error *error);

#endif
