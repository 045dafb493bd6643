//! The turn as a graph: nodes, the follow-ups each declares, and how the next wave is cut from them. Pure.
//!
//! A planner node's follow-ups are the calls it issued, in call order, and after them either the planner again
//! or the hand-over to the client. The next wave is everything at the front of the line that is independent:
//! reads beside each other, anything with a side effect alone, a planner alone.

use std::collections::VecDeque;

use tidegate_core::{
    id::CallId,
    tool::{Effect, ToolCall},
};

use crate::event::Outcome;

/// A unit of work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// Ask the model.
    Plan(Plan),
    /// Run a server tool.
    Call(PlannedCall),
    /// Give an earlier, identical read's result to this call too.
    Repeat {
        /// The call to answer.
        call: ToolCall,
        /// The call whose result it gets.
        of: CallId,
    },
    /// Answer a call without running it.
    Unrunnable {
        /// The call to answer.
        call: ToolCall,
        /// Why it does not run.
        why: Unrunnable,
    },
    /// Hand these calls to the client and end the turn.
    HandOver(Vec<ToolCall>),
}

/// Why a call is answered without being run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unrunnable {
    /// More calls in one reply than the bound.
    RoundFull,
    /// More calls in one turn than the bound.
    TurnFull,
}

/// What a planner node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// An ordinary round.
    Round,
    /// The last word: no tools, whatever is known; the outcome says why.
    Last(Outcome),
    /// The answer is known and must be put in the client's `response_format`.
    Format,
}

/// A call with the effect that decides its wave.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedCall {
    /// The call.
    pub(crate) call: ToolCall,
    /// What it does to the world.
    pub(crate) effect: Effect,
}

impl Node {
    /// Whether the node must run alone.
    fn is_barrier(&self) -> bool {
        match self {
            Self::Plan(_) | Self::HandOver(_) => true,
            Self::Call(planned) => !planned.effect.is_read_only(),
            Self::Repeat { .. } | Self::Unrunnable { .. } => false,
        }
    }
}

/// The nodes that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    line: VecDeque<Node>,
}

impl Graph {
    /// Puts follow-ups at the end of the line.
    pub(crate) fn follow(&mut self, nodes: impl IntoIterator<Item = Node>) {
        self.line.extend(nodes);
    }

    /// The calls that wait, for a checkpoint.
    pub(crate) fn pending_calls(&self) -> Vec<&ToolCall> {
        self.line
            .iter()
            .flat_map(|node| match node {
                Node::Call(planned) => std::slice::from_ref(&planned.call),
                Node::Repeat { call, .. } | Node::Unrunnable { call, .. } => std::slice::from_ref(call),
                Node::HandOver(calls) => calls.as_slice(),
                Node::Plan(_) => &[],
            })
            .collect()
    }

    /// Cuts the next wave: the leading run of independent nodes, or one barrier. Empty at the end.
    pub(crate) fn next_wave(&mut self) -> Vec<Node> {
        let mut wave = Vec::new();
        while let Some(node) = self.line.front() {
            if node.is_barrier() {
                if wave.is_empty() {
                    wave.extend(self.line.pop_front());
                }
                break;
            }
            wave.extend(self.line.pop_front());
        }
        wave
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_core::tool::Arguments;

    use super::*;

    fn call(index: usize, effect: Effect) -> Node {
        Node::Call(PlannedCall {
            call: ToolCall {
                id: CallId::new(format!("c{index}")),
                name: "t".into(),
                arguments: Arguments::Object(serde_json::Map::new()),
            },
            effect,
        })
    }

    proptest! {
        #[test]
        fn waves_keep_call_order_and_a_side_effect_stands_alone(effects in proptest::collection::vec(0..4_usize, 0..40)) {
            let effect = |n: usize| [Effect::Read, Effect::Write, Effect::Network, Effect::External][n];
            let nodes: Vec<Node> = effects.iter().enumerate().map(|(i, n)| call(i, effect(*n))).collect();
            let mut graph = Graph::default();
            graph.follow(nodes.clone());
            let mut flat = Vec::new();
            loop {
                let wave = graph.next_wave();
                if wave.is_empty() {
                    break;
                }
                prop_assert!(wave.len() == 1 || wave.iter().all(|node| !node.is_barrier()));
                flat.extend(wave);
            }
            prop_assert_eq!(flat, nodes);
        }
    }

    #[test]
    fn reads_between_side_effects_share_a_wave() {
        let mut graph = Graph::default();
        graph.follow([
            call(0, Effect::Read),
            call(1, Effect::Read),
            call(2, Effect::Write),
            call(3, Effect::Read),
            Node::Plan(Plan::Round),
        ]);
        let sizes: Vec<usize> =
            std::iter::from_fn(|| Some(graph.next_wave().len()).filter(|size| *size > 0)).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
    }
}
