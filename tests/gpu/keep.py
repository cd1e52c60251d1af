"""keep.py GIB [export|import FILE] - keeps a pattern in GPU memory and says 'right N' as often as it finds
it there, or 'wrong' once. With export, FILE gets a handle of a piece of it; with import, the piece
behind the handle in FILE is opened, and stays open."""

import ctypes as C
import pathlib
import sys
import time

from attack import CUDA, GIB, begin

PIECE = 4 << 20


class Handle(C.Structure):
    _fields_ = [("bytes", C.c_char * 64)]


def exchange(way, path, pointer):
    handle = Handle()
    if way == "export":
        code = CUDA.cuIpcGetMemHandle(C.byref(handle), pointer)
        path.write_bytes(bytes(handle))
    else:
        C.memmove(C.byref(handle), path.read_bytes(), 64)
        code = CUDA.cuIpcOpenMemHandle_v2(C.byref(C.c_ulonglong()), handle, 1)
    print(f"{way}: {code}", flush=True)


def main():
    begin()
    gib = int(sys.argv[1])
    pointers = []
    for number in range(gib):
        pointer = C.c_ulonglong()
        if CUDA.cuMemAlloc_v2(C.byref(pointer), C.c_size_t(GIB)):
            sys.exit("refused")
        CUDA.cuMemsetD8_v2(pointer, C.c_ubyte(number % 251 + 1), C.c_size_t(GIB))
        pointers.append(pointer)
    CUDA.cuCtxSynchronize()
    if len(sys.argv) > 3:
        exchange(sys.argv[2], pathlib.Path(sys.argv[3]), pointers[0])
    host = C.create_string_buffer(PIECE)
    count = 0
    while True:
        for number, pointer in enumerate(pointers):
            at = C.c_ulonglong(pointer.value + count * PIECE % GIB)
            code = CUDA.cuMemcpyDtoH_v2(host, at, C.c_size_t(PIECE))
            if code or host.raw != bytes([number % 251 + 1]) * PIECE:
                print(f"wrong: error {code}", flush=True)
                sys.exit(4)
        count += 1
        print(f"right {count}", flush=True)
        time.sleep(0.1)


main()
