//! The tools of one turn: which of the server's it may call, which of those its model is shown, and what it has
//! found besides.
//!
//! A few are all shown. Where they are many, the model is shown a core, which is the server's own tools and the search
//! among the rest (`find`), and what it finds is shown from its next question on. What may be called does not
//! depend on what is shown: that is the key's and the gate's.

mod catalogue;
mod find;
mod search;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use tidegate_core::{
    model::ToolSchema,
    tool::{ToolMode, ToolSpec},
};

pub(crate) use self::catalogue::{Catalogue, Row, Shelf};
use crate::Options;

/// The core's share of both bounds where not all tools are shown; the rest is room for what is found.
const CORE_PARTS: usize = 3;
const PARTS: usize = 4;
/// Servers that the prompt names where their tools have to be searched for.
const GROUPS_MAX: usize = 20;

/// How much of the server's tools a model is shown at once; 0 is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    count_max: usize,
    bytes_max: usize,
}

impl Bounds {
    /// As the operator has set them.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            count_max: options.tools_offered_max,
            bytes_max: options.tools_offered_bytes_max,
        }
    }

    fn hold(self, count: usize, bytes: usize) -> bool {
        let within = |value: usize, max: usize| max == 0 || value <= max;
        within(count, self.count_max) && within(bytes, self.bytes_max)
    }

    /// The core's share; of a bound, never none.
    fn core(self) -> Self {
        let share = |max: usize| match max {
            0 => 0,
            max => (max.saturating_mul(CORE_PARTS) / PARTS).max(1),
        };
        Self {
            count_max: share(self.count_max),
            bytes_max: share(self.bytes_max),
        }
    }
}

/// The tools that somebody may use.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    catalogue: Arc<Catalogue>,
    /// Which of the catalogue, by place; `None` for all.
    chosen: Option<Arc<[bool]>>,
}

impl Selection {
    /// All of them.
    pub(crate) fn all(catalogue: Arc<Catalogue>) -> Self {
        Self {
            catalogue,
            chosen: None,
        }
    }

    /// None of them.
    pub(crate) fn none(catalogue: Arc<Catalogue>) -> Self {
        Self {
            chosen: Some(vec![false; catalogue.rows().len()].into()),
            catalogue,
        }
    }

    /// Those of these names. A search among them needs no name of its own.
    pub(crate) fn named<'n>(catalogue: Arc<Catalogue>, names: impl IntoIterator<Item = &'n str>) -> Self {
        let rows = catalogue.rows().iter();
        let mut chosen: Vec<bool> = rows.map(|row| row.spec.mode == ToolMode::SearchTools).collect();
        for name in names {
            if let Some(chosen) = catalogue.place(name).and_then(|place| chosen.get_mut(place)) {
                *chosen = true;
            }
        }
        Self {
            catalogue,
            chosen: Some(chosen.into()),
        }
    }

    /// Those of them that `stay`.
    pub(crate) fn keeping(&self, stay: impl Fn(&ToolSpec) -> bool) -> Self {
        let rows = self.catalogue.rows().iter().enumerate();
        let chosen: Vec<bool> = rows
            .map(|(place, row)| self.holds(place) && stay(&row.spec))
            .collect();
        Self {
            catalogue: Arc::clone(&self.catalogue),
            chosen: Some(chosen.into()),
        }
    }

    /// Those of them that have none of these names.
    pub(crate) fn without(self, names: &HashSet<&str>) -> Self {
        if names.iter().all(|name| self.catalogue.place(name).is_none()) {
            return self;
        }
        self.keeping(|spec| !names.contains(spec.name.as_str()))
    }

    /// The rows, in the order of the tool box; the search among them only where there is something to search for.
    pub(crate) fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let is_large = self.core().rest > 0;
        self.rows()
            .filter(|(_, row)| is_large || row.spec.mode != ToolMode::SearchTools)
            .map(|(_, row)| Arc::clone(&row.spec))
            .collect()
    }

    fn holds(&self, place: usize) -> bool {
        match &self.chosen {
            None => place < self.catalogue.rows().len(),
            Some(chosen) => chosen.get(place).copied().unwrap_or(false),
        }
    }

    fn rows(&self) -> impl Iterator<Item = (usize, &Row)> {
        let rows = self.catalogue.rows().iter().enumerate();
        rows.filter(|(place, _)| self.holds(*place))
    }

    fn core(&self) -> Arc<Core> {
        match self.chosen {
            None => self.catalogue.core(),
            Some(_) => Arc::new(Core::of(self)),
        }
    }
}

