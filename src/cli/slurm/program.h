/* program.h - sbatch, squeue and the others: Slurm's commands in front of this service
 *
 * gpu-slurm is one program; which command it is follows from the name it is called by, or from its
 * first argument. */
#ifndef CLI_SLURM_PROGRAM_H
#define CLI_SLURM_PROGRAM_H

#include "cli/session.h"
#include "slurm/format.h"

struct slurm_call;

struct slurm_program {
	const char *name, *usage, *summary, *notes;
	const struct option *options; /* its own */
	bool submits;                 /* has the options of jobs too */
	bool runs;                    /* what follows the first operand is a command */
	int (*run)(struct slurm_call *call);
};

extern const struct slurm_program slurm_sbatch, slurm_srun, slurm_salloc, slurm_squeue,
    slurm_scancel, slurm_sinfo, slurm_sacct, slurm_scontrol, slurm_sreport;

/* One call of one of them. Texts are in the session's arena. */
struct slurm_call {
	const struct slurm_program *program;
	struct arguments arguments;
	struct session session;
	bool is_open; /* the session is */
};

/* The whole program; returns its exit status. */
int slurm_main(int argc, char **argv);

/* Opens the session: the address and the token come from where gpu-cli takes them. False, told. */
bool slurm_open(struct slurm_call *call);
/* Prints 'NAME: error: ...'; returns 1, which is what Slurm's commands end with. */
int slurm_fail(const struct slurm_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The last value of an option; NULL: not given. */
const char *slurm_option(const struct slurm_call *call, const char *name);
bool slurm_given(const struct slurm_call *call, const char *name);
/* Prints a buffer to standard output and frees it; the exit status. */
int slurm_print(struct buffer *text);

/* The tenant that --account names, or the context; "" if nothing does. */
const char *slurm_tenant(struct slurm_call *call);
/* Asks for all jobs in these states ("pending,running"), by number. NULL, told. */
json_t *slurm_jobs(struct slurm_call *call, const char *states, size_t most);
/* The date, as Slurm prints it above long lists. */
void slurm_print_date(struct buffer *to);
/* True if `word` is in a list with commas; a NULL list has everything. */
bool slurm_in_list(const char *list, const char *word);

#endif
