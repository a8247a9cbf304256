//! JSON text in which something is inserted or removed, while every other byte stays: order, form,
//! unknown keys, and comments where the reader of the file understands them.

use std::{collections::HashSet, ops::Range};

use serde_json::Value;

/// Deeper than any settings.
const DEEPEST: usize = 64;

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct Malformed {
    line: usize,
    what: &'static str,
}

/// Whether comments are part of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comments {
    Allowed,
    Refused,
}

/// A value, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Value),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    /// From the name to the end of the value.
    pub(super) span: Range<usize>,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        let member = self.members().iter().find(|member| member.name == name);
        member.map(|member| &member.value)
    }

    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    pub(super) fn elements(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(elements) => elements,
            _ => &[],
        }
    }

    /// Without the places.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => {
                let members = members.iter();
                let members = members.map(|member| (member.name.clone(), member.value.value()));
                Value::Object(members.collect())
            }
            Kind::Array(elements) => elements.iter().map(Node::value).collect(),
            Kind::Scalar(value) => value.clone(),
        }
    }

    fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|it| it.span.clone()).collect(),
            Kind::Array(elements) => elements.iter().map(|it| it.span.clone()).collect(),
            Kind::Scalar(_) => Vec::new(),
        }
    }
}

/// Reads a whole text. Names that stand twice are refused: readers disagree about them.
pub(super) fn parse(text: &str, comments: Comments) -> Result<Node, Malformed> {
    let mut parser = Parser {
        text,
        at: if text.starts_with('\u{feff}') { 3 } else { 0 },
        comments,
    };
    parser.skip()?;
    let node = parser.node(0)?;
    parser.skip()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.malformed("something follows the last bracket")),
    }
}

/// Puts a child at the beginning of an object or array, in the form of what follows. In an empty one
/// it is set off by spaces, so that [`cut`] knows that the brackets were there.
pub(super) fn insert(text: &str, around: &Node, child: &str) -> String {
    let at = around.span.start + 1;
    let (before, after) = (part(text, 0..at), part(text, at..text.len()));
    let space = after.len() - after.trim_start_matches(SPACE).len();
    let space = part(after, 0..space);
    match (around.children().is_empty(), space) {
        (true, _) => format!("{before} {child} {after}"),
        (false, "") => format!("{before}{child}, {after}"),
        (false, space) => format!("{before}{space}{child},{after}"),
    }
}

/// The inverse: takes a child out. None if its brackets were not there before it, or have nothing
/// else in them: then they are to be taken out, too.
pub(super) fn cut(text: &str, around: &Node, index: usize) -> Option<String> {
    let children = around.children();
    let child = children.get(index)?;
    let open = around.span.start + 1;
    let close = around.span.end - 1;
    let without = |range: Range<usize>| {
        let (before, after) = (
            part(text, 0..range.start),
            part(text, range.end..text.len()),
        );
        format!("{before}{after}")
    };
    if let Some(previous) = index.checked_sub(1).and_then(|index| children.get(index)) {
        let gap = part(text, previous.end..child.start);
        if gap.trim_matches(SPACE) == "," {
            return Some(without(previous.end..child.end));
        }
        // With comments in it, which stay.
        let comma = previous.end + comma(gap)?;
        let rest = part(text, comma + 1..child.start);
        let (before, after) = (part(text, 0..comma), part(text, child.end..text.len()));
        return Some(format!("{before}{rest}{after}"));
    }
    let space = part(text, open..child.start);
    let Some(next) = children.get(1) else {
        let rest = part(text, child.end..close);
        return match (space, rest) {
            (" ", rest) if rest.starts_with(' ') => Some(without(open..child.end + 1)),
            _ if [space, rest].concat().trim_matches(SPACE).is_empty() => None,
            _ => Some(without(child.clone())),
        };
    };
    let comma = child.end + comma(part(text, child.end..next.start))?;
    let is_set_off = space.is_empty() && part(text, comma + 1..next.start).starts_with(' ');
    let end = comma + 1 + usize::from(is_set_off);
    match space.trim_matches(SPACE) {
        "" => Some(without(open..end)),
        _ => Some(without(child.start..end)),
    }
}

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

