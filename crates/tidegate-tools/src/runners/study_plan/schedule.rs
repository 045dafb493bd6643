//! Laying a syllabus into the weeks there are. Pure.
//!
//! - As many weeks as the syllabus has, or more: every unit gets its own weeks; of the weeks to spare, first
//!   each gap gets one right before its unit, then come revision weeks at the end.
//! - Fewer: topics move together, in order, up to a bound a week; what is beyond it is cut from the end and
//!   named, except what a gap asks for.
//! - A gap without a week of its own is begun a week early, or gets a larger share of the first week.

use super::{
    matching::{Found, find_gap},
    syllabus::{Syllabus, Unit},
};

/// The most topics one week of a shortened plan holds.
const TOPICS_PER_WEEK_MAX: usize = 8;
/// Of the syllabus's own weeks, one in so many may be added as revision.
const REVISION_SHARE: usize = 3;

/// A plan: items by week, and what had to be decided on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan<'s> {
    pub(super) weeks: Vec<Vec<Item<'s>>>,
    /// Each without a full stop.
    pub(super) notes: Vec<String>,
}

/// A unit, or a part of one, in a week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item<'s> {
    pub(super) kind: Kind,
    pub(super) unit: &'s Unit,
    pub(super) topics: Vec<String>,
}

/// Why an item stands where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The syllabus's own order.
    Regular,
    /// A gap's own week, or its larger share of the first one.
    ExtraTime,
    /// A gap, begun early.
    EarlyStart,
    /// Something a later unit builds on.
    Prerequisite,
    /// Once more at the end.
    Revision,
}

impl Kind {
    /// What is written before the unit's title.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Regular => "",
            Self::ExtraTime => "Extra time for a gap: ",
            Self::EarlyStart => "Early start for a gap: ",
            Self::Prerequisite => "Review for a gap, needed for: ",
            Self::Revision => "Revision: ",
        }
    }
}

/// A topic and the unit it belongs to.
#[derive(Debug, Clone, Copy)]
struct Step {
    unit: usize,
    topic: usize,
}

/// Makes the plan.
pub(super) fn plan<'s>(syllabus: &'s Syllabus, weeks: Option<usize>, gaps: &[String]) -> Plan<'s> {
    let needed: usize = syllabus
        .units
        .iter()
        .map(|unit| usize::try_from(unit.weeks).unwrap_or(1))
        .sum();
    let available = weeks.unwrap_or(needed).max(1);
    let mut notes = Vec::new();
    if usize::try_from(syllabus.weeks) != Ok(needed) {
        notes.push(format!(
            "the syllabus says {} weeks, but its units take {needed}",
            syllabus.weeks
        ));
    }
    let mut found: Vec<Found> = Vec::new();
    for gap in gaps {
        let here = find_gap(gap, &syllabus.units);
        if here.is_empty() {
            notes.push(format!("no topic of this syllabus matches the gap `{gap}`"));
        }
        let titles: Vec<String> = here
            .iter()
            .filter_map(|one| Some(format!("`{}`", syllabus.units.get(one.unit)?.title)))
            .collect();
        if !titles.is_empty() {
            notes.push(format!("the gap `{gap}` is covered in {}", titles.join(", ")));
        }
        for one in here {
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found.sort_by_key(|one| one.unit);
    let weeks = if available >= needed {
        roomy(syllabus, available - needed, &found, &mut notes)
    } else {
        tight(syllabus, available, needed, &found, &mut notes)
    };
    Plan { weeks, notes }
}

/// Enough weeks: units as they stand, then what the spare weeks are for.
fn roomy<'s>(
    syllabus: &'s Syllabus,
    mut spare: usize,
    found: &[Found],
    notes: &mut Vec<String>,
) -> Vec<Vec<Item<'s>>> {
    let mut weeks: Vec<Vec<Item<'_>>> = Vec::new();
    for (position, unit) in syllabus.units.iter().enumerate() {
        let here: Vec<&Found> = found.iter().filter(|one| one.unit == position).collect();
        if !here.is_empty() {
            let own_week = spare > 0;
            let kind = if own_week || weeks.is_empty() {
                Kind::ExtraTime
            } else {
                Kind::EarlyStart
            };
            let items: Vec<Item<'_>> = here.iter().map(|one| gap_item(unit, one, kind)).collect();
            if own_week {
                spare -= 1;
                weeks.push(items);
            } else if let Some(before) = weeks.last_mut() {
                before.extend(items);
            } else {
                weeks.push(items);
                // The first unit has no week before it: its gap and its own first topics share one.
                extend_spread(&mut weeks, unit, true);
                continue;
            }
        }
        extend_spread(&mut weeks, unit, false);
    }
    let own = weeks.len();
    let revision = spare.min((own / REVISION_SHARE).max(1)).min(syllabus.units.len());
    for part in 0..revision {
        let (start, end) = slice(syllabus.units.len(), revision, part);
        let units = syllabus.units.iter().skip(start).take(end - start);
        weeks.push(
            units
                .map(|unit| Item {
                    kind: Kind::Revision,
                    unit,
                    topics: Vec::new(),
                })
                .collect(),
        );
    }
    match revision {
        0 => {}
        1 => notes.push("the last week is for revision".to_owned()),
        many => notes.push(format!("the last {many} weeks are for revision")),
    }
    if spare > revision {
        notes.push(format!(
            "{} weeks are available; the syllabus and its revision fill {}, the rest is not planned",
            weeks.len() + spare - revision,
            weeks.len()
        ));
    }
    weeks
}

