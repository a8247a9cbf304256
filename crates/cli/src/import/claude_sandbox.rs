//! The file of claude-sandbox, `/etc/claude-sandbox.conf`: `key = value`, or a key alone.

use std::{net::IpAddr, ops::Range, sync::Arc};

use stockade_config::{Diagnostic, Diagnostics, Mode, Place, Source, meant, shown};

use super::draft::{Access, Draft, Said};

const KEYS: &str = "workspace-root no-forge allow-write pass-env egress-jail allow-ip";

/// Names that claude-sandbox does not pass, whatever the file says.
const NEVER_PASSED: &str = "PATH HOME USER IS_SANDBOX GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM BASH_ENV ENV \
                            SHELLOPTS BASHOPTS IFS";

/// A line of the file that is not empty: where it is, and its key and value.
struct Line<'s> {
    span: Range<usize>,
    key: &'s str,
    value: &'s str,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let content = line.split('#').next().unwrap_or_default().trim_end();
        let (key, value) = content.split_once('=').unwrap_or((content, ""));
        let lead = content.len() - content.trim_start().len();
        let (span, key, value) = (at + lead..at + content.len(), key.trim(), value.trim());
        (!content.is_empty()).then_some(Line { span, key, value })
    })
}

/// Whether the first line that says something is one of this format.
pub(super) fn is_likely(text: &str) -> bool {
    lines(text)
        .next()
        .is_some_and(|line| KEYS.split(' ').any(|key| key == line.key))
}

pub(super) fn translate(source: &Arc<Source>, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    for Line { span, key, value } in lines(source.text()) {
        let place = &Place::new(source, span);
        match key {
            // Anything but 0 leaves it on.
            "egress-jail" if value == "0" => draft.say(Said::Mode(Mode::Host), place),
            "egress-jail" => draft.say(Said::Mode(Mode::Jail), place),
            // One address each: claude-sandbox makes a route to it.
            "allow-ip" if value.parse::<IpAddr>().is_ok() => draft.allow("", value, place),
            "allow-ip" if value.contains('/') => {
                draft.left_out(place, value, "claude-sandbox takes one address here");
            }
            "allow-ip" => draft.left_out(place, value, "not an IP address"),
            "no-forge" => draft.say(Said::NoForge, place),
            "allow-write" | "workspace-root" if value.is_empty() => {}
            "allow-write" => draft.path(Access::Write, value, place),
            "pass-env" => {
                for name in value
                    .split([',', ' ', '\t'])
                    .filter(|name| !name.is_empty())
                {
                    let never = NEVER_PASSED.split(' ').any(|it| it == name);
                    match never || name.starts_with("LD_") {
                        true => draft.left_out(place, name, "claude-sandbox does not pass it"),
                        false => draft.say(Said::Pass(name.to_owned()), place),
                    }
                }
            }
            "workspace-root" if draft.around.workspace.starts_with(value) => {
                let why = "the workspace is the current directory; name another with -C";
                draft.left_out(place, value, why);
            }
            "workspace-root" => {
                let why =
                    "Stockade lets the command write the current directory, which is not in it";
                draft.wider(place, value, why);
            }
            other => {
                let title = format!("unknown key `{}` for claude-sandbox", shown(other));
                let help = match meant(other, KEYS.split(' ')) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("expected one of {}", KEYS.replace(' ', ", ")),
                };
                return Err(Diagnostic::at(title, place.clone()).help(help).into());
            }
        }
    }
    Ok(())
}
