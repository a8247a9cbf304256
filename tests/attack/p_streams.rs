//! What a program inside makes of the files that it was given as standard streams (P5).

use std::fs;

use stockade_world::{Laptop, test};

use super::f_files::said;
use super::probe::Place;
use crate::support::standard;

/// Beyond what the sandbox shows, so that only the stream leads there.
const FILES: &str = "mkdir -p ~/private && cd ~/private && printf 'first\\nsecond\\n' > file";

/// What a line of the user's shell prints. In it, `walled` runs a command inside.
fn outside(laptop: &Laptop, line: &str) -> String {
    let prefix = "walled() { stockade run --quiet -- \"$@\"; }; bare() { \"$@\"; }; cd ~/project; ";
    said(laptop, Place::Outside, &format!("{prefix}{line}"))
}

/// Tries to change or read the file behind a descriptor; says what succeeded.
const ATTACK: &str = r#"
import ctypes, fcntl, os, sys
fd = int(sys.argv[1])
path = f"/proc/self/fd/{fd}"
def attempt(name, act):
    try:
        if act() is not False: print(name, file=sys.stderr if fd == 1 else sys.stdout)
    except OSError:
        pass
def read():
    other = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    return b"first" in os.read(other, 100)
def write(flags):
    other = os.open(path, os.O_WRONLY | os.O_NONBLOCK | flags)
    os.pwrite(other, b"FORGED", 0)
def overwrite():
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.pwrite(fd, b"FORGED", 0)
def mapped():
    import mmap
    mmap.mmap(os.open(path, os.O_RDWR), 5)[:5] = b"FORGE"
attempt("truncate", lambda: os.ftruncate(fd, 3))
attempt("overwrite", overwrite)
attempt("chmod", lambda: os.fchmod(fd, 0o600) if os.path.isfile(path) else False)
attempt("chmod-path", lambda: os.chmod(path, 0o600) if os.path.isfile(path) else False)
attempt("times", lambda: os.utime(path, (1, 1)) if os.path.isfile(path) else False)
attempt("read", read)
attempt("write", lambda: write(0))
attempt("cut", lambda: write(os.O_TRUNC))
attempt("append", lambda: write(os.O_APPEND))
attempt("map", mapped)
attempt("link", lambda: os.link(path, "stolen", follow_symlinks=True))
attempt("name", lambda: "private" in os.readlink(path))
"#;

#[test]
fn p05_a_file_given_as_input_can_be_read_and_nothing_else() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.workspace().join("attack.py"), ATTACK).expect("write");
        for redirection in ["0< ~/private/file", "0<> ~/private/file"] {
            let attack = |who: &str| {
                outside(
                    laptop,
                    &format!(
                        "({FILES}); {who} python3 attack.py 0 {redirection}; cat ~/private/file"
                    ),
                )
            };
            let bare = attack("bare");
            for act in ["write", "cut", "chmod", "times", "name"] {
                assert!(bare.lines().any(|line| line == act), "{act}: {bare}");
            }
            assert!(bare.contains("FORGED"), "{bare}");
            assert_eq!(attack("walled"), "read\nfirst\nsecond\n", "{redirection}");
        }
        // One without a name, a long here-document, is a copy that nobody else has.
        let line = "walled python3 attack.py 0 <<< first$(seq 100000 | tr -d '\\n')";
        assert_eq!(outside(laptop, line), "chmod\nchmod-path\ntimes\nread\n");
    });
}

#[test]
fn p05_a_file_given_for_output_can_be_written_to_and_nothing_else() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.workspace().join("attack.py"), ATTACK).expect("write");
        for redirection in ["1>> ~/private/file", "1<> ~/private/file"] {
            let attack = |who: &str| {
                outside(
                    laptop,
                    &format!(
                        "({FILES}); {{ {who} python3 attack.py 1 {redirection}; }} 2>&1; cat ~/private/file"
                    ),
                )
            };
            let bare = attack("bare");
            for act in ["truncate", "overwrite", "chmod", "cut"] {
                assert!(bare.lines().any(|line| line == act), "{act}: {bare}");
            }
            assert_eq!(attack("walled"), "first\nsecond\n", "{redirection}");
        }
        let log = "echo secret > ~/log; walled bash -c 'cat /proc/self/fd/2; : > /dev/stderr; : > /proc/self/fd/2; echo more >&2' 2>> ~/log; cat ~/log";
        // What it reads is its own pipe, so it waits there for itself: hence no `cat` alone.
        let log = log.replace("cat /proc/self/fd/2", "timeout 0.2 cat /proc/self/fd/2");
        assert_eq!(outside(laptop, &log), "secret\nmore\n");
    });
}

