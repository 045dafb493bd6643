//! The run, as a runner of one of its calls sees it ([`CallHost`]).
//!
//! A runner may tell and ask from any task, and the run is worked on by its viewer. So both ways are bounded channels
//! into the future of the call itself, and end with it: what comes late belongs to nobody.

use std::{pin::pin, sync::Arc};

use async_trait::async_trait;
use tidegate_core::tool::{ToolCall, ToolSpec};
use tidegate_gate::{CallHost, Notice, Sample, SampleRefusal, SampleRequest};
use tokio::sync::{mpsc, oneshot};

use crate::{event::RunEvent, sampling, turn::Turn};

/// Notices that wait to be shown; more are dropped.
const NOTICES_MAX: usize = 32;
/// Notices of one call that are shown at all.
const NOTICES_PER_CALL_MAX: usize = 500;
/// Questions that wait for the one under way; more are refused.
const QUESTIONS_MAX: usize = 4;

/// A question and where its answer goes.
#[derive(Debug)]
struct Asked {
    request: SampleRequest,
    answer: oneshot::Sender<Result<Sample, SampleRefusal>>,
}

/// The runner's end.
#[derive(Debug)]
struct Host {
    notices: mpsc::Sender<Notice>,
    questions: mpsc::Sender<Asked>,
}

#[async_trait]
impl CallHost for Host {
    fn notice(&self, notice: Notice) {
        // Where nobody takes them in time, there are too many to be looked at.
        drop(self.notices.try_send(notice));
    }

    async fn sample(&self, request: SampleRequest) -> Result<Sample, SampleRefusal> {
        let (answer, waiting) = oneshot::channel();
        self.questions
            .try_send(Asked { request, answer })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => {
                    SampleRefusal("too many questions for a model are waiting already".to_owned())
                }
                mpsc::error::TrySendError::Closed(_) => over(),
            })?;
        waiting.await.unwrap_or_else(|_gone| Err(over()))
    }
}

fn over() -> SampleRefusal {
    SampleRefusal("the call that this belongs to is over".to_owned())
}

/// The call's end.
#[derive(Debug)]
pub(crate) struct Desk {
    notices: mpsc::Receiver<Notice>,
    questions: mpsc::Receiver<Asked>,
    shown: usize,
}

/// Both ends for one call.
pub(crate) fn open() -> (Arc<dyn CallHost>, Desk) {
    let (notices, told) = mpsc::channel(NOTICES_MAX);
    let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
    let desk = Desk {
        notices: told,
        questions: asked,
        shown: 0,
    };
    (Arc::new(Host { notices, questions }), desk)
}

impl Desk {
    /// Waits for the call's end; meanwhile shows what it tells, and answers what it asks, one after another.
    pub(crate) async fn attend<T>(
        mut self,
        turn: &Turn,
        spec: &ToolSpec,
        call: &ToolCall,
        run: impl Future<Output = T>,
    ) -> T {
        let mut run = pin!(run);
        let result = loop {
            let asked = tokio::select! {
                biased;
                result = &mut run => break result,
                Some(notice) = self.notices.recv() => {
                    self.show(turn, call, notice);
                    continue;
                }
                Some(asked) = self.questions.recv() => asked,
            };
            let mut answering = pin!(sampling::sample(turn, spec, call, asked.request));
            let answered = loop {
                tokio::select! {
                    biased;
                    result = &mut run => break Err(result),
                    answer = &mut answering => break Ok(answer),
                    Some(notice) = self.notices.recv() => self.show(turn, call, notice),
                }
            };
            match answered {
                // Whoever asked may not wait any longer.
                Ok(answer) => drop(asked.answer.send(answer)),
                Err(result) => break result,
            }
        };
        // What was told before the end is shown before the end.
        while let Ok(notice) = self.notices.try_recv() {
            self.show(turn, call, notice);
        }
        result
    }

    fn show(&mut self, turn: &Turn, call: &ToolCall, notice: Notice) {
        if self.shown == NOTICES_PER_CALL_MAX {
            return;
        }
        self.shown += 1;
        let clean = |text: String| turn.engine.redactor().redact(&text).into_owned();
        let notice = match notice {
            Notice::Progress {
                progress,
                total,
                message,
            } => Notice::Progress {
                progress,
                total,
                message: message.map(clean),
            },
            Notice::Log { level, text } => Notice::Log {
                level,
                text: clean(text),
            },
        };
        turn.emitter.offer(RunEvent::ToolNotice {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            notice,
        });
    }
}
