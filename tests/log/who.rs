//! What a program tells the kernel about itself, when the log asks who it is.

use std::{fs, io};

use stockade_world::{Running, test};

use super::{lines, of};
use crate::support::standard;

/// Declares a terabyte of memory, which it does not use, to be its arguments, and takes a name
/// that is no text. For each line of input it then tries a port that is denied.
const IMPOSTOR: &str = "
import ctypes, socket, struct, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
size = 1 << 40
start = libc.mmap(None, size, 3, 0x4022, -1, 0)
ctypes.memset(start, 0x41, 4096)
stat = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
code, data, env = (tuple(map(int, stat[a - 3:b - 3])) for a, b in ((26, 28), (45, 48), (50, 52)))
fields = code + data + (libc.sbrk(0), int(stat[25]), start, start + size - 4096) + env
text = struct.pack('11QQII', *fields, 0, 0, 0xffffffff)
made = libc.prctl(35, 14, ctypes.create_string_buffer(text), len(text), 0)
libc.prctl(15, b'\\xff\\nPPid: 1')
print('ready' if made == 0 else 'this kernel has no PR_SET_MM_MAP', flush=True)
for line in sys.stdin:
    try:
        socket.create_connection(('10.20.0.5', int(line)), 5)
    except OSError:
        print('denied ' + line, end='', flush=True)
";

fn peak_memory(session: &Running) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", session.pid()))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    Ok(kib.expect("a peak").parse::<u64>().expect("a number") << 10)
}

#[test]
fn a_program_that_tells_endless_things_of_itself_neither_fills_the_memory_nor_stops_the_log() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let command = ["run", "--quiet", "--", "python3", "-IS", "-c", IMPOSTOR];
        let mut session = laptop.stockade(command).spawn().expect("a session");
        session.expect("ready").expect("its memory is as it says");
        for port in ["81", "82"] {
            session.write(format!("{port}\n")).expect("input");
            session.expect(&format!("denied {port}")).expect("a denial");
        }
        let peak = peak_memory(&session).expect("the warden's status");
        assert!(peak < 64 << 20, "the warden has used {} MiB", peak >> 20);
        session.close_stdin();
        let output = session.wait().expect("an end").expect_success();
        assert_eq!(output.stderr(), "");
        let lines = lines(laptop);
        let denials = of(&lines, "deny");
        assert_eq!(denials.len(), 2, "{lines:?}");
        for deny in denials {
            let process = &deny["process"];
            let exe = process["exe"].as_str().expect("its program was found");
            assert!(exe.starts_with("/usr/bin/python3"), "{exe}");
            let said = process["argv"].to_string();
            assert!(said.contains("AAAA") && said.len() < 1000, "{said}");
        }
    });
}
