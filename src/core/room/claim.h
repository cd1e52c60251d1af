/* claim.h - claims: memory that is being freed, and who is waiting for it */
#ifndef CORE_ROOM_CLAIM_H
#define CORE_ROOM_CLAIM_H

#include <stdbool.h>

struct sched;

/* In a pass, for jobs and then for slots, by id: claims whose memory is back become
 * rights, all of a job's together; those that cannot be served any more (the release
 * is late, the GPU is closed, a gang lost more since) lapse, and their owners are
 * placed again. */
void claims_serve(struct sched *sched);

/* Whether what is releasing will still make room for the claim. */
struct reservation;
bool claim_is_sound(const struct sched *sched, const struct reservation *claim);

#endif
