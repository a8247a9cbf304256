# Lifts covers (P12): in a mount namespace of one's own, where everything was unmounted, the kernel
# does not know the mount points of the others, so what they cover can be renamed or removed by
# descriptor. Each attempt is made in a process of its own. Tells of each: WHAT<TAB>OUTCOME, where the
# outcome is "ok", the errno's name, or, of the namespace, "no namespace: ERRNO".
#
#   covers.py WAY ACTION PATH...    WAY: together, apart, empty, clone, clone3, setns, own (no namespace)
#                                   ACTION: rename, unlink, rmdir, exchange, over, read

import ctypes
import errno
import os
import struct
import sys

WAY, ACTION, PATHS = sys.argv[1], sys.argv[2], sys.argv[3:]
NEWNS, NEWUSER, EMPTY = 0x20000, 0x10000000, 0x100000
MS_BIND, MNT_DETACH, AT_REMOVEDIR, RENAME_EXCHANGE = 4096, 2, 0x200, 2
CLONE, CLONE3, SETNS, PIVOT_ROOT, RENAMEAT2 = 56, 435, 308, 155, 316

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def mapped(uid, gid):
    for name, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def own_namespace():
    uid, gid = os.getuid(), os.getgid()
    if WAY == "own":
        return
    if WAY == "together":
        checked(libc.unshare(NEWUSER | NEWNS))
        mapped(uid, gid)
    elif WAY == "apart":
        checked(libc.unshare(NEWUSER))
        mapped(uid, gid)
        checked(libc.unshare(NEWNS))
    elif WAY == "empty":
        # Since Linux 7.1.
        checked(libc.unshare(NEWUSER))
        mapped(uid, gid)
        checked(libc.unshare(EMPTY))
    elif WAY == "clone":
        checked(libc.unshare(NEWUSER))
        mapped(uid, gid)
        as_child(libc.syscall(CLONE, ctypes.c_ulong(NEWNS | 17), 0, 0, 0, 0))
    elif WAY == "clone3":
        checked(libc.unshare(NEWUSER))
        mapped(uid, gid)
        arguments = struct.pack("=QQQQQQQQ", NEWNS, 0, 0, 0, 17, 0, 0, 0)
        as_child(libc.syscall(CLONE3, arguments, len(arguments)))
    elif WAY == "setns":
        # Into the namespace that the process is in, which leads back to its root.
        checked(libc.unshare(NEWUSER))
        mapped(uid, gid)
        here = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        checked(libc.syscall(SETNS, here, 0))


def as_child(pid):
    if checked(pid):
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status))


def act(path):
    parent, name = os.path.split(path)
    directory = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY)
    beside = os.open("aside", os.O_RDONLY | os.O_DIRECTORY)
    try:
        own_namespace()
    except OSError as error:
        return f"no namespace: {errno.errorcode[error.errno]}"
    lifted = None
    if WAY != "own":
        # A second view of a directory that has no cover in it.
        os.makedirs("/tmp/new", exist_ok=True)
        checked(libc.mount(b"none", b"/tmp/new", b"tmpfs", 0, None))
        os.makedirs("/tmp/new/old")
        os.makedirs("/tmp/new/view")
        checked(libc.mount(b"aside", b"/tmp/new/view", None, MS_BIND, None))
        lifted = os.open("/tmp/new/view", os.O_RDONLY | os.O_DIRECTORY)
        checked(libc.syscall(PIVOT_ROOT, b"/tmp/new", b"/tmp/new/old"))
        os.chdir("/")
        checked(libc.umount2(b"/old", MNT_DETACH))
    try:
        if ACTION == "rename":
            os.rename(name, "lifted", src_dir_fd=directory, dst_dir_fd=directory)
            os.mkdir(name, dir_fd=directory)
        elif ACTION == "unlink":
            os.unlink(name, dir_fd=directory)
        elif ACTION == "rmdir":
            os.rmdir(name, dir_fd=directory)
        elif ACTION == "exchange":
            os.close(os.open("other", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=directory))
            checked(libc.syscall(RENAMEAT2, directory, name.encode(), directory, b"other", RENAME_EXCHANGE))
        elif ACTION == "over":
            os.close(os.open("other", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=directory))
            os.rename("other", name, src_dir_fd=directory, dst_dir_fd=directory)
        elif ACTION == "read":
            os.rename(name, "it", src_dir_fd=directory, dst_dir_fd=beside)
            where = beside if lifted is None else lifted
            try:
                return os.read(os.open("it", os.O_RDONLY, dir_fd=where), 100).decode().strip()
            finally:
                os.rename("it", name, src_dir_fd=beside, dst_dir_fd=directory)
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]


for path in PATHS:
    child = os.fork()
    if child == 0:
        try:
            outcome = act(path)
        except OSError as error:
            outcome = f"setup: {errno.errorcode[error.errno]}"
        os.write(1, f"{path}\t{outcome}\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
print("done", flush=True)
