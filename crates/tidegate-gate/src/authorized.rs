//! The proof that the gate was asked.

use crate::Basis;

/// A value the permission gate has allowed. It cannot be made outside this crate:
///
/// ```compile_fail
/// let forged = tidegate_gate::Authorized { inner: 1, basis: tidegate_gate::Basis::Read };
/// ```
///
/// ```compile_fail
/// let forged = tidegate_gate::Authorized::new(1, tidegate_gate::Basis::Read);
/// ```
#[derive(Debug, PartialEq)]
pub struct Authorized<T> {
    inner: T,
    basis: Basis,
}

impl<T> Authorized<T> {
    /// Called by the gate alone.
    pub(crate) fn new(inner: T, basis: Basis) -> Self {
        Self { inner, basis }
    }

    /// Which layer let it pass.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// What was allowed.
    pub fn get(&self) -> &T {
        &self.inner
    }

    /// What was allowed, spent.
    pub fn into_inner(self) -> T {
        self.inner
    }
}
