//! What is heard of a model that is asked beside the turn, for its words alone: no tool is offered, nothing is shown.

use futures_util::StreamExt as _;
use tidegate_core::{
    model::{FinishReason, ModelError, ModelEvent},
    port::ModelStream,
    usage::Usage,
};

use crate::meter::Meter;

/// What was heard of a reply.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) reply: String,
    pub(crate) reason: Option<FinishReason>,
    pub(crate) usage: Option<Usage>,
    pub(crate) error: Option<ModelError>,
}

impl Heard {
    /// Listens to the end, or to so many bytes: what comes behind is not read.
    pub(crate) async fn listen(
        &mut self,
        mut stream: ModelStream,
        mut meter: Option<&mut Meter>,
        bytes_max: usize,
    ) {
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::AnsweredBy(model)) => {
                    if let Some(meter) = meter.as_deref_mut() {
                        meter.answered_by(&model);
                    }
                }
                Ok(ModelEvent::Text(text)) => {
                    if let Some(meter) = meter.as_deref_mut() {
                        meter.heard(text.len());
                    }
                    self.reply.push_str(&text);
                    if self.reply.len() > bytes_max {
                        return;
                    }
                }
                Ok(ModelEvent::Reasoning(text)) => {
                    if let Some(meter) = meter.as_deref_mut() {
                        meter.heard(text.len());
                    }
                }
                // No tool was offered, so nothing was there to call.
                Ok(ModelEvent::Call(_)) => {}
                Ok(ModelEvent::Finished { reason, usage }) => {
                    (self.reason, self.usage) = (Some(reason), usage);
                    return;
                }
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
        self.error = Some(ModelError::Malformed(
            "the answer broke off before its end".into(),
        ));
    }
}
