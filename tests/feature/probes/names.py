# Takes names away in every form, in a mount namespace of its own, and tells what came of each, so
# that two kernels, or a kernel and who acts for it, can be compared. Works in a new directory that
# is the first argument; the second is a directory on another file system.

import ctypes
import errno
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
RENAME, RMDIR, UNLINK, UNLINKAT, RENAMEAT, RENAMEAT2 = 82, 84, 87, 263, 264, 316
CWD, MS_BIND, MS_REMOUNT, MS_RDONLY, MS_NOSUID, MS_NODEV = -100, 4096, 32, 1, 2, 4
FROZEN = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV
REMOVEDIR, NOREPLACE, EXCHANGE = 0x200, 1, 2

os.makedirs(sys.argv[1])
os.chdir(sys.argv[1])
here = os.getcwd()
other = sys.argv[2]


def call(number, *arguments):
    given = [a.encode() if isinstance(a, str) else a for a in arguments]
    given = [ctypes.c_void_p(a) if isinstance(a, int) and a > 1 << 32 else a for a in given]
    if libc.syscall(number, *given) == 0:
        return "ok"
    return errno.errorcode[ctypes.get_errno()]


def tree():
    found = []
    for directory, directories, files in os.walk(here):
        directories.sort()
        names = [name for name in sorted(directories + files) if not name.startswith("chain")]
        found += [os.path.relpath(os.path.join(directory, name), here) for name in names]
    return " ".join(found)


def clear(directory):
    # What is a mount point, or read-only, stays.
    for entry in os.scandir(directory):
        try:
            if entry.is_dir(follow_symlinks=False):
                clear(entry.path)
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)
        except OSError:
            pass


def write(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))


