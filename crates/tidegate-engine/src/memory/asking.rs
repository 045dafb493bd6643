//! One question to the model that looks for facts: reserved, asked within a time, booked on the person's key and run.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tidegate_core::{
    error::StoreError,
    id::{RunId, UserId},
    message::Message,
    model::{ModelError, ModelRef, ModelRequest, Sampling, ToolChoice},
    port::{LedgerError, Need, UsageRecord},
    usage::{Role, Usage},
};
use tidegate_memory::extract::model::{Prompt, REPLY_BYTES_MAX, schema};

use super::Memory;
use crate::{
    allowance,
    heard::Heard,
    meter::{Meter, estimate_prompt_tokens},
    model_log,
};

/// For whom a model is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account<'a> {
    /// Whose turn it was.
    pub(super) user: &'a UserId,
    /// In which run.
    pub(super) run: &'a RunId,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The key's tokens of the day are spent.
    #[error("the key's tokens of the day are spent")]
    QuotaSpent,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Memory {
    /// Asks the model of that name. Without an account it is nobody's question and is booked nowhere. Gives the model's
    /// own name and its reply.
    pub(super) async fn ask(
        &self,
        model: &str,
        prompt: Prompt,
        account: Option<Account<'_>>,
    ) -> Result<(String, String), Fault> {
        let limit_ms = self.parts().options.model_timeout_ms;
        let asking = async {
            let model = self.parts().model.resolve(model).await?;
            let name = model.name.clone();
            let request = self.question(model, prompt);
            let reply = match self.ask_once(request.clone(), account).await {
                // Not every server knows answers of a given form; the reply is read whatever its form.
                Err(Fault::Model(ModelError::Rejected { .. })) => {
                    let plain = ModelRequest {
                        response_format: None,
                        ..request
                    };
                    self.ask_once(plain, account).await
                }
                reply => reply,
            };
            Ok((name, reply?))
        };
        let timed_out =
            || ModelError::Timeout(format!("no facts within {limit_ms} ms (memory.model_timeout_ms)"));
        tokio::time::timeout(Duration::from_millis(limit_ms), asking)
            .await
            .unwrap_or_else(|_elapsed| Err(timed_out().into()))
    }

    fn question(&self, model: ModelRef, prompt: Prompt) -> ModelRequest {
        ModelRequest {
            model,
            system: prompt.system,
            messages: vec![Message::human(prompt.user)],
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            parallel_tool_calls: true,
            sampling: Sampling {
                temperature: Some(0.0),
                tokens_max: Some(self.parts().options.model_tokens_max),
                ..Sampling::default()
            },
            response_format: Some(json!({
                "type": "json_schema",
                "json_schema": { "name": "facts", "strict": true, "schema": schema(&self.kinds()) },
            })),
            stream: true,
            role: Role::Memory,
        }
    }

    async fn ask_once(&self, request: ModelRequest, account: Option<Account<'_>>) -> Result<String, Fault> {
        let parts = self.parts();
        let mut meter = match account {
            Some(account) => Some(self.meter(&request, account).await?),
            None => None,
        };
        let mut heard = Heard::default();
        match parts.model.ask(request).await {
            Ok(stream) => heard.listen(stream, meter.as_mut(), REPLY_BYTES_MAX).await,
            Err(error) => {
                // No byte of an answer has arrived: nothing was spent.
                heard.usage = Some(Usage::default());
                heard.error = Some(error);
            }
        }
        if let Some(mut meter) = meter {
            meter.ended(heard.error.as_ref().map_or(Ok(heard.reason), Err));
            meter.settle(heard.usage);
        }
        match heard.error {
            Some(error) => Err(error.into()),
            None => Ok(heard.reply),
        }
    }

    /// Sets aside what the question may take.
    async fn meter(&self, request: &ModelRequest, account: Account<'_>) -> Result<Meter, Fault> {
        let parts = self.parts();
        let (key_id, day) = (account.user.key_id(), parts.clock.today());
        let prompt_tokens = estimate_prompt_tokens(request);
        let key = parts.keys.find(&key_id).await?;
        let limit_tokens = key.and_then(|key| key.policy.tokens_per_day);
        let tokens_max = parts.options.model_tokens_max;
        let need = Need {
            // A reply that is cut is of no use.
            least_tokens: prompt_tokens.saturating_add(tokens_max),
            ..allowance::need(prompt_tokens, tokens_max)
        };
        let reserving = parts.ledger.reserve_up_to(&key_id, day, limit_tokens, need);
        let reservation = match reserving.await {
            Ok(grant) => grant.reservation,
            Err(LedgerError::QuotaSpent { .. }) => return Err(Fault::QuotaSpent),
            Err(LedgerError::Store(error)) => return Err(error.into()),
        };
        let record = UsageRecord {
            at: parts.clock.now(),
            day,
            key_id,
            user: account.user.clone(),
            run_id: account.run.clone(),
            provider: request.model.provider.clone(),
            model: request.model.name.clone(),
            role: request.role,
            usage: Usage::default(),
            reservation: Some(reservation),
        };
        let line = model_log::Line::of(&parts.model_log, &request.model);
        Ok(Meter::of(
            &parts.ledger,
            &parts.prices,
            record,
            prompt_tokens,
            line,
        ))
    }
}
