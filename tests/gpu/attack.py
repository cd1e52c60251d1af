"""attack.py NAME - tries to take more GPU memory than its limit in one way, and holds what it got
until its input ends, or for ATTACK_HOLD seconds. Under gpu-guard-run it should get no further than
the limit."""

import array
import ctypes as C
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import threading
import time

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
        return None
    return context


def fill(gib=64, function=None):
    """Takes a GiB at a time, until it is refused."""
    begin()
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


KEPT_NAMES = ("PATH", "LD_LIBRARY_PATH", "STANDIN_STATE", "STANDIN_MEMORY", "CUDA_VISIBLE_DEVICES",
              "ATTACK_HOLD")


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


def call(name, *arguments):
    """A function that this driver may not have."""
    function = getattr(CUDA, name, None)
    return function(*arguments) if function else 801


def helper(*words, **options):
    """This program with other words. It ends with this one, however that ends: its input is a pipe
    of it."""
    environment = {name: value for name, value in os.environ.items() if name != "ATTACK_HOLD"}
    return subprocess.Popen([sys.executable, __file__, *map(str, words)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, env=environment, **options)


def contexts():
    """One process, as many contexts as it gets."""
    for _ in range(100):
        context = C.c_void_p()
        if CUDA.cuCtxCreate_v2(C.byref(context), 0, 0):
            break
    fill()


def swarm():
    """Sixty processes make their contexts at the same time."""
    KEPT.extend(helper("nothing") for _ in range(60))
    for one in KEPT:
        one.stdout.readline()
    fill()


def nothing():
    pass


def relay():
    """A process is killed with all that the task may have; the next takes as much at once."""
    for _ in range(6):
        one = helper("plain")
        one.stdout.readline()
        one.kill()
        one.wait()
    fill()


def killed():
    """Processes are killed in the midst of allocating and freeing."""
    chance = random.Random(1)
    for _ in range(5):
        group = [helper("churn") for _ in range(8)]
        for one in group:
            one.stdout.readline()
        time.sleep(chance.random() / 10)
        for one in group:
            one.kill()
            one.wait()
    fill()


def churn():
    print("begun", flush=True)
    while True:
        pointers = [C.c_ulonglong() for _ in range(4)]
        codes = [CUDA.cuMemAlloc_v2(C.byref(pointer), C.c_size_t(GIB // 4)) for pointer in pointers]
        for pointer, code in zip(pointers, codes):
            if code == 0:
                CUDA.cuMemFree_v2(pointer)


def reexec():
    """The memory of a program that calls exec."""
    fill()
    os.execv(sys.executable, [sys.executable, __file__, "plain"])


def orphans():
    """A process that ends while a child of it still has its descriptors of the driver."""
    for _ in range(6):
        one = helper("leaver")
        KEPT.append(one)
        one.stdout.readline()
        time.sleep(0.2)
    fill()


def leaver():
    fill()
    if os.fork() == 0:
        print("left", flush=True)
        sys.stdin.read()
    os._exit(0)


def ipcstash():
    """The memory of a process that has freed it, and that another still has open."""
    class Handle(C.Structure):
        _fields_ = [("bytes", C.c_char * 64)]

    for _ in range(6):
        one = helper("giver")
        KEPT.append(one)
        text = one.stdout.readline().strip()
        if len(text) != 128:
            break
        handle, pointer = Handle(), C.c_ulonglong()
        C.memmove(C.byref(handle), bytes.fromhex(text), 64)
        CUDA.cuIpcOpenMemHandle_v2(C.byref(pointer), handle, 1)
        one.stdin.write("free\n")
        one.stdin.flush()
        one.stdout.readline()
    fill()


def giver():
    handle, pointer = C.create_string_buffer(64), C.c_ulonglong()
    if CUDA.cuMemAlloc_v2(C.byref(pointer), C.c_size_t(9 * GIB)) == 0:
        CUDA.cuIpcGetMemHandle(handle, pointer)
        print(handle.raw.hex(), flush=True)
        sys.stdin.readline()
        CUDA.cuMemFree_v2(pointer)


class Pool(C.Structure):
    _fields_ = [("type", C.c_int), ("handles", C.c_int), ("place", C.c_int), ("device", C.c_int),
                ("rest", C.c_ulonglong * 9)]


def poolexport():
    """Pools that are destroyed while a descriptor of them is open."""
    for _ in range(6):
        pool, pointer, fd = C.c_void_p(), C.c_ulonglong(), C.c_int(-1)
        if CUDA.cuMemPoolCreate(C.byref(pool), C.byref(Pool(1, 1, 1, 0))):
            break
        if CUDA.cuMemAllocFromPoolAsync(C.byref(pointer), C.c_size_t(9 * GIB), pool, None):
            break
        CUDA.cuCtxSynchronize()
        call("cuMemPoolExportToShareableHandle", C.byref(fd), pool, 1, C.c_ulonglong(0))
        CUDA.cuMemFreeAsync(pointer, None)
        CUDA.cuCtxSynchronize()
        CUDA.cuMemPoolDestroy(pool)
    fill()


def streams():
    for _ in range(20000):
        if CUDA.cuStreamCreate(C.byref(C.c_void_p()), 1):
            break
    fill()


def libraries():
    """Libraries with a GiB of variables each, loaded when somebody asks for them."""
    ptx = (".version 7.0\n.target sm_50\n.address_size 64\n"
           ".visible .global .align 4 .b8 big[1073741824];\n.visible .entry kernel() { ret; }\n").encode()
    for _ in range(40):
        library, pointer, size = C.c_void_p(), C.c_ulonglong(), C.c_size_t()
        if call("cuLibraryLoadData", C.byref(library), ptx, None, None, 0, None, None, 0):
            break
        if call("cuLibraryGetGlobal", C.byref(pointer), C.byref(size), library, b"big"):
            break
    fill()


def managedglobals():
    """Modules with managed variables, which NVML shows for no process."""
    ptx = (".version 7.0\n.target sm_50\n.address_size 64\n"
           ".visible .global .attribute(.managed) .align 4 .b8 big[1073741824];\n"
           ".visible .entry kernel() { ret; }\n").encode()
    for _ in range(30):
        module, pointer, size = C.c_void_p(), C.c_ulonglong(), C.c_size_t()
        text = b"0 kernel=0 managed=1024" if os.environ.get("STANDIN_STATE") else ptx
        if CUDA.cuModuleLoadData(C.byref(module), text):
            break
        if CUDA.cuModuleGetGlobal_v2(C.byref(pointer), C.byref(size), module, b"big"):
            break
        CUDA.cuMemsetD8_v2(pointer, 1, C.c_size_t(GIB))
        CUDA.cuCtxSynchronize()
    fill()


def pitch():
    """Rows of one byte, which the driver makes 512 wide."""
    for _ in range(40):
        pointer, width = C.c_ulonglong(), C.c_size_t()
        if CUDA.cuMemAllocPitch_v2(C.byref(pointer), C.byref(width), C.c_size_t(1),
                                   C.c_size_t(80 << 20), 4):
            continue
        KEPT.append(pointer)
    fill()


def pending():
    """Kernels that kernels launch, and that wait."""
    CUDA.cuCtxSetLimit(4, C.c_size_t(200_000_000))
    CUDA.cuCtxSetLimit(3, C.c_size_t(24))
    fill()


def driver_image():
    """The driver in this process's memory: its file and where it begins."""
    for line in open("/proc/self/maps"):
        if "libcuda.so" in line and line.split()[2] == "00000000":
            return line.split()[-1], int(line.split("-")[0], 16)
    sys.exit("no driver")


def symbol_in(path, wanted):
    """The place of a function in a shared library, read from its file."""
    image = pathlib.Path(path).read_bytes()
    table, size, count = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * size) for i in range(count)]
    for kind, offset, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind != 11:
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, 24):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, at)
            end = image.index(b"\0", names + name)
            if image[names + name:end] == wanted and value:
                return value
    sys.exit("no symbol")


