//! The ratios as a bar chart, in SVG.
//!
//! One scale for all: how fast, compared with the direct way. For what is better when lower
//! (latencies, processor time) that is the inverse of the ratio, so that a longer bar is better
//! everywhere.

use super::net::{DIRECT, ROWS, Row};
use super::samples::{Samples, Spread};

const WIDTH: f64 = 860.0;
/// Where the bars begin, right of the titles.
const LEFT: f64 = 270.0;
const RIGHT: f64 = 50.0;
const TOP: f64 = 70.0;
const BAR: f64 = 11.0;
const GAP: f64 = 12.0;
/// The right end of the scale; bars that go further are cut there.
const SCALE: f64 = 1.25;

const COLOURS: [&str; 3] = ["#1f6feb", "#9aa4b2", "#cfd6de"];

pub(super) fn draw(samples: &Samples, columns: &[&'static str]) -> String {
    // Starting takes a relay so much longer than nothing at all that its bars would only be dots.
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| !row.title.starts_with("start"))
        .filter(|row| {
            columns
                .iter()
                .any(|column| speed(samples, row, column).is_some())
        })
        .collect();
    let group = BAR * columns.len() as f64 + GAP;
    let bottom = TOP + group * rows.len() as f64;
    let height = bottom + 40.0;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>Speed of the network inside, compared with no sandbox</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="24" font-size="15" font-weight="600" fill="#222">Speed compared with no sandbox (1 = the same, longer is better)</text>
"##
    );
    let mut add = |element: String| svg.push_str(&(element + "\n"));
    for (index, (column, colour)) in columns.iter().zip(COLOURS).enumerate() {
        let x = LEFT + 110.0 * index as f64;
        add(rectangle(x, 40.0, 12.0, 12.0, colour));
        add(text(x + 17.0, 50.0, "start", "#222", column));
    }
    for (value, label) in [
        (0.0, "0"),
        (0.25, "0.25"),
        (0.5, "0.5"),
        (0.75, "0.75"),
        (1.0, "1"),
    ] {
        let x = place(value);
        let colour = if label == "1" { "#222" } else { "#ddd" };
        add(line(x, TOP, x, bottom, colour));
        add(text(x, bottom + 18.0, "middle", "#555", label));
    }
    for (index, row) in rows.iter().enumerate() {
        let top = TOP + group * index as f64 + GAP / 2.0;
        let middle = top + (group - GAP) / 2.0 + 4.0;
        add(text(LEFT - 8.0, middle, "end", "#222", row.title));
        for (position, (column, colour)) in columns.iter().zip(COLOURS).enumerate() {
            let Some(speed) = speed(samples, row, column) else {
                continue;
            };
            // A bar up to the median, a thin line from the least to the most, the number.
            let top = top + BAR * position as f64;
            let (end, middle) = (place(speed.median), top + BAR / 2.0);
            add(rectangle(LEFT, top, end - LEFT, BAR - 1.0, colour));
            add(line(
                place(speed.low),
                middle,
                place(speed.high),
                middle,
                "#222",
            ));
            let label = end.max(place(speed.high)) + 4.0;
            add(text(
                label,
                middle + 4.0,
                "start",
                "#555",
                &format!("{:.2}", speed.median),
            ));
        }
    }
    svg + "</svg>\n"
}

/// More is better, 1 is as fast as the direct way.
fn speed(samples: &Samples, row: &Row, column: &'static str) -> Option<Spread> {
    let ratio = samples.ratio(row.title, column, DIRECT)?;
    if row.higher_is_better() {
        return Some(ratio);
    }
    Some(Spread {
        median: ratio.median.recip(),
        low: ratio.high.recip(),
        high: ratio.low.recip(),
    })
}

fn place(value: f64) -> f64 {
    LEFT + value.clamp(0.0, SCALE) / SCALE * (WIDTH - LEFT - RIGHT)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, fill: &str) -> String {
    format!(
        r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"/>"#
    )
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, stroke: &str) -> String {
    format!(r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}"/>"#)
}

/// `content` is one of our own words: nothing in it needs escaping.
fn text(x: f64, y: f64, anchor: &str, fill: &str, content: &str) -> String {
    format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{fill}">{content}</text>"#)
}
