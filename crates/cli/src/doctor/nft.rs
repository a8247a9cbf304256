//! What the jail's network needs of the kernel: the packet filter, and pairs of devices.
//!
//! Whether it is there is known when a session has started. If none did, the lists of modules
//! say whether this may be why. A container often sees none of them.

use super::{Check, machine::Machine};

const MODULES: [&str; 2] = ["nf_tables", "veth"];

pub(super) fn check(machine: &Machine, started: bool) -> Check {
    const NAME: &str = "nft";
    if started {
        return Check::ok(NAME, "the jail's network works with nf_tables and veth");
    }
    let of = |wanted: ModuleState| -> Vec<&str> {
        let modules = MODULES.iter().copied();
        modules
            .filter(|module| state(machine, module) == wanted)
            .collect()
    };
    let absent = of(ModuleState::Absent).join(", ");
    if !absent.is_empty() {
        return Check::failure(NAME, format!("the kernel lacks {absent}")).fix(
            "install all modules of this kernel (Ubuntu: linux-modules-extra-$(uname -r)), or use \
             one with CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET and CONFIG_VETH",
        );
    }
    let asleep = of(ModuleState::Loadable).join(" ");
    if !asleep.is_empty() && machine.setting("kernel/modules_disabled").as_deref() == Some("1") {
        let found = format!("{asleep}: not loaded, and no module can be loaded until a restart");
        return Check::failure(NAME, found).fix(format!(
            "echo {asleep} | tr ' ' '\\n' | sudo tee /etc/modules-load.d/stockade.conf, and restart"
        ));
    }
    let unknown = of(ModuleState::Unknown).join(" ");
    if unknown.is_empty() {
        return Check::ok(
            NAME,
            "the modules are there, or loaded when they are needed",
        );
    }
    Check::warning(
        NAME,
        format!("no list of modules can be read here, so {unknown} may be missing"),
    )
    .cost("if they are, no session with a jail can be started")
    .fix(format!("on the machine itself: sudo modprobe -a {unknown}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModuleState {
    /// Loaded, or a part of the kernel.
    Present,
    Loadable,
    Absent,
    Unknown,
}

fn state(machine: &Machine, module: &str) -> ModuleState {
    let loaded = machine.read("/proc/modules").unwrap_or_default();
    let mut loaded = loaded.lines().filter_map(|line| line.split(' ').next());
    if loaded.any(|name| name == module) {
        return ModuleState::Present;
    }
    let release = machine.setting("kernel/osrelease").unwrap_or_default();
    let list = |name: &str| {
        let at = |top: &str| machine.read(&format!("{top}/lib/modules/{release}/{name}"));
        at("").or_else(|| at("/usr"))
    };
    // Each line is, or begins with, a path: kernel/net/netfilter/nf_tables.ko.xz: …
    let names = |text: &str| {
        let file = format!("/{module}.ko");
        text.lines().any(|line| {
            let path = line.split(':').next().unwrap_or_default();
            path.rsplit_once(&file)
                .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('.'))
        })
    };
    match (list("modules.builtin"), list("modules.dep")) {
        (Some(builtin), _) if names(&builtin) => ModuleState::Present,
        (_, Some(dep)) if names(&dep) => ModuleState::Loadable,
        (Some(_), Some(_)) => ModuleState::Absent,
        _ => ModuleState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CheckState as Judged, machine::tests::machine},
        *,
    };

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.8.0-31-generic\n");
    const BUILTIN: &str = "/lib/modules/6.8.0-31-generic/modules.builtin";
    const DEP: &str = "/lib/modules/6.8.0-31-generic/modules.dep";
    const ALL: &str = "kernel/net/netfilter/nf_tables.ko.zst: kernel/x.ko\n\
        kernel/drivers/net/veth.ko.zst:\n";

    fn judged(files: &[(&str, &str)]) -> Check {
        let (_root, machine) = machine(files);
        assert_eq!(
            check(&machine, true).state,
            Judged::Ok,
            "what works is there"
        );
        check(&machine, false)
    }

    #[test]
    fn modules_that_can_be_loaded_are_no_obstacle_unless_loading_is_off() {
        let files = [RELEASE, (BUILTIN, "kernel/a.ko\n"), (DEP, ALL)];
        assert_eq!(judged(&files).state, Judged::Ok);
        let locked = ("/proc/sys/kernel/modules_disabled", "1\n");
        let check = judged(&[RELEASE, (BUILTIN, "kernel/a.ko\n"), (DEP, ALL), locked]);
        assert_eq!(check.state, Judged::Failure);
        assert!(check.fix.expect("a fix").contains("modules-load.d"));
        let loaded = "nf_tables 1 0 - Live\nveth 1 0 -\n";
        let loaded = ("/proc/modules", loaded);
        assert_eq!(judged(&[RELEASE, locked, loaded]).state, Judged::Ok);
    }

    #[test]
    fn a_module_that_no_list_has_is_named() {
        let without = ALL.replace("veth", "other");
        let check = judged(&[RELEASE, (BUILTIN, ""), (DEP, &without)]);
        assert_eq!(check.state, Judged::Failure);
        assert_eq!(check.found, "the kernel lacks veth");
        let check = judged(&[RELEASE, (BUILTIN, ALL), (DEP, "")]);
        assert_eq!(check.state, Judged::Ok);
    }

    #[test]
    fn where_no_list_can_be_read_nothing_is_claimed() {
        let check = judged(&[RELEASE]);
        assert_eq!(check.state, Judged::Warning);
        assert!(check.cost.is_some() && check.fix.is_some());
    }
}
