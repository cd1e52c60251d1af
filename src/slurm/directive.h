/* directive.h - the options in the lines of a script that begin with #SBATCH */
#ifndef SLURM_DIRECTIVE_H
#define SLURM_DIRECTIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

/* Words in the order of the script. Zero-initialised is empty; texts are in the arena. */
struct directives {
	char **words; /* an array of `count`, then NULL */
	size_t count, capacity;
	size_t *lines; /* the line of each word, from 1 */
	size_t line_capacity;
};

/* Reads the lines '#SBATCH ...' at the head of a script: up to the first line that is neither
 * empty nor a comment. Words are separated by blanks; quotes and backslashes keep blanks; a word
 * that begins with # ends the line. False with 'line N: ...' for a quote that does not end. */
bool directives_read(struct directives *directives, const char *script, size_t size,
                     struct arena *arena, struct error *error);
void directives_free(struct directives *directives);

/* Splits letters, as Slurm's users write them: -N2 becomes -N 2, -nPj 12 becomes -n -P -j 12. Stops
 * at the first operand, since what follows belongs to the command. `takes` says which options (-N,
 * --nodes) take a value. The result ends with NULL; it and its texts are in the arena. */
char **slurm_split_letters(int *count, char *const *words, bool (*takes)(const char *option),
                           struct arena *arena);

#endif
