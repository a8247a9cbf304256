"""A terminal with a shell at it: terminal.py KIND DELAY LINE [KEYS]

Answers what programs ask it as KIND (xterm, foot, kitty, tmux) does, each question DELAY
milliseconds after it was printed, and in their order; xterm's clipboard takes 20 ms longer, and
overtakes nothing. The shell runs LINE and then keeps what is typed for a second and a half. KEYS
are typed when LINE prints "type!", 60 ms after it began. With PRESSED in the environment these keys
are typed, each 10 ms after the other, from the end of the fence until the line has ended. With PACE
there, answers come at least so many milliseconds after each other.

Tells, each as one line of Python: what was typed, what could be seen on the screen, the modes
that are not the ordinary ones.
"""
import fcntl, os, pty, re, select, struct, sys, termios, time

KIND, DELAY, LINE = sys.argv[1], int(sys.argv[2]) / 1000, sys.argv[3]
KEYS = sys.argv[4].encode().decode("unicode_escape").encode("latin-1") if len(sys.argv) > 4 else b""
PRESSED = os.environ.get("PRESSED", "").encode()
PACE = int(os.environ.get("PACE", "0")) / 1000
NAME = {"xterm": "xterm-256color", "foot": "foot", "kitty": "xterm-kitty", "tmux": "tmux-256color"}
DA1 = {
    "xterm": b"\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c",
    "foot": b"\x1b[?62;4;22;28;29;52c",
    "kitty": b"\x1b[?62;52;c",
    "tmux": b"\x1b[?1;2;4c",
}
VERSION = {"xterm": b"XTerm(398)", "foot": b"foot(1.22.3)", "kitty": b"kitty(0.42.1)", "tmux": b"tmux 3.5a"}
SINK = "; stty raw -echo; timeout --foreground 1.5 cat > typed.bin"
if LINE.startswith("-i "):
    command = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    KEYS, LINE, first = b"", LINE[3:], True
else:
    command, first = ["bash", "-c", LINE + SINK], False

os.environ["TERM"] = os.environ.get("KIND_TERM", NAME[KIND])
pid, master = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
if first:
    os.write(master, LINE.encode() + b"\n")

row, column, saved = 1, 1, (1, 1)
modes, conceal, printer, seen, clipboard = set(), False, False, [], b""
answers, pending, keys_at, raw = [], b"", None, b""
pressed_at, last_answer = None, 0.0


def answer(text, later=0.0):
    global last_answer
    last_answer = max(time.monotonic() + DELAY + later, last_answer + PACE if PACE else 0)
    answers.append((last_answer, text))


def control(private, numbers, final):
    global row, column, saved, conceal, printer, pressed_at
    n = [int(x) if x else 0 for x in re.split("[;:]", numbers)] if numbers else [0]
    if final == "c" and private == "":
        answer(DA1[KIND])
    elif final == "n" and private == "":
        if n[0] == 5:
            answer(b"\x1b[0n")
        if n[0] == 6:
            answer(b"\x1b[%d;%dR" % (row, column))
    elif final == "q" and private == ">":
        answer(b"\x1bP>|" + VERSION[KIND] + b"\x1b\\")
    elif final == "u" and private == "?" and KIND in ("kitty", "foot"):
        answer(b"\x1b[?%du" % (1 if "kitty" in modes else 0))
    elif final == "u" and private == ">":
        modes.add("kitty")
    elif final == "u" and private in "<=":
        modes.discard("kitty")
    elif final == "m" and private == ">":
        # Without a value it is as the user set it.
        name = {1: "cursor keys", 2: "function keys"}.get(n[0], "keys")
        (modes.add if len(n) > 1 and n[-1] else modes.discard)(name)
    elif final == "z":
        (modes.add if n[0] else modes.discard)("locator")
    elif final == "b":
        # Draws for so many milliseconds, and reads nothing meanwhile.
        time.sleep(n[0] / 1000)
    elif final == "G":
        column = max(1, min(80, n[0] or 1))
    elif final == "H":
        row, column = max(1, n[0]), max(1, n[1] if len(n) > 1 else 1)
    elif final == "r":
        (modes.add if n != [0] else modes.discard)("margins")
        if PRESSED and n == [0]:
            pressed_at = time.monotonic()
        row, column = 1, 1
    elif final == "i":
        printer = n[0] == 5
    elif final == "m" and private == "":
        for x in n:
            conceal = x == 8 or conceal and x not in (0, 28)
    elif final in "hl":
        for x in n:
            if x == 6 and private:
                row, column = 1, 1
            if x == 1049 and final == "h" and 1049 not in modes:
                control.main = (row, column)
            if x == 1049 and final == "l":
                # Whether or not the other screen is shown: as xterm does, and as tmux does.
                old = control.main if KIND == "tmux" else saved
                row, column = control.main if 1049 in modes else old
            usual = x in (7, 8, 25, 1046) if private else x == 12
            (modes.add if (final == "h") != bool(usual) else modes.discard)(x if private else -x)