/// Types a line into whatever else reads from the same pipe.
const TYPE: &str = "timeout 2 sh -c 'echo \"touch ~/private/typed\" > /proc/self/fd/0'; true";
/// Whoever opens a pipe anew gets its other end, too.
#[test]
fn p05_a_pipe_to_read_cannot_be_written_to() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let write = |name: &str, text: &str| {
            fs::write(laptop.workspace().join(name), text).expect("write");
        };
        write("type.sh", TYPE);
        let (bare, walled) = ("", "stockade run --quiet -- ");
        for shell in ["bash", "sh"] {
            let attack = |who: &str| {
                let script = format!("'{who}sh type.sh\necho goes on\n'");
                let line = format!("printf {script} | {shell}; ls ~/private");
                outside(
                    laptop,
                    &format!("rm -rf ~/private; mkdir ~/private; {line}"),
                )
            };
            assert_eq!(
                attack(bare),
                "goes on\ntyped\n",
                "{shell}: positive control"
            );
            assert_eq!(attack(walled), "goes on\n", "{shell}");
        }
        // The other end of a pipe, given as if it were this one, is refused.
        for stream in ["0>&1", "1<&0", "2<&0"] {
            let line = format!(
                "true | stockade run --quiet -- true {stream} | cat; echo ${{PIPESTATUS[1]}}"
            );
            assert_eq!(outside(laptop, &line), "125\n", "{stream}");
        }
    });
}

#[test]
fn streams_that_are_pipes_work_as_without_the_sandbox() {
    let lines = [
        // Each reads no further than it needs.
        "printf 'a\\nb\\nc\\n' | while read x; do WHO echo got $x; done",
        "printf 'a\\nb\\nc\\nd\\n' | while read x; do WHO bash -c 'read y; echo $y'; echo $x; done",
        "seq 100000 | { WHO head -c 10; wc -c; }",
        "seq 100000 | { WHO true; WHO dd bs=500 count=1 2>/dev/null | wc -c; wc -c; }",
        "printf 'WHO true\\necho on\\n' | sed 's/WHO/'\"$(test WHO = bare || echo stockade run --quiet --)\"/ | bash",
        "seq 200000 | WHO sort -rn | head -n 2",
        "head -c 30000000 /dev/urandom > r; cat r | WHO cat | cmp - r && echo same",
        "WHO yes | head -n 1; yes | WHO head -n 1; echo ${PIPESTATUS[@]}",
        "WHO bash -c 'for i in {1..50}; do echo $i; echo $i >&2; done' 2>&1 | cat",
        "WHO bash -c 'echo out; echo err >&2; exit 3' 2> >(cat >&1; sleep 0.1) | cat; echo ${PIPESTATUS[0]}; sleep 0.5",
        "WHO cat < <(sleep 0.3; echo late)",
        "sleep 60 | { WHO true; echo $?; pkill -P $$ sleep; }",
        "true | WHO cat; echo $?",
        "mkfifo f; (printf '1\\n2\\n' > f &); { WHO head -c 2; cat; } < f; rm f",
        // Its writer may have ended before the session starts, or write later.
        "mkfifo f; (echo hi > f &); timeout 30 cat f > /dev/null; (echo hi > f &); WHO timeout 30 cat < f; echo $?; rm f",
        "mkfifo f; (exec > f; echo hi; sleep 1; echo ho) & WHO timeout 30 cat < f; rm f",
        // A program that looks for the end of its reader learns of it.
        "echo x > f; WHO timeout 30 tail -f f | head -n 1; echo $((PIPESTATUS[0] == 124)); rm f",
        "{ WHO bash -c 'sleep 0.2; echo 1'; echo 2; } | cat",
        // One that makes its pipe larger than ours.
        "seq 20000 | WHO python3 -c 'import fcntl, sys; fcntl.fcntl(0, 1031, 1 << 20); print(sum(map(int, sys.stdin)))'",
        // A reader that takes its time gets all of it.
        "WHO seq 30000 | (sleep 12; wc -l)",
        // Lines of programs that share a pipe stay whole.
        "(WHO yes a | head -n 3000 & WHO bash -c 'for i in {1..3000}; do echo b; done' & wait) | sort -u",
    ];
    test(&standard(), |world| {
        for line in lines {
            let bare = outside(world.laptop(), &line.replace("WHO", "bare"));
            let walled = outside(world.laptop(), &line.replace("WHO", "walled"));
            assert_eq!(walled, bare, "{line}");
            assert!(!bare.is_empty(), "{line}");
        }
    });
}

