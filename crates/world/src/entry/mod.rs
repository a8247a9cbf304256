//! Getting into the world: one process becomes three, each with less to lose.
//!
//! A world needs fresh namespaces of nearly every kind, and a process
//! with several threads (a test under libtest) cannot enter a user namespace.
//! So the executable runs itself again, through util-linux' `unshare`, and
//! finds out by an environment variable which stage it is:
//!
//! ```text
//!  outside   the test process; waits, enforces the time limit, passes on the outcome
//!    │ root only: unshare --mount
//!  drop      binds the executables to a place that an ordinary user can reach,
//!    │       then becomes uid 61000
//!    │ unshare --user --net --ipc --uts --mount --pid --fork
//!  init      pid 1: reaps orphans, so that no zombie of the product confuses a test
//!    │
//!  world     checks the guard, builds the world, runs the body
//! ```
//!
//! Root gives up root first because a world must mean the same for every
//! caller. A uid other than 0 is mapped inside because a process of uid 0
//! without CAP_SETFCAP cannot map itself into a further user namespace, which
//! is what the product does. [`Login::Root`] keeps uid 0 on purpose.
//!
//! The outside process holds the life of all others: it is the parent that
//! `--pdeathsig` watches, `unshare --kill-child` passes the death on to pid 1,
//! and with pid 1 the kernel kills everything inside.

mod outside;
mod stages;

use std::ffi::OsString;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::thread;

use crate::builder::Builder;
use crate::guard::NetnsId;
use crate::world::World;

const STAGE: &str = "STOCKADE_WORLD_STAGE";
const OUTSIDE_NETNS: &str = "STOCKADE_WORLD_OUTSIDE_NETNS";
/// Where the drop stage left the programs that the builder named.
const PROGRAMS: &str = "STOCKADE_WORLD_PROGRAMS";

/// Exit code of a body that ran to its end. Not 0: libtest also ends with 0
/// when no test matched the name, and that must not count as passed.
const PASSED: i32 = 90;
const FAILED: i32 = 91;

/// Which user the laptop's programs run as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// uid 1000 without capabilities, `/home/dev`.
    #[default]
    Dev,
    /// uid 0 with every capability *of the world's user namespace*, `/root`.
    ///
    /// When the caller is real root, this is the real uid 0: files of root
    /// belong to it, `/proc/sys/kernel` is writable for it, and only the
    /// read-only mounts and the private `/dev` of the world stand between a
    /// careless test and the machine. Otherwise it is the caller's own uid
    /// that looks like 0, as in a rootless container.
    Root,
}

/// Proof of being inside the fresh namespaces; needed to build a [`World`].
#[derive(Debug)]
pub struct Inside {
    pub(crate) outside: NetnsId,
    pub(crate) programs: Option<OsString>,
}

/// What a test body may return.
pub trait Verdict {
    fn failure(self) -> Option<String>;
}

impl Verdict for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Debug> Verdict for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

/// Runs `body` in a new world. To be called from a `#[test]` function, in
/// which nothing else happens: outside, the call never runs `body`.
///
/// Panics if the body fails, with everything that it printed.
#[track_caller]
pub fn test<R: Verdict>(builder: &Builder, body: impl FnOnce(&mut World) -> R) {
    inside(builder, |inside| {
        let mut world = match builder.build(inside) {
            Ok(world) => world,
            Err(error) => return Some(error.to_string()),
        };
        body(&mut world).failure()
    });
}

/// Enters the namespaces as [`test()`] does, and leaves it to `body` to build a
/// world there or not. Of `builder`, only the login, the programs and the time
/// limit matter.
#[track_caller]
pub fn test_inside<R: Verdict>(builder: &Builder, body: impl FnOnce(Inside) -> R) {
    inside(builder, |inside| body(inside).failure());
}

#[track_caller]
fn inside(builder: &Builder, body: impl FnOnce(Inside) -> Option<String>) {
    match stages::current() {
        stages::Stage::Outside => outside::run_test(builder, &test_arguments()),
        stages::Stage::Drop => stages::drop_root(builder),
        stages::Stage::Init => stages::init(stages::Session::New),
        stages::Stage::World(inside) => {
            let outcome = catch_unwind(AssertUnwindSafe(|| body(inside)));
            if let Ok(Some(failure)) = &outcome {
                eprintln!("the world's body failed: {failure}");
            }
            stages::leave(match outcome {
                Ok(None) => PASSED,
                // The panic hook has already printed the message.
                Ok(Some(_)) | Err(_) => FAILED,
            })
        }
    }
}

/// Opens a world for a program of its own (`cargo xtask world`): runs the
/// calling executable with the same arguments inside, where `body` is called;
/// its exit code becomes that of the outer process. Standard streams and
/// terminal are the caller's, and there is no time limit.
pub fn open(builder: &Builder, body: impl FnOnce(&mut World) -> u8) -> ExitCode {
    match stages::current() {
        stages::Stage::Outside => outside::run_program(builder),
        stages::Stage::Drop => stages::drop_root(builder),
        stages::Stage::Init => stages::init(stages::Session::Callers),
        stages::Stage::World(inside) => match builder.build(inside) {
            Ok(mut world) => ExitCode::from(body(&mut world)),
            Err(error) => {
                eprintln!("world: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Is this process already behind the outer one? For programs that have to
/// prepare something outside (build the product) before they call [`open`].
pub fn is_inside() -> bool {
    !matches!(stages::current(), stages::Stage::Outside)
}

/// The arguments that make libtest run exactly the calling test again.
#[track_caller]
pub(crate) fn test_arguments() -> Vec<OsString> {
    let thread = thread::current();
    let name = match thread.name() {
        Some(name) if name != "main" => name,
        _ => panic!("stockade_world must be called from the thread of a #[test] function"),
    };
    [
        "--exact",
        name,
        "--nocapture",
        "--include-ignored",
        "--test-threads=1",
    ]
    .map(OsString::from)
    .to_vec()
}
