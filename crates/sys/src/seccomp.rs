//! System call filters.
//!
//! The filter for the command is a list of refusals: what is not named is allowed. Such a
//! list is only as good as its knowledge of the ways in, so [`Filter::new`] closes the two other
//! tables through which a 64-bit process can call the kernel:
//! - another architecture's (i386 by `int 0x80`): the process is killed;
//! - x32's, on x86-64, whose numbers carry bit 30: "no such system call".
//!
//! A call that is newer than this list gets the same answer: programs use an older one then.
//!
//! The filter for the warden's own threads is the opposite, [`Filter::allow_only`].

use std::{collections::BTreeMap, env::consts::ARCH, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

// The numbers of system calls, under the names that tables of them are written with.
pub use libc::{
    SYS_bpf as BPF, SYS_clone as CLONE, SYS_clone3 as CLONE3, SYS_fcntl as FCNTL,
    SYS_fsmount as FSMOUNT, SYS_io_uring_setup as IO_URING_SETUP, SYS_ioctl as IOCTL,
    SYS_landlock_create_ruleset as LANDLOCK_CREATE_RULESET, SYS_open_tree as OPEN_TREE,
    SYS_openat2 as OPENAT2, SYS_perf_event_open as PERF_EVENT_OPEN, SYS_prlimit64 as PRLIMIT64,
    SYS_setns as SETNS, SYS_setrlimit as SETRLIMIT, SYS_syslog as SYSLOG, SYS_unshare as UNSHARE,
    SYS_userfaultfd as USERFAULTFD,
};
/// open_tree_attr(2), which libc does not have; the same on all architectures.
pub const OPEN_TREE_ATTR: i64 = 467;
/// fchmodat2(2), which libc has for some targets only; the same on all architectures.
const FCHMODAT2: i64 = 452;
/// The calls that make sockets.
pub const SOCKETS: [i64; 2] = [libc::SYS_socket, libc::SYS_socketpair];
/// The calls for the kernel's key store.
pub const KEYS: [i64; 3] = [libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key];

/// The calls that give a file the mode in one of their arguments, and which that is.
pub const MODE_GIVING: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// The calls that do so if they make a file, which their flags say; the mode comes after these.
pub const OPENING: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// The newest call that the refusals were written with knowledge of: listns(2), of Linux 6.19. New
/// calls have the same numbers on all architectures.
const NEWEST_CALL: u32 = 470;

#[derive(Debug, Clone)]
pub struct Refusal {
    /// For people, such as `setns(CLONE_NEWNS)`.
    pub name: &'static str,
    pub call: i64,
    /// Only if all of these hold; always, if there are none.
    pub when: Vec<Argument>,
    pub answer: Answer,
    pub reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// EPERM.
    NotPermitted,
    /// ENOSYS, upon which programs try an older call.
    NoSuchCall,
    /// EAFNOSUPPORT, upon which programs try another family of sockets.
    NoSuchFamily,
    /// EOPNOTSUPP, which says that the kernel has it and it is turned off.
    TurnedOff,
    /// Success, and nothing is done: for what programs give up at if it fails, and do not need.
    Ignored,
}

impl Answer {
    const ALL: [Self; 5] = [
        Self::NotPermitted,
        Self::NoSuchCall,
        Self::NoSuchFamily,
        Self::TurnedOff,
        Self::Ignored,
    ];

    pub fn errno(self) -> i32 {
        match self {
            Self::NotPermitted => libc::EPERM,
            Self::NoSuchCall => libc::ENOSYS,
            Self::NoSuchFamily => libc::EAFNOSUPPORT,
            Self::TurnedOff => libc::EOPNOTSUPP,
            Self::Ignored => 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Which, from 0.
    index: u8,
    /// Those of its bits that are compared, and their value. The high 32 are not, unless it is a
    /// pointer: the kernel does not look at them either where it takes an `unsigned int`, and a
    /// program could set them.
    mask: u32,
    value: u32,
    /// It has any other value.
    negated: bool,
    /// All of its 64 bits are compared.
    is_pointer: bool,
}

impl Argument {
    /// The low 32 bits of an argument have this value.
    pub const fn is(index: u8, value: u32) -> Self {
        Self::masked(index, u32::MAX, value)
    }

    /// The low 32 bits of an argument have any other value.
    pub const fn is_not(index: u8, value: u32) -> Self {
        Self {
            negated: true,
            ..Self::is(index, value)
        }
    }

    /// An argument is a pointer that is not null.
    pub const fn is_given(index: u8) -> Self {
        Self {
            is_pointer: true,
            ..Self::is_not(index, 0)
        }
    }

    /// An argument has these bits set, all of them low.
    pub const fn has(index: u8, bits: u32) -> Self {
        Self::masked(index, bits, bits)
    }

    /// Those bits of an argument that are in the mask have this value.
    pub const fn masked(index: u8, mask: u32, value: u32) -> Self {
        Self {
            index,
            mask,
            value,
            negated: false,
            is_pointer: false,
        }
    }
}

/// One system call that is allowed by [`Filter::allow_only`].
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    pub call: i64,
    /// An argument, counted from 0, and the values that it may have; any, if none are named.
    pub argument: (u8, &'static [u32]),
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no system call filter for the {ARCH} architecture")]
    Architecture,
    #[error("compiling the system call filter: {0}")]
    Compile(#[from] seccompiler::BackendError),
    #[error("installing the system call filter: {0}")]
    Install(#[from] seccompiler::Error),
}

impl From<Error> for io::Error {
    /// For those who can only pass on an error number.
    fn from(error: Error) -> Self {
        match error {
            Error::Install(
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error),
            ) => error,
            _ => Self::from_raw_os_error(libc::ENOSYS),
        }
    }
}

/// A compiled filter: one program for each kind of answer.
pub struct Filter(Vec<BpfProgram>);

impl Filter {
    /// Compiles a filter.
    ///
    /// # Errors
    /// If this machine's architecture is not known.
    pub fn new(refusals: &[Refusal]) -> Result<Self, Error> {
        let architecture = TargetArch::try_from(ARCH).map_err(|_| Error::Architecture)?;
        let mut programs = Vec::new();
        for answer in Answer::ALL {
            let mut rules = BTreeMap::<i64, Vec<SeccompRule>>::new();
            for refusal in refusals.iter().filter(|refusal| refusal.answer == answer) {
                let conditions = rules.entry(refusal.call).or_default();
                if !refusal.when.is_empty() {
                    conditions.push(all_hold(&refusal.when)?);
                }
            }
            if rules.is_empty() {
                continue;
            }
            let refused: BpfProgram = SeccompFilter::new(
                rules,
                SeccompAction::Allow,
                SeccompAction::Errno(answer.errno().unsigned_abs()),
                architecture,
            )?
            .try_into()?;
            let mut program = BpfProgram::from(guard());
            program.extend(refused);
            programs.push(program);
        }
        Ok(Self(programs))
    }

    /// Compiles a filter of the other kind: what is not named is refused with EPERM.
    ///
    /// # Errors
    /// If this machine's architecture is not known, or the list is empty.
    pub fn allow_only(allowed: &[Allowed]) -> Result<Self, Error> {
        let architecture = TargetArch::try_from(ARCH).map_err(|_| Error::Architecture)?;
        let mut rules = BTreeMap::<i64, Vec<SeccompRule>>::new();
        for allowed in allowed {
            let conditions = rules.entry(allowed.call).or_default();
            let (index, values) = allowed.argument;
            for value in values {
                conditions.push(all_hold(&[Argument::is(index, *value)])?);
            }
        }
        let program = SeccompFilter::new(
            rules,
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            SeccompAction::Allow,
            architecture,
        )?;
        Ok(Self(vec![program.try_into()?]))
    }

    /// Binds the calling thread, and all it will start, to this filter, for good. Also
    /// gives up the gaining of privilege through exec, without which the kernel refuses.
    ///
    /// # Errors
    /// If the kernel has no system call filters.
    pub fn install(&self) -> Result<(), Error> {
        for program in &self.0 {
            seccompiler::apply_filter(program)?;
        }
        Ok(())
    }
}

fn all_hold(arguments: &[Argument]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = |argument: &Argument| {
        let Argument {
            index,
            mask,
            value,
            negated,
            is_pointer,
        } = *argument;
        let length = match is_pointer {
            true => SeccompCmpArgLen::Qword,
            false => SeccompCmpArgLen::Dword,
        };
        let comparison = match negated {
            true => SeccompCmpOp::Ne,
            false => SeccompCmpOp::MaskedEq(mask.into()),
        };
        SeccompCondition::new(index, length, comparison, value.into())
    };
    SeccompRule::new(arguments.iter().map(condition).collect::<Result<_, _>>()?)
}

/// Answers ENOSYS to every number beyond the newest call that is known here, so to those with bit 30
/// set, too. It stands before the check of the architecture: no other one's table reaches that far.
fn guard() -> [sock_filter; 3] {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const OFFSET_OF_NUMBER: u32 = 0;

    let instruction = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    [
        instruction(LOAD_WORD, 0, OFFSET_OF_NUMBER),
        instruction(JUMP_IF_GREATER, 1, NEWEST_CALL),
        instruction(
            RETURN,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::thread;
    #[cfg(target_arch = "x86_64")]
    use std::{os::unix::process::ExitStatusExt, process::Command};

    use super::*;

    const REQUEST: u32 = 0x5412;

    fn filter() -> Filter {
        Filter::new(&[Refusal {
            name: "",
            call: IOCTL,
            when: vec![Argument::is(1, REQUEST)],
            answer: Answer::NotPermitted,
            reason: "a test",
        }])
        .unwrap()
    }

    /// The error number that ioctl(2), by this number, answers on no descriptor at all.
    fn ioctl(call: i64, request: u64) -> Option<i32> {
        // SAFETY: descriptor -1 does not exist, so whatever the request, the kernel has
        // nothing to act on and reads no memory.
        let result = unsafe { libc::syscall(call, -1, request, 0) };
        assert_eq!(result, -1);
        io::Error::last_os_error().raw_os_error()
    }

    #[test]
    fn a_refusal_looks_at_the_low_bits_only_and_at_nothing_else() {
        // On a thread of its own, since a filter is for good.
        thread::spawn(|| {
            let request = u64::from(REQUEST);
            assert_eq!(ioctl(IOCTL, request), Some(libc::EBADF));
            filter().install().unwrap();
            assert_eq!(ioctl(IOCTL, request), Some(libc::EPERM));
            assert_eq!(ioctl(IOCTL, request | 1 << 32), Some(libc::EPERM));
            assert_eq!(ioctl(IOCTL, request + 1), Some(libc::EBADF));
        })
        .join()
        .unwrap();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_x32_table_is_not_there() {
        // x32's own ioctl has number 514, the 64-bit one is accepted, too.
        const X32_BIT: i64 = 0x4000_0000;
        thread::spawn(|| {
            filter().install().unwrap();
            for call in [514, IOCTL] {
                let answer = ioctl(call | X32_BIT, u64::from(REQUEST));
                assert_eq!(answer, Some(libc::ENOSYS));
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_call_that_is_newer_than_the_filter_is_not_there() {
        let newer = i64::from(NEWEST_CALL) + 1;
        thread::spawn(move || {
            filter().install().unwrap();
            assert_eq!(ioctl(newer, 0), Some(libc::ENOSYS));
            assert_eq!(ioctl(IOCTL, 0), Some(libc::EBADF));
        })
        .join()
        .unwrap();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_through_the_i386_table_kills() {
        let run = |name: &str| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", name])
                .output()
                .unwrap()
                .status
        };
        let without = run("seccomp::tests::i386_call");
        if !without.success() {
            eprintln!("skipped: this kernel has no i386 table ({without})");
            return;
        }
        let with = run("seccomp::tests::i386_call_under_the_filter");
        assert_eq!(with.signal(), Some(libc::SIGSYS));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "run by another test, in a process of its own"]
    fn i386_call() {
        let mut number = 20_u64;
        // SAFETY: 20 is getpid in the i386 table: it takes and touches nothing. The
        // kernel may clear r8 to r11 on this way in, hence they are given up.
        unsafe {
            std::arch::asm!("int 0x80", inout("rax") number,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        assert_eq!(number, u64::from(std::process::id()));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "run by another test, in a process of its own"]
    fn i386_call_under_the_filter() {
        filter().install().unwrap();
        i386_call();
    }
}
