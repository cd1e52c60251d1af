/* resume.h - suspended jobs get their GPUs back */
#ifndef CORE_ROOM_RESUME_H
#define CORE_ROOM_RESUME_H

struct sched;

/* In a pass, before waiting jobs start: each suspended job whose GPUs are free, or will be, gets
 * them or a claim on them, unless a waiting job of its tenant goes before it in the queue and
 * fits. By priority, then by how long they have been suspended. Those that a person suspended
 * wait for a person. */
void resume_serve(struct sched *sched);

#endif