#[test]
fn p05_a_directory_is_refused_as_a_stream() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line =
            "(cat /proc/self/fd/0/etc/hostname || ls /proc/self/fd/0/home) < / 2>&1 | head -n 1";
        assert_ne!(outside(laptop, line), "");
        for redirection in ["< /", "< ~", "> out 2< /"] {
            let line = format!(
                "stockade run -- bash -c 'echo ran; ls /proc/self/fd/0/' {redirection}; echo $?"
            );
            let output = laptop
                .command("bash")
                .args(["-c", &line])
                .run()
                .expect("the end");
            assert_eq!(output.stdout(), "125\n", "{redirection}");
            if !redirection.contains("2<") {
                assert!(
                    output.stderr().contains("standard input is a directory"),
                    "{output:?}"
                );
                assert!(output.stderr().contains("< /dev/null"), "{output:?}");
            }
        }
    });
}

/// Runs a command with a stream of its own kind as standard error: `STREAM COMMAND…`. Reads from it
/// only when the command has made its file, and a moment later. Tells the code and what it read.
const CALLER: &str = r#"
import os, socket, subprocess, sys, time
kind, command = sys.argv[1], sys.argv[2:]
if kind == 'pipe':
    ours, theirs = os.pipe()
else:
    a, b = socket.socketpair()
    ours, theirs = a.detach(), b.detach()
others = theirs if kind == 'sockets' else subprocess.DEVNULL
if os.path.exists('done'): os.remove('done')
running = subprocess.Popen(command, stdin=others, stdout=others, stderr=theirs)
os.close(theirs)
while not os.path.exists('done') and running.poll() is None: time.sleep(0.01)
time.sleep(0.5)
said = b''
while block := os.read(ours, 65536): said += block
print(running.wait(), said.replace(b'x', b'').decode())
"#;

/// Does to the stream what keeps others from writing to it.
const SILENCE: &str = r#"
import fcntl, os, socket, stat
for fd in 0, 1, 2:
    if stat.S_ISSOCK(os.fstat(fd).st_mode):
        socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_WR)
if stat.S_ISFIFO(os.fstat(2).st_mode):
    flags = fcntl.fcntl(2, fcntl.F_GETFL)
    fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK | os.O_DIRECT)
    try:
        fcntl.fcntl(2, 1031, 4096)
        while True: os.write(2, b'x')
    except OSError: pass
if os.environ.get('STOCKADE'):
    socket.socket().connect_ex(('10.20.0.5', 80))
    open('done', 'w')
os._exit(3)
"#;

#[test]
fn p04_no_stream_keeps_the_receipt_back() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::write(laptop.workspace().join("silence.py"), SILENCE).expect("write");
        let call = |kind: &str, command: &[&str]| {
            let caller = laptop.command("/usr/bin/python3");
            let caller = caller.args(["-IS", "-c", CALLER, kind]).args(command);
            caller.run().expect("an end").expect_success().stdout()
        };
        for kind in ["pipe", "socket", "sockets"] {
            let line = "python3 silence.py; echo said >&2; touch done; exit 3";
            let bare = call(kind, &["sh", "-c", line]);
            assert!(!bare.contains("said"), "{kind}: {bare}");
            let walled = call(kind, &["stockade", "run", "--", "python3", "silence.py"]);
            assert!(walled.starts_with("3 "), "{kind}: {walled}");
            assert!(
                walled.contains("denied tcp://10.20.0.5:80"),
                "{kind}: {walled}"
            );
            assert!(walled.contains("stockade allow"), "{kind}: {walled}");
        }
    });
}

