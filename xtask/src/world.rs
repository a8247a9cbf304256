//! `cargo xtask world`: the test world, opened for a person.
//!
//! This program runs several times: once outside, where it builds the product,
//! and again inside each stage of the entry, with the same arguments. What it
//! does with them must therefore depend on them alone.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use stockade_world::{
    BLACK_HOLE, Builder, Login, Resolver, Shape, Standard, UNREACHABLE, World, is_inside, open,
};

#[derive(Args)]
#[command(
    about = "Try the product by hand in a closed world",
    long_about = "Builds the product and opens a world of network namespaces around it: a laptop \
        with a home directory full of decoys, a LAN, an internet, an intranet. Opens a shell on \
        the laptop, or runs COMMAND there and ends with its exit code.\n\n\
        Nothing leads out of this world and nothing is left of it afterwards. The machine's disk \
        is read-only in it; what you write in the home directory is gone when you leave. Root is \
        not needed, and is given up if there.",
    after_help = EXAMPLES
)]
pub(crate) struct Arguments {
    /// What kind of machine the laptop is
    #[arg(long, value_enum, default_value_t)]
    shape: ShapeName,

    /// How the laptop finds its name server
    #[arg(long, value_enum, default_value_t)]
    resolver: ResolverName,

    /// No IPv6 on the laptop
    #[arg(long)]
    no_ipv6: bool,

    /// Be root on the laptop (with power over the world only)
    #[arg(long)]
    root: bool,

    /// Use a dev build of the product (quicker to build) instead of release
    #[arg(long)]
    dev: bool,

    /// Use this binary instead of building one
    #[arg(long, value_name = "PATH", conflicts_with = "dev")]
    product: Option<PathBuf>,

    /// Do not print what there is in the world
    #[arg(short, long)]
    quiet: bool,

    /// What to run instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask world
      a shell on the laptop; try `stockade run -- curl http://www.example.com/`
  cargo xtask world -- stockade run -- curl -m 3 http://10.20.0.5/
      one command; the intranet should be out of reach
  cargo xtask world --shape container --dev -- stockade run -- true
      does it start where there is no tunnel device and no fresh /proc?
  cargo xtask world --resolver stub -- stockade run -- getent hosts www.example.com
      names through a stub on 127.0.0.53";

#[derive(Clone, Copy, Default, ValueEnum)]
enum ShapeName {
    /// An ordinary machine with a user logged in
    #[default]
    Desktop,
    /// No capabilities, no /dev/net/tun, /proc partly masked
    Container,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum ResolverName {
    /// At 8.8.8.8
    #[default]
    Routable,
    /// A stub on 127.0.0.53
    Stub,
    /// At 8.8.8.8, with short names completed to corp.example
    Search,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match prepare(arguments) {
        Ok(builder) => open(&builder, |world| visit(world, arguments)),
        Err(error) => {
            eprintln!("cargo xtask world: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(arguments: &Arguments) -> Result<Builder> {
    let product = match &arguments.product {
        Some(path) => path.clone(),
        None => {
            if !is_inside() {
                build_product(arguments.dev)?;
            }
            built_product(arguments.dev)?
        }
    };
    let mut builder = Builder::standard()
        .product(product)
        .shape(match arguments.shape {
            ShapeName::Desktop => Shape::Desktop,
            ShapeName::Container => Shape::Container,
        })
        .resolver(match arguments.resolver {
            ResolverName::Routable => Resolver::Routable,
            ResolverName::Stub => Resolver::LoopbackStub,
            ResolverName::Search => Resolver::SearchDomain,
        })
        .login(if arguments.root {
            Login::Root
        } else {
            Login::Dev
        });
    if arguments.no_ipv6 {
        builder = builder.without_ipv6();
    }
    Ok(builder)
}

fn build_product(dev: bool) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "stockade"]);
    if !dev {
        build.arg("--release");
    }
    let status = build.status().context("cannot start cargo")?;
    ensure!(status.success(), "the product does not build");
    Ok(())
}

/// The product lies beside this very program: `target/{debug,release}`.
fn built_product(dev: bool) -> Result<PathBuf> {
    let itself = env::current_exe().context("cannot find myself")?;
    let target = itself.ancestors().nth(2).context("no target directory")?;
    let profile = if dev { "debug" } else { "release" };
    Ok(target.join(profile).join("stockade"))
}

fn visit(world: &mut World, arguments: &Arguments) -> u8 {
    match try_visit(world, arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo xtask world: {error:#}");
            1
        }
    }
}

fn try_visit(world: &World, arguments: &Arguments) -> Result<u8> {
    let _servers = Standard::serve(world)?;
    if !arguments.quiet {
        // To stderr: standard output belongs to the command.
        io::stderr().write_all(greeting(arguments).as_bytes())?;
    }
    let laptop = world.laptop();
    let command = match arguments.command.split_first() {
        Some((program, rest)) => laptop.command(program).args(rest),
        None => laptop
            .command("bash")
            .arg("--norc")
            .env("PS1", r"\u@laptop:\w\$ "),
    };
    let status = command.attached()?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(u8::try_from(code.unwrap_or(1)).unwrap_or(1))
}

fn greeting(arguments: &Arguments) -> String {
    let mut text = format!(
        "\
world: you are on `laptop`, 192.168.10.5, among these hosts, each with http on port 80:
  internet   www.example.com    93.184.216.34  2606:2800:220:1::34   also https
             mirror.example.org 151.101.1.69   2a04:4e42::69         also https
  lan        device.lan         192.168.10.21
  intranet   intranet.corp.example  10.20.0.5  fd00:20::5
  metadata   169.254.169.254    (/latest/meta-data/iam/security-credentials/role)
  nowhere    {BLACK_HOLE} drops everything, {UNREACHABLE} is unreachable, other ports are closed
  Port 7 of www.example.com, device.lan and the intranet echoes, by TCP and UDP.
"
    );
    if arguments.command.is_empty() {
        text.push_str(
            "try:  curl http://intranet.corp.example/                  (reachable from here)\n      \
             stockade run -- curl http://www.example.com/        (the internet, from inside)\n      \
             stockade run -- curl http://10.20.0.5/              (not from inside)\n      \
             stockade run -- sh -c 'cat ~/.ssh/id_ed25519; env'  (nothing to steal)\n",
        );
    }
    text
}
