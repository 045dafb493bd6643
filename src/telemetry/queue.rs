//! Log lines on their way to a file or the console: a bounded buffer that one thread empties.
//!
//! Whoever logs never waits for the disk, and seldom wakes the thread: once awake it gathers lines for a moment
//! and writes them together, so that a line for each request costs no change of threads for each request.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

use super::masks::{Form, Masks};

/// Bytes of lines that wait; further lines are dropped rather than waited for: a pipe that nobody reads, or a
/// slow disk, must not hold up requests.
const BYTES_MAX: usize = 4 << 20;
/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(25);

/// The side that logs.
#[derive(Debug, Clone)]
pub(super) struct Queue(Arc<Shared>);

/// Keeps the thread alive; dropping it writes what is waiting.
#[derive(Debug)]
pub(super) struct Drain {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    dropped: u64,
    /// The thread waits to be woken.
    idle: bool,
    closed: bool,
}

/// A queue in front of `to`, emptied by a thread of that name, which takes secrets out of the lines.
pub(super) fn start(
    name: &str,
    to: impl Write + Send + 'static,
    form: Form,
    masks: Masks,
) -> io::Result<(Queue, Drain)> {
    let shared = Arc::new(Shared::default());
    let ours = Arc::clone(&shared);
    let thread = thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || ours.empty_into(to, form, &masks))?;
    let drain = Drain {
        shared: Arc::clone(&shared),
        thread: Some(thread),
    };
    Ok((Queue(shared), drain))
}

impl Shared {
    /// A panic elsewhere leaves whole lines behind.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line.
    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.bytes.len() + line.len() > BYTES_MAX {
            state.dropped += 1;
            return;
        }
        state.bytes.extend_from_slice(line);
        if mem::take(&mut state.idle) {
            drop(state);
            self.filled.notify_one();
        }
    }

    /// The thread: until the queue is closed and empty.
    fn empty_into(&self, mut to: impl Write, form: Form, masks: &Masks) {
        let mut taken = Vec::new();
        loop {
            let closed = self.wait();
            if !closed {
                thread::sleep(GATHER);
            }
            let dropped = {
                let mut state = self.state();
                mem::swap(&mut state.bytes, &mut taken);
                mem::take(&mut state.dropped)
            };
            // There is nowhere to report it: this is the log.
            let clean = masks.clean(&taken, form);
            drop(to.write_all(&clean).and_then(|()| to.flush()));
            drop(clean);
            if dropped > 0 {
                drop(writeln!(
                    to,
                    "{{\"level\":\"WARN\",\"message\":\"log lines were dropped\",\"lines\":{dropped}}}"
                ));
            }
            taken.clear();
            if closed && self.state().bytes.is_empty() {
                return;
            }
        }
    }

    /// Waits for a line; says whether the queue is closed.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while state.bytes.is_empty() && !state.closed {
            state.idle = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        state.closed
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has written what it could.
            drop(thread.join());
        }
    }
}

/// Collects what one event writes and hands it over whole.
#[derive(Debug)]
pub(super) struct Line {
    queue: Arc<Shared>,
    bytes: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.queue.push(&self.bytes);
    }
}

impl Queue {
    /// A whole line, its end included.
    pub(super) fn push(&self, line: &str) {
        self.0.push(line.as_bytes());
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            queue: Arc::clone(&self.0),
            bytes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in memory.
    #[derive(Debug, Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_arrives_whole_and_in_order_by_the_end() {
        let sink = Sink::default();
        let (queue, drain) = start("test-log", sink.clone(), Form::Text, Masks::default()).unwrap();
        let mut expected = Vec::new();
        for number in 0..1_000 {
            let mut line = queue.make_writer();
            write!(line, "line {number}").unwrap();
            line.write_all(b"\n").unwrap();
            writeln!(expected, "line {number}").unwrap();
        }
        drop(drain);
        assert_eq!(*sink.0.lock().unwrap(), expected);
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let shared = Shared::default();
        let line = vec![b'x'; BYTES_MAX / 2];
        for _ in 0..5 {
            shared.push(&line);
        }
        let state = shared.state();
        assert_eq!((state.bytes.len(), state.dropped), (BYTES_MAX, 3));
    }
}
