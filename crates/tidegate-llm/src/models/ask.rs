//! Asking: whom, how often, and with what wait between.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use tidegate_core::{
    model::{ModelError, ModelEvent, ModelRef, ModelRequest},
    port::ModelStream,
};
use tokio::time::{Instant, sleep};

use super::{Entry, Models};
use crate::{
    breaker::Verdict,
    exchange::{Attempt, Live},
    fault::{Again, Failure},
    options::Limits,
};

impl Models {
    /// Asks the model, then the fallbacks, until one begins to answer. The error is the first model's: what
    /// a fallback said would only confuse.
    pub(super) async fn ask_anyone(&self, mut request: ModelRequest) -> Result<ModelStream, ModelError> {
        let total_at = Instant::now() + Duration::from_millis(self.options.total_timeout_ms);
        let limits = self.options.limits();
        let wanted = request.model.clone();
        let Failure { error, mut again, .. } = match self.ask_target(&request, &limits, total_at).await {
            Ok(stream) => return Ok(stream),
            Err(failure) => failure,
        };
        let mut rejected = rejecting(&error, &wanted.provider);
        for target in &self.fallbacks {
            if again == Again::Never || Instant::now() >= total_at {
                break;
            }
            let is_same = target.provider == wanted.provider && target.model == wanted.name;
            let Some(entry) = self.entries.get(&target.provider).filter(|_| !is_same) else {
                continue;
            };
            if rejected.contains(&target.provider) {
                continue;
            }
            request.model = self.refer(entry, &wanted.requested, &target.model).await;
            tracing::warn!(
                model = wanted.name,
                provider = wanted.provider,
                fallback = target.provider,
                fallback_model = target.model,
                error = error.kind(),
                "a model does not answer, asking a fallback"
            );
            match self.ask_target(&request, &limits, total_at).await {
                Ok(stream) => return Ok(announced(request.model, stream)),
                Err(failure) => {
                    again = failure.again;
                    rejected.extend(rejecting(&failure.error, &target.provider));
                }
            }
        }
        Err(error)
    }

    async fn ask_target(
        &self,
        request: &ModelRequest,
        limits: &Limits,
        total_at: Instant,
    ) -> Result<ModelStream, Failure> {
        let entry = self.entry(&request.model)?;
        let attempt = Attempt {
            client: &self.client,
            provider: &entry.provider,
            request,
            limits,
            clock: &*self.clock,
            entropy: &self.entropy,
            thinking: entry.catalog.thinking(&request.model.name).await,
            total_at,
        };
        let mut retries = 0;
        loop {
            let permit = entry
                .breaker
                .admit()
                .map_err(|retry_after| Failure::new(ModelError::Paused { retry_after }, Again::Elsewhere))?;
            let failure = match attempt.run().await {
                Ok((first, live)) => {
                    permit.settle(Verdict::Works);
                    return Ok(into_stream(first, live, entry));
                }
                Err(failure) => failure,
            };
            permit.settle(verdict(&failure.error));
            let wait = self.wait(&failure, retries);
            let Some(wait) =
                wait.filter(|wait| failure.again == Again::Retry && Instant::now() + *wait < total_at)
            else {
                return Err(failure);
            };
            tracing::info!(
                provider = entry.provider.name,
                model = request.model.name,
                error = failure.error.kind(),
                wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                "asking a model again"
            );
            sleep(wait).await;
            retries += 1;
        }
    }

    fn entry(&self, model: &ModelRef) -> Result<Arc<Entry>, Failure> {
        let entry = self.entries.get(&model.provider);
        entry.map(Arc::clone).ok_or_else(|| {
            let error = if self.is_configured() {
                ModelError::NotFound(model.requested.clone())
            } else {
                self.not_configured()
            };
            Failure::new(error, Again::Never)
        })
    }

    /// How long to wait before the next try; `None` where there is none.
    fn wait(&self, failure: &Failure, retries: u32) -> Option<Duration> {
        if retries >= self.options.retries_max {
            return None;
        }
        let longest = Duration::from_millis(self.options.retry_delay_max_ms);
        if let Some(wait) = failure.wait {
            return (wait <= longest).then_some(wait);
        }
        let initial = Duration::from_millis(self.options.retry_initial_delay_ms);
        let doubled = initial.saturating_mul(2_u32.saturating_pow(retries)).min(longest);
        let mut bytes = [0_u8; 4];
        self.entropy.fill(&mut bytes);
        let chance = f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX);
        let ratio = self.options.retry_jitter_ratio.clamp(0.0, 1.0);
        Some(doubled.mul_f64(1.0 + ratio * (2.0 * chance - 1.0)))
    }
}

/// The provider, where it rejects our credentials: its other models would do so too.
fn rejecting(error: &ModelError, provider: &str) -> Vec<String> {
    match error {
        ModelError::Credentials { .. } => vec![provider.to_owned()],
        ModelError::NotConfigured(_)
        | ModelError::NotFound(_)
        | ModelError::Rejected { .. }
        | ModelError::ContextLength { .. }
        | ModelError::RateLimited { .. }
        | ModelError::Unavailable(_)
        | ModelError::Paused { .. }
        | ModelError::Timeout(_)
        | ModelError::Malformed(_) => Vec::new(),
    }
}

/// What a failure says about the provider's health.
fn verdict(error: &ModelError) -> Verdict {
    match error {
        ModelError::Unavailable(_) | ModelError::Timeout(_) | ModelError::Malformed(_) => Verdict::Fails,
        ModelError::NotFound(_)
        | ModelError::Rejected { .. }
        | ModelError::ContextLength { .. }
        | ModelError::Credentials { .. } => Verdict::Works,
        ModelError::RateLimited { .. } | ModelError::NotConfigured(_) | ModelError::Paused { .. } => {
            Verdict::Unknown
        }
    }
}

/// An answer of another model than the one that was asked for.
fn announced(model: ModelRef, answer: ModelStream) -> ModelStream {
    let by = ModelEvent::AnsweredBy(model);
    stream::once(std::future::ready(Ok(by))).chain(answer).boxed()
}

/// The answer as the engine reads it. Nothing runs while nobody polls; dropping it drops the connection.
fn into_stream(first: ModelEvent, live: Live, entry: Arc<Entry>) -> ModelStream {
    let rest = stream::unfold((live, entry), |(mut live, entry)| async move {
        let item = match live.next().await? {
            Ok(event) => Ok(event),
            Err(failure) => {
                if verdict(&failure.error) == Verdict::Fails {
                    entry.breaker.note_failure();
                }
                Err(entry.provider.release(failure).error)
            }
        };
        Some((item, (live, entry)))
    });
    stream::once(std::future::ready(Ok(first))).chain(rest).boxed()
}
