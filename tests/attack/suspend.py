# Stops itself, by which a session is suspended, and has another process plant a setting of git's while
# nobody looks (P1). That process says that it runs, and has planted, by another number in the file
# `beat`.
#
#   suspend.py WAY     loop, threads, namespace, tangle: goes on as if nothing was
#                      wakes, exits, dies, orphans: stops, and has the kernel continue it later

import ctypes
import os
import signal
import sys
import threading
import time

WAY = sys.argv[1]
LATER = 1.5
CLOCK_MONOTONIC, SIGEV_SIGNAL, PR_SET_PDEATHSIG = 1, 0, 1
NEWUSER, NEWPID = 0x10000000, 0x20000000
libc = ctypes.CDLL(None, use_errno=True)


class Event(ctypes.Structure):
    _fields_ = [
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("how", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    ]


class Time(ctypes.Structure):
    _fields_ = [("every", ctypes.c_long * 2), ("first", ctypes.c_long * 2)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


# From a timer of the kernel's, which runs while the process is stopped.
def signal_later(number):
    timer = ctypes.c_void_p()
    event = Event(signal=number, how=SIGEV_SIGNAL)
    checked(libc.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)))
    when = Time()
    when.first[0], when.first[1] = int(LATER), int(LATER % 1 * 1e9)
    checked(libc.timer_settime(timer, 0, ctypes.byref(when), None))


beats = 0


def beat():
    global beats
    beats += 1
    with open("beat.new", "w") as file:
        file.write(str(beats))
    os.rename("beat.new", "beat")


def plant():
    with open(".git/config", "a") as file:
        file.write("[core]\n\tfsmonitor = /home/dev/project/evil\n")
    beat()


planted = 0


# It plants as seldom as keeps the session from being ended for that.
def plant_seldom():
    global planted
    if time.monotonic() - planted > 1.2:
        planted = time.monotonic()
        plant()
    beat()


def loop():
    while True:
        plant_seldom()
        time.sleep(0.02)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def child(does):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        does()
        os._exit(0)
    return pid


def in_thread():
    threading.Thread(target=loop).start()
    # The first thread alone.
    libc.syscall(60, 0)


def in_namespace():
    checked(libc.unshare(NEWUSER | NEWPID))
    child(loop)
    while True:
        time.sleep(1)


# Each continues all the others, all the time.
def tangle():
    os.setpgid(0, 0)
    group = os.getpid()
    for _ in range(3):
        if os.fork() == 0:
            break
    end = time.monotonic() + 20
    while time.monotonic() < end and os.path.exists(".git"):
        os.killpg(group, signal.SIGCONT)
        if os.getpid() == group:
            plant_seldom()


def wakes():
    signal_later(signal.SIGCONT)
    stop()
    plant()
    stop()


def exits():
    signal_later(signal.SIGCONT)
    stop()
    plant()


# By the death of its parent.
def dies():
    def is_told():
        checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGCONT))
        stop()
        plant()
        stop()

    child(is_told)
    signal_later(signal.SIGKILL)
    while True:
        time.sleep(1)


# The kernel continues a stopped process group that its last parent outside of it leaves.
def orphans():
    def is_left():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.setpgid(0, 0)
        stop()
        plant()
        stop()

    os.setsid()
    child(is_left)
    signal_later(signal.SIGKILL)
    while True:
        time.sleep(1)


does = {
    "loop": loop,
    "threads": in_thread,
    "namespace": in_namespace,
    "tangle": tangle,
    "wakes": wakes,
    "exits": exits,
    "dies": dies,
    "orphans": orphans,
}[WAY]
child(does)
time.sleep(0.5)
print("stops", flush=True)
stop()
print("goes on", flush=True)
time.sleep(60)
