"""neighbor.py HELD_GIB TURN_GIB SECONDS - holds memory, and takes and frees more of it in turn, within
its budget. Says after each turn how many of its allocations failed, and how many there were."""

import ctypes as C
import sys
import time

from attack import CUDA, GIB, begin

begin()
pointer = C.c_ulonglong()
for _ in range(int(sys.argv[1])):
    CUDA.cuMemAlloc_v2(C.byref(pointer), C.c_size_t(GIB))
failed = count = 0
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    count += 1
    if CUDA.cuMemAlloc_v2(C.byref(pointer), C.c_size_t(int(sys.argv[2]) * GIB)):
        failed += 1
    else:
        CUDA.cuMemFree_v2(pointer)
    print(failed, count, flush=True)
    time.sleep(0.02)
