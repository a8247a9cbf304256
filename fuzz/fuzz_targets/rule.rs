//! A text that may be a rule, a host name or a target of a question.

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use stockade_policy::{Hostname, Rule, RuleError, Target};

fuzz_target!(|text: &str| {
    check::<Rule>(text);
    check::<Target>(text);
    let written = check::<Hostname>(text);
    check_lists(text);

    // The wire may add a dot, and nothing else makes a difference.
    let dotted = format!("{text}.");
    assert_eq!(Hostname::from_wire(dotted.as_bytes()), written);
    let labels = text.split('.').map(str::as_bytes);
    assert_eq!(Hostname::from_labels(labels), written);
});

/// Rules of `near` and of devices, and names of devices.
fn check_lists(text: &str) {
    let device = Hostname::parse_device("pmac").expect("a name");
    if let Ok(rule) = Rule::parse_near(text) {
        let again = Rule::parse_near(&rule.to_string());
        assert_eq!(again.as_ref(), Ok(&rule));
        assert!(rule.is_near() && text.parse::<Rule>().is_ok());
    }
    if let Ok(rule) = Rule::parse_device(&device, text) {
        let again = Rule::parse_device(&device, &rule.to_string());
        assert_eq!(again.as_ref(), Ok(&rule));
        assert!(!rule.name().is_some_and(|pattern| pattern.is_wildcard()));
    }
    if let Ok(name) = Hostname::parse_device(text) {
        assert_eq!(text.parse::<Hostname>(), Ok(name));
        assert!(!text.contains('.'));
    }
}

fn check<T: FromStr<Err = RuleError> + Display + Debug + PartialEq>(text: &str) -> Option<T> {
    match text.parse::<T>() {
        Ok(parsed) => {
            let canonical = parsed.to_string();
            let again: T = canonical.parse().expect("the canonical form parses");
            assert_eq!(again, parsed);
            assert_eq!(again.to_string(), canonical);
            Some(parsed)
        }
        Err(error) => {
            // The caret has a place to stand, and the message is safe to print.
            assert!(text.get(error.span()).is_some());
            assert!(!error.to_string().contains(char::is_control));
            if let Some(suggestion) = error.suggestion() {
                assert!(suggestion.parse::<T>().is_ok());
            }
            None
        }
    }
}
