//! The tools as models see them, made once for each state of the tool box.
//!
//! Tools come and go while the server runs: a server of tools connects, ends, or changes its list. Whoever needs them
//! asks here; while the box offers the same rows, everybody shares what was made of them, and when it offers others,
//! only the new rows are made into schemas.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use tidegate_core::{model::ToolSchema, tool::ToolSpec};
use tidegate_gate::ToolBox;

use super::{Bounds, Core, Selection, search::Index};

/// A tool's row and what a model is shown of it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The row.
    pub(crate) spec: Arc<ToolSpec>,
    /// The same as models see it.
    pub(crate) schema: Arc<ToolSchema>,
    /// About how many bytes it has there.
    pub(crate) bytes: usize,
}

impl Row {
    fn of(spec: &Arc<ToolSpec>) -> Self {
        let schema = ToolSchema {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters_schema().into(),
            strict: None,
        };
        Self {
            spec: Arc::clone(spec),
            bytes: schema.name.len() + schema.description.len() + schema.parameters.text().get().len(),
            schema: Arc::new(schema),
        }
    }
}

/// One state of the tool box.
#[derive(Debug)]
pub(crate) struct Catalogue {
    specs: Arc<[Arc<ToolSpec>]>,
    rows: Vec<Row>,
    places: HashMap<String, usize>,
    bounds: Bounds,
    index: OnceLock<Index>,
    core: OnceLock<Arc<Core>>,
}

impl Catalogue {
    /// The catalogue of these rows; what was made of rows that were there before is taken over.
    pub(crate) fn new(specs: Arc<[Arc<ToolSpec>]>, bounds: Bounds, before: Option<&Self>) -> Self {
        let mut rows: Vec<Row> = Vec::with_capacity(specs.len());
        let mut places = HashMap::with_capacity(specs.len());
        for spec in specs.iter() {
            // The first of a name is the one.
            if places.contains_key(&spec.name) {
                continue;
            }
            let known = before
                .and_then(|before| before.row(&spec.name))
                .filter(|row| Arc::ptr_eq(&row.spec, spec));
            places.insert(spec.name.clone(), rows.len());
            rows.push(known.cloned().unwrap_or_else(|| Row::of(spec)));
        }
        Self {
            specs,
            rows,
            places,
            bounds,
            index: OnceLock::new(),
            core: OnceLock::new(),
        }
    }

    /// Whether the tool box still offers just these rows: the very same ones.
    fn is_of(&self, specs: &Arc<[Arc<ToolSpec>]>) -> bool {
        Arc::ptr_eq(&self.specs, specs)
            || (self.specs.len() == specs.len()
                && self
                    .specs
                    .iter()
                    .zip(specs.iter())
                    .all(|(known, spec)| Arc::ptr_eq(known, spec)))
    }

    /// Every row, in the order of the tool box.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Where the tool of that name stands.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The row of that name.
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.get(self.place(name)?)
    }

    /// How many of them a model is shown at once.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// What a model is shown of them all at once, for everybody who may use them all; made when it is first needed.
    pub(super) fn core(self: &Arc<Self>) -> Arc<Core> {
        let made = self.core.get_or_init(|| Arc::new(Core::of(&Selection::all(Arc::clone(self)))));
        Arc::clone(made)
    }

    /// What the rows are found by; made when it is first needed.
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.rows))
    }
}

/// The present catalogue of a tool box.
#[derive(Debug)]
pub(crate) struct Shelf(RwLock<Arc<Catalogue>>);

impl Shelf {
    /// The catalogue of what the tool box offers now, of which a model is shown so many at once.
    pub(crate) fn new(tools: &dyn ToolBox, bounds: Bounds) -> Self {
        Self(RwLock::new(Arc::new(Catalogue::new(tools.specs(), bounds, None))))
    }

    /// The same, later: the one that is there, where the tool box has not changed.
    pub(crate) fn now(&self, tools: &dyn ToolBox) -> Arc<Catalogue> {
        let specs = tools.specs();
        let known = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if known.is_of(&specs) {
            return known;
        }
        let fresh = Arc::new(Catalogue::new(specs, known.bounds, Some(&known)));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::spec, *};

    fn catalogue(specs: &[&Arc<ToolSpec>], before: Option<&Catalogue>) -> Catalogue {
        let specs = specs.iter().map(|spec| Arc::clone(spec)).collect();
        Catalogue::new(specs, Bounds::default(), before)
    }

    #[test]
    fn what_stays_the_same_row_is_not_made_again() {
        let (one, two, other) = (spec("one"), spec("two"), spec("two"));
        let first = catalogue(&[&one, &two], None);
        assert!(first.is_of(&Arc::from([Arc::clone(&one), Arc::clone(&two)])));
        assert!(!first.is_of(&Arc::from([Arc::clone(&one), Arc::clone(&other)])));
        assert!(!first.is_of(&Arc::from([Arc::clone(&one)])));
        let second = catalogue(&[&other, &one, &two], Some(&first));
        assert_eq!(second.rows().len(), 2, "the first of a name is the one");
        let schema = |catalogue: &Catalogue, name: &str| Arc::clone(&catalogue.row(name).unwrap().schema);
        assert!(Arc::ptr_eq(&schema(&first, "one"), &schema(&second, "one")));
        assert!(!Arc::ptr_eq(&schema(&first, "two"), &schema(&second, "two")));
        assert!(Arc::ptr_eq(&second.row("two").unwrap().spec, &other));
    }
}