/// Process 1 has the same user, and needs descriptors.
#[test]
fn p04_who_makes_the_sandbox_fail_hides_nothing_from_the_receipt() {
    const FAIL: &str = r#"
import resource, socket, time
socket.socket().connect_ex(('10.20.0.5', 80))
open('.envrc', 'w').write('evil')
resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
time.sleep(60)
"#;
    test(&standard(), |world| {
        let laptop = world.laptop();
        let session = laptop.stockade(["run", "--", "/usr/bin/python3", "-IS", "-c", FAIL]);
        let lost = session.run().expect("an end").expect_code(125);
        let told = lost.stderr();
        for part in [
            "denied tcp://10.20.0.5:80",
            ".envrc",
            "a program inside kept process 1",
        ] {
            assert!(told.contains(part), "{told}");
        }
    });
}

/// The reader of a socket takes nothing, and keeps it open.
#[test]
fn p04_a_reader_that_takes_nothing_loses_neither_receipt_nor_exit_code() {
    const CALLER: &str = r#"
import socket, subprocess, sys
kind, command = sys.argv[1], sys.argv[2:]
ours, theirs = socket.socketpair()
errors = theirs if kind == 'both' else subprocess.PIPE
running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=errors)
said = running.stderr.read().decode() if running.stderr else ''
print(running.wait(), said)
"#;
    // What is left of the output when the command ends fills the socket.
    const FILL: &str = "exec 3<>/dev/tcp/10.20.0.5/80; head -c 3000000 /dev/zero & sleep 1; exit 3";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for kind in ["output", "both"] {
            let caller = laptop.command("/usr/bin/python3");
            let words = ["stockade", "run", "--", "bash", "-c", FILL];
            let caller = caller.args(["-IS", "-c", CALLER, kind]).args(words);
            let said = caller.run().expect("an end").expect_success().stdout();
            assert!(said.starts_with("3 "), "{kind}: {said}");
            if kind == "output" {
                assert!(said.contains("its reader took nothing"), "{said}");
                assert!(said.contains("denied tcp://10.20.0.5:80"), "{said}");
                assert!(said.contains("stockade allow"), "{said}");
            }
            let log = laptop.stockade(["log", "--json"]).run().expect("an end");
            let last = log.stdout().lines().last().unwrap_or_default().to_owned();
            assert!(
                last.contains("\"end\"") && last.contains("\"code\":3"),
                "{kind}: {last}"
            );
        }
    });
}

/// A socket is of the host's network, in which it can be connected anew.
#[test]
fn p05_a_socket_given_as_input_is_no_way_to_the_hosts_network() {
    const CALLER: &str = r#"
import socket, subprocess, sys
way, command = sys.argv[1], sys.argv[2:]
wanted = socket.create_server(('127.0.0.1', 0))
wanted.settimeout(1)
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(('127.0.0.1', 0))
heard.settimeout(1)
if way == 'stream':
    server = socket.create_server(('127.0.0.1', 0))
    given = socket.create_connection(server.getsockname())
else:
    given = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    given.bind(('127.0.0.1', 0))
ports = [str(it.getsockname()[1]) for it in (wanted, heard)]
running = subprocess.run(command + ports, stdin=given, capture_output=True, text=True, timeout=60)
def got(act):
    try: act(); return True
    except TimeoutError: return False
print(running.stdout, running.returncode, got(wanted.accept), got(lambda: heard.recv(9)))
"#;
    const ATTACK: &str = r#"
import ctypes, socket, sys
stream, datagram = [('127.0.0.1', int(port)) for port in sys.argv[1:]]
def attempt(name, act):
    try: act(); print(name)
    except OSError: pass
def again():
    ctypes.CDLL(None).connect(0, bytes(16), 16)
    given().connect(stream)
def given():
    kept.append(socket.socket(fileno=0))
    return kept[-1]
kept = []
attempt('connect', again)
attempt('send', lambda: given().sendto(b'x', datagram))
print('tried')
"#;
    test(&standard(), |world| {
        let call = |way: &str, prefix: &[&str]| {
            let caller = world.laptop().command("/usr/bin/python3");
            let caller = caller.args(["-IS", "-c", CALLER, way]).args(prefix);
            let caller = caller.args(["/usr/bin/python3", "-IS", "-c", ATTACK]);
            caller.run().expect("an end").expect_success().stdout()
        };
        for (way, control) in [
            ("stream", "connect\nsend\ntried\n 0 True False\n"),
            ("message", "connect\nsend\ntried\n 0 False True\n"),
        ] {
            assert_eq!(call(way, &[]), control, "positive control");
            for mode in [&["--mode", "none"][..], &[]] {
                let prefix = ["stockade", "run", "--quiet"].iter().chain(mode);
                let prefix: Vec<_> = prefix.copied().chain(["--"]).collect();
                assert_eq!(call(way, &prefix), "tried\n 0 False False\n", "{prefix:?}");
            }
        }
    });
}