/// What a model is shown from the start.
#[derive(Debug)]
pub(crate) struct Core {
    /// The places of what is shown, in order.
    shown: Vec<usize>,
    schemas: Arc<[Arc<ToolSchema>]>,
    bytes: usize,
    /// How many more there are to be found.
    rest: usize,
    /// Where they are from, in a few words.
    rest_in_words: String,
}

impl Core {
    fn of(selection: &Selection) -> Self {
        let is_search = |row: &Row| row.spec.mode == ToolMode::SearchTools;
        let (mut count, mut bytes, mut can_search) = (0, 0, false);
        for (_, row) in selection.rows() {
            if is_search(row) {
                can_search = true;
            } else {
                count += 1;
                bytes += row.bytes;
            }
        }
        let bounds = selection.catalogue.bounds();
        // An operator who has taken the search away wants to see them all offered.
        if count == 0 || !can_search || bounds.hold(count, bytes) {
            return Self::new(selection, |row| !is_search(row));
        }
        let mut shown = HashSet::new();
        let share = bounds.core();
        let (mut count, mut bytes) = (0, 0);
        // The search first, then what looks at the turn itself, then the server's own tools in their order.
        for rank in 0..3 {
            for (place, row) in selection.rows() {
                let fits = rank == 0 || share.hold(count + 1, bytes + row.bytes);
                if self::rank(row.spec.mode) == Some(rank) && fits {
                    (count, bytes) = (count + 1, bytes + row.bytes);
                    shown.insert(place);
                }
            }
        }
        Self::of_places(selection, &shown)
    }

    fn new(selection: &Selection, is_shown: impl Fn(&Row) -> bool) -> Self {
        let rows = selection.rows().filter(|(_, row)| is_shown(row));
        Self::of_places(selection, &rows.map(|(place, _)| place).collect())
    }

    fn of_places(selection: &Selection, shown: &HashSet<usize>) -> Self {
        let is_search = |row: &Row| row.spec.mode == ToolMode::SearchTools;
        let (mut places, mut schemas, mut bytes, mut rest) = (Vec::new(), Vec::new(), 0, Vec::new());
        for (place, row) in selection.rows() {
            if shown.contains(&place) {
                places.push(place);
                schemas.push(Arc::clone(&row.schema));
                bytes += row.bytes;
            } else if !is_search(row) {
                rest.push(row.spec.as_ref());
            }
        }
        Self {
            shown: places,
            schemas: schemas.into(),
            bytes,
            rest: rest.len(),
            rest_in_words: in_words(&rest),
        }
    }
}

/// Which come first into the core; `None` for those that have to be searched for.
fn rank(mode: ToolMode) -> Option<u8> {
    if mode == ToolMode::SearchTools {
        Some(0)
    } else if mode.is_control() {
        Some(1)
    } else if mode != ToolMode::Mcp {
        Some(2)
    } else {
        None
    }
}

/// How many tools there are of which servers.
fn in_words(rest: &[&ToolSpec]) -> String {
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for spec in rest {
        *groups.entry(group(spec)).or_default() += 1;
    }
    let mut words: Vec<String> = groups
        .iter()
        .take(GROUPS_MAX)
        .map(|(group, count)| format!("{group} ({count})"))
        .collect();
    if groups.len() > GROUPS_MAX {
        words.push("and others".to_owned());
    }
    words.join(", ")
}

/// The server that a tool is of: `mcp__<server>__<tool>`.
fn group(spec: &ToolSpec) -> &str {
    let server = spec.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match server {
        Some((server, _)) if spec.mode == ToolMode::Mcp => server,
        _ => "others",
    }
}

/// The tools of one turn.
#[derive(Debug)]
pub(crate) struct Toolset {
    selection: Selection,
    core: Arc<Core>,
    /// The client's own.
    client: Vec<Arc<ToolSchema>>,
    /// What was found, by place, the oldest first.
    found: Vec<usize>,
    /// What goes with the next question: the client's tools, the core, and what was found.
    offered: Arc<[Arc<ToolSchema>]>,
    /// What the wave under way has asked for, which is offered when it has ended.
    wanted: Mutex<Vec<usize>>,
}

