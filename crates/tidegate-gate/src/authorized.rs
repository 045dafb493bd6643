//! The proof that the gate was asked.

/// A value the permission gate has allowed. It cannot be made outside this crate:
///
/// ```compile_fail
/// let forged = tidegate_gate::Authorized { inner: 1 };
/// ```
///
/// ```compile_fail
/// let forged = tidegate_gate::Authorized::new(1);
/// ```
#[derive(Debug, PartialEq)]
pub struct Authorized<T> {
    inner: T,
}

impl<T> Authorized<T> {
    /// Called by the gate alone.
    pub(crate) fn new(inner: T) -> Self {
        Self { inner }
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
