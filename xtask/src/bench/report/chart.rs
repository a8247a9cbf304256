//! The ratios as a bar chart, in SVG.
//!
//! One scale for all: how fast, compared with the direct way. For what is
//! better when lower (latencies, processor time) that is the inverse of the
//! ratio, so that a longer bar is better everywhere.

use std::fmt::Write;

use crate::bench::column::Column;
use crate::bench::results::{Results, Summary};
use crate::bench::rows::{Better, Row};

const WIDTH: f64 = 860.0;
/// Where the bars begin, right of the titles.
const LEFT: f64 = 270.0;
const RIGHT: f64 = 50.0;
const TOP: f64 = 70.0;
const BAR: f64 = 11.0;
const GAP: f64 = 12.0;
/// The right end of the scale; bars that go further are cut there.
const SCALE: f64 = 1.25;

/// Starting takes a relay so much longer than nothing at all that its bars
/// would only be dots.
const LEFT_OUT: [Row; 1] = [Row::Start];

pub(crate) fn draw(results: &Results) -> String {
    let columns: Vec<Column> = results
        .columns
        .iter()
        .copied()
        .filter(|column| *column != Column::Direct)
        .collect();
    let rows: Vec<Row> = Row::all()
        .iter()
        .copied()
        .filter(|row| !LEFT_OUT.contains(row))
        .filter(|row| {
            columns
                .iter()
                .any(|column| speed(results, *row, *column).is_some())
        })
        .collect();

    let group = BAR * columns.len() as f64 + GAP;
    let bottom = TOP + group * rows.len() as f64;
    let mut svg = frame(bottom + 40.0);
    legend(&mut svg, &columns);
    grid(&mut svg, bottom);
    for (index, row) in rows.iter().enumerate() {
        let top = TOP + group * index as f64 + GAP / 2.0;
        let middle = top + (group - GAP) / 2.0 + 4.0;
        text(&mut svg, LEFT - 8.0, middle, "end", "#222", row.title());
        for (position, column) in columns.iter().enumerate() {
            if let Some(speed) = speed(results, *row, *column) {
                bar(&mut svg, top + BAR * position as f64, *column, speed);
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// More is better, 1 is as fast as the direct way.
fn speed(results: &Results, row: Row, column: Column) -> Option<Summary> {
    let ratio = results.ratio(row, column)?;
    Some(match row.better() {
        Better::Higher => ratio,
        Better::Lower => Summary {
            median: ratio.median.recip(),
            least: ratio.most.recip(),
            most: ratio.least.recip(),
        },
    })
}

fn frame(height: f64) -> String {
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>Speed of the network inside, compared with no sandbox</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="24" font-size="15" font-weight="600" fill="#222">Speed compared with no sandbox (1 = the same, longer is better)</text>
"##
    )
}

fn legend(svg: &mut String, columns: &[Column]) {
    let mut x = LEFT;
    for column in columns {
        rectangle(svg, (x, 40.0), (12.0, 12.0), colour(*column));
        text(svg, x + 17.0, 50.0, "start", "#222", column.name());
        x += 110.0;
    }
}

fn grid(svg: &mut String, bottom: f64) {
    for (value, label) in [
        (0.0, "0"),
        (0.25, "0.25"),
        (0.5, "0.5"),
        (0.75, "0.75"),
        (1.0, "1"),
    ] {
        let x = place(value);
        let colour = if label == "1" { "#222" } else { "#ddd" };
        line(svg, (x, TOP), (x, bottom), colour);
        text(svg, x, bottom + 18.0, "middle", "#555", label);
    }
}

/// A bar up to the median, a thin line from the least to the most, the number.
fn bar(svg: &mut String, top: f64, column: Column, speed: Summary) {
    let (end, middle) = (place(speed.median), top + BAR / 2.0);
    rectangle(svg, (LEFT, top), (end - LEFT, BAR - 1.0), colour(column));
    line(
        svg,
        (place(speed.least), middle),
        (place(speed.most), middle),
        "#222",
    );
    let label = end.max(place(speed.most)) + 4.0;
    text(
        svg,
        label,
        middle + 4.0,
        "start",
        "#555",
        &format!("{:.2}", speed.median),
    );
}

fn place(value: f64) -> f64 {
    LEFT + value.clamp(0.0, SCALE) / SCALE * (WIDTH - LEFT - RIGHT)
}

fn colour(column: Column) -> &'static str {
    match column {
        Column::Direct => "#222",
        Column::Stockade => "#1f6feb",
        Column::Pasta => "#9aa4b2",
        Column::Slirp4netns => "#cfd6de",
    }
}

// Writing to a string cannot fail.

fn rectangle(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    let _ = writeln!(
        svg,
        r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"/>"#
    );
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str) {
    let _ = writeln!(
        svg,
        r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}"/>"#
    );
}

/// `content` is one of our own words: nothing in it needs escaping.
fn text(svg: &mut String, x: f64, y: f64, anchor: &str, fill: &str, content: &str) {
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{fill}">{content}</text>"#
    );
}