/// A program outside, or another session, can be given an end of the command's output, and keep it.
#[test]
fn p04_who_is_handed_a_stream_does_not_keep_the_session_from_its_end() {
    const CALLER: &str = r#"
import socket, subprocess, sys
server = socket.socket(socket.AF_UNIX)
server.bind('given.sock')
server.listen()
with open('../out', 'wb') as out:
    running = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=out)
    code = running.wait(60)
_, fds, _, _ = socket.recv_fds(server.accept()[0], 9, 1)
print(code, len(fds), len(open('../out', 'rb').read()))
"#;
    const GIVE: &str = r#"
import socket, sys
sys.stdout.write('x' * 50000)
sys.stdout.flush()
there = socket.socket(socket.AF_UNIX)
there.connect('given.sock')
socket.send_fds(there, [b'x'], [1])
sys.exit(4)
"#;
    test(&standard(), |world| {
        let caller = world.laptop().command("/usr/bin/python3");
        let caller = caller.args(["-IS", "-c", CALLER, "stockade", "run", "--quiet", "--"]);
        let caller = caller.args(["/usr/bin/python3", "-IS", "-c", GIVE]);
        let said = caller.run().expect("an end").expect_success().stdout();
        assert_eq!(said, "4 1 50000\n");
    });
}

/// Who reads a script from a socket, as a shell does by ssh, goes on with what its commands did not read.
#[test]
fn a_socket_as_input_is_read_no_further_than_the_command_does() {
    const CALLER: &str = r#"
import socket, subprocess, sys
ours, theirs = socket.socketpair()
ours.sendall(sys.argv[1].encode())
ours.shutdown(socket.SHUT_WR)
print(subprocess.run(['bash', '-s'], stdin=theirs, stdout=subprocess.PIPE, text=True).stdout)
"#;
    const SCRIPT: &str = "echo one\nWHO true\nWHO sh -c 'read line; echo $line'\nfor the command\necho two\nWHO cat\nrest\n";
    test(&standard(), |world| {
        let call = |prefix: &str| {
            let script = SCRIPT.replace("WHO", prefix);
            let caller = world.laptop().command("/usr/bin/python3");
            let caller = caller.args(["-IS", "-c", CALLER, &script]);
            caller.run().expect("an end").expect_success().stdout()
        };
        let bare = call("");
        assert_eq!(bare, "one\nfor the command\ntwo\nrest\n\n");
        assert_eq!(call("stockade run --quiet --"), bare);
    });
}

#[test]
fn streams_that_are_sockets_work_as_without_the_sandbox() {
    const CALLER: &str = r#"
import socket, subprocess, sys
def call(command, shared):
    pairs = [socket.socketpair() for _ in range(1 if shared else 3)]
    theirs = [pair[1] for pair in pairs] * (3 if shared else 1)
    running = subprocess.Popen(command, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2])
    for _, end in pairs: end.close()
    pairs[0][0].sendall(b'first\nsecond\n')
    pairs[0][0].shutdown(socket.SHUT_WR)
    for ours, _ in pairs[1:] + pairs[:1]:
        said = b''
        while block := ours.recv(65536): said += block
        print(len(said), said[:40])
    print(running.wait())
for shared in False, True:
    call(sys.argv[1:] + ['bash', '-c', 'cat; echo error >&2; head -c 3000000 /dev/zero; exit 4'], shared)
"#;
    test(&standard(), |world| {
        let call = |prefix: &[&str]| {
            let caller = world.laptop().command("/usr/bin/python3");
            let caller = caller.args(["-IS", "-c", CALLER]).args(prefix);
            caller.run().expect("an end").expect_success().stdout()
        };
        let bare = call(&[]);
        assert!(bare.contains("3000013") && bare.contains("first"), "{bare}");
        assert_eq!(call(&["stockade", "run", "--quiet", "--"]), bare);
    });
}

