"""hold.py MIB SECONDS [LATER_MIB AFTER_SECONDS] - takes GPU memory through the driver's own
library and keeps it; later takes more. Says what it does, a line each. Ends with 3 where it is
refused memory."""

import ctypes
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")


def check(code, what):
    if code != 0:
        print(f"{what}: error {code}", flush=True)
        sys.exit(3)


def take(mib):
    pointer = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)), f"take {mib} MiB")
    check(cuda.cuMemsetD8_v2(pointer, ctypes.c_ubyte(1), ctypes.c_size_t(mib << 20)), "fill")
    check(cuda.cuCtxSynchronize(), "wait")
    print(f"has {mib} MiB", flush=True)


def main():
    numbers = [float(word) for word in sys.argv[1:]]
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "context")
    check(cuda.cuCtxSetCurrent(context), "context")
    take(int(numbers[0]))
    end = time.monotonic() + numbers[1]
    if len(numbers) > 3:
        time.sleep(numbers[3])
        take(int(numbers[2]))
    time.sleep(max(end - time.monotonic(), 0))
    print("done", flush=True)


main()
