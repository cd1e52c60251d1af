"""neighbor.py HELD_GIB TURN_GIB SECONDS [FILE] - holds memory, and takes and frees more of it in turn,
within its budget. Writes after each turn how many of its allocations failed, and how many there
were: to FILE, or as a line."""

import ctypes as C
import pathlib
import sys
import time

from attack import CUDA, GIB, begin


def tell(failed, count):
    if len(sys.argv) > 4:
        pathlib.Path(sys.argv[4]).write_text(f"{failed} {count}\n")
    else:
        print(failed, count, flush=True)


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
    tell(failed, count)
    time.sleep(0.02)
