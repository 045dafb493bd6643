//! One server and the task that keeps it: connect, list, listen for changes, and again when it ends.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
    time::Duration,
};

use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
    SubscriptionFilter, Tool as Listed,
};
use tidegate_core::{
    clock::Clock,
    port::{ToolPin, ToolPins},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    breaker::Breaker,
    catalog::{Catalog, Making},
    connection::{Connection, Means, Open, RequestFault, open},
    event::Kind,
    registry::Registry,
    servers_file::Server,
    stderr::Complaints,
};

/// Pages of a list that are asked for; a list that goes on is cut.
const PAGES_MAX: usize = 64;
/// How long changes of a list are gathered before it is asked for again.
const SETTLE: Duration = Duration::from_millis(300);
/// How long a connection must have lasted for its end to count as the first.
const STEADY: Duration = Duration::from_mins(1);
/// How long the newer protocol's subscription is waited for.
const SUBSCRIBE: Duration = Duration::from_secs(5);

/// Where a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is being connected to.
    Starting,
    /// It is connected and its tools are known.
    Ready,
    /// It is not connected; it is tried again.
    Down {
        /// Why.
        reason: String,
        /// In how many milliseconds it is tried again.
        again_in_ms: u64,
    },
    /// The operator has switched it off.
    Disabled,
}

impl State {
    /// The state's name in logs and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Down { .. } => "down",
            Self::Disabled => "disabled",
        }
    }
}

/// What is kept beside the word.
#[derive(Debug, Clone)]
enum Standing {
    Starting,
    Ready,
    Down { reason: String, again: Instant },
    Disabled,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) server: Server,
    pub(crate) breaker: Breaker,
    pub(crate) stop: CancellationToken,
    pub(crate) complaints: Arc<Complaints>,
    standing: RwLock<Standing>,
    connection: RwLock<Option<Arc<Connection>>>,
    catalog: RwLock<Arc<Catalog>>,
    /// Held while a list is made into a catalog, so that an approval and a new list do not cross.
    listing: tokio::sync::Mutex<()>,
    restarts: Mutex<u32>,
}

/// What the task of a server works with.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) means: Arc<Means>,
    pub(crate) pins: Arc<dyn ToolPins>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Weak<Registry>,
    /// Everything ends at once.
    pub(crate) shutdown: CancellationToken,
}

