"""attack.py NAME - tries to take more GPU memory than its limit in one way, and holds what it got
until its input ends. Under gpu-guard-run it should get no further than the limit."""

import array
import ctypes as C
import os
import socket
import subprocess
import sys
import threading

CUDA = C.CDLL("libcuda.so.1")
GIB = 1 << 30
KEPT = []


class Properties(C.Structure):
    _fields_ = [("type", C.c_int), ("handles", C.c_int), ("place", C.c_int), ("device", C.c_int),
                ("rest", C.c_ulonglong * 2)]


class Array(C.Structure):
    _fields_ = [("width", C.c_size_t), ("height", C.c_size_t), ("depth", C.c_size_t),
                ("format", C.c_int), ("channels", C.c_uint), ("flags", C.c_uint)]


class Node(C.Structure):
    _fields_ = [("type", C.c_int), ("handles", C.c_int), ("place", C.c_int), ("device", C.c_int),
                ("rest", C.c_ulonglong * 9), ("descriptions", C.c_void_p), ("count", C.c_size_t),
                ("bytes", C.c_size_t), ("pointer", C.c_ulonglong)]


class Place(C.Structure):
    _fields_ = [("type", C.c_int), ("id", C.c_int)]


def begin():
    context = C.c_void_p()
    CUDA.cuInit(0)
    if CUDA.cuDevicePrimaryCtxRetain(C.byref(context), 0) or CUDA.cuCtxSetCurrent(context):
        sys.exit("no context")
    return context


def fill(gib=64, function=None):
    """Takes a GiB at a time, until it is refused."""
    taken = 0
    while taken < gib:
        pointer = C.c_ulonglong()
        if (function or CUDA.cuMemAlloc_v2)(C.byref(pointer), C.c_size_t(GIB)):
            break
        KEPT.append(pointer)
        taken += 1
    return taken


def exported(gib):
    handle, fd = C.c_ulonglong(), C.c_int(-1)
    properties = Properties(1, 1, 1, 0)
    if CUDA.cuMemCreate(C.byref(handle), C.c_size_t(gib * GIB), C.byref(properties), C.c_ulonglong(0)):
        return None
    CUDA.cuMemExportToShareableHandle(C.byref(fd), handle, 1, C.c_ulonglong(0))
    CUDA.cuMemRelease(handle)
    return fd.value


def fdstash():
    while len(KEPT) < 12 and (fd := exported(4)) is not None:
        KEPT.append(fd)
    fill()


def fdsocket():
    """The descriptors are on their way between two sockets."""
    for _ in range(12):
        fd = exported(4)
        if fd is None:
            break
        ends = socket.socketpair()
        ends[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        os.close(fd)
        KEPT.append(ends)
    fill()


def fdsibling():
    """The descriptors are in other processes, which have no context. They end with this one, however
    it ends: their input is a pipe of it."""
    for _ in range(12):
        fd = exported(4)
        if fd is None:
            break
        os.set_inheritable(fd, True)
        KEPT.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[fd]))
        os.close(fd)
    fill()


def importnomap():
    for _ in range(12):
        fd = exported(4)
        if fd is None:
            break
        handle = C.c_ulonglong()
        CUDA.cuMemImportFromShareableHandle(C.byref(handle), C.c_void_p(fd), 1)
        os.close(fd)
        KEPT.append(handle)
    fill()


def hide():
    managed = C.c_ulonglong()
    if CUDA.cuMemAllocManaged(C.byref(managed), C.c_size_t(18 * GIB), 1) == 0:
        CUDA.cuMemsetD8_v2(managed, 1, C.c_size_t(18 * GIB))
        CUDA.cuCtxSynchronize()
    heap(17)
    fill()


def heap(gib=30):
    CUDA.cuCtxSetLimit(2, C.c_size_t(gib * GIB))
    load(b".version 7.0\n.target sm_50\n.address_size 64\n"
         b".extern .func (.param .b64 r) malloc (.param .b64 n);\n.visible .entry kernel() { .reg .b64 "
         b"%r; { .param .b64 n; st.param.b64 [n], 16; .param .b64 r; call.uni (r), malloc, (n); "
         b"ld.param.b64 %r,[r]; } ret; }\n", b"0", launch=True)
    fill()


def printf():
    CUDA.cuCtxSetLimit(1, C.c_size_t(30 * GIB))
    fill()


def stacks():
    CUDA.cuCtxSetLimit(0, C.c_size_t(120 << 10))
    fill()


def load(ptx, standin, launch=False, argument=False):
    """A module; the stand-in driver has texts of its own."""
    module, function = C.c_void_p(), C.c_void_p()
    text = standin if os.environ.get("STANDIN_STATE") else ptx
    code = CUDA.cuModuleLoadData(C.byref(module), text)
    if code or not launch:
        return code
    if CUDA.cuModuleGetFunction(C.byref(function), module, b"kernel"):
        return 2
    value = C.c_ulonglong(0)
    values = (C.c_void_p * 1)(C.cast(C.pointer(value), C.c_void_p)) if argument else None
    return CUDA.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, values, None) or CUDA.cuCtxSynchronize()


def modules():
    ptx = (".version 7.0\n.target sm_50\n.address_size 64\n"
           ".global .align 4 .b8 big[1073741824];\n.visible .entry kernel() { ret; }\n").encode()
    for _ in range(40):
        if load(ptx, b"1024 kernel=0"):
            break
    fill()


