# Tries to get at another process of the same user, and at sockets that it holds, and tells of
# each attempt: NAME<TAB>ok or the errno's name.
#
#   keeper.py PID       "child" for a child of its own

import ctypes
import errno
import os
import signal
import struct
import sys

PIDFD_OPEN, PIDFD_GETFD = 434, 438
PTRACE_SEIZE = 0x4206

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def child():
    pid = os.fork()
    if pid == 0:
        signal.pause()
    return pid


PID = child() if sys.argv[1] == "child" else int(sys.argv[1])


def descriptors():
    return os.listdir(f"/proc/{PID}/fd")


def an_open_file():
    open(f"/proc/{PID}/fd/0").close()


def duplicated_descriptor():
    process = checked(libc.syscall(PIDFD_OPEN, PID, 0))
    refusal = None
    for number in range(64):
        try:
            os.close(checked(libc.syscall(PIDFD_GETFD, process, number, 0)))
            return
        except OSError as error:
            refusal = error if error.errno != errno.EBADF else refusal
    raise refusal


def read_file(name):
    return lambda: open(f"/proc/{PID}/{name}", "rb").read(1) or True


def link(name):
    return lambda: os.stat(f"/proc/{PID}/{name}/.")


def memory_by_call():
    buffer = ctypes.create_string_buffer(1)
    ours = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(buffer), 1))
    # Our own libc: in a child, and nearly always in any process, something is mapped there.
    theirs = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(buffer), 1))
    checked(libc.process_vm_readv(PID, ours, 1, theirs, 1, 0))


def trace():
    checked(libc.ptrace(PTRACE_SEIZE, PID, None, None))


def namespace(name):
    return lambda: open(f"/proc/{PID}/ns/{name}").close()


ATTEMPTS = {
    "list descriptors": descriptors,
    "open a descriptor": an_open_file,
    "duplicate a descriptor": duplicated_descriptor,
    "read the environment": read_file("environ"),
    "read the memory map": read_file("maps"),
    "open the memory": lambda: open(f"/proc/{PID}/mem", "rb").close(),
    "enter the root": link("root"),
    "enter the directory": link("cwd"),
    "open the network": namespace("net"),
    "open the users": namespace("user"),
    "read memory by call": memory_by_call,
    "trace": trace,
}
for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        result = "ok"
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(name, result, sep="\t")
if sys.argv[1] == "child":
    os.kill(PID, signal.SIGKILL)
print("done", flush=True)
