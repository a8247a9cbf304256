//! Our reader against git's: both say the same of a file, or both refuse it.
//!
//! git reads one file for each process, so this is no target of libFuzzer's: inputs are made from
//! the pieces that git's syntax is made of, by a fixed seed, and from mutations of files that
//! say much. `fuzz/README.md` has the command for a long run.

use std::{env, thread};

use super::{GitProgram, Malformed, Setting, parse};

const PIECES: &[&[u8]] = &[
    b"[",
    b"]",
    b"[a]",
    b"[a]\n",
    b"[A.b]",
    b"[a \"B\"]",
    b"[a.B \"c\"]\n",
    b"[a\t\"",
    b"\"]",
    b"\"",
    b"\"",
    b"\\",
    b"\\\\",
    b"\\\"",
    b"\\n",
    b"\\t",
    b"\\b",
    b"\\\n",
    b"\\\r\n",
    b"\\x",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b" ",
    b"\t",
    b"  ",
    b"#",
    b";",
    b"=",
    b" = ",
    b"=",
    b"k",
    b"Key",
    b"k-1",
    b"fsmonitor",
    b"1",
    b"-",
    b".",
    b"_",
    b"\0",
    b"\xff",
    b"\xc3\xa4",
    b"\xef\xbb\xbf",
    b"\xef\xbb",
    b"\x0b",
    b"\x0c",
    b"\x08",
    b"\x7f",
    b"true",
    b"value",
    b"'",
    b"!",
    b"x",
    b"\"a b\"",
    b" ; c\n",
    b"[b \"c\"]\nd = e\n",
    b"\nK2 = ",
    b"\nk3\n",
    b"[include]\npath = x\n",
    b"[core]\n\tfsmonitor = ",
    b"k = v\n",
    b"k\n",
    b"# comment\n",
];

const SEEDS: &[&[u8]] = &[
    b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = \
      https://x/y\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n",
    b"[filter.a \"b\"]\n\tclean = \"x; y\" # c\n[alias] st = !f() { \\\n x; }; f\n",
    b"\xef\xbb\xbf[a]\r\nb = c\r\n d\r\n[A \"B\\\\\\\"c\"] e=\"  f  \" ; g\n",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap_or_default() % limit.max(1)
    }

    fn piece(&mut self) -> &'static [u8] {
        PIECES[self.below(PIECES.len())]
    }

    /// Some file.
    fn file(&mut self) -> Vec<u8> {
        let mut file = match self.below(4) {
            0 => SEEDS[self.below(SEEDS.len())].to_vec(),
            1 => b"[a]\n".to_vec(),
            2 => b"[a]\nk = ".to_vec(),
            _ => Vec::new(),
        };
        let most = if self.below(4) == 0 { 16 } else { 5 };
        for _ in 0..self.below(most) + 1 {
            let piece = self.piece();
            let at = match self.below(3) {
                0 => self.below(file.len() + 1),
                _ => file.len(),
            };
            let end = match self.below(4) {
                0 => (at + self.below(8)).min(file.len()),
                _ => at,
            };
            file.splice(at..end, piece.iter().copied());
        }
        file
    }
}

/// Compares so many files, and says how many both have read.
fn compare(seed: u64, count: usize) -> usize {
    let git = GitProgram::find();
    let mut random = Random(seed);
    let mut accepted = 0;
    for number in 0..count {
        let file = random.file();
        let ours: Result<Vec<Setting>, _> = parse(&file);
        let theirs = git.ask(&file).expect("git runs").ok_or(Malformed);
        let shown = String::from_utf8_lossy(&file);
        assert_eq!(ours, theirs, "seed {seed}, file {number}: {shown:?}");
        accepted += usize::from(ours.is_ok());
    }
    accepted
}

/// How many files: `STOCKADE_DIFFERENTIAL=1000000`, or a few.
#[test]
fn git_and_we_read_the_same_in_any_file() {
    const THREADS: usize = 2;
    const FEW: usize = 600;
    let count = env::var("STOCKADE_DIFFERENTIAL").ok();
    let count: usize = count.map_or(FEW, |count| count.parse().unwrap());
    // One seed for each thousand.
    let rounds = count.div_ceil(1000 * THREADS);
    let threads = (0..THREADS).map(|thread| {
        thread::spawn(move || {
            let mut accepted = 0;
            for round in 0..rounds {
                let seed = (round * THREADS + thread) as u64 + 1;
                accepted += compare(seed, (count / THREADS).min(1000));
                if round % 50 == 49 {
                    eprintln!(
                        "thread {thread}: {} files, {accepted} of them read",
                        (round + 1) * 1000
                    );
                }
            }
            accepted
        })
    });
    let threads: Vec<_> = threads.collect();
    let accepted: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    eprintln!("{count} files, {accepted} of them read by both");
    assert!(accepted * 10 > count, "{accepted} of {count}");
}