/// Lays a unit over its own weeks; `shared` puts its first part into the week that is there already.
fn extend_spread<'s>(weeks: &mut Vec<Vec<Item<'s>>>, unit: &'s Unit, shared: bool) {
    let count = usize::try_from(unit.weeks).unwrap_or(1).max(1);
    for part in 0..count {
        let (start, end) = slice(unit.topics.len(), count, part);
        let item = Item {
            kind: Kind::Regular,
            unit,
            topics: unit
                .topics
                .iter()
                .skip(start)
                .take(end - start)
                .cloned()
                .collect(),
        };
        match weeks.last_mut() {
            Some(week) if shared && part == 0 => week.push(item),
            Some(_) | None => weeks.push(vec![item]),
        }
    }
}

/// Too few weeks: topics move together.
fn tight<'s>(
    syllabus: &'s Syllabus,
    available: usize,
    needed: usize,
    found: &[Found],
    notes: &mut Vec<String>,
) -> Vec<Vec<Item<'s>>> {
    let mut steps: Vec<Step> = Vec::new();
    for (unit, one) in syllabus.units.iter().enumerate() {
        steps.extend((0..one.topics.len()).map(|topic| Step { unit, topic }));
    }
    notes.push(format!(
        "the syllabus takes {needed} weeks and {available} are available, so topics were moved together"
    ));
    let room = available.saturating_mul(TOPICS_PER_WEEK_MAX);
    let surplus = steps.len().saturating_sub(room);
    let is_wanted = |step: &Step| found.iter().any(|one| one.unit == step.unit);
    // From the end, since later units build on earlier ones; what a gap asks for stays.
    let may_go = steps.iter().filter(|step| !is_wanted(step)).count();
    let mut stay = may_go.saturating_sub(surplus);
    let mut cut: Vec<Step> = Vec::new();
    steps.retain(|step| {
        if is_wanted(step) {
            return true;
        }
        let stays = stay > 0;
        stay = stay.saturating_sub(1);
        if !stays {
            cut.push(*step);
        }
        stays
    });
    if !cut.is_empty() {
        let names: Vec<&str> = cut
            .iter()
            .filter_map(|step| syllabus.units.get(step.unit)?.topics.get(step.topic))
            .map(String::as_str)
            .collect();
        notes.push(format!("not covered, for lack of time: {}", names.join("; ")));
    }
    let mut weeks: Vec<Vec<Item<'_>>> = (0..available)
        .map(|week| {
            let (start, end) = slice(steps.len(), available, week);
            let here = steps.get(start..end).unwrap_or_default();
            items_of(here, syllabus)
        })
        .collect();
    start_early(&mut weeks, syllabus, found);
    weeks
}

/// Puts each gap into the week before the one its unit begins in, or into the first.
fn start_early<'s>(weeks: &mut [Vec<Item<'s>>], syllabus: &'s Syllabus, found: &[Found]) {
    for one in found {
        let Some(unit) = syllabus.units.get(one.unit) else {
            continue;
        };
        let begins = weeks.iter().position(|week| {
            week.iter()
                .any(|item| item.kind == Kind::Regular && item.unit == unit)
        });
        let early = begins.unwrap_or(0).saturating_sub(1);
        if let Some(week) = weeks.get_mut(early) {
            if begins == Some(0) {
                week.insert(0, gap_item(unit, one, Kind::ExtraTime));
            } else {
                week.push(gap_item(unit, one, Kind::EarlyStart));
            }
        }
    }
}

fn gap_item<'s>(unit: &'s Unit, found: &Found, kind: Kind) -> Item<'s> {
    Item {
        kind: if found.is_prerequisite {
            Kind::Prerequisite
        } else {
            kind
        },
        unit,
        topics: found.topics.clone(),
    }
}

fn items_of<'s>(steps: &[Step], syllabus: &'s Syllabus) -> Vec<Item<'s>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    for step in steps {
        let Some(unit) = syllabus.units.get(step.unit) else {
            continue;
        };
        let topic = unit.topics.get(step.topic).cloned();
        match items.last_mut() {
            Some(item) if item.unit == unit => item.topics.extend(topic),
            Some(_) | None => items.push(Item {
                kind: Kind::Regular,
                unit,
                topics: topic.into_iter().collect(),
            }),
        }
    }
    items
}

/// The part of `total` things that falls to one of `parts`, in order: never empty, and where there are more
/// parts than things, neighbours share one.
fn slice(total: usize, parts: usize, part: usize) -> (usize, usize) {
    let start = part * total / parts;
    let end = ((part + 1) * total / parts).max(start + 1).min(total);
    (start.min(total), end)
}
