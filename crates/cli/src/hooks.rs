//! Where tests take protections away, to see whether `verify` notices. In this program nothing
//! is taken away anywhere: `crates/sabotage` builds it with another file in the place of this.

use std::sync::mpsc::Receiver;

use stockade_jail::{Error, Jail};
use stockade_policy::Policy;
use stockade_wall::{Launch, Plan, Running};

/// The plan that a session is made from.
pub(crate) fn plan(plan: Plan) -> Plan {
    plan
}

/// The policy that the gate judges by.
pub(crate) fn policy(policy: Policy) -> Policy {
    policy
}

/// Starts the sandbox, in the jail. The result comes by the channel.
pub(crate) fn spawn(
    jail: &Jail,
    launch: Launch,
) -> Result<Receiver<Result<Running, stockade_wall::Error>>, Error> {
    jail.begin(move || launch.spawn())
}

/// What the prober of `verify` said.
pub(crate) fn heard(line: Vec<u8>) -> Vec<u8> {
    line
}
