//! The wave executor: everything in a wave runs at once, up to a width; results come back in call order
//! whatever finished first; a node that panics or is slow takes nobody with it.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt, StreamExt, stream};

/// How a node ended.
#[derive(Debug, PartialEq)]
pub enum NodeEnd<T> {
    /// It returned.
    Done(T),
    /// It met its own deadline and was dropped.
    TimedOut,
    /// It panicked; the text is for the operator.
    Panicked(String),
}

/// Runs one wave. `deadline` gives each node its own time; `work` makes a node's future. At most `width`
/// futures are polled at once. The order of the results is the order of the nodes.
pub async fn run_wave<N, T, F>(
    nodes: Vec<N>,
    width: usize,
    deadline: impl Fn(&N) -> Duration,
    work: impl Fn(N) -> F,
) -> Vec<NodeEnd<T>>
where
    F: Future<Output = T>,
{
    let mut futures = nodes.into_iter().map(|node| {
        let limit = deadline(&node);
        bounded(work(node), limit)
    });
    if futures.len() == 1
        && let Some(only) = futures.next()
    {
        // As most waves are: nothing is to be put in order.
        return vec![only.await];
    }
    stream::iter(futures).buffered(width.max(1)).collect().await
}

/// One future under its deadline and behind a panic net.
pub(crate) async fn bounded<T>(work: impl Future<Output = T>, limit: Duration) -> NodeEnd<T> {
    match tokio::time::timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(output)) => NodeEnd::Done(output),
        Ok(Err(panic)) => NodeEnd::Panicked(panic_text(panic.as_ref())),
        Err(_elapsed) => NodeEnd::TimedOut,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without text".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// What a scripted node does.
    #[derive(Debug, Clone, Copy)]
    enum Script {
        Return { after_ms: u64 },
        Panic { after_ms: u64 },
        Hang,
    }

    const DEADLINE_MS: u64 = 500;

    async fn play(script: Script, value: usize) -> usize {
        match script {
            Script::Return { after_ms } => tokio::time::sleep(Duration::from_millis(after_ms)).await,
            Script::Panic { after_ms } => {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
                panic!("node {value}");
            }
            Script::Hang => std::future::pending().await,
        }
        value
    }

    fn script() -> impl Strategy<Value = Script> {
        prop_oneof![
            4 => (0..400_u64).prop_map(|after_ms| Script::Return { after_ms }),
            1 => (0..400_u64).prop_map(|after_ms| Script::Panic { after_ms }),
            1 => Just(Script::Hang),
        ]
    }

    fn paused() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_schedule_merges_in_call_order_and_ends(scripts in proptest::collection::vec(script(), 0..24), width in 1..20_usize) {
            let rounds = scripts.len().div_ceil(width) as u64 + 1;
            let (ends, elapsed) = paused().block_on(async {
                let start = tokio::time::Instant::now();
                let nodes: Vec<(usize, Script)> = scripts.iter().copied().enumerate().collect();
                let ends = run_wave(
                    nodes,
                    width,
                    |_| Duration::from_millis(DEADLINE_MS),
                    |(index, script)| play(script, index),
                )
                .await;
                (ends, start.elapsed())
            });
            prop_assert_eq!(ends.len(), scripts.len());
            for (index, (end, script)) in ends.iter().zip(&scripts).enumerate() {
                let right = match (end, script) {
                    (NodeEnd::Done(value), Script::Return { .. }) => *value == index,
                    (NodeEnd::Panicked(text), Script::Panic { .. }) => *text == format!("node {index}"),
                    (NodeEnd::TimedOut, Script::Hang) => true,
                    _ => false,
                };
                prop_assert!(right, "node {} ended as {:?}", index, end);
            }
            prop_assert!(elapsed <= Duration::from_millis(DEADLINE_MS * rounds * 2), "{:?}", elapsed);
        }
    }

    #[test]
    fn a_wave_is_as_slow_as_its_slowest_node_and_no_wider_than_allowed() {
        let (running, widest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let elapsed = paused().block_on(async {
            let start = tokio::time::Instant::now();
            run_wave(
                vec![(); 32],
                16,
                |()| Duration::from_secs(9),
                |()| async {
                    widest.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                },
            )
            .await;
            start.elapsed()
        });
        assert_eq!(widest.into_inner(), 16);
        assert!(elapsed < Duration::from_millis(210), "{elapsed:?}");
    }
}
