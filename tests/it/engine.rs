//! One turn, seen from outside: what the model was asked, what the client heard, what stayed behind.

mod answers;
mod approvals;
mod audit;
mod bounds;
mod cancel;
mod crash;
mod encodings;
mod fallback;
mod hooks;
mod mixed;
mod model_log;
mod prompt;
mod push;
mod quota;
mod routing;
mod search_tools;
mod text_calls;
mod tolerance;
mod tools;