def rawsymbol():
    """Calls the driver's function where it is, found without asking anybody."""
    path, base = driver_image()
    address = base + symbol_in(path, b"cuMemAlloc_v2")
    fill(64, C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_size_t)(address))


def rawexec():
    """A program that is started by a system call, without the guard's variables."""
    environment = [f"{name}={os.environ[name]}".encode() for name in KEPT_NAMES if name in os.environ]
    words = [sys.executable.encode(), __file__.encode(), b"plain"]
    child = os.fork()
    if child == 0:
        C.CDLL(None).syscall(59, words[0], (C.c_char_p * 4)(*words, None),
                             (C.c_char_p * (len(environment) + 1))(*environment, None))
        os._exit(1)
    os.waitpid(child, 0)


def limit_in(segment):
    """Where the limit of the first GPU is in the guard's segment."""
    limit = int(os.environ["GPU_GUARD_LIMITS"].split("=")[1].split("M")[0]) << 20
    return segment.index(struct.pack("<q", limit))


def tamper():
    """Writes its limit."""
    path = pathlib.Path(os.environ["GPU_GUARD_SEGMENT"])
    with path.open("r+b") as file:
        file.seek(limit_in(path.read_bytes()))
        file.write(struct.pack("<q", 200 * GIB))
    fill()


def remap():
    """Puts a copy of the guard's accounting in its place, and writes its limit there."""
    path = os.environ["GPU_GUARD_SEGMENT"]
    libc = C.CDLL(None)
    libc.mmap.restype, libc.mmap.argtypes = C.c_void_p, [C.c_void_p, C.c_size_t] + [C.c_int] * 3 + [C.c_long]
    for line in open("/proc/self/maps"):
        if line.rstrip().endswith(path):
            begin_, end = (int(word, 16) for word in line.split()[0].split("-"))
            before = C.string_at(begin_, end - begin_)
            libc.mmap(begin_, end - begin_, 3, 0x32, -1, 0)
            C.memmove(begin_, before, len(before))
            C.memmove(begin_ + limit_in(before), struct.pack("<q", 200 * GIB), 8)
    fill()


WITHOUT_CONTEXT = ("swarm", "relay", "killed", "orphans", "rawexec")


def main():
    name = sys.argv[1]
    if name not in WITHOUT_CONTEXT:
        begin()
    globals()[name]()
    print("done", flush=True)
    if "ATTACK_HOLD" in os.environ:
        time.sleep(float(os.environ["ATTACK_HOLD"]))
    else:
        sys.stdin.read()


if __name__ == "__main__":
    main()