fn read<T: Clone>(lock: &RwLock<T>) -> T {
    lock.read().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Slot {
    pub(crate) fn new(server: Server, complaints: Complaints, means: &Means) -> Self {
        let options = &means.options;
        let standing = if server.enabled {
            Standing::Starting
        } else {
            Standing::Disabled
        };
        Self {
            server,
            breaker: Breaker::new(
                options.breaker_failures,
                Duration::from_millis(options.breaker_open_ms),
            ),
            stop: CancellationToken::new(),
            complaints: Arc::new(complaints),
            standing: RwLock::new(standing),
            connection: RwLock::new(None),
            catalog: RwLock::default(),
            listing: tokio::sync::Mutex::new(()),
            restarts: Mutex::new(0),
        }
    }

    pub(crate) fn state(&self) -> State {
        match read(&self.standing) {
            Standing::Starting => State::Starting,
            Standing::Ready => State::Ready,
            Standing::Down { reason, again } => State::Down {
                reason,
                again_in_ms: millis(again.saturating_duration_since(Instant::now())),
            },
            Standing::Disabled => State::Disabled,
        }
    }

    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        read(&self.connection)
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        read(&self.catalog)
    }

    pub(crate) fn restarts(&self) -> u32 {
        *self.restarts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stand(&self, standing: Standing) {
        *self.standing.write().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    fn put(&self, connection: Option<Arc<Connection>>) {
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    /// Keeps the server until it is stopped.
    pub(crate) async fn keep(self: Arc<Self>, work: Work) {
        if !self.server.enabled {
            return;
        }
        let options = &work.means.options;
        let mut ends_early = 0_u32;
        loop {
            self.stand(Standing::Starting);
            let began = Instant::now();
            let reason = tokio::select! {
                () = self.stop.cancelled() => break,
                () = work.shutdown.cancelled() => break,
                opened = open(&self.server, &work.means, &self.complaints) => match opened {
                    Ok(open) => match self.serve(open, &work).await {
                        Some(reason) => reason,
                        None => break,
                    },
                    Err(error) => error.to_string(),
                },
            };
            ends_early = if began.elapsed() > STEADY {
                0
            } else {
                ends_early.saturating_add(1)
            };
            let delay = options
                .restart_delay_ms
                .saturating_mul(1 << ends_early.saturating_sub(1).min(20))
                .min(options.restart_delay_max_ms);
            let again = Instant::now() + Duration::from_millis(delay);
            tracing::warn!(server = %self.server.name, delay_ms = delay, "MCP server is down: {reason}");
            work.means.events.send(
                &self.server.name,
                Kind::Down {
                    reason: reason.clone(),
                },
            );
            self.stand(Standing::Down { reason, again });
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = work.shutdown.cancelled() => break,
                () = tokio::time::sleep_until(again) => {}
            }
            *self.restarts.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        self.put(None);
    }

    /// Works with an open connection to its end. The reason of the end; `None` where the server is to be stopped.
    async fn serve(&self, open: Open, work: &Work) -> Option<String> {
        let connection = Arc::clone(&open.connection);
        let end = tokio::select! {
            () = self.stop.cancelled() => None,
            () = work.shutdown.cancelled() => None,
            end = self.attend(&connection, work) => Some(end),
        };
        self.put(None);
        let patience = match end {
            // Calls under way finish on the connection they began on.
            None => Duration::from_millis(work.means.options.drain_ms),
            // It is of no use to them.
            Some(_) => Duration::ZERO,
        };
        let closing = open.close(patience, &work.shutdown);
        if end.is_none() && !work.shutdown.is_cancelled() {
            work.means.tasks.spawn(closing);
        } else {
            closing.await;
        }
        end
    }

    async fn attend(&self, connection: &Arc<Connection>, work: &Work) -> String {
        if let Err(fault) = self.list(connection, work).await {
            return format!("its tools cannot be listed: {fault}");
        }
        self.breaker.reset();
        self.put(Some(Arc::clone(connection)));
        self.stand(Standing::Ready);
        let catalog = self.catalog();
        tracing::info!(
            server = %self.server.name,
            tools = catalog.tools.len(),
            blocked = catalog.blocked.len(),
            "MCP server is ready"
        );
        work.means.events.send(
            &self.server.name,
            Kind::Ready {
                tools: catalog.tools.len(),
                blocked: catalog.blocked.len(),
            },
        );
        let _subscription = subscribed(connection).await;
        loop {
            tokio::select! {
                () = connection.ended() => {
                    let words = self.complaints.last_words();
                    return words.map_or_else(
                        || "the connection ended".to_owned(),
                        |words| format!("the connection ended; it said last: {words}"),
                    );
                }
                () = connection.notices.tools_changed() => {}
                () = self.accepted_elsewhere(work) => {}
            }
            tokio::time::sleep(SETTLE).await;
            if let Err(fault) = self.list(connection, work).await {
                tracing::warn!(server = %self.server.name, "the changed tools of an MCP server cannot be listed: {fault}");
            }
        }
    }

    /// Asks for the tools and puts them in force.
    async fn list(&self, connection: &Connection, work: &Work) -> Result<(), String> {
        let limit = Duration::from_millis(work.means.options.list_timeout_ms);
        let listed = tokio::time::timeout(limit, tools_of(connection, limit, work.means.options.tools_max))
            .await
            .map_err(|_elapsed| format!("not within {} ms", limit.as_millis()))?
            .map_err(|fault| fault.to_string())?;
        let _crossing = self.listing.lock().await;
        let pins = self.pins(work).await?;
        let before = self.catalog();
        let (server, options, now) = (self.server.clone(), work.means.options.clone(), work.clock.now());
        // A long list takes a while to read, and nobody else should wait for it.
        let made = tokio::task::spawn_blocking(move || {
            Making {
                server: &server,
                options: &options,
                pins: &pins,
                before: &before,
                now,
            }
            .catalog(listed)
        });
        let (catalog, new_pins) = made.await.map_err(|_broke| "reading the list broke".to_owned())?;
        if !new_pins.is_empty() {
            work.pins
                .put(&new_pins)
                .await
                .map_err(|error| format!("what was accepted cannot be kept: {error}"))?;
        }
        self.publish(catalog, work);
        Ok(())
    }

    /// Waits until a changed tool was accepted by another process, such as a command on the same machine.
    async fn accepted_elsewhere(&self, work: &Work) {
        let tick = work.means.options.watch_ms;
        if tick == 0 {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(Duration::from_millis(tick)).await;
            let catalog = self.catalog();
            if catalog.blocked.is_empty() {
                continue;
            }
            // What cannot be read now is read at the next tick.
            let pins = self.pins(work).await.unwrap_or_default();
            let is_accepted = catalog.blocked.iter().any(|blocked| {
                pins.get(&blocked.tool)
                    .is_some_and(|pin| pin.digest == blocked.digest)
            });
            if is_accepted {
                return;
            }
        }
    }

    async fn pins(&self, work: &Work) -> Result<BTreeMap<String, ToolPin>, String> {
        let pins = work.pins.of_server(&self.server.name).await;
        let pins = pins.map_err(|error| format!("what was accepted before cannot be read: {error}"))?;
        Ok(pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect())
    }

    fn publish(&self, catalog: Catalog, work: &Work) {
        for remark in &catalog.remarks {
            tracing::warn!(server = %self.server.name, "a tool of an MCP server is not offered: {remark}");
        }
        for blocked in &catalog.blocked {
            tracing::warn!(
                server = %self.server.name,
                tool = %blocked.name,
                "the definition of an MCP server's tool has changed: it is not offered until it is approved"
            );
        }
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
        if let Some(registry) = work.registry.upgrade() {
            registry.rebuild();
        }
    }

    /// Accepts the present definitions of tools that are held back: one, or all. How many those were.
    pub(crate) async fn accept(
        &self,
        tool: Option<&str>,
        digest: Option<&str>,
        work: &Work,
    ) -> Result<usize, String> {
        let count = {
            let _crossing = self.listing.lock().await;
            let catalog = self.catalog();
            let pins: Vec<ToolPin> = catalog
                .blocked
                .iter()
                .filter(|blocked| tool.is_none_or(|tool| tool == blocked.tool || tool == blocked.name))
                .filter(|blocked| digest.is_none_or(|digest| digest == blocked.digest))
                .map(|blocked| ToolPin {
                    server: self.server.name.clone(),
                    tool: blocked.tool.clone(),
                    digest: blocked.digest.clone(),
                    definition: blocked.definition.clone(),
                    accepted_at: work.clock.now(),
                })
                .collect();
            if !pins.is_empty() {
                work.pins.put(&pins).await.map_err(|error| error.to_string())?;
            }
            pins.len()
        };
        if let (true, Some(connection)) = (count > 0, self.connection()) {
            self.list(&connection, work).await?;
        }
        Ok(count)
    }
}

/// Every page of the list, up to more tools than are offered.
async fn tools_of(
    connection: &Connection,
    limit: Duration,
    tools_max: usize,
) -> Result<Vec<Listed>, RequestFault> {
    let mut tools: Vec<Listed> = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        match connection.request(request, limit, None).await {
            Ok(ServerResult::ListToolsResult(mut page)) => {
                tools.append(&mut page.tools);
                cursor = page.next_cursor;
            }
            Ok(_) => return Err(RequestFault::Unexpected),
            // A server of resources or prompts alone need not know this request.
            Err(RequestFault::Refused { code: -32601, .. }) => break,
            Err(fault) => return Err(fault),
        }
        // Twice as many as are offered, so that patterns have something to choose from.
        if cursor.is_none() || tools.len() > tools_max.saturating_mul(8) {
            break;
        }
    }
    Ok(tools)
}

/// In the newer protocol, changes are told to those alone who have asked for it.
async fn subscribed(connection: &Connection) -> Option<rmcp::service::Subscription> {
    let info = connection.info()?;
    if info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let asked = tokio::time::timeout(SUBSCRIBE, connection.peer().listen(filter)).await;
    asked.ok()?.ok()
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
