/* launch.h - what a runtime is started with, derived from a slot's reservation */
#ifndef CORE_MODEL_LAUNCH_H
#define CORE_MODEL_LAUNCH_H

#include "core/cluster/reservation.h"
#include "core/record/effects.h"
#include "core/record/record.h"

/* Arguments of one load. The size was decided with the reservation; this only
 * says it in the runtime's words. */
struct launch {
	int32_t runtime; /* enum runtime */
	int64_t tensor_parallel;
	int64_t utilisation[PARTS_MAX]; /* thousandths of each GPU's capacity, rounded down */
	int64_t context, parallel;
};

/* vLLM takes a share of each GPU for good, so it gets no more than its part;
 * llama.cpp divides its context among parallel requests, so it gets the context
 * of one times their number; the others are told both as they are. */
struct launch launch_of(const struct model_record *model, const struct reservation *reservation);

#endif
