//! Harness notes: what the engine itself says to the model, as one table, so that tests and logs refer to ids.

use tidegate_core::message::Message;

/// A note's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Note {
    /// The reply named tools that do not exist.
    UnknownTool,
    /// The reply was empty.
    EmptyAnswer,
    /// Every call of the round repeated an earlier one.
    NoProgress,
    /// The bound on rounds or calls is met.
    LastWord,
    /// Too many calls in a row were refused or need an approval.
    Denied,
    /// The reply was cut before it said anything.
    CutReply,
    /// The answer must be put in the client's format.
    Format,
}

impl Note {
    /// The id as tests and logs know it.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::EmptyAnswer => "empty_answer",
            Self::NoProgress => "no_progress",
            Self::LastWord => "last_word",
            Self::Denied => "denied",
            Self::CutReply => "cut_reply",
            Self::Format => "format",
        }
    }

    /// The note as a message. `detail` stands at the end where the text asks for it.
    pub(crate) fn message(self, detail: &str) -> Message {
        let text = match self {
            Self::UnknownTool => {
                format!(
                    "There is no tool of that name. The tools are: {detail}. Use one of them, or answer directly."
                )
            }
            Self::EmptyAnswer => "Your reply was empty. Answer the user now, in plain words.".to_owned(),
            Self::NoProgress => {
                "You asked for what you already have. Answer the user now with the results above.".to_owned()
            }
            Self::LastWord => {
                "No more tool calls are possible in this turn. Give your best answer now from what is known, and \
                 say what is missing."
                    .to_owned()
            }
            Self::Denied => {
                "What you tried was refused. Stop trying. Tell the user what you could not do and why, and what \
                 waits for an approval."
                    .to_owned()
            }
            Self::CutReply => {
                "Your reply was cut off before it said anything. Answer briefly, without long deliberation."
                    .to_owned()
            }
            Self::Format => {
                "Now give the final answer to the user's request, in the required format and nothing else."
                    .to_owned()
            }
        };
        Message::Harness {
            note: self.id().to_owned(),
            text,
        }
    }
}
