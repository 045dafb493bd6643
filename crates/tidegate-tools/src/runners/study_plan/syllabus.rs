//! Reading a syllabus: Markdown with front matter, a second-level heading a unit, a list item a topic.
//!
//! ```text
//! ---
//! subject: Mathematics
//! level: Grade 8
//! weeks: 12
//! aliases: maths, math
//! ---
//! ## Week 1: Whole numbers
//! - Place value
//! ## Weeks 2-3: Linear equations
//! Prerequisites: Negative numbers
//! - One-step equations
//! ## Unit: Statistics
//! - Mean and median
//! ```
//!
//! Everything else (first-level headings, prose, other second-level headings and what stands below them) is
//! for people and skipped.

/// The longest syllabus, in weeks.
const WEEKS_MAX: u32 = 104;
/// The most units of one syllabus.
const UNITS_MAX: usize = 200;
/// The most topics of one unit.
const TOPICS_MAX: usize = 100;

/// A syllabus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Syllabus {
    /// Its path below the knowledge bank.
    pub(super) file: String,
    pub(super) subject: String,
    pub(super) level: String,
    /// The weeks it says it takes.
    pub(super) weeks: u32,
    pub(super) aliases: Vec<String>,
    /// In the order of study; never empty.
    pub(super) units: Vec<Unit>,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// The heading as it stands, for the citation.
    pub(super) heading: String,
    pub(super) title: String,
    /// How many weeks it takes; at least 1.
    pub(super) weeks: u32,
    /// Never empty.
    pub(super) topics: Vec<String>,
    pub(super) prerequisites: Vec<String>,
}

impl Syllabus {
    /// Reads a file. The error says which rule it breaks.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let (front, body) = split_front_matter(text)?;
        let value = |key: &str| {
            front
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim().eq_ignore_ascii_case(key))
                .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
                .filter(|value| !value.is_empty())
        };
        let needed = |key: &str| value(key).ok_or_else(|| format!("its front matter has no `{key}`"));
        let weeks = needed("weeks")?
            .parse::<u32>()
            .ok()
            .filter(|weeks| (1..=WEEKS_MAX).contains(weeks))
            .ok_or_else(|| format!("`weeks` must be a whole number from 1 to {WEEKS_MAX}"))?;
        let units = units(body)?;
        if units.is_empty() {
            return Err("it has no unit; write headings such as `## Week 1: Title`".to_owned());
        }
        Ok(Self {
            file: file.to_owned(),
            subject: needed("subject")?,
            level: needed("level")?,
            weeks,
            aliases: value("aliases").map_or_else(Vec::new, |names| names_in(names.trim_matches(['[', ']']))),
            units,
        })
    }
}

fn split_front_matter(text: &str) -> Result<(&str, &str), String> {
    let missing = || "it does not begin with front matter between two lines of `---`".to_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').ok_or_else(missing)?;
    if first.trim_end() != "---" {
        return Err(missing());
    }
    let mut position = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (front, body) = rest.split_at(position);
            return Ok((front, body.get(line.len()..).unwrap_or_default()));
        }
        position += line.len();
    }
    Err(missing())
}

fn units(body: &str) -> Result<Vec<Unit>, String> {
    let mut units: Vec<Unit> = Vec::new();
    // Whether what is read now belongs to the last unit.
    let mut in_unit = false;
    let mut in_fence = false;
    for line in body.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            match unit(heading.trim()) {
                Some(unit) if units.iter().any(|one| one.heading == unit.heading) => {
                    return Err(format!("the heading `{}` stands twice", unit.heading));
                }
                Some(_) if units.len() == UNITS_MAX => {
                    return Err(format!("it has more than {UNITS_MAX} units"));
                }
                Some(unit) => {
                    units.push(unit);
                    in_unit = true;
                }
                None => in_unit = false,
            }
            continue;
        }
        if line.starts_with("# ") {
            in_unit = false;
        }
        if in_unit && let Some(unit) = units.last_mut() {
            unit.take(line)?;
        }
    }
    for unit in &mut units {
        if unit.topics.is_empty() {
            unit.topics.push(unit.title.clone());
        }
    }
    Ok(units)
}

/// A heading's unit, where it is one.
fn unit(heading: &str) -> Option<Unit> {
    let (kind, title) = heading.split_once(':')?;
    let title = title.trim();
    let mut words = kind.split_whitespace();
    let weeks = match (
        words.next()?.to_ascii_lowercase().as_str(),
        words.next(),
        words.next(),
    ) {
        ("unit", None, _) => 1,
        ("unit", Some(number), None) if number.parse::<u32>().is_ok() => 1,
        ("week" | "weeks", Some(range), None) => weeks_of(range)?,
        _ => return None,
    };
    (!title.is_empty()).then(|| Unit {
        heading: heading.to_owned(),
        title: title.to_owned(),
        weeks,
        topics: Vec::new(),
        prerequisites: Vec::new(),
    })
}

/// `3` is one week, `4-5` two.
fn weeks_of(range: &str) -> Option<u32> {
    let Some((first, last)) = range.split_once(['-', '–', '—']) else {
        return range.parse::<u32>().ok().map(|_| 1);
    };
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    let weeks = last.checked_sub(first)?.checked_add(1)?;
    (weeks <= WEEKS_MAX).then_some(weeks)
}

impl Unit {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let text = line.trim();
        if let Some(topic) = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
            if self.topics.len() == TOPICS_MAX {
                return Err(format!("`{}` has more than {TOPICS_MAX} topics", self.heading));
            }
            self.topics.push(topic.trim().to_owned());
        } else if let Some(names) = text.strip_prefix("Prerequisites:") {
            self.prerequisites.extend(names_in(names));
        } else if line.starts_with([' ', '\t'])
            && !text.is_empty()
            && let Some(topic) = self.topics.last_mut()
        {
            // An indented line goes on with the item above it.
            topic.push(' ');
            topic.push_str(text);
        }
        Ok(())
    }
}

fn names_in(list: &str) -> Vec<String> {
    list.split([',', ';'])
        .map(|name| {
            name.trim()
                .trim_end_matches('.')
                .trim_matches(['"', '\''])
                .to_owned()
        })
        .filter(|name| !name.is_empty())
        .collect()
}
