//! The tables that `cargo xtask routing` prints.

use std::time::Duration;

use tidegate_engine::routing::ScoreKind;

use super::{FALSE_POSITIVES_MAX, Figures, Judged, Kind, Tally, Trial};

/// The longest text of a prompt that is shown.
const SHOWN_CHARS: usize = 90;

/// Figures by kind and tier.
pub(super) fn figures(figures: &Figures) {
    let threshold = figures.threshold.map_or_else(
        || "unknown: the rules decide alone".to_owned(),
        |threshold| format!("{threshold:.3}"),
    );
    println!("fired, by kind and tier (threshold {threshold})");
    println!("{:<24}{:>8}{:>12}{:>12}", "", "prompts", "rules", "all tiers");
    for (kind, tally) in &figures.by_kind {
        println!(
            "{:<24}{:>8}{:>12.3}{:>12.3}",
            kind.name(),
            tally.count,
            tally.pattern_share(),
            tally.share()
        );
    }
}

/// Every wrong decision.
pub(super) fn misses(judged: &[Judged]) {
    println!("\nwrongly decided");
    for judged in judged {
        let decision = &judged.decision;
        if decision.about_agent == (judged.kind == Kind::About) {
            continue;
        }
        let score = decision
            .score()
            .map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"));
        let why = decision
            .excluded_by
            .as_deref()
            .or(decision.rule.as_deref())
            .unwrap_or("-");
        let said = if decision.addressed { "addressed" } else { "" };
        let text: String = judged.text.chars().take(SHOWN_CHARS).collect();
        println!("{:<24}{score:>6} {said:<10}{why:<20} {text}", judged.kind.name());
    }
}

/// What each score does on the half that its threshold was not set on.
pub(super) fn scores(trials: &[(ScoreKind, Trial)]) {
    println!(
        "\nscores: thresholds set on every second prompt of a kind (at most {FALSE_POSITIVES_MAX} of a kind fire), \
         figures on the others"
    );
    println!(
        "{:<10}{:>10}{:>9}{:>9}  all tiers: {:>9}{:>9}{:>9}",
        "", "threshold", "recall", "alone", "near", "tasks", "chat"
    );
    for (kind, trial) in trials {
        let of = |kind: Kind| trial.held_out.get(&kind).copied().unwrap_or_default();
        println!(
            "{:<10}{:>10.3}{:>9.3}{:>9.3}{:>22.3}{:>9.3}{:>9.3}",
            name(*kind),
            trial.threshold,
            Tally::share(of(Kind::About)),
            Tally::pattern_share(of(Kind::About)),
            Tally::share(of(Kind::NearMiss)),
            Tally::share(of(Kind::Task)),
            Tally::share(of(Kind::Chat)),
        );
    }
}

/// What a decision takes.
pub(super) fn times([rules, both]: &[Duration; 2]) {
    println!(
        "\na decision takes {} µs with the rules alone and {} µs with both tiers (medians, files read each time)",
        rules.as_micros(),
        both.as_micros()
    );
}

fn name(kind: ScoreKind) -> &'static str {
    match kind {
        ScoreKind::Probe => "probe",
        ScoreKind::Margin => "margin",
        ScoreKind::Centroid => "centroid",
        ScoreKind::Nearest => "nearest",
    }
}
