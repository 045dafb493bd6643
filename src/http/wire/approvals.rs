//! The shapes of approvals.

use serde::{Deserialize, Serialize};
use tidegate_core::{
    approval::{Answer, Approval, ApprovalState},
    clock::Timestamp,
    id::ApprovalId,
};
use utoipa::{IntoParams, ToSchema};

use crate::http::{
    error::ApiError,
    extract::query::{QueryForm, Values},
};

/// Approvals on a page that names no limit.
const LIMIT_DEFAULT: u32 = 20;
/// Approvals on a page.
const LIMIT_MAX: u32 = 100;
/// Bytes of an approval's id; a longer text is none.
const ID_BYTES_MAX: usize = 64;

/// A question to a person about exactly one call.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ApprovalBody {
    id: String,
    /// `approval`.
    object: &'static str,
    /// `pending`, `approved`, `denied`, `expired`, `claimed`, `consumed` or `indeterminate`.
    status: &'static str,
    tool: String,
    /// What would happen, made from parsed facts.
    summary: String,
    /// The call's arguments as JSON text, without secrets.
    arguments: String,
    /// Why it is asked: stable names.
    reasons: Vec<String>,
    /// The mode of the run that asked.
    mode: &'static str,
    key_id: String,
    user: String,
    run_id: String,
    created_at: i64,
    expires_at: i64,
    /// The key that answered, or `console`.
    decided_by: Option<String>,
    decided_at: Option<i64>,
}

impl From<Approval> for ApprovalBody {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id.to_string(),
            object: "approval",
            status: approval.state.name(),
            tool: approval.binding.tool,
            summary: approval.summary,
            arguments: approval.arguments,
            reasons: approval.reasons,
            mode: approval.binding.mode.name(),
            key_id: approval.binding.key_id.to_string(),
            user: approval.binding.user.to_string(),
            run_id: approval.run_id.to_string(),
            created_at: approval.created_at.as_second(),
            expires_at: approval.expires_at.as_second(),
            decided_by: approval.decided_by.map(|key| key.to_string()),
            decided_at: approval.decided_at.map(Timestamp::as_second),
        }
    }
}

/// A page of approvals, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ApprovalList {
    /// `list`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) data: Vec<ApprovalBody>,
    pub(in crate::http) first_id: Option<String>,
    pub(in crate::http) last_id: Option<String>,
    pub(in crate::http) has_more: bool,
}

impl ApprovalBody {
    /// Its id.
    pub(in crate::http) fn id(&self) -> &str {
        &self.id
    }
}

/// Which approvals to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct ListApprovals {
    /// Begin after the approval with this id.
    after: Option<String>,
    /// How many a page has at most; 20 where absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// Only those in this state.
    status: Option<String>,
}

/// The page that [`ListApprovals`] asks for.
#[derive(Debug)]
pub(in crate::http) struct Page {
    pub(in crate::http) after: Option<ApprovalId>,
    pub(in crate::http) limit: u32,
    pub(in crate::http) state: Option<ApprovalState>,
}

impl QueryForm for Page {
    const NAMES: &'static [&'static str] = &["after", "limit", "status"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let limit = values.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
        let state = match values.take("status") {
            None => None,
            Some(name) => Some(ApprovalState::from_name(&name).ok_or_else(|| {
                let names: Vec<&str> = ApprovalState::ALL.iter().map(|state| state.name()).collect();
                ApiError::invalid_value("status", format!("`status` must be one of {}", names.join(", ")))
            })?),
        };
        let after = values
            .take("after")
            .map(|text| approval_id("after", &text))
            .transpose()?;
        Ok(Self { after, limit, state })
    }
}

/// An approval's id, in a query string or a path.
pub(in crate::http) fn approval_id(param: &str, text: &str) -> Result<ApprovalId, ApiError> {
    let is_one = text.len() <= ID_BYTES_MAX
        && text
            .strip_prefix("appr_")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if is_one {
        return Ok(ApprovalId::new(text));
    }
    let rule = format!(
        "`{param}` must be the id of an approval, `appr_` and letters and digits; GET /v1/approvals lists them"
    );
    Err(ApiError::invalid_value(param, rule))
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Decision {
    /// `approve` or `deny`.
    decision: String,
}

impl Decision {
    /// What was answered.
    pub(in crate::http) fn answer(&self) -> Result<Answer, ApiError> {
        match self.decision.as_str() {
            "approve" | "approved" => Ok(Answer::Approve),
            "deny" | "denied" => Ok(Answer::Deny),
            _ => Err(ApiError::invalid_value(
                "decision",
                "`decision` is `approve` or `deny`",
            )),
        }
    }
}
