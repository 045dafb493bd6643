//! Why something was not kept, in a word for programs and in a sentence for people.

use super::{Source, remains::Cut};
use crate::kinds::ValueFault;

/// Why a candidate was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No such kind in the table.
    UnknownKind,
    /// The value does not fit the kind.
    Value(ValueFault),
    /// The quote is empty or longer than allowed.
    QuoteLength,
    /// What was given by hand is not plain text on one line.
    Markup,
    /// The quote stands nowhere in the newest turn.
    NotSaid,
    /// It does, but only in a part that does not count as the person's own words.
    Cut(Cut),
    /// The words stand in something else that was in view.
    Overlap(Source),
    /// There was more in view than can be compared.
    TooMuchInView,
    /// The turn is longer than people write.
    TurnLength,
    /// Letters that show something else than they are.
    Disguised,
    /// The quote goes over the end of a sentence.
    SeveralSentences,
    /// The quote does not say the value.
    Unsupported,
    /// The quote says something, but nothing of this kind.
    Unrelated,
    /// The kind counts only when it is said outright, and this was concluded.
    Concluded,
    /// It is not said of the person.
    NotFirstPerson,
    /// It is said of somebody else.
    OtherPerson,
    /// It is a question.
    Question,
    /// It holds under a condition.
    Condition,
    /// It is denied.
    Negation,
    /// It is over.
    Past,
    /// It is wished, planned, or not certain.
    Unreal,
    /// It is what somebody else says, or what is to be said.
    Reported,
    /// It is part of a game or a story.
    RolePlay,
    /// It is not meant.
    Irony,
    /// A password, key, or number of a person.
    Secret,
    /// A link or an address.
    Address,
    /// An order to the agent.
    Instruction,
    /// A claim of power over this server.
    Authority,
    /// The same was found already in this turn.
    Repeated,
    /// Enough was kept of this turn.
    TurnCap,
    /// Enough was kept on this day.
    DayCap,
    /// Enough is kept of this person.
    UserCap,
}

impl Reason {
    /// A word for programs and tables.
    pub fn code(self) -> &'static str {
        match self {
            Self::UnknownKind => "unknown_kind",
            Self::Value(_) => "value",
            Self::QuoteLength => "quote_length",
            Self::Markup => "markup_in_words",
            Self::NotSaid => "not_said",
            Self::Cut(cut) => cut.code(),
            Self::Overlap(_) => "overlap",
            Self::TooMuchInView => "too_much_in_view",
            Self::TurnLength => "turn_length",
            Self::Disguised => "disguised",
            Self::SeveralSentences => "several_sentences",
            Self::Unsupported => "unsupported",
            Self::Unrelated => "unrelated",
            Self::Concluded => "concluded",
            Self::NotFirstPerson => "not_first_person",
            Self::OtherPerson => "other_person",
            Self::Question => "question",
            Self::Condition => "condition",
            Self::Negation => "negation",
            Self::Past => "past",
            Self::Unreal => "unreal",
            Self::Reported => "reported",
            Self::RolePlay => "role_play",
            Self::Irony => "irony",
            Self::Secret => "secret",
            Self::Address => "address",
            Self::Instruction => "instruction",
            Self::Authority => "authority",
            Self::Repeated => "repeated",
            Self::TurnCap => "turn_cap",
            Self::DayCap => "day_cap",
            Self::UserCap => "user_cap",
        }
    }

    /// A sentence for people.
    pub fn sentence(self) -> String {
        let fixed = match self {
            Self::Value(fault) => return format!("It is no value of this kind: {fault}."),
            Self::Cut(cut) => {
                return format!(
                    "The words stand only in {}, which does not count as the person's own.",
                    cut.place()
                );
            }
            Self::Overlap(source) => {
                return format!(
                    "The same words stand in {}, so they may have been copied.",
                    source.place()
                );
            }
            Self::UnknownKind => "There is no such kind in the table of kinds.",
            Self::QuoteLength => "The quote is empty or too long.",
            Self::Markup => "It must be plain text on one line, without control characters, links or markup.",
            Self::NotSaid => "The quote does not stand in the newest message of the person.",
            Self::TooMuchInView => {
                "There was more other text in view than can be compared, so nothing is kept."
            }
            Self::TurnLength => "The message is longer than people write, so nothing of it is kept.",
            Self::Disguised => "The sentence holds hidden characters or letters that only look like others.",
            Self::SeveralSentences => "The quote must stand within one sentence.",
            Self::Unsupported => "The quote does not say this value.",
            Self::Unrelated => "The sentence does not say anything of this kind.",
            Self::Concluded => "It was concluded and not said outright, which this kind asks for.",
            Self::NotFirstPerson => "The person does not say it of themselves.",
            Self::OtherPerson => "It is said of somebody else.",
            Self::Question => "It is a question and no statement.",
            Self::Condition => "It holds only under a condition.",
            Self::Negation => "The person says that it is not so.",
            Self::Past => "It is said of the past.",
            Self::Unreal => "It is wished, planned or uncertain.",
            Self::Reported => "It is what somebody else says, or what is to be said or written.",
            Self::RolePlay => "It is part of a game, a story or a role.",
            Self::Irony => "The person takes it back or does not mean it.",
            Self::Secret => "It holds a password, a key or a personal number; such things are never kept.",
            Self::Address => "It holds a link or an address.",
            Self::Instruction => {
                "It reads like an instruction to the agent, and notes about a person are none."
            }
            Self::Authority => "It claims power over this server, which only its operator gives.",
            Self::Repeated => "The same was already kept from this message.",
            Self::TurnCap => "As much as is allowed was already kept from this message.",
            Self::DayCap => "As much as is allowed was already kept on this day.",
            Self::UserCap => "As much as is allowed is already kept of this person.",
        };
        fixed.to_owned()
    }
}

impl Cut {
    /// A word for programs and tables.
    pub fn code(self) -> &'static str {
        match self {
            Self::BlockQuote => "block_quote",
            Self::Code => "code",
            Self::Quotation => "quotation",
            Self::Pasted => "pasted",
            Self::Forwarded => "forwarded",
            Self::Transcript => "transcript",
            Self::Markup => "markup",
            Self::Forged => "forged",
        }
    }

    fn place(self) -> &'static str {
        match self {
            Self::BlockQuote => "a quoted block",
            Self::Code => "code",
            Self::Quotation => "quotation marks",
            Self::Pasted => "text that was pasted or is to be worked on",
            Self::Forwarded => "a forwarded message or letter",
            Self::Transcript => "the lines of a conversation or a form",
            Self::Markup => "markup or data",
            Self::Forged => "a message that holds control tokens of a chat template",
        }
    }
}

impl Source {
    fn place(self) -> &'static str {
        match self {
            Self::Retrieved => "a passage that was looked up",
            Self::Tool => "the result of a tool",
            Self::Assistant => "an answer of the assistant",
            Self::System => "the client's system text",
            Self::Earlier => "a part of an earlier message that was no statement of the person",
        }
    }
}
