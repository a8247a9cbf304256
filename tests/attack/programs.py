# Tries to change a program and what lies around it (P16): its files, their names, and the names of
# the directories above them, below the home; also from a mount namespace of its own. Where each
# name leads afterwards is for others to see.
#
#   programs.py WHERE FILE...        WHERE: in_place, in_another_namespace

import ctypes
import os
import sys

NEWNS, NEWUSER, PIVOT_ROOT, MNT_DETACH = 0x20000, 0x10000000, 155, 2
HOME = os.path.expanduser("~")

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


def in_place():
    pass


def in_another_namespace():
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(NEWUSER | NEWNS))
    for name, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    os.makedirs("/tmp/new", exist_ok=True)
    checked(libc.mount(b"none", b"/tmp/new", b"tmpfs", 0, None))
    os.mkdir("/tmp/new/old")
    checked(libc.syscall(PIVOT_ROOT, b"/tmp/new", b"/tmp/new/old"))
    os.chdir("/")
    checked(libc.umount2(b"/old", MNT_DETACH))


def write(directory, name, flags):
    file = os.open(name, os.O_WRONLY | flags, 0o755, dir_fd=directory)
    os.write(file, b"#!/bin/sh\necho evil\n")
    os.close(file)


def overwrite(directory, name):
    write(directory, name, os.O_TRUNC)


def replace(directory, name):
    write(directory, "evil", os.O_CREAT)
    os.rename("evil", name, src_dir_fd=directory, dst_dir_fd=directory)


def rename(directory, name):
    os.rename(name, f"{name}-old", src_dir_fd=directory, dst_dir_fd=directory)
    os.symlink("evil", name, dir_fd=directory)


def remove(directory, name):
    os.unlink(name, dir_fd=directory)
    os.symlink("evil", name, dir_fd=directory)


def loosen(directory, name):
    os.chmod(name, 0o777, dir_fd=directory)


def attempt(where, way, path):
    parent, name = os.path.split(path)
    try:
        directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        where()
        way(directory, name)
        outcome = "ok"
    except OSError as error:
        outcome = error.strerror
    print(f"{where.__name__}\t{way.__name__}\t{path}\t{outcome}", flush=True)


def below_home(path):
    while path.startswith(HOME + "/"):
        yield path
        path = os.path.dirname(path)


paths = dict.fromkeys(above for path in sys.argv[2:] for above in below_home(path))
where = {"in_place": in_place, "in_another_namespace": in_another_namespace}[sys.argv[1]]
for way in (overwrite, replace, loosen, remove, rename):
    # The outermost last: its name is needed for the others.
    for path in sorted(paths, reverse=True):
        child = os.fork()
        if child == 0:
            attempt(where, way, path)
            os._exit(0)
        os.waitpid(child, 0)
