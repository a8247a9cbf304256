//! Python environments outside the project, and directories of the search path.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process,
};

use stockade_world::{Laptop, is_inside, test};

use super::{PROFILES, STATE, inside, said, toolchains::program, write};
use crate::support::standard;

#[test]
fn pytest_of_an_environment_outside_the_project_runs_in_every_profile() {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools/pytest");
    if !is_inside() && !install_pytest(&environment) {
        // Past libtest, which would keep it to itself.
        let _ = writeln!(io::stderr(), "skipped: the registry of pip is out of reach");
        return;
    }
    let place = "/home/dev/envs/work";
    test(&standard().directory(place, environment), |world| {
        let laptop = world.laptop();
        let tests = "def test_sum():\n    assert 1 + 1 == 2\n";
        write(&laptop.workspace(), &[("test_sum.py", tests)]);
        let script = "python -m pytest -q test_sum.py | tail -n 1 | cut -d ' ' -f 1-2; \
            python -c 'import sys; print(sys.prefix)'; type -p python; echo $VIRTUAL_ENV; \
            touch $VIRTUAL_ENV/x 2>/dev/null || echo read-only";
        for profile in PROFILES {
            let run = inside(laptop, profile, &format!("{place}/bin"), script);
            assert_eq!(
                said(run.env("VIRTUAL_ENV", place)),
                format!("1 passed\n{place}\n{place}/bin/python\n{place}\nread-only\n"),
                "{profile}"
            );
        }
    });
}

/// As a person does once, outside of all worlds.
fn install_pytest(environment: &Path) -> bool {
    if environment.join("done").exists() {
        return true;
    }
    let make = process::Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--clear"])
        .arg(environment)
        .status();
    assert!(
        make.is_ok_and(|status| status.success()),
        "python3-venv (test.sh installs it)"
    );
    let pip = process::Command::new(environment.join("bin/pip"))
        .args(["install", "--quiet", "--retries=1", "pytest"])
        .output()
        .expect("pip starts");
    let complaint = String::from_utf8_lossy(&pip.stderr);
    let is_unreachable = complaint.contains("onnection") || complaint.contains("No matching");
    assert!(pip.status.success() || is_unreachable, "{complaint}");
    pip.status.success() && fs::write(environment.join("done"), "").is_ok()
}

/// An installation of Python in the home, and an environment of it.
fn own_python(laptop: &Laptop) -> PathBuf {
    let base = laptop.home().join("bases/python");
    let environment = laptop.home().join("envs/own");
    let make = format!(
        "set -e; mkdir -p {base}/bin {base}/lib; cp $(readlink -f /usr/bin/python3) {base}/bin/python3; \
         ln -s /usr/lib/python3.* {base}/lib/; {base}/bin/python3 -m venv --without-pip {environment}; \
         grep -q '^home = {base}/bin' {environment}/pyvenv.cfg",
        base = base.display(),
        environment = environment.display()
    );
    said(laptop.shell(&make));
    environment
}

#[test]
fn an_environment_comes_with_its_interpreter() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(laptop.home(), STATE);
        let environment = own_python(laptop);
        let python = environment.join("bin/python");
        let script = "python -c 'import sys; print(sys.prefix, sys.base_prefix)'";
        let says = "/home/dev/envs/own /home/dev/bases/python\n";
        for profile in PROFILES {
            let run = || inside(laptop, profile, "/home/dev/envs/own/bin", script);
            assert_eq!(said(run().env("VIRTUAL_ENV", &environment)), says);
            // Also if only the search path has it.
            let output = run().run().expect("its end").expect_success();
            let (stdout, stderr) = (output.stdout(), output.stderr());
            assert_eq!((stdout.as_str(), stderr.as_str()), (says, ""), "{profile}");
        }
        // By its path alone, too.
        let program = "import sys; print(sys.prefix, sys.base_prefix)";
        let run = laptop.stockade(["run", "--"]).arg(&python);
        assert_eq!(said(run.args(["-c", program])), says);

        program_of_conda(laptop);
        let run = inside(
            laptop,
            "generic",
            "/srv/conda/x/bin",
            "tool; echo $CONDA_DEFAULT_ENV",
        );
        let run = run
            .env("CONDA_PREFIX", "/srv/conda/x")
            .env("CONDA_DEFAULT_ENV", "x");
        assert_eq!(said(run), "/srv/conda/x/bin/tool\nx\n");
    });
}

fn program_of_conda(laptop: &Laptop) {
    program(laptop, "conda/tool");
    for name in ["bin", "conda-meta"] {
        fs::create_dir_all(format!("/srv/conda/x/{name}")).expect("a directory");
    }
    fs::copy(laptop.home().join("conda/tool"), "/srv/conda/x/bin/tool").expect("a program");
}

#[test]
fn directories_of_the_search_path_that_are_not_shown_are_told_with_the_option() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        program(laptop, "bin/mine");
        program(laptop, ".nvm/versions/node/v9/bin/node");
        let version = laptop.home().join(".nvm/versions/node/v9");
        fs::create_dir(laptop.home().join("links")).expect("a directory");
        symlink(version, laptop.home().join("links/current")).expect("a link");
        let path = "/home/dev/links/current/bin:/home/dev/bin:/home/dev/none";
        let told = "stockade: PATH names \"/home/dev/bin\", which the command does not see; to show it: \
            --read /home/dev/bin\n";
        let run = inside(
            laptop,
            "generic",
            path,
            "node; mine 2>/dev/null || echo none",
        );
        let output = run.run().expect("its end").expect_success();
        // What a link leads to that is shown is there.
        assert_eq!(
            output.stdout(),
            "/home/dev/.nvm/versions/node/v9/bin/node\nnone\n"
        );
        assert_eq!(output.stderr(), told);
        let run = laptop.stockade(["run", "--read", "/home/dev/bin", "--", "mine"]);
        let run = run.env("PATH", format!("{path}:/usr/bin:/bin"));
        let output = run.run().expect("its end").expect_success();
        assert_eq!(output.stdout(), "/home/dev/bin/mine\n");
        assert_eq!(output.stderr(), "");
    });
}
