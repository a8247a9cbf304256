//! Where tests take protections away, to see whether `verify` notices. In this program nothing
//! is taken away anywhere: `sabotage/` builds it with another file in the place of this.

use stockade_policy::Policy;
use stockade_wall::Plan;

/// The plan that a session is made from.
pub(crate) fn plan(plan: Plan) -> Plan {
    plan
}

/// The policy that the gate judges by.
pub(crate) fn policy(policy: Policy) -> Policy {
    policy
}

/// What starts the sandbox, when it is called in the jail.
pub(crate) fn in_jail(launch: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
    launch
}

/// What the prober of `verify` said.
pub(crate) fn heard(line: Vec<u8>) -> Vec<u8> {
    line
}
