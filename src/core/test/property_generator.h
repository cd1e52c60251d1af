/* property_generator.h - random commands that mostly make sense */
#ifndef CORE_TEST_PROPERTY_GENERATOR_H
#define CORE_TEST_PROPERTY_GENERATOR_H

#include "core/record/command.h"
#include "core/test/property_keeper.h"
#include "core/test/property_router.h"
#include "core/test/property_world.h"

#define TEMPLATES 24

/* A kind of job that is submitted again and again. */
struct template
{
	struct job_record job;
	int64_t uneven[PARTS_MAX];
};

/* What a stretch of a run is like: small shared GPUs, large gangs, many faults... */
struct flavour {
	int64_t waiting;                              /* jobs that should be in the queue */
	int kinds[5];                                 /* weights of enum gpu_kind */
	int split, gangs, elastic, arrays, dependent; /* percent of jobs */
	int64_t gang_tasks;                           /* at the most */
	int64_t parts;                                /* GPUs of a task, at the most */
	int constrained;          /* percent that ask for models, labels or closeness */
	int preemptible, movable; /* percent */
	int bounded;              /* percent of tenants with limits and quotas */
	int faults;               /* thousandths of commands that report something bad */
	int exits, releases;      /* percent: how soon tasks end, and memory is back */
	int64_t step_ms;          /* how fast time goes */
	int64_t models;           /* that are served, at the most; 0: none */
	int serving;              /* percent of commands that are about them */
	bool requests;            /* someone asks for them */
	struct template templates[TEMPLATES];
};

/* Knows what the keeper keeps and what the machines are really like. */
struct generator {
	uint64_t random;
	int64_t now_ms;
	const struct keeper *keeper;
	const struct router *router;
	struct world world;
	struct flavour flavour;
	struct arena arena;    /* what the last command points to */
	int64_t number;        /* for names */
	int64_t loads_per_gpu; /* of every configuration, so that loads can be counted */
	int64_t last_request;
};

void generator_init(struct generator *generator, uint64_t seed, const struct keeper *keeper,
                    const struct router *router);
void generator_free(struct generator *generator);
/* Another flavour from now on. */
void generator_turn(struct generator *generator);
/* The next command. It is valid until the one after it is asked for. */
struct command generator_next(struct generator *generator);

/* Parts of it, for those who want a certain command. All take their time from
 * the generator. */
struct command generator_report(struct generator *generator, struct machine *machine, bool honest);
struct command generator_tenant(struct generator *generator, const struct tenant_record *old);
struct command generator_config(struct generator *generator);

/* property_models.c: models, requests, and what nodes tell of a slot. */
struct command generator_model(struct generator *generator, const struct model_record *old);
bool generate_serving(struct generator *generator, struct command *command);
bool generate_slot_progress(struct generator *generator, struct command *command, int64_t id);

/* property_submit.c: kinds of jobs for the flavour, and a submission of one. */
void generator_draw_templates(struct generator *generator);
bool generate_submit(struct generator *generator, struct command *command);

#endif
