#!/usr/bin/env python3
"""Lists what a program can get at from where it runs.

    stockade run -- python3 audit.py            for people
    stockade run -- python3 audit.py --json     for the test behind docs/exposed.md

Four lists: files, sockets, environment variables, processes. It knows nothing of
Stockade and believes no mode bits where it can try: a file counts as readable if it was
opened, a socket as connectable if it was connected to. Nothing is changed.

Files of the system (SYSTEM, below) are the same for every user of the machine and are not
listed, except what is not: files that others may not read, anything that can be
written to, and sockets.

Names of sockets given as arguments (`@` for an abstract one) are tried besides those found.
`--below=DIRECTORY` looks for files there only.
"""

import json
import os
import socket
import stat
import sys

SYSTEM = (
    "/bin /etc /gnu/store /home/linuxbrew/.linuxbrew /lib /lib32 /lib64 /libx32 /nix/store "
    "/opt /run/current-system /sbin /usr"
).split()

# What leads to others' secrets or memory, and is worth a line of its own for each process.
TELLING = "auxv cwd environ exe fd maps mem net root stack syscall".split()


def is_below(path, places):
    return any(path == place or path.startswith(place + "/") for place in places)


def opens(path, how):
    """Whether a regular file can be opened."""
    try:
        os.close(os.open(path, how | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
        return True
    except OSError:
        return False


def access(path, mode):
    """What can be done with a file or directory: some of "r" and "w"."""
    if stat.S_ISREG(mode):
        return "".join(
            letter
            for letter, how in (("r", os.O_RDONLY), ("w", os.O_WRONLY))
            if opens(path, how)
        )
    if stat.S_ISDIR(mode):
        # A directory that can be listed shows names only; its files speak for themselves.
        return "w" if os.access(path, os.W_OK | os.X_OK) else ""
    # Devices do things when they are opened, and pipes may wait.
    is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    if is_device and os.statvfs(path).f_flag & os.ST_NODEV:
        return ""
    return "".join(
        letter for letter, how in (("r", os.R_OK), ("w", os.W_OK)) if os.access(path, how)
    )


def special_access(path, mode):
    """Of the system's files: what not everybody may do with them."""
    if not stat.S_ISDIR(mode) and not mode & stat.S_IROTH:
        return access(path, mode)
    return "w" if os.access(path, os.W_OK) else ""


def walk(top):
    """Every path below a directory with its mode, links not followed, processes left out."""
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            is_process = directory == "/proc" and is_directory and entry.name.isdigit()
            if entry.is_symlink() or is_process:
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                continue
            yield entry.path, mode
            if is_directory:
                waiting.append(entry.path)


def files_and_sockets(tops):
    files, sockets = [], []
    for path, mode in (found for top in tops for found in walk(top)):
        if stat.S_ISSOCK(mode):
            sockets.append(path)
            continue
        judge = special_access if is_below(path, SYSTEM) else access
        found = judge(path, mode)
        if found:
            files.append([path, found])
    return sorted(files), sockets


def names_in_tables():
    """Sockets that some table of the kernel names, of this network or of another's."""
    tables = ["/proc/net/unix"]
    tables += [f"/proc/{pid}/net/unix" for pid in os.listdir("/proc") if pid.isdigit()]
    names = set()
    for table in tables:
        try:
            lines = open(table, errors="surrogateescape").read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split(maxsplit=7)
            if len(fields) == 8:
                names.add(fields[7])
    return names


def connects(name):
    address = "\0" + name[1:] if name.startswith("@") else name
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as attempt:
            attempt.settimeout(2)
            try:
                attempt.connect(address)
                return True
            except (OSError, UnicodeError, ValueError):
                pass
    return False


def depth(pid):
    """How many process namespaces deep a process is, as far as /proc tells."""
    for line in open(f"/proc/{pid}/status", errors="replace"):
        if line.startswith("NSpid:"):
            return len(line.split()) - 1
    return 0


def can_look(path):
    """Whether an entry of a process's directory tells anything."""
    try:
        if os.path.islink(path):
            return bool(os.readlink(path))
        if os.path.isdir(path):
            return any(can_look(f"{path}/{name}") for name in os.listdir(path))
        with open(path, "rb", buffering=0) as file:
            # Memory is there to be read, just not at its very beginning.
            return path.endswith("/mem") or bool(file.read(1))
    except OSError:
        return False


def processes():
    own_depth = depth("self")
    found = []
    for pid in sorted((pid for pid in os.listdir("/proc") if pid.isdigit()), key=int):
        try:
            name = open(f"/proc/{pid}/comm", errors="replace").read().strip()
            command = open(f"/proc/{pid}/cmdline", errors="replace").read().split("\0")
            place = "inside" if depth(pid) >= own_depth else "outside"
            if os.path.samefile(f"/proc/{pid}", "/proc/self"):
                place = "itself"
        except OSError:
            continue
        looks = [entry for entry in TELLING if can_look(f"/proc/{pid}/{entry}")]
        if any(command):
            looks.append("cmdline")
        found.append({"pid": int(pid), "name": name, "place": place, "looks": sorted(looks)})
    return found


def audit(tops, guesses):
    files, sockets = files_and_sockets(tops)
    names = sorted(set(sockets) | names_in_tables() | set(guesses))
    return {
        "files": files,
        "sockets": [name for name in names if connects(name)],
        "variables": dict(sorted(os.environ.items())),
        "processes": processes(),
    }


def tell(found):
    for title, lines in (
        ("files", [f"{how:<3}{path}" for path, how in found["files"]]),
        ("sockets", found["sockets"]),
        ("variables", [f"{name}={value}" for name, value in found["variables"].items()]),
        (
            "processes",
            [
                "{pid} {name} ({place}): ".format(**process) + " ".join(process["looks"])
                for process in found["processes"]
            ],
        ),
    ):
        print(f"{title} ({len(lines)})")
        for line in lines:
            print("  " + line.encode(errors="backslashreplace").decode())


def main():
    tops, guesses, as_json = [], [], False
    for argument in sys.argv[1:]:
        if argument == "--json":
            as_json = True
        elif argument.startswith("--below="):
            tops.append(argument.removeprefix("--below="))
        else:
            guesses.append(argument)
    found = audit(tops or ["/"], guesses)
    print(json.dumps(found)) if as_json else tell(found)


main()
