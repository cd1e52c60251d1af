/* config_range.h - what the numbers of a configuration may be, and what they are by default */
#ifndef CORE_RECORD_CONFIG_RANGE_H
#define CORE_RECORD_CONFIG_RANGE_H

#include "core/record/types.h"

/* Least, most, default: written as plain numbers, since settings and their documentation
 * show them as they stand here. The upper bounds also keep sums of times and of priorities
 * far from the end of 64 bits. */
#define RANGE_DEFAULT_PRIORITY 0, 1000000, 500
#define RANGE_AGEING_PER_MINUTE 0, 100000, 10
#define RANGE_AGEING_CAP 0, 1000000, 5000
#define RANGE_USAGE_HALF_LIFE_HOURS 1, 87600, 168
#define RANGE_MIN_RUNTIME_MS 0, 2592000000, 0
#define RANGE_RELEASE_TIMEOUT_MS 0, 86400000, 60000
#define RANGE_GANG_GRACE_MS 0, 86400000, 60000
#define RANGE_REFUSE_BACKOFF_MS 0, 86400000, 5000
#define RANGE_GRACE_MS 0, 86400000, 30000
#define RANGE_RETENTION_MS 0, 2592000000, 3600000
#define RANGE_PREDICT_JOBS 0, 1000000, 32768
#define RANGE_PREDICT_EXPERTS 0, 10000000, 8192
#define RANGE_PROMISE_JOBS 0, 1000, 4
#define RANGE_PROMISE_GPUS 0, 1000000, 2
#define RANGE_FOREIGN_TOLERANCE_MIB 0, 1000000, 0
#define RANGE_SEARCH_PAUSE_US 0, 1000000, 1000
#define RANGE_SEARCH_WIDTH 1, 1000000, 256
#define RANGE_SHARING_WAIT_MS 1, 315360000000, 345600000
#define RANGE_SHARING_DELAY_MS 0, 86400000, 0
#define RANGE_SHARING_TURN_MS 0, 315360000000, 21600000
#define RANGE_LEASE_MS 1, 86400000, 600000
#define RANGE_LOADS_PER_GPU 1, 64, 1
#define RANGE_REQUEST_GOAL_MS 0, 86400000, 10000
#define RANGE_TURN_WAIT_MS 0, 86400000, 30000
#define RANGE_SLOT_STAY_MS 0, 86400000, 10000
#define RANGE_LOADING_PERCENT 1, 100, 50
#define RANGE_FOREIGN_REQUEUES 0, 1000, 3
#define RANGE_SUSPEND_HOST_PERCENT 0, 100, 50
#define RANGE_SUSPEND_WAIT_MS 0, 315360000000, 3600000
#define RANGE_DEADLINE_RISK_PERCENT 0, 100, 20
#define RANGE_QUOTA_FOLLOW_DAYS 0, 3650, 0

#define RANGE_MOST_OF(least, most, otherwise) (most)
#define RANGE_DEFAULT_OF(least, most, otherwise) (otherwise)
/* Of a RANGE_ above, which is expanded first. */
#define RANGE_MOST(range) RANGE_MOST_OF(range)
#define RANGE_DEFAULT(range) RANGE_DEFAULT_OF(range)

#define AGEING_PER_MINUTE_MAX RANGE_MOST(RANGE_AGEING_PER_MINUTE)

#endif
