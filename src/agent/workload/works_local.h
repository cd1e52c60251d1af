/* works_local.h - the inside of works: what its files share */
#ifndef AGENT_WORKLOAD_WORKS_LOCAL_H
#define AGENT_WORKLOAD_WORKS_LOCAL_H

#include "agent/keeper/keeper.h"
#include "agent/workload/works.h"
#include "base/map.h"

/* A file that is watched, and freed when it has been closed. */
struct watched {
	uv_poll_t poll;
	struct work_process *process;
	int fd;
};

/* One work. `report` is the pipe to its keeper; of one that was adopted, `keeper_end` and
 * `first_end` become readable when these processes end. */
struct work_process {
	struct works *works;
	int64_t reservation_id;
	struct arena arena; /* of order and plan */
	struct node_order *order;
	struct run_plan plan;
	struct cgroup group;
	struct keeper_status status;
	struct watched *report, *keeper_end, *first_end;
	struct buffer said; /* by the report, no whole line yet */
	bool started, refused, exited, gone;
	bool queued, cancelled; /* queued: waits to be started; cancelled: will not be */
	struct work_process *next_queued, *before_queued;
	struct works_move *move; /* of its GPU memory, under way; NULL: none is */
	bool away;               /* that is in host memory */
	int64_t before_bytes;    /* host memory that it used before it moved; 0: not known */
	uv_timer_t *look;        /* for processes that are left when the keeper is not */
	int64_t checkpoint_mark; /* of the last one that was seen */
	char pod[POD_UID_SIZE];  /* its uid; "" : it is no pod */
	bool told_clients;       /* that too many processes of it use its GPU */
	bool stopping;           /* a pod that has ended, as the scheduler says */
};

struct works {
	struct works_settings settings;
	struct map processes;
	struct work_process **list; /* in no order */
	size_t count, capacity;
	struct work_process *first_queued, *last_queued; /* that wait to be started */
	uv_idle_t *starter;                              /* runs while any does */
	struct works_trim *trim;                         /* under way; NULL: none is */
};

struct work_process *works_find(const struct works *works, int64_t reservation_id);
struct work_process *works_add(struct works *works, int64_t reservation_id);
void works_remove(struct works *works, struct work_process *process);
char *works_status_path(const struct works *works, int64_t reservation_id);
/* Of the file with the port and the keys of a slot. */
char *works_door_path(const struct works *works, int64_t reservation_id);
/* Of the file with the keys of leases on it. */
char *works_leases_path(const struct works *works, int64_t reservation_id);
/* Calls back when the file is readable. */
struct watched *works_watch(struct work_process *process, int fd, uv_poll_cb ready);
void works_unwatch(struct watched **watched);
void works_tell(struct work_process *process, enum input_kind kind, struct work_event event);
/* The pipe to its keeper is readable. */
void works_report_ready(uv_poll_t *poll, int status, int events);

/* works_pod.c */
/* Its order is there. */
void works_watch_pod(struct work_process *process);
bool works_is_pod(const struct work_process *process);
void works_look_for_pod(struct work_process *process);
int64_t works_owner_of_pod(const struct buffer *keepers, pid_t pid);

/* works_start.c */
void works_starter_open(struct works *works);
void works_starter_close(struct works *works);
/* Takes it out of the queue, if it is in it. */
void works_start_forget(struct work_process *process);
/* It is not to be started. False if that is under way already. */
bool works_start_cancel(struct work_process *process);

/* A move of its memory continues without it. */
void works_move_leave(struct work_process *process);
/* A trim that has begun continues without the works. */
void works_trim_leave(struct works *works);
/* The numbers in the name of a directory of output. False: it is another directory. */
bool works_read_name(const char *name, int64_t *job, int64_t *task, int64_t *reservation);

/* What the status file says and was not told yet. */
/* Of its guard, wherever they are now. False: there are none. */
bool works_last_counters(const struct work_process *process, const struct node_order *order,
                         struct guard_reading *reading);
void works_read_status(struct work_process *process);
/* The keeper has left: gone, once no process is left. */
void works_keeper_left(struct work_process *process);

#endif
