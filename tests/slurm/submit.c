/* submit.c - submits jobs to Slurm through its own library, as fast as it takes them
 *
 * submit SECONDS PROCESSES - each process submits one job after the other; prints how many
 * were taken in all, and in how many seconds. SLURM_CONF says to whom. */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void describe(job_desc_msg_t *job)
{
	static char *environment[] = { "PATH=/bin:/usr/bin", NULL };
	slurm_init_job_desc_msg(job);
	job->name = "train";
	job->script = "#!/bin/sh\ntrue\n";
	job->environment = environment;
	job->env_size = 1;
	job->work_dir = "/tmp";
	job->std_out = job->std_err = "/dev/null";
	job->min_cpus = 1;
	job->pn_min_memory = 1;
	job->tres_per_node = "gres:gpu:1";
	job->user_id = getuid();
	job->group_id = getgid();
}

/* Writes how many were taken to the pipe. */
static void submit(double until_s, int result)
{
	job_desc_msg_t job;
	submit_response_msg_t *answer = NULL;
	long count = 0;
	slurm_init(NULL);
	describe(&job);
	while (now_s() < until_s) {
		if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) {
			fprintf(stderr, "submit: %s\n", slurm_strerror(slurm_get_errno()));
			exit(1);
		}
		slurm_free_submit_response_response_msg(answer);
		count++;
	}
	if (write(result, &count, sizeof(count)) != sizeof(count))
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: submit SECONDS PROCESSES\n");
		return 2;
	}
	double began_s = now_s(), until_s = began_s + strtod(argv[1], NULL);
	int processes = (int)strtol(argv[2], NULL, 10), results[2], failed = 0;
	long count, total = 0;
	if (pipe(results) != 0)
		return 1;
	for (int i = 0; i < processes; i++) {
		if (fork() == 0) {
			submit(until_s, results[1]);
			return 0;
		}
	}
	for (int i = 0; i < processes; i++) {
		int status;
		wait(&status);
		failed += status != 0;
	}
	close(results[1]);
	while (read(results[0], &count, sizeof(count)) == sizeof(count))
		total += count;
	printf("submitted %ld seconds %.3f\n", total, now_s() - began_s);
	return failed > 0;
}
