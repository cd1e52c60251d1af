/* quotas.h - quotas of GPUs follow what tenants use */
#ifndef CORE_QUOTAS_H
#define CORE_QUOTAS_H

struct sched;

/* Sets the quotas of tenants that follow to what is proposed, if it is time to. */
void quotas_follow(struct sched *sched);

#endif
