/* script.h - a script of sbatch as a node runs it: with SLURM_ variables, and its output in files
 */
#ifndef SLURM_SCRIPT_H
#define SLURM_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct slurm_script {
	const char *text;
	size_t size;
	const char *name;                   /* of the job */
	const char *output, *error, *input; /* patterns such as %x-%j.out; NULL: none */
	bool appends, is_array;
	int64_t tasks, nodes, cpus;
};

/* Writes the script with one more command on its second line, where Slurm's users have a #SBATCH
 * line or a comment, so that lines keep their numbers where possible. Only shells can have it:
 * other scripts are written unchanged, and refused where files are asked for. */
bool slurm_script_print(const struct slurm_script *script, struct buffer *to, struct error *error);

/* A pattern of a file as a word of the shell: %j, %A, %a, %x, %u, %N, %n, %t, %s, %%. */
bool slurm_pattern_print(const char *pattern, const char *name, struct buffer *to,
                         struct error *error);

#endif
