use std::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;

use crate::model::{ModelError, ModelEvent, ModelInfo, ModelRef, ModelRequest};

/// A model's answer as it arrives. Dropping it stops the work upstream.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A chat model, or several behind one door.
#[async_trait]
pub trait ChatModel: Send + Sync + std::fmt::Debug {
    /// Finds the model a client names. `tidegate` names the default.
    async fn resolve(&self, requested: &str) -> Result<ModelRef, ModelError>;

    /// Asks. Retries, fallbacks and time limits are the adapter's; an error here means no byte of an
    /// answer has arrived.
    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;

    /// Every model that can be named.
    async fn list(&self) -> Result<Vec<ModelInfo>, ModelError>;
}
