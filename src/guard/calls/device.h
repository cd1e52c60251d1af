/* device.h - from the driver's numbers of devices to the GPUs of the segment */
#ifndef GUARD_CALLS_DEVICE_H
#define GUARD_CALLS_DEVICE_H

#include <stdint.h>

#include "guard/calls/driver_abi.h"

enum {
	DEVICE_UNKNOWN = -1, /* no such device, or no guard: the driver shall answer */
	DEVICE_REFUSED = -2, /* the guard cannot account for it */
};

/* The GPU in the segment that a device is. CUDA numbers the devices that are visible
 * to a process; the segment knows GPUs by UUID. */
int device_gpu(CUdevice device);

/* The GPU of the device of the calling thread's context, which is also returned
 * (0 if there is none). */
int device_current(uint64_t *context);

/* The device that a stream belongs to; -1 if there is none. */
CUdevice device_of_stream(CUstream stream);

/* In a forked child, to which other devices may be visible. */
void device_reset(void);

#endif