def local():
    load(b".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry kernel(.param .u64 p) {\n"
         b".local .align 4 .b8 s[122880]; .reg .u64 %r<4>; .reg .b32 %a; cvta.local.u64 %r1, s;\n"
         b"ld.param.u64 %r2,[p]; add.u64 %r3,%r1,%r2; st.u32 [%r3], 5; ld.u32 %a,[%r3+4];\n"
         b"st.u32 [%r3+8], %a; ret; }\n", b"0 kernel=122880", launch=True, argument=True)
    fill()


def graph_of(nodes, gib):
    graph, node, before = C.c_void_p(), C.c_void_p(), None
    CUDA.cuGraphCreate(C.byref(graph), 0)
    for _ in range(nodes):
        parameters = Node(type=1, place=1, bytes=gib * GIB)
        after = (C.c_void_p * 1)(before) if before else None
        if CUDA.cuGraphAddMemAllocNode(C.byref(node), graph, after, C.c_size_t(1 if before else 0),
                                       C.byref(parameters)):
            break
        before = node.value
    return graph


def run(graph):
    executable = C.c_void_p()
    if CUDA.cuGraphInstantiateWithFlags(C.byref(executable), graph, C.c_ulonglong(0)) == 0:
        CUDA.cuGraphLaunch(executable, None)
    KEPT.append(executable)


def graph():
    run(graph_of(6, 9))
    CUDA.cuCtxSynchronize()
    fill()


def graphs():
    """Each graph fits by itself; what each leaves in use does not."""
    for _ in range(6):
        run(graph_of(1, 9))
    fill()


def capture():
    stream, captured = C.c_void_p(), C.c_void_p()
    CUDA.cuStreamCreate(C.byref(stream), 1)
    CUDA.cuStreamBeginCapture_v2(stream, 2)
    for _ in range(6):
        pointer = C.c_ulonglong()
        CUDA.cuMemAllocAsync(C.byref(pointer), C.c_size_t(9 * GIB), stream)
    if CUDA.cuStreamEndCapture(stream, C.byref(captured)) == 0 and captured.value:
        run(captured)
    fill()


def thin(width=1, height=32768, depth=1024, flags=0):
    for _ in range(20):
        one = C.c_void_p()
        if CUDA.cuArray3DCreate_v2(C.byref(one), C.byref(Array(width, height, depth, 1, 1, flags))):
            break
        KEPT.append(one)
    fill()


def thinlayers():
    thin(1, 16384, 2048, 1)


def thinmipmaps():
    for _ in range(20):
        one = C.c_void_p()
        if CUDA.cuMipmappedArrayCreate(C.byref(one), C.byref(Array(1, 32768, 1024, 1, 1, 0)), 2):
            break
        KEPT.append(one)
    fill()


def fragments():
    pieces = []
    while len(pieces) < 20 * 2048:
        pointer = C.c_ulonglong()
        if CUDA.cuMemAlloc_v2(C.byref(pointer), C.c_size_t(512 << 10)):
            break
        pieces.append(pointer)
    for number, pointer in enumerate(pieces):
        if number % 4:
            CUDA.cuMemFree_v2(pointer)
    fill()


def threads():
    context = begin()

    def take():
        CUDA.cuCtxSetCurrent(context)
        fill(8)

    workers = [threading.Thread(target=take) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def managedpool():
    pool, pointer = C.c_void_p(), C.c_ulonglong()
    if CUDA.cuMemGetDefaultMemPool(C.byref(pool), C.byref(Place(1, 0)), 2) == 0:
        for _ in range(40):
            if CUDA.cuMemAllocFromPoolAsync(C.byref(pointer), C.c_size_t(GIB), pool, None):
                break
            CUDA.cuMemsetD8_v2(pointer, 1, C.c_size_t(GIB))
    fill()


def again(*arguments, **options):
    """The same program with the words 'plain' and whatever environment is left."""
    KEPT.append(subprocess.Popen([*arguments, sys.executable, __file__, "plain"],
                                 stdin=sys.stdin, **options))
    KEPT[-1].wait()


def cleaned():
    again("env", "-i", *[f"{name}={os.environ[name]}" for name in KEPT_NAMES if name in os.environ])


def unset():
    again(env={name: os.environ[name] for name in KEPT_NAMES if name in os.environ})


KEPT_NAMES = ("PATH", "LD_LIBRARY_PATH", "STANDIN_STATE", "STANDIN_MEMORY", "CUDA_VISIBLE_DEVICES")


def through(library):
    """The driver by another way than the process found it."""
    find = C.CDLL(None).dlsym
    find.restype, find.argtypes = C.c_void_p, [C.c_void_p, C.c_char_p]
    address = find(library, b"cuMemAlloc_v2")
    fill(64, C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_size_t)(address) if address else None)


def deepbind():
    opened = C.CDLL("libcuda.so.1", mode=C.RTLD_GLOBAL | os.RTLD_DEEPBIND)
    fill(64, opened.cuMemAlloc_v2)


def dlmopen():
    load_apart = C.CDLL(None).dlmopen
    load_apart.restype, load_apart.argtypes = C.c_void_p, [C.c_long, C.c_char_p, C.c_int]
    handle = load_apart(-1, b"libcuda.so.1", 2)
    if handle:
        through(handle)
    fill()


def plain():
    fill()


def main():
    name = sys.argv[1]
    begin()
    globals()[name]()
    print("done", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
