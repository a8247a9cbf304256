//! What the warden itself may still do when it serves an agent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use stockade_world::{PATIENCE, eventually, test};

use crate::support::standard;

/// The lines of `/proc/PID/task/TID/status` that tell of authority, of each thread.
fn authority(pid: i32) -> Vec<(String, BTreeMap<String, String>)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("tasks");
    tasks
        .map(|task| {
            let task = task.expect("task").path();
            let name = fs::read_to_string(task.join("comm")).expect("comm");
            let status = fs::read_to_string(task.join("status")).expect("status");
            let lines = status.lines().filter_map(|line| line.split_once(":\t"));
            let lines = lines.map(|(key, value)| (key.to_owned(), value.trim().to_owned()));
            (name.trim().to_owned(), lines.collect())
        })
        .collect()
}

#[test]
fn the_wardens_threads_have_given_up_what_they_do_not_need() {
    const NOTHING: u64 = 0;
    const NET_BIND_SERVICE: u64 = 1 << 10;
    const NET_RAW: u64 = 1 << 13;
    test(&standard(), |world| {
        let line = ["run", "--", "sh", "-c", "echo started; exec sleep 60"];
        let session = world.laptop().stockade(line).spawn().expect("spawn");
        session.expect("started").expect("a session");
        let pid = session.pid().as_raw_nonzero().get();
        // The main thread gives up last, just after the command has started.
        eventually(
            "the main thread has given up its capabilities",
            PATIENCE,
            || {
                let threads = authority(pid);
                let mut main = threads.iter().filter(|(name, _)| name == "stockade");
                // A thread that starts has the name of the one that starts it.
                threads.iter().any(|(name, _)| name == "watch")
                    && main.all(|(_, status)| status["CapEff"] == "0000000000000000")
            },
        )
        .expect("confinement");

        let threads = authority(pid);
        let names: BTreeSet<_> = threads.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            BTreeSet::from([
                "attribution",
                "carrier",
                "control",
                "gate",
                "gatehouse",
                "input",
                "jail",
                "journal",
                "prompts",
                "questions",
                "stockade",
                "watch"
            ])
        );
        for (thread, status) in &threads {
            let (kept, filter) = match thread.as_str() {
                "gate" => (NET_BIND_SERVICE, "2"),
                "carrier" => (NOTHING, "2"),
                "gatehouse" => (NET_RAW | NET_BIND_SERVICE, "0"),
                _ => (NOTHING, "0"),
            };
            for set in ["CapEff", "CapPrm", "CapBnd"] {
                let value = u64::from_str_radix(&status[set], 16).expect("a number");
                assert_eq!(value, kept, "{set} of {thread}");
            }
            assert_eq!(status["CapAmb"], "0000000000000000", "{thread}");
            assert_eq!(status["CapInh"], "0000000000000000", "{thread}");
            assert_eq!(status["NoNewPrivs"], "1", "{thread}");
            assert_eq!(status["Seccomp"], filter, "{thread}");
        }
        // Positive control: this very process is not confined.
        let own = authority(std::process::id().try_into().expect("a pid"));
        assert!(own.iter().all(|(_, status)| status["Seccomp"] == "0"));

        // Not dumpable: what tells its secrets belongs to root, also for its own user.
        let look = format!("cat /proc/{pid}/environ /proc/{pid}/maps > /dev/null");
        let control = "cat /proc/self/environ /proc/self/maps > /dev/null";
        world
            .laptop()
            .shell(control)
            .run()
            .expect("run")
            .expect_success();
        assert_ne!(world.laptop().shell(&look).run().expect("run").code(), 0);
    });
}
