//! The columns: ways to give a command a network, each as its users start it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use stockade_world::{Command, Pid, Running, World};

use super::task::{Reply, Task};

/// The client's name on the laptop's PATH, and in the workspace: the one place
/// that every column can see.
pub(crate) const CLIENT: &str = "bench-client";

/// How long a session may live, in all.
const LIMIT: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(15);

/// slirp4netns answers names at this address of its own network.
const SLIRP_RESOLVER: &str = "10.0.2.3:53";

/// Declared in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Column {
    Direct,
    Stockade,
    Pasta,
    Slirp4netns,
}

impl Column {
    pub(crate) const ALL: [Self; 4] =
        [Self::Direct, Self::Stockade, Self::Pasta, Self::Slirp4netns];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Stockade => "stockade",
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        }
    }

    /// The resolver that programs in this column are told to ask, where that
    /// is not what `/etc/resolv.conf` says.
    pub(crate) fn resolver(self) -> Option<SocketAddr> {
        match self {
            Self::Slirp4netns => SLIRP_RESOLVER.parse().ok(),
            Self::Direct | Self::Stockade | Self::Pasta => None,
        }
    }

    /// The command line that starts the client in this column.
    fn command(self, world: &World, client: &[String]) -> Command {
        let laptop = world.laptop();
        let command = match self {
            Self::Direct => {
                let (program, rest) = client.split_first().map_or(("", client), |(p, r)| (p, r));
                return laptop.command(program).args(rest);
            }
            Self::Stockade => laptop.stockade(["run", "--quiet", "--"]),
            Self::Pasta => laptop
                .command("pasta")
                .args(["--quiet", "--config-net", "--"]),
            Self::Slirp4netns => {
                laptop
                    .command("unshare")
                    .args(["--user", "--map-root-user", "--net", "--"])
            }
        };
        command.args(client)
    }
}

/// A client that runs in a column.
pub(crate) struct Session {
    client: Running,
    /// Attached to the client's namespace from outside.
    helper: Option<Running>,
    relay: Option<Pid>,
    /// From the start until a server had answered.
    pub(crate) start: Duration,
}

impl Session {
    pub(crate) fn open(world: &World, column: Column, hello: SocketAddr) -> Result<Self> {
        let program = world.laptop().workspace().join(CLIENT);
        let line = [
            program.to_string_lossy().into_owned(),
            CLIENT.to_owned(),
            hello.to_string(),
        ];
        let begin = Instant::now();
        let client = column.command(world, &line).limit(LIMIT).spawn()?;
        let mut session = Self {
            relay: match column {
                Column::Stockade | Column::Pasta => Some(client.pid()),
                Column::Direct | Column::Slirp4netns => None,
            },
            client,
            helper: None,
            start: Duration::ZERO,
        };
        match session.reply(PATIENCE)? {
            Reply::Started => {}
            other => bail!("the client began with {other:?}"),
        }
        if column == Column::Slirp4netns {
            let helper = slirp4netns(world, session.client.pid())?;
            session.relay = Some(helper.pid());
            session.helper = Some(helper);
        }
        match session.reply(PATIENCE)? {
            Reply::Ready => {}
            Reply::Failed(reason) => bail!("{reason}; {}", session.complaints()),
            other => bail!("the client continued with {other:?}"),
        }
        session.start = begin.elapsed();
        Ok(session)
    }

    /// The process that relays. There is none on the direct way.
    pub(crate) fn relay(&self) -> Option<Pid> {
        self.relay
    }

    pub(crate) fn ask(&mut self, task: &Task, limit: Duration) -> Result<Reply> {
        let mut line = serde_json::to_string(task)?;
        line.push('\n');
        self.client.write(line)?;
        match self.reply(limit)? {
            Reply::Failed(reason) => bail!("{reason}"),
            reply => Ok(reply),
        }
    }

    fn reply(&self, limit: Duration) -> Result<Reply> {
        let line = self
            .client
            .expect_within("\n", limit)
            // Its own text is the whole conversation.
            .map_err(|_| anyhow!("no reply within {limit:?}; {}", self.complaints()))?;
        serde_json::from_str(&line).with_context(|| format!("cannot understand `{line}`"))
    }

    fn complaints(&self) -> String {
        let helper = self.helper.as_ref().map(Running::stderr_so_far);
        format!(
            "stderr: {}{}",
            self.client.stderr_so_far().trim(),
            helper.unwrap_or_default().trim()
        )
    }
}

/// As its manual says to attach it to a namespace that `unshare` made.
fn slirp4netns(world: &World, target: Pid) -> Result<Running> {
    Ok(world
        .laptop()
        .command("slirp4netns")
        .args(["--configure", "--mtu=65520", "--disable-host-loopback"])
        .arg(target.as_raw_nonzero().to_string())
        .arg("tap0")
        .limit(LIMIT)
        .spawn()?)
}
