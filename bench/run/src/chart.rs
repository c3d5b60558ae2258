//! The chart: what one SendMessage costs each server, as bars on a logarithmic scale, since the range is a thousandfold.

use std::fmt::Write as _;

use crate::figures::{Figures, shown};
use crate::rows::ROWS;
use crate::subjects::{Kind, Subject};

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const BAR: f64 = 20.0;
const STEP: f64 = 28.0;
const TOP: f64 = 56.0;

pub fn svg(figures: &Figures) -> String {
    let row = ROWS.iter().find(|row| row.id == "send");
    let subjects: &[Subject] = row.map_or(&[], |row| row.subjects);
    let mut bars: Vec<(&Subject, f64)> =
        subjects.iter().filter_map(|subject| Some((subject, figures.get("send", "cpu", subject)?))).collect();
    bars.sort_by(|a, b| a.1.total_cmp(&b.1));
    let most = bars.last().map_or(10.0, |(_, value)| value.max(10.0));
    let height = TOP + STEP * bars.len() as f64 + 36.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\" aria-label=\"Server CPU per SendMessage\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"16\" font-weight=\"bold\" fill=\"#222222\">Server CPU per SendMessage, \
         microseconds (logarithmic)</text>\n"
    );
    let mut mark = 1.0;
    while mark <= most * 1.5 {
        let x = at(mark, most);
        let bottom = height - 30.0;
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666666\">{}</text>",
            TOP - 10.0,
            bottom + 16.0,
            if mark < 1000.0 { format!("{mark}") } else { shown(mark) }
        );
        mark *= 10.0;
    }
    for (index, (subject, value)) in bars.iter().enumerate() {
        let y = TOP + STEP * index as f64;
        let colour = match subject.kind {
            Kind::Baton => "#0b6e4f",
            Kind::Control => "#9aa5b1",
            Kind::Peer => "#3a6ea5",
        };
        let text = y + BAR * 0.75;
        let end = at(*value, most);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{text:.1}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{text:.1}\" fill=\"#222222\">{}</text>",
            LABELS - 8.0,
            subject.shown,
            end - LABELS,
            end + 6.0,
            shown(*value)
        );
    }
    out + "</svg>\n"
}

/// One microsecond is at the left, the maximum at nine tenths of the width.
fn at(value: f64, most: f64) -> f64 {
    let room = WIDTH - LABELS - 70.0;
    LABELS + room * value.max(1.0).log10() / most.max(10.0).log10()
}
