//! Texts, and what is read from them.

use std::str::FromStr;

use proptest::prelude::*;
use stockade_policy::{Hostname, Rule, RuleError, Target};

use crate::strategies::any_rule;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_canonical_form_of_a_rule_is_the_rule(rule in any_rule()) {
        let written = rule.to_string();
        let parse = |text: &str| match rule.is_near() {
            true => Rule::parse_near(text),
            false => text.parse(),
        };
        prop_assert_eq!(&parse(&written).unwrap(), &rule);
        prop_assert_eq!(parse(&written).unwrap().to_string(), written);
    }

    #[test]
    fn any_text_is_a_rule_or_an_error_with_a_place(text in "\\PC{0,40}") {
        check(&text);
    }

    /// Text from the alphabet of rules gets deeper into the parser.
    #[test]
    fn text_like_rules_is_a_rule_or_an_error_with_a_place(
        text in "((tcp|udp|icmp|https|TCP)?:?(//)?)?[]\\[0-9a-fx.:/%*, \u{0}１-]{0,25}",
    ) {
        check(&text);
    }

    /// Host names and targets are refused as well as rules are.
    #[test]
    fn text_like_names_is_a_name_or_an_error_with_a_place(
        text in "((tcp|https|Ssh)?:?(//)?)?([a-c0-9X_*@-]{0,4}[.:/%?ü\u{0}]?){0,6}",
    ) {
        check(&text);
    }

    /// What users may write and what the wire may carry are the same names, but
    /// for the letter case and the dot at the end.
    #[test]
    fn both_ways_to_read_a_name_admit_the_same(
        text in "([a-cX0-9_-]{0,5}[.]?){0,5}[ü\u{0}%]?",
    ) {
        let written = text.parse::<Hostname>().ok();
        let dotted = format!("{text}.");
        prop_assert_eq!(&Hostname::from_wire(dotted.as_bytes()), &written);
        let labels = text.split('.').map(str::as_bytes);
        prop_assert_eq!(&Hostname::from_labels(labels), &written);
        if let Some(name) = written {
            prop_assert_eq!(name.as_str(), text.to_ascii_lowercase());
            prop_assert_eq!(Hostname::from_wire(text.as_bytes()), Some(name));
        }
    }

    #[test]
    fn any_bytes_are_a_name_in_its_one_form_or_none(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        if let Some(name) = Hostname::from_wire(&bytes) {
            prop_assert_eq!(name.to_string().parse(), Ok(name));
        }
    }
}

/// Whatever the text is taken for, a refusal has a caret inside it, a message
/// without control characters, and a suggestion that is accepted.
fn check(text: &str) {
    check_as::<Rule>(text);
    check_as::<Hostname>(text);
    check_as::<Target>(text);
}

fn check_as<T: FromStr<Err = RuleError>>(text: &str) {
    let Err(error) = text.parse::<T>() else {
        return;
    };
    assert!(text.get(error.span()).is_some());
    assert!(!error.to_string().contains(char::is_control));
    if let Some(suggestion) = error.suggestion() {
        assert!(suggestion.parse::<T>().is_ok(), "{suggestion}");
    }
}
