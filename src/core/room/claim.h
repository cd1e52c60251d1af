/* claim.h - claims: memory that is being freed, and who is waiting for it */
#ifndef CORE_ROOM_CLAIM_H
#define CORE_ROOM_CLAIM_H

struct sched;

/* In a pass, for jobs and then for slots, by id: claims whose memory is back become
 * rights, all of a job's together; those that cannot be served any more (the release
 * is late, the GPU is closed, a gang lost more since) lapse, and their owners are
 * placed again. */
void claims_serve(struct sched *sched);

#endif
