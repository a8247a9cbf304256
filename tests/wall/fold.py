# Shows a directory at another place, where capitals do not count, as a server of Windows or macOS does.
# It speaks the kernel's own protocol (FUSE), as much of it as reading needs. A server knows a file again by
# its number on the disk ("disk"), or only by the path by which it was asked for ("path").
import ctypes
import errno
import os
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 25, 26, 27, 28, 29, 36, 42

source, place, known_by = sys.argv[1:]
kernel = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={kernel},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"fold", place.encode(), b"fuse", 0, options.encode()):
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
# Who started this waits until it is there.
if os.fork():
    os._exit(0)
os.close(1)
os.close(2)
paths, numbers = {1: source}, {}


def attributes(path, number):
    s = os.lstat(path)
    times = int(s.st_atime), int(s.st_mtime), int(s.st_ctime), 0, 0, 0
    return struct.pack("<6Q10I", number, s.st_size, s.st_blocks, *times,
                       s.st_mode, s.st_nlink, s.st_uid, s.st_gid, 0, 4096, 0)


def look_up(directory, name):
    for entry in os.listdir(paths[directory]):
        if entry.lower() == name.lower():
            path = os.path.join(paths[directory], entry)
            known = os.lstat(path).st_ino if known_by == "disk" else (directory, name)
            number = numbers.setdefault(known, len(numbers) + 2)
            paths[number] = path
            return struct.pack("<4QII", number, 0, 0, 0, 0, 0) + attributes(path, number)
    raise FileNotFoundError(errno.ENOENT, name)


def entries(path, offset, size):
    answer = b""
    for number, name in list(enumerate([".", ".."] + sorted(os.listdir(path))))[offset:]:
        s, name = os.lstat(os.path.join(path, name)), os.fsencode(name)
        entry = struct.pack("<QQII", s.st_ino, number + 1, len(name), stat.S_IFMT(s.st_mode) >> 12) + name
        entry += b"\0" * (-len(entry) % 8)
        if len(answer) + len(entry) > size:
            break
        answer += entry
    return answer


def answer(call, number, body):
    path = paths[number] if number else source
    if call == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 4096, 0, 12, 10, 65536, 1, 16, 0, *[0] * 8)
    if call == LOOKUP:
        return look_up(number, os.fsdecode(body.split(b"\0")[0]))
    if call == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes(path, number)
    if call == OPEN:
        return struct.pack("<QII", os.open(path, os.O_RDONLY), 0, 0)
    if call == READ:
        file, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(file, size, offset)
    if call == READDIR:
        return entries(path, *struct.unpack_from("<QI", body, 8))
    if call == OPENDIR:
        return struct.pack("<QII", 0, 0, 0)
    if call == STATFS:
        return struct.pack("<5Q10I", *[1 << 20] * 5, 4096, 255, 4096, *[0] * 7)
    if call == RELEASE:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""
    if call in (RELEASEDIR, FLUSH):
        return b""
    raise OSError(errno.ENOSYS, "unknown")


while True:
    try:
        request = os.read(kernel, 1 << 17)
    except OSError as error:
        if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
            continue
        # It is mounted no more.
        break
    length, call, unique, number = struct.unpack_from("<IIQQ", request)
    if call in (FORGET, BATCH_FORGET, INTERRUPT):
        continue
    try:
        said, error = answer(call, number, request[40:length]), 0
    except OSError as failure:
        said, error = b"", -failure.errno
    try:
        os.write(kernel, struct.pack("<IiQ", 16 + len(said), error, unique) + said)
    except OSError:
        # The caller is gone.
        pass