#[test]
fn streams_that_are_files_work_as_without_the_sandbox() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::create_dir_all(laptop.home().join("private")).expect("a directory");
        let seek = "python3 -c \"import os, sys, mmap; f = sys.stdin.buffer; f.seek(0, 2); print(f.tell(), os.fstat(0).st_size); print(mmap.mmap(0, 0, access=mmap.ACCESS_READ)[:5]); f.seek(6); print(f.read())\"";
        let lines = [
            format!("({FILES}); WHO sort -r < ~/private/file"),
            format!("({FILES}); WHO {seek} < ~/private/file"),
            format!("({FILES}); WHO wc -c < ~/private/file"),
            format!("({FILES}); {{ WHO head -c 6; cat; }} < ~/private/file"),
            format!("({FILES}); {{ read x; WHO cat; echo $x; }} < ~/private/file"),
            // Each reads no further than it needs.
            format!("({FILES}); while read line; do WHO echo got $line; done < ~/private/file"),
            format!("({FILES}); while read line; do WHO bash -c 'read next; echo $next'; done < ~/private/file"),
            "WHO bash -c 'echo out; echo err >&2' > ~/private/a 2> ~/private/b; cat ~/private/a ~/private/b".to_owned(),
            "WHO bash -c 'for i in {1..50}; do echo $i; echo $i >&2; done' > ~/private/a 2>&1; cat ~/private/a".to_owned(),
            "echo 1 > ~/private/a; WHO echo 2 >> ~/private/a; WHO bash -c 'echo 3 >&2' 2>> ~/private/a; cat ~/private/a".to_owned(),
            "{ echo before; WHO echo inside; echo after; } > ~/private/a; cat ~/private/a".to_owned(),
            // Others write to the same file meanwhile.
            "(echo A; WHO echo hi | cat; echo B) > ~/private/a 2>&1; cat ~/private/a".to_owned(),
            "mkfifo -m 600 go; { WHO bash -c 'echo one; cat go; echo three' & until grep -q one ~/private/a; do sleep 0.01; done; echo two; echo > go; wait; echo four; } > ~/private/a; rm go; cat ~/private/a".to_owned(),
            format!("({FILES}); {{ WHO true <&3; head -n 1 <&3; WHO true <&3; cat <&3; }} 3< ~/private/file"),
            "WHO echo x > /dev/stdout; WHO bash -c 'echo y > /dev/stderr; exit 4' 2> ~/private/a; echo $?; cat ~/private/a".to_owned(),
            "WHO head -c 20000000 /dev/zero > ~/private/a; stat -c %s ~/private/a".to_owned(),
            "echo 1 > ~/private/a; WHO head -c 20000000 /dev/zero >> ~/private/a; stat -c %s ~/private/a".to_owned(),
            "WHO cat < /proc/sys/kernel/ostype".to_owned(),
            "WHO cat <<< word; WHO wc -c <<< $(seq 50000); seq 5 | WHO tee ~/private/none 2>/dev/null | tail -n 1".to_owned(),
            "WHO cat < /dev/null > /dev/null; echo $?; yes | WHO head -n 1; WHO yes | head -n 1".to_owned(),
            "rm -f ~/private/a; WHO git --version > ~/private/a; grep -c version ~/private/a".to_owned(),
            format!("({FILES}); exec 5< ~/private/file; rm ~/private/file; WHO cat <&5; cat <&5; echo end"),
        ];
        for line in lines {
            let run = |who: &str| outside(laptop, &line.replace("WHO", who));
            let bare = run("bare");
            assert_ne!(bare, "", "{line}");
            assert_eq!(run("walled"), bare, "{line}");
        }
        // A full disk is an error, and not a silence.
        let full = "mount -t tmpfs -o size=64k tmpfs ~/private 2>/dev/null; stockade run --quiet -- bash -c 'head -c 1000000 /dev/zero' > ~/private/full; echo $?";
        let output = laptop
            .command("unshare")
            .args([
                "--user",
                "--map-current-user",
                "--keep-caps",
                "--mount",
                "bash",
                "-c",
                full,
            ])
            .run()
            .expect("the end");
        assert_eq!(output.stdout(), "125\n", "{output:?}");
        assert!(
            output.stderr().contains("the file is incomplete"),
            "{output:?}"
        );
    });
}
