//! Files inside the operator's folders, reached through handles and never through path strings.
//!
//! Every allowed root is opened once. A request is resolved against those handles ([`Roots::resolve`]) into a
//! [`Place`]: what was opened, and the real path of what was opened. The gate judges that real path; reading,
//! listing and writing then go through the same handle, so a link or a folder that is swapped between the
//! check and the use cannot lead anywhere else. Links that stay inside the roots work; links that leave them
//! are refused, by the kernel where it has `openat2`, by a walk that follows no link by itself elsewhere.
//!
//! A runner resolves again and asks `tidegate_gate::floors` once more about the place it is about to use.
//! Everything here blocks: call it on a blocking thread.

mod operand;
mod place;
mod private;
mod resolve;
mod tree;
mod twins;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use operand::{OperandKind, View, resolve_operand};
pub use place::{Entry, EntryKind, FileError, Listing, Place};
pub use private::{check_writable_dir, create_private_dir, write_private};
pub use resolve::{PATH_BYTES_MAX, RootError, Roots, real_path_of};
pub use tree::{Leads, Node, NodeKind, ReadFault, Tree, Whole};
pub use twins::{Twins, is_one_of};
pub use write::Written;
