//! A text that may be a rule.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_policy::Rule;

fuzz_target!(|text: &str| {
    match text.parse::<Rule>() {
        Ok(rule) => {
            let canonical = rule.to_string();
            let again: Rule = canonical.parse().expect("the canonical form is a rule");
            assert_eq!(again, rule);
            assert_eq!(again.to_string(), canonical);
        }
        Err(error) => {
            // The caret has a place to stand, and the message is safe to print.
            assert!(text.get(error.span()).is_some());
            assert!(!error.to_string().contains(char::is_control));
            if let Some(suggestion) = error.suggestion() {
                assert!(suggestion.parse::<Rule>().is_ok());
            }
        }
    }
});
