//! A histogram as a picture that any browser shows.

use std::fmt::{self, Write as _};

use super::histogram::{Histogram, WIDTH};

const BAR: u32 = 22;
const HEIGHT: u32 = 240;
const LEFT: u32 = 50;
const TOP: u32 = 50;
const BELOW: u32 = 50;

/// Draws it. `title` is escaped.
pub(super) fn draw(histogram: &Histogram, threshold: Option<f64>, title: &str) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    match write_svg(&mut text, histogram, threshold, title) {
        Ok(()) | Err(fmt::Error) => text,
    }
}

fn write_svg(text: &mut String, histogram: &Histogram, threshold: Option<f64>, title: &str) -> fmt::Result {
    let bins = histogram.used();
    let count = u32::try_from(bins.len()).unwrap_or_default();
    let (width, height) = (LEFT * 2 + (count * BAR).max(300), TOP + HEIGHT + BELOW);
    let floor = TOP + HEIGHT;
    writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
<text x="{LEFT}" y="20" font-size="14">{}</text>
<rect x="{LEFT}" y="29" width="10" height="10" fill="#2a6fbb"/><text x="{}" y="38">about the agent</text>
<rect x="{}" y="29" width="10" height="10" fill="#c9ced6"/><text x="{}" y="38">others</text>"##,
        escaped(title),
        LEFT + 14,
        LEFT + 110,
        LEFT + 124
    )?;
    let highest = histogram.highest().max(1);
    let tall = |part: u64| u32::try_from(part * u64::from(HEIGHT) / highest).unwrap_or(HEIGHT);
    for (at, (border, bin)) in bins.iter().enumerate() {
        let x = LEFT + BAR * u32::try_from(at).unwrap_or_default();
        let (yes, all) = (tall(bin.yes), tall(bin.count()));
        let bar = BAR - 2;
        writeln!(
            text,
            r##"<g><title>{border:.1} to {:.1}: {} about the agent, {} others</title><rect x="{x}" y="{}" width="{bar}" height="{}" fill="#c9ced6"/><rect x="{x}" y="{}" width="{bar}" height="{yes}" fill="#2a6fbb"/></g>"##,
            border + WIDTH,
            bin.yes,
            bin.no,
            floor - all,
            all - yes,
            floor - yes,
        )?;
        if at % 5 == 0 {
            writeln!(text, r#"<text x="{x}" y="{}">{border:.1}</text>"#, floor + 16)?;
        }
    }
    writeln!(
        text,
        r##"<line x1="{LEFT}" y1="{floor}" x2="{}" y2="{floor}" stroke="#444"/><text x="8" y="{}">{highest}</text>"##,
        LEFT + count * BAR,
        TOP + 10
    )?;
    if let (Some(threshold), Some((first, _))) = (threshold, bins.first()) {
        let x = f64::from(LEFT) + (threshold - first) / WIDTH * f64::from(BAR);
        let x = x.clamp(f64::from(LEFT), f64::from(width - LEFT));
        writeln!(
            text,
            r##"<line x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{floor}" stroke="#b3261e" stroke-dasharray="4 3"/><text x="{x:.1}" y="{}" fill="#b3261e">threshold {threshold:.3}</text>"##,
            floor + 34
        )?;
    }
    writeln!(text, "</svg>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_every_bar_and_no_foreign_markup() {
        let mut histogram = Histogram::default();
        for (score, is_yes) in [(0.0, false), (0.31, true), (0.32, false)] {
            histogram.add(score, is_yes);
        }
        let picture = draw(&histogram, Some(0.25), "model <script>&");
        assert_eq!(picture.matches("<g>").count(), 4);
        assert!(picture.contains("model &lt;script&gt;&amp;") && picture.contains("threshold 0.250"));
        assert!(
            picture.contains("0.3 to 0.4: 1 about the agent, 1 others"),
            "{picture}"
        );
        assert!(draw(&Histogram::default(), None, "").ends_with("</svg>\n"));
    }
}