def fresh():
    os.chdir(here)
    for entry in os.scandir("."):
        if not entry.name.startswith(("chain", "mount", "frozen")):
            clear(entry.path) if entry.is_dir(follow_symlinks=False) else None
            os.rmdir(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    for directory in ["d", "d/e", "full"]:
        os.mkdir(directory)
    for file in ["a", "b", "d/c", "full/x"]:
        write(file)
    opened = os.open("d", os.O_RDONLY)
    os.dup2(opened, 9)
    os.close(opened)
    os.symlink("d", "to_d")
    os.symlink(here + "/d", "to_d_absolutely")
    os.symlink("../../../../../../../../../../.." + here + "/d", "to_d_by_the_root")
    os.symlink("nowhere", "dangling")
    os.symlink("loop", "loop")
    os.symlink("a", "to_a")
    for number in range(45):
        if not os.path.lexists(f"chain{number}"):
            os.symlink(f"chain{number - 1}" if number else "d", f"chain{number}")


count = 0


def told(what, number, *arguments):
    global count
    count += 1
    result = call(number, *arguments)
    # A kernel that begins a path anew, because another processor changed names meanwhile, counts the
    # links of the first try, too.
    for _ in range(5):
        result = call(number, *arguments) if result == "ELOOP" else result
    print(f"{count} {what}: {result}; {tree()}", flush=True)


def all_of_them():
    paths = [
        "a", "./a", "d/c", "d//c", "d/./c", "d/../a", "to_d/c", "to_d_absolutely/c", "to_d_by_the_root/c",
        here + "/a", "/../.." + here + "/a", "d/e", "d/e/", "d/e//", "full", "full/", "a/", "a/x", "to_a",
        "to_a/", "to_d", "to_d/", "dangling", "dangling/", "dangling/x", "loop", "loop/x", "chain38/c",
        "chain39/c", "chain40/c", "chain44/c", ".", "..", "d/.", "d/..", "./", "", "nowhere",
        "nowhere/x", "n" * 255, "n" * 256, "d/" + "n" * 256, "/".join(["d/.."] * 700) + "/a", "x" * 5000,
        "mount", "mount/", "mount/a", "frozen/x", other + "/x", "/proc/self/cwd/a", "/proc/thread-self/cwd/d/c",
        "/proc/self/root" + here + "/a", "/proc/self/comm", "/proc/self/fd/9/c", "/dev/fd/9/c", "/proc/self/fd/77/c",
    ]
    for path in paths:
        shown = path if len(path) < 60 else f"{path[:20]}...({len(path)})"
        for name, number, arguments in [
            ("unlink", UNLINK, (path,)),
            ("rmdir", RMDIR, (path,)),
            ("rename from", RENAME, (path, "new")),
            ("rename from, slash", RENAME, (path, "new/")),
            ("rename to", RENAME, ("b", path)),
            ("rename directory to", RENAME, ("d/e", path)),
            ("exchange", RENAMEAT2, (CWD, path, CWD, "b", EXCHANGE)),
            ("noreplace", RENAMEAT2, (CWD, "b", CWD, path, NOREPLACE)),
        ]:
            fresh()
            prepare()
            told(f"{name} {shown}", number, *arguments)
    fresh()
    directory = os.open("d", os.O_RDONLY)
    by_path = os.open("d", os.O_PATH)
    file = os.open("a", os.O_RDONLY)
    for start in [directory, by_path, file, 77, -1, CWD]:
        kind = {directory: "directory", by_path: "path", file: "file"}.get(start, start)
        for flags in [0, REMOVEDIR, 1, 0x1000]:
            told(f"unlinkat {kind} c {flags}", UNLINKAT, start, "c", flags)
            told(f"unlinkat {kind} absolute {flags}", UNLINKAT, start, here + "/nowhere", flags)
            fresh()
        for flags in [0, NOREPLACE, EXCHANGE, NOREPLACE | EXCHANGE, 8, 1 << 31]:
            told(f"renameat2 {kind} {flags}", RENAMEAT2, start, "c", CWD, "a", flags)
            told(f"renameat2 to {kind} {flags}", RENAMEAT2, CWD, "b", start, "c", flags)
            fresh()
        told(f"renameat {kind}", RENAMEAT, start, "c", start, "f")
        fresh()
    for pointer in [0, 1, 1 << 40, (1 << 47) - 1, (1 << 63) + 5]:
        told(f"unlink {pointer:x}", UNLINK, ctypes.c_void_p(pointer))
        told(f"rename {pointer:x}", RENAME, "a", ctypes.c_void_p(pointer))
        told(f"rename from {pointer:x}", RENAME, ctypes.c_void_p(pointer), "a")
    for path in ["/", "//"]:
        told(f"unlink {path}", UNLINK, path)
        told(f"rmdir {path}", RMDIR, path)
    told("into itself", RENAME, "d", "d/e/f")
    told("over a full directory", RENAME, "d/e", "full")
    told("file over directory", RENAME, "a", "full")
    told("the same", RENAME, "a", "a")
    told("other file system", RENAME, "a", other + "/a")
    os.link("b", "hard")
    told("hard links", RENAME, "b", "hard")
    fresh()
    os.chdir("d/e")
    os.rmdir(here + "/d/e")
    told("in a removed directory", UNLINK, "x")
    told("out of a removed directory", UNLINK, "../c")
    told("to a removed directory", RENAME, here + "/a", "x")
    os.chdir(here)
    fresh()
    # A root of one's own. The shell is out of reach then.
    os.mkdir("root")
    os.mkdir("root/in")
    open("root/in/f", "w").close()
    os.symlink("/in", "root/link")
    os.symlink("../../../in", "root/in/up")
    outside = os.open(here, os.O_RDONLY)
    os.chroot("root")
    for path in ["/link/f", "/in/up/f", "/../../../../in/f", "/a"]:
        told(f"in a root: {path}", UNLINK, path)
        open("/in/f", "w").close() if os.path.isdir("/in") else None
    told("in a root, by descriptor", UNLINKAT, outside, "a", 0)
    told("in a root, up by descriptor", UNLINKAT, outside, "d/../b", 0)
    os.chdir("/")
    told("in a root, from the top", UNLINK, "../../in/f")


def prepare():
    # Mount points of the namespace, in the directory that was just made anew.
    if not os.path.isdir("mount"):
        os.mkdir("mount")
        os.mkdir("frozen")
        open("frozen/x", "w").close()
    if os.path.ismount("mount"):
        return
    check(libc.mount(b"none", b"mount", b"tmpfs", 0, None))
    open("mount/a", "w").close()
    check(libc.mount(b"frozen", b"frozen", None, MS_BIND, None))
    check(libc.mount(b"none", b"frozen", None, FROZEN, None))


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "mount")


all_of_them()
