# Has an overlay remove what is covered (P12): it clears "work" in its working directory when it is
# mounted, in the name of who mounts it. A copy of the mounts that is in no namespace is used, and
# everything is unmounted first, so that no cover is a mount point for the caller.
#
#   overlay.py DIRECTORY    it has "w/work" in it; tells the first step that was refused, or "mounted"

import ctypes
import errno
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
OPEN_TREE, FSOPEN, FSCONFIG, PIVOT_ROOT = 428, 430, 431, 155
CLONE, RECURSIVE, CLOEXEC, DETACH = 1, 0x8000, 0x80000, 2
FLAG, DESCRIPTOR, CREATE = 0, 5, 6


def checked(step, result):
    if result < 0:
        print(step, errno.errorcode[ctypes.get_errno()])
        sys.exit()
    return result


def mapped(uid, gid):
    for name, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


os.chdir(sys.argv[1])
os.makedirs("up", exist_ok=True)
own = os.getuid(), os.getgid()
checked("unshare", libc.unshare(0x10020000))
mapped(*own)
tree = libc.syscall(OPEN_TREE, -100, b".", CLONE | RECURSIVE | CLOEXEC)
if tree < 0:
    print("open_tree", errno.errorcode[ctypes.get_errno()])
    # The same in the namespace's own mounts.
    os.makedirs("/tmp/at", exist_ok=True)
    options = b"lowerdir=/usr,upperdir=up,workdir=w,userxattr"
    checked("mount", libc.mount(b"overlay", b"/tmp/at", b"overlay", 0, options))
    print("mounted")
    sys.exit()
checked("mount", libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
os.mkdir("/tmp/old")
os.mkdir("/tmp/lower")
checked("pivot_root", libc.syscall(PIVOT_ROOT, b"/tmp", b"/tmp/old"))
os.chdir("/")
checked("umount", libc.umount2(b"/old", DETACH))
overlay = checked("fsopen", libc.syscall(FSOPEN, b"overlay", 1))
for key, directory in [(b"lowerdir+", "/lower"), (b"upperdir", "up"), (b"workdir", "w")]:
    fd = os.open(directory, os.O_PATH, dir_fd=tree)
    checked(key.decode(), libc.syscall(FSCONFIG, overlay, DESCRIPTOR, key, None, fd))
checked("userxattr", libc.syscall(FSCONFIG, overlay, FLAG, b"userxattr", None, 0))
checked("create", libc.syscall(FSCONFIG, overlay, CREATE, None, None, 0))
print("mounted")