fn part(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// Where the comma between two children is, comments left out.
fn comma(gap: &str) -> Option<usize> {
    let mut parser = Parser {
        text: gap,
        at: 0,
        comments: Comments::Allowed,
    };
    parser.skip().ok()?;
    (parser.peek() == Some(b',')).then_some(parser.at)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    comments: Comments,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        part(self.text, self.at..self.text.len())
    }

    fn malformed(&self, what: &'static str) -> Malformed {
        let before = part(self.text, 0..self.at);
        let line = before.matches('\n').count() + 1;
        Malformed { line, what }
    }

    /// Goes to what is neither space nor comment.
    fn skip(&mut self) -> Result<(), Malformed> {
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start_matches(SPACE).len();
            let rest = part(rest, space..rest.len());
            self.at += space;
            let end = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").map(|end| end + 2);
                end.ok_or_else(|| self.malformed("a comment does not end"))?
            } else {
                return Ok(());
            };
            if self.comments == Comments::Refused {
                return Err(self.malformed("a comment, which this agent does not understand"));
            }
            self.at += end;
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, Malformed> {
        let start = self.at;
        let kind = match self.peek() {
            _ if depth == DEEPEST => return Err(self.malformed("too many brackets")),
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => self.string().map(|it| Kind::Scalar(Value::String(it)))?,
            Some(_) => {
                let ends = |it: char| SPACE.contains(&it) || ",]}/".contains(it);
                let length = self.rest().find(ends).unwrap_or(self.rest().len());
                let value = serde_json::from_str(part(self.rest(), 0..length));
                let value = value.map_err(|_| self.malformed("this is no value"))?;
                self.at += length;
                Kind::Scalar(value)
            }
            None => return Err(self.malformed("a value is missing")),
        };
        let span = start..self.at;
        Ok(Node { span, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Malformed> {
        let mut members: Vec<Member> = Vec::new();
        // A session may have written very many.
        let mut names = HashSet::new();
        self.list(b'}', |parser| {
            let start = parser.at;
            if parser.peek() != Some(b'"') {
                return Err(parser.malformed("a name in quotes is missing"));
            }
            let name = parser.string()?;
            if !names.insert(name.clone()) {
                return Err(parser.malformed("this name stands here twice"));
            }
            parser.skip()?;
            if parser.peek() != Some(b':') {
                return Err(parser.malformed("a colon is missing"));
            }
            parser.at += 1;
            parser.skip()?;
            let value = parser.node(depth + 1)?;
            let span = start..parser.at;
            members.push(Member { name, span, value });
            Ok(())
        })?;
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Malformed> {
        let mut elements = Vec::new();
        self.list(b']', |parser| {
            elements.push(parser.node(depth + 1)?);
            Ok(())
        })?;
        Ok(Kind::Array(elements))
    }

    /// What is between brackets, separated by commas.
    fn list(
        &mut self,
        close: u8,
        mut child: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.at += 1;
        self.skip()?;
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            child(self)?;
            self.skip()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(it) if it == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.malformed("a comma or a bracket is missing")),
            }
            self.skip()?;
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'"') => break,
                Some(_) => end += 1,
                None => return Err(self.malformed("a text in quotes does not end")),
            }
        }
        let string = serde_json::from_str(part(self.text, self.at..end + 1));
        let string = string.map_err(|_| self.malformed("this is no text"))?;
        self.at = end + 1;
        Ok(string)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_text_is_read_as_others_read_it_or_not_at_all() {
        for text in [
            "{}",
            " { \"a\" : [ 1 , -2.5e3, true, null, \"x\\\"}\" ] }\n",
            "[[],{},{\"\":[{}]}]",
            "\"\\u00e9\\\\\"",
            "7",
        ] {
            let read = parse(text, Comments::Refused).expect("JSON").value();
            assert_eq!(
                read,
                serde_json::from_str::<Value>(text).expect("JSON"),
                "{text}"
            );
            // No part of it is one.
            for end in 0..text.trim_end().len() {
                let part = part(text, 0..end);
                let [ours, theirs] = [
                    parse(part, Comments::Refused).is_ok(),
                    serde_json::from_str::<Value>(part).is_ok(),
                ];
                assert_eq!(ours, theirs, "{part}");
            }
        }
        for text in [
            "{\"a\":1,}",
            "[1,]",
            "{a:1}",
            "{\"a\" 1}",
            "{} {}",
            "{\"a\":1,\"a\":2}",
            "[01]",
            "nul",
            "{\"a\":\"\n\"}",
            "// x\n{}",
            &"[".repeat(100),
            "\\",
            "\"\\",
        ] {
            assert!(parse(text, Comments::Refused).is_err(), "{text}");
        }
        let comments = "// a\n{ /* b */ \"a\": 1 // c\n}\n/* d */";
        let read = parse(comments, Comments::Allowed).expect("JSON with comments");
        assert_eq!(read.value(), serde_json::json!({ "a": 1 }));
        assert!(parse("{} /* x", Comments::Allowed).is_err());
    }

    /// The start of every session reads the settings, which another one may have written to be slow.
    #[test]
    fn the_longest_text_is_read_at_once() {
        const LONGEST: usize = 1 << 20;
        let members: Vec<String> = (0..LONGEST / 10).map(|n| format!("\"{n:x}\":0")).collect();
        let many = format!("{{{}}}", members.join(","));
        let comments = "/**/".repeat(LONGEST / 4) + "{}";
        for text in [many, comments] {
            let begun = Instant::now();
            assert!(parse(&text, Comments::Allowed).is_ok());
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(5), "{took:?}");
        }
    }

    #[test]
    fn what_is_inserted_can_be_cut_out_again_and_nothing_else_changes() {
        for text in [
            "{}",
            "{ }",
            "{\n}\n",
            "{\"a\":1}",
            "{ \"a\": 1 }",
            "{\n  \"a\": 1,\n  \"b\": 2\n}\n",
            "{\r\n\t\"a\": {}\r\n}",
            "{ // x\n}",
            "{ // x\n \"a\": 1 }",
            "{/* x */\"a\": 1}",
        ] {
            let root = parse(text, Comments::Allowed).expect("JSON");
            let more = insert(text, &root, "\"new\": [1]");
            let with = parse(&more, Comments::Allowed).expect("JSON");
            assert_eq!(
                with.member("new").expect("it").value(),
                serde_json::json!([1])
            );
            assert_eq!(with.members().len(), root.members().len() + 1);
            assert_eq!(cut(&more, &with, 0).as_deref(), Some(text), "{more}");
        }
        let cut = |text: &str, index| {
            let node = parse(text, Comments::Allowed).expect("JSON");
            cut(text, &node, index)
        };
        assert_eq!(cut("[1, 2, 3]", 1).as_deref(), Some("[1, 3]"));
        assert_eq!(cut("[1,\n 2 // x\n]", 1).as_deref(), Some("[1 // x\n]"));
        assert_eq!(cut("[1, // x\n 2]", 1).as_deref(), Some("[1 // x\n ]"));
        assert_eq!(cut("[\n 1\n]", 0), None);
        assert_eq!(cut("[1]", 0), None);
        assert_eq!(cut("[/* x */ 1]", 0).as_deref(), Some("[/* x */ ]"));
    }
}