impl Toolset {
    /// The server's tools that may be called, and the client's own.
    pub(crate) fn new(selection: Selection, client: Vec<Arc<ToolSchema>>) -> Self {
        let core = selection.core();
        let mut toolset = Self {
            selection,
            offered: Arc::clone(&core.schemas),
            core,
            client,
            found: Vec::new(),
            wanted: Mutex::default(),
        };
        toolset.offer();
        toolset
    }

    /// One tool, for a call that no model makes.
    pub(crate) fn only(selection: &Selection, name: &str) -> Self {
        Self::new(selection.keeping(|spec| spec.name == name), Vec::new())
    }

    /// The server's tools of the caller, with these of the client's.
    pub(crate) fn with_client(self, client: Vec<Arc<ToolSchema>>) -> Self {
        if client.is_empty() {
            return self;
        }
        Self::new(self.selection, client)
    }

    /// The server's tools that may be called at all.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The row of a tool that may be called, shown or not.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        let place = self.place(name)?;
        self.selection.catalogue.rows().get(place).map(|row| &row.spec)
    }

    /// Where a tool stands that may be called.
    fn place(&self, name: &str) -> Option<usize> {
        let place = self.selection.catalogue.place(name)?;
        let row = self.selection.catalogue.rows().get(place)?;
        let is_there = row.spec.mode != ToolMode::SearchTools || self.core.rest > 0;
        (is_there && self.selection.holds(place)).then_some(place)
    }

    /// Whether the model was shown this tool.
    pub(crate) fn is_offered(&self, name: &str) -> bool {
        self.place(name).is_some_and(|place| self.is_shown(place))
    }

    fn is_shown(&self, place: usize) -> bool {
        self.core.shown.binary_search(&place).is_ok() || self.found.contains(&place)
    }

    /// Whether no tool of the server's may be called.
    pub(crate) fn is_empty(&self) -> bool {
        self.core.shown.is_empty() && self.core.rest == 0
    }

    /// The names of the server's tools that are shown.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let rows = self.selection.catalogue.rows();
        let places = self.core.shown.iter().chain(&self.found);
        places.filter_map(|place| rows.get(*place)).map(|row| row.spec.name.as_str())
    }

    /// The names of what was found, the oldest first.
    pub(crate) fn found(&self) -> impl Iterator<Item = &str> {
        let rows = self.selection.catalogue.rows();
        let found = self.found.iter().filter_map(|place| rows.get(*place));
        found.map(|row| row.spec.name.as_str())
    }

    /// What goes with the next question.
    pub(crate) fn offered(&self) -> &Arc<[Arc<ToolSchema>]> {
        &self.offered
    }

    /// How many tools are not shown, and where they are from.
    pub(crate) fn rest(&self) -> (usize, &str) {
        (self.core.rest, &self.core.rest_in_words)
    }

    /// Shows a tool from the next question on.
    pub(crate) fn find(&self, name: &str) {
        if let Some(place) = self.place(name) {
            self.want([place]);
        }
    }

    fn want(&self, places: impl IntoIterator<Item = usize>) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.extend(places);
    }

    /// Takes in what was found since the last time. Where the bounds are met, what was found first is no longer shown.
    pub(crate) fn take_in(&mut self) {
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        if wanted.is_empty() {
            return;
        }
        for place in wanted {
            if self.core.shown.binary_search(&place).is_err() {
                self.found.retain(|found| *found != place);
                self.found.push(place);
            }
        }
        while self.found.len() > 1 && !self.has_room_for(&self.found) {
            self.found.remove(0);
        }
        self.offer();
    }

    /// Whether so much fits beside the core.
    fn has_room_for(&self, places: &[usize]) -> bool {
        let rows = self.selection.catalogue.rows();
        let bytes: usize = places
            .iter()
            .filter_map(|place| rows.get(*place))
            .map(|row| row.bytes)
            .sum();
        let bounds = self.selection.catalogue.bounds();
        bounds.hold(self.core.shown.len() + places.len(), self.core.bytes + bytes)
    }

    fn offer(&mut self) {
        if self.client.is_empty() && self.found.is_empty() {
            // As nearly always: what everybody is shown.
            self.offered = Arc::clone(&self.core.schemas);
            return;
        }
        let rows = self.selection.catalogue.rows();
        let found = self.found.iter().filter_map(|place| rows.get(*place));
        self.offered = self
            .client
            .iter()
            .chain(self.core.schemas.iter())
            .chain(found.map(|row| &row.schema))
            .cloned()
            .collect();
    }
}
