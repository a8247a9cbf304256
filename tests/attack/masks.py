# Tries to get at what is masked (P12): by its name, by what can be made and removed in its place, by
# moving what it lies in, and from a mount namespace of its own. Prints whatever it can read there.
#
#   masks.py PATH...

import ctypes
import os
import shutil
import sys

NEWNS, NEWUSER, PIVOT_ROOT, RENAMEAT2 = 0x20000, 0x10000000, 155, 316
MS_BIND, MNT_DETACH, RENAME_EXCHANGE = 4096, 2, 2

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def show(path):
    """Whatever can be read of a file, or of all files below a directory."""
    if os.path.isdir(path):
        for name in os.listdir(path):
            show(os.path.join(path, name))
    else:
        with open(path) as file:
            sys.stdout.write(file.read())


def by_name(path, _):
    show(path)


def by_link(path, aside):
    os.link(path, f"{aside}/link")
    show(f"{aside}/link")


def after_directory(path, _):
    os.mkdir(path)
    show(path)
    open(f"{path}/own", "w").close()
    shutil.rmtree(path)
    show(path)


def after_file(path, _):
    open(path, "w").close()
    os.unlink(path)
    show(path)


def after_rename(path, aside):
    os.mkdir(f"{aside}/own")
    os.rename(f"{aside}/own", path)
    show(path)
    os.rename(path, f"{aside}/own")
    show(path)


def after_exchange(path, aside):
    os.mkdir(f"{aside}/other")
    names = [-100, path.encode(), -100, f"{aside}/other".encode()]
    checked(libc.syscall(RENAMEAT2, *names, RENAME_EXCHANGE))
    show(f"{aside}/other")


def by_attributes(path, _):
    parent, name = os.path.split(path)
    for key, value in [("opaque", b"n"), ("redirect", name.encode()), ("metacopy", b"")]:
        try:
            os.setxattr(parent, f"user.overlay.{key}", value)
        except OSError:
            pass
    show(path)


def mapped():
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(NEWUSER | NEWNS))
    for name, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    os.makedirs("/tmp/new", exist_ok=True)
    checked(libc.mount(b"none", b"/tmp/new", b"tmpfs", 0, None))
    for name in ["old", "view", "upper", "work"]:
        os.mkdir(f"/tmp/new/{name}")


def by_moving_it_in_another_namespace(path, aside):
    parent, name = os.path.split(path)
    directory, beside = (os.open(it, os.O_RDONLY | os.O_DIRECTORY) for it in (parent, aside))
    mapped()
    # A second view of a directory that has no mask in it.
    checked(libc.mount(aside.encode(), b"/tmp/new/view", None, MS_BIND, None))
    checked(libc.syscall(PIVOT_ROOT, b"/tmp/new", b"/tmp/new/old"))
    os.chdir("/")
    checked(libc.umount2(b"/old", MNT_DETACH))
    os.rename(name, "it", src_dir_fd=directory, dst_dir_fd=beside)
    try:
        show("/view/it")
    finally:
        os.rename("it", name, src_dir_fd=beside, dst_dir_fd=directory)


def by_another_view(path, _):
    parent, name = os.path.split(path)
    mapped()
    checked(libc.mount(parent.encode(), b"/tmp/new/view", None, MS_BIND, None))
    show(f"/tmp/new/view/{name}")


def by_another_overlay(path, _):
    parent, name = os.path.split(path)
    mapped()
    layers = f"lowerdir={parent},upperdir=/tmp/new/upper,workdir=/tmp/new/work,userxattr"
    checked(libc.mount(b"overlay", b"/tmp/new/view", b"overlay", 0, layers.encode()))
    show(f"/tmp/new/view/{name}")


def by_moving_what_holds_it(path, aside):
    parent, name = os.path.split(path)
    os.rename(parent, f"{aside}/moved")
    show(f"{aside}/moved/{name}")


def after_all_is_removed(path, _):
    parent, _ = os.path.split(path)
    shutil.rmtree(parent)
    os.mkdir(parent)
    show(path)
    os.mkdir(path)
    show(path)


WAYS = [
    by_name,
    by_link,
    after_directory,
    after_file,
    after_rename,
    after_exchange,
    by_attributes,
    by_moving_it_in_another_namespace,
    by_another_view,
    by_another_overlay,
    by_moving_what_holds_it,
]
# Outside that would take the file away.
if os.environ.get("STOCKADE"):
    WAYS.append(after_all_is_removed)


def attempt(way, path):
    aside = f"{os.path.dirname(path)}/aside-{way.__name__}"
    os.makedirs(aside, exist_ok=True)
    try:
        way(path, aside)
        outcome = "ok"
    except OSError as error:
        outcome = error.strerror
    print(f"{way.__name__}\t{path}\t{outcome}", flush=True)


for path in sys.argv[1:]:
    for way in WAYS:
        child = os.fork()
        if child == 0:
            attempt(way, path)
            os._exit(0)
        os.waitpid(child, 0)
print("done", flush=True)
