//! What the program inside may reach.
//!
//! One pure function, [`decide`], judges every flow. It is given the policy
//! that the user wrote, the flow, and evidence about the host's network at that
//! moment, and gives a [`Verdict`]: yes or no, by which rule, for what reason,
//! and which rule would have made it a yes. Nothing else decides; whoever wants
//! to explain, log or test a decision calls the same function.
//!
//! - [`Rule`]: what users write, `[proto://]target[:ports]`; [`RuleSet`]: many of
//!   them, searched at once;
//! - [`Hostname`] and [`NamePattern`]: names of hosts, as rules and the wire have them;
//! - [`registry`]: what kind of address an address is;
//! - [`Flow`] and [`Evidence`]: what is asked, and what the host knows;
//! - [`decide_name`] and [`decide_claim`]: the same for a name that is to be
//!   resolved, and for one that a connection turns out to be for;
//! - [`explain`]: decisions on what a person asks about, a [`Target`];
//! - [`explain_inside`]: the same for a program inside, without what the host alone knows;
//! - [`suggest`]: the smallest rules for flows that were seen, and [`replay`] to prove them.
//!
//! The crate does no I/O. A value of one of its types is valid: what could not
//! be a rule or a flow was refused where it was made.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used,
    )
)]

mod decide;
mod disclose;
mod discovery;
mod evidence;
mod explain;
mod flow;
mod name;
mod names;
mod policy;
mod proxy;
pub mod registry;
mod report;
mod rule;
mod rules;
mod suggest;
mod syntax;
mod target;
mod verdict;

pub use decide::{decide, decide_claim, decide_quic, is_on_internet};
pub use disclose::{
    Disclosed, InsideAnswer, InsideExplanation, disclose, disclose_name, explain_inside,
};
pub use discovery::{Discovery, DiscoveryError, MOST_DEVICES, decide_answer, decide_search};
pub use evidence::{Evidence, Route};
pub use explain::{Answer, Explanation, HostAnswers, Outcome, explain};
pub use flow::{Flow, Protocol};
pub use name::{Hostname, NamePattern, owned_domain};
pub use names::{LONGEST_NOTE, NameReason, NameVerdict, decide_name};
pub use policy::{Idle, NameServer, Policy};
pub use proxy::{
    Exemption, Exemptions, POOL, ProxyAddress, ProxyAddressError, ProxyLogin, ProxyScheme,
    is_in_pool, only_the_proxy_may_know,
};
pub use rule::{Ports, Rule, Scope};
pub use rules::RuleSet;
pub use suggest::{
    Replayed, SeenFlow, policy as closed_policy, replay, replay_name, rules_used, suggest,
};
pub use syntax::{Problem, RuleError};
pub use target::{Host, Target};
pub use verdict::{BROADCAST, Decider, Near, Reason, Restriction, STRANGERS, Verdict};