def string(kind, text):
    global clipboard
    if kind == "]" and (colour := re.fullmatch(rb"(1[01]);\?", text)):
        answer(b"\x1b]" + colour[1] + b";rgb:1d1d/1f1f/2121\x1b\\")
    elif kind == "]" and (clip := re.fullmatch(rb"52;([a-z]*);(.*)", text, re.S)):
        if clip[2] == b"?":
            answer(b"\x1b]52;" + clip[1] + b";" + clipboard + b"\x1b\\", 0.02 if KIND == "xterm" else 0)
        else:
            clipboard = clip[2]
    elif kind == "]" and text.startswith(b"8;"):
        (modes.add if text[2:] != b";" else modes.discard)("link")
    elif kind == "P" and text.startswith(b"$q"):
        answer(b"\x1bP1$r0" + text[2:] + b"\x1b\\")
    elif kind == "P" and text.startswith(b"+q"):
        answer(b"\x1bP1+r" + text[2:] + b"=41\x1b\\")


TOKEN = re.compile(
    rb"\x1b\[(?P<private>[<=>?]?)(?P<numbers>[0-9;:]*)[ -/]*(?P<final>[@-~])"
    rb"|\x1b(?P<kind>[\]P_^X])(?P<text>[^\x18\x07\x1b]*)(?P<end>\x18|\x07|\x1b\\|\x1b(?=[^\\]))"
    rb"|\x1b(?P<between>[ -/]+[0-~])|\x1b(?P<short>[0-OQ-WYZ\\`-~])|\x1b[\x00-\x1a]*(?=\x1b)|(?P<byte>[^\x1b])",
    re.S,
)


def show(data):
    global pending, row, column, saved, keys_at
    pending += data
    while match := TOKEN.match(pending):
        pending = pending[match.end():]
        if match["final"]:
            control(match["private"].decode(), match["numbers"].decode(), match["final"].decode())
        elif match["kind"]:
            if match["end"] in (b"\x07", b"\x1b\\"):
                string(match["kind"].decode(), match["text"])
        elif match["short"] == b"7":
            saved = (row, column)
        elif match["short"] == b"8":
            row, column = saved
        elif match["between"] in (b" F", b" G"):
            (modes.add if match["between"] == b" G" else modes.discard)("8-bit")
        elif match["short"] in (b"V", b"W"):
            (modes.add if match["short"] == b"V" else modes.discard)("guarded")
        elif match["short"] in (b"=", b">"):
            (modes.add if match["short"] == b"=" else modes.discard)("keypad")
        elif match["byte"]:
            byte = match["byte"]
            if byte == b"\r":
                column = 1
            elif byte == b"\n":
                row = min(24, row + 1)
            elif byte >= b" ":
                column = min(80, column + 1)
            if byte >= b" " or byte == b"\n":
                if not conceal and not printer and 2026 not in modes:
                    seen.append(byte)
                if KEYS and b"".join(seen[-5:]) == b"type!":
                    keys_at = time.monotonic() + 0.06


deadline = time.monotonic() + (6 if first else 30)
while time.monotonic() < deadline:
    due = [at for at, _ in answers] + [at for at in (keys_at, pressed_at) if at]
    patience = max(0, min(due + [deadline]) - time.monotonic())
    ready, _, _ = select.select([master], [], [], patience)
    if ready:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        raw += data
        show(data)
    now = time.monotonic()
    for item in [item for item in answers if item[0] <= now]:
        answers.remove(item)
        os.write(master, item[1])
    if keys_at and keys_at <= now:
        keys_at = None
        os.write(master, KEYS)
    if pressed_at and pressed_at <= now:
        pressed_at = now + 0.01
        os.write(master, PRESSED[:1])
        PRESSED = PRESSED[1:] + PRESSED[:1]
        # What the line says last.
        if b"<end>" in raw:
            pressed_at = None
os.close(master)
os.waitpid(pid, 0)
typed = open("typed.bin", "rb").read() if os.path.exists("typed.bin") else b""
print(repr(typed))
print(repr(b"".join(seen)))
print(sorted(map(str, modes)))
print(repr(raw))
