//! The server: one client, a limit for every call, and the collection with its space looked at.
//!
//! The `chromadb` crate makes every call but two. It does not show a collection's configuration, so that is read with a
//! GET of our own, and the tenant with another, since the address of the first needs it. Its calls for the version and
//! the heartbeat go to paths that no current server answers, and are not used. It sets no time limit anywhere, so each
//! call has one here. Making it is work (it holds many connections' worth of TLS set-up), so it is made once, away from
//! the threads that serve connections.

use std::{sync::Arc, time::Duration};

use chromadb::{
    client::{ChromaAuthMethod, ChromaClient, ChromaClientOptions, ChromaTokenHeader},
    collection::{ChromaCollection, CollectionEntries, GetOptions, QueryOptions},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::port::ChunkKey;
use tidegate_io::http::{self, OperatorClient};
use tokio::{runtime::Handle, sync::OnceCell, time::timeout};

use super::{
    Options,
    fault::{self, Fault},
};

/// How long a request that writes may take, in milliseconds, whatever a search may: Chroma puts vectors in order as they
/// come.
const WRITE_TIMEOUT_MS: u64 = 30_000;
/// The most bytes of a description that are read; one takes some 3 kB.
const DESCRIPTION_BYTES_MAX: usize = 1 << 20;
/// The space that vectors are compared in.
const SPACE: &str = "cosine";
/// How a collection is made: by cosine, and searched so thoroughly that among tens of thousands of vectors the nearest
/// hundred are the true ones. Chroma's own figures (100, 100 and 16) miss some.
const MADE_WITH: [(&str, u64); 3] = [
    ("hnsw:search_ef", 1_000),
    ("hnsw:construction_ef", 400),
    ("hnsw:M", 48),
];
/// The name under which a row's key stands in its metadata, for filters.
const KEY: &str = "key";

/// A Chroma server, and the names of a database and a collection on it.
pub(super) struct Server {
    options: Options,
    http: OperatorClient,
    client: OnceCell<Arc<ChromaClient>>,
    tenant: OnceCell<String>,
}

/// The library's client would show the token.
impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A collection that compares by cosine.
pub(super) struct Collection {
    inner: ChromaCollection,
    timeout: Duration,
    /// What was noted at it when it was looked up.
    pub(super) notes: Map<String, Value>,
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collection")
            .field("id", &self.inner.id())
            .finish_non_exhaustive()
    }
}

/// A vector on its way to Chroma.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) key: ChunkKey,
    pub(super) vector: Vec<f32>,
    pub(super) text: String,
}

/// A collection as the server describes it.
#[derive(Debug, Deserialize)]
struct Described {
    configuration_json: Option<Configuration>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Configuration {
    hnsw: Option<Graph>,
    spann: Option<Graph>,
}

#[derive(Debug, Deserialize)]
struct Graph {
    space: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Identity {
    tenant: String,
}

impl Server {
    pub(super) fn new(options: Options) -> Result<Self, http::Error> {
        Ok(Self {
            options,
            http: OperatorClient::new(&http::Options::default())?,
            client: OnceCell::new(),
            tenant: OnceCell::new(),
        })
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The collection, or `None` where there is none. One that compares otherwise than by cosine is refused.
    pub(super) async fn find(&self) -> Result<Option<Collection>, Fault> {
        let Some(described) = self.describe().await? else {
            return Ok(None);
        };
        self.check_space(&described)?;
        let client = self.client().await?;
        let inner = self
            .limited(client.get_collection(&self.options.collection))
            .await?;
        Ok(Some(self.collection(inner, described.metadata)))
    }

    /// Makes the collection, with notes at it.
    pub(super) async fn make(&self, notes: &Map<String, Value>) -> Result<Collection, Fault> {
        let client = self.client().await?;
        let mut metadata = notes.clone();
        metadata.insert("hnsw:space".to_owned(), Value::from(SPACE));
        for (name, value) in MADE_WITH {
            metadata.insert(name.to_owned(), Value::from(value));
        }
        let making = client.create_collection(&self.options.collection, Some(metadata), false);
        self.limited(making).await?;
        // What the server made of it is looked at like what others made.
        self.find().await?.ok_or(Fault::Gone)
    }

    /// Takes the collection away, with all that is in it.
    pub(super) async fn remove(&self) -> Result<(), Fault> {
        let client = self.client().await?;
        match self
            .limited(client.delete_collection(&self.options.collection))
            .await
        {
            Ok(()) | Err(Fault::Gone) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn collection(&self, inner: ChromaCollection, notes: Option<Map<String, Value>>) -> Collection {
        Collection {
            inner,
            timeout: Duration::from_millis(self.options.timeout_ms),
            notes: notes.unwrap_or_default(),
        }
    }

    /// The library's client, made once. Making one asks the server who we are.
    async fn client(&self) -> Result<Arc<ChromaClient>, Fault> {
        let made = self.client.get_or_try_init(|| async {
            let options = ChromaClientOptions {
                url: Some(self.options.url.clone()),
                auth: match &self.options.token {
                    Some(token) => ChromaAuthMethod::TokenAuth {
                        token: token.expose().to_owned(),
                        header: ChromaTokenHeader::Authorization,
                    },
                    None => ChromaAuthMethod::None,
                },
                database: self.options.database.clone(),
            };
            let handle = Handle::current();
            let limit = self.limit();
            let making = tokio::task::spawn_blocking(move || {
                handle.block_on(async { timeout(limit, ChromaClient::new(options)).await })
            });
            match making.await {
                Ok(Ok(Ok(client))) => Ok(Arc::new(client)),
                Ok(Ok(Err(error))) => Err(fault::of_call(error.as_ref())),
                Ok(Err(_)) => Err(late(limit)),
                Err(_) => Err(fault::unreadable()),
            }
        });
        made.await.map(Arc::clone)
    }

    async fn describe(&self) -> Result<Option<Described>, Fault> {
        let tenant = self.tenant().await?;
        let url = format!(
            "{}/api/v2/tenants/{tenant}/databases/{}/collections/{}",
            self.options.url, self.options.database, self.options.collection
        );
        match self.get(&url).await {
            Ok(described) => Ok(Some(described)),
            Err(Fault::Gone) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Whose collections the token reaches; `*` stands for the one that every server has.
    async fn tenant(&self) -> Result<&str, Fault> {
        let tenant = self.tenant.get_or_try_init(|| async {
            let url = format!("{}/api/v2/auth/identity", self.options.url);
            let identity: Identity = match self.get(&url).await {
                Err(Fault::Gone) => return Err(fault::unreadable()),
                other => other?,
            };
            match identity.tenant.as_str() {
                "*" => Ok("default_tenant".to_owned()),
                tenant if tenant.contains(['/', '?', '#', '%']) => Err(fault::unreadable()),
                tenant => Ok(tenant.to_owned()),
            }
        });
        Ok(tenant.await?)
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, url: &str) -> Result<T, Fault> {
        let asking = async {
            let mut request = self.http.get(url);
            if let Some(token) = &self.options.token {
                request = request.bearer(token);
            }
            let response = request.send().await.map_err(|error| fault::of_http(&error))?;
            if !response.is_success() {
                return Err(fault::of_status(response.status()));
            }
            let body = response.read_bounded(DESCRIPTION_BYTES_MAX).await;
            let body = body.map_err(|error| fault::of_http(&error))?;
            serde_json::from_slice(&body).map_err(|_| fault::unreadable())
        };
        let limit = self.limit();
        timeout(limit, asking).await.unwrap_or_else(|_| Err(late(limit)))
    }

    /// Refuses a collection that compares otherwise. One that says nothing of it compares by Chroma's default, `l2`.
    fn check_space(&self, described: &Described) -> Result<(), Fault> {
        let graph = described
            .configuration_json
            .as_ref()
            .and_then(|configuration| configuration.hnsw.as_ref().or(configuration.spann.as_ref()));
        let space = graph.and_then(|graph| graph.space.as_deref()).unwrap_or("l2");
        if space == SPACE {
            return Ok(());
        }
        let Options { url, collection, .. } = &self.options;
        Err(Fault::Refused(format!(
            "the collection `{collection}` at {url} compares vectors by `{space}`, and they are to be compared by \
             `{SPACE}`, which cannot be changed later: set `kb.chroma_collection` to a name that is not in use, and \
             tidegate makes it; or delete this one, if nothing else needs it"
        )))
    }

    fn limit(&self) -> Duration {
        Duration::from_millis(self.options.timeout_ms)
    }

    async fn limited<T, E: AsRef<dyn std::error::Error + Send + Sync>>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Fault> {
        limited(self.limit(), call).await
    }
}

impl Collection {
    pub(super) async fn count(&self) -> Result<u64, Fault> {
        let count = limited(self.timeout, self.inner.count()).await?;
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    /// Puts other notes at it.
    pub(super) async fn note(&self, notes: &Map<String, Value>) -> Result<(), Fault> {
        limited(self.timeout, self.inner.modify(None, Some(notes))).await
    }

    /// Writes rows, over those with the same keys. The text goes with each: a search for one without a text cannot be
    /// read.
    pub(super) async fn put(&self, rows: Vec<Row>) -> Result<(), Fault> {
        if rows.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = rows.iter().map(|row| row.key.to_string()).collect();
        let (vectors, texts): (Vec<Vec<f32>>, Vec<(ChunkKey, String)>) = rows
            .into_iter()
            .map(|row| (row.vector, (row.key, row.text)))
            .unzip();
        let metadata = |key: ChunkKey| Map::from_iter([(KEY.to_owned(), Value::from(key))]);
        let entries = CollectionEntries {
            ids: ids.iter().map(String::as_str).collect(),
            metadatas: Some(texts.iter().map(|(key, _)| metadata(*key)).collect()),
            documents: Some(texts.iter().map(|(_, text)| text.as_str()).collect()),
            embeddings: Some(vectors),
        };
        let limit = self.write_limit();
        limited(limit, self.inner.upsert(entries, None)).await.map(drop)
    }

    /// Takes rows out. No keys: nothing is done, since to Chroma that means all of them.
    pub(super) async fn take(&self, keys: &[ChunkKey]) -> Result<(), Fault> {
        if keys.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = keys.iter().map(ChunkKey::to_string).collect();
        let ids = ids.iter().map(String::as_str).collect();
        let limit = self.write_limit();
        limited(limit, self.inner.delete(Some(ids), None, None)).await
    }

    /// The `count` rows nearest to a vector, of `among` only where that is given.
    pub(super) async fn nearest(
        &self,
        vector: &[f32],
        count: usize,
        among: Option<&[ChunkKey]>,
    ) -> Result<Vec<(ChunkKey, f32)>, Fault> {
        let query = QueryOptions {
            query_embeddings: Some(vec![vector.to_vec()]),
            n_results: Some(count),
            where_metadata: among.map(|keys| json!({ KEY: { "$in": keys } })),
            include: Some(vec!["distances"]),
            ..QueryOptions::default()
        };
        let answer = limited(self.timeout, self.inner.query(query, None)).await?;
        let ids = answer.ids.into_iter().next().unwrap_or_default();
        let distances = answer.distances.and_then(|lists| lists.into_iter().next());
        let distances = distances.unwrap_or_default();
        if ids.len() != distances.len() {
            return Err(fault::unreadable());
        }
        ids.iter()
            .zip(distances)
            .map(|(id, distance)| {
                let key = id.parse().map_err(|_| fault::unreadable())?;
                // A little outside of its range by rounding, or nothing at all.
                let cosine = (1.0 - distance).clamp(-1.0, 1.0);
                if cosine.is_nan() {
                    return Err(fault::unreadable());
                }
                Ok((key, cosine))
            })
            .collect()
    }

    /// The rows of these keys, of those that are there.
    pub(super) async fn rows(&self, keys: &[ChunkKey]) -> Result<Vec<Row>, Fault> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = GetOptions {
            ids: keys.iter().map(ChunkKey::to_string).collect(),
            include: Some(vec!["embeddings".to_owned(), "documents".to_owned()]),
            ..GetOptions::default()
        };
        let answer = limited(self.write_limit(), self.inner.get(wanted)).await?;
        let vectors = answer.embeddings.unwrap_or_default();
        let texts = answer.documents.unwrap_or_default();
        let rows = answer.ids.iter().zip(vectors).zip(texts);
        Ok(rows
            .filter_map(|((id, vector), text)| {
                Some(Row {
                    key: id.parse().ok()?,
                    vector: vector?,
                    text: text?,
                })
            })
            .collect())
    }

    fn write_limit(&self) -> Duration {
        self.timeout.max(Duration::from_millis(WRITE_TIMEOUT_MS))
    }
}

async fn limited<T, E: AsRef<dyn std::error::Error + Send + Sync>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Fault> {
    match timeout(limit, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(fault::of_call(error.as_ref())),
        Err(_) => Err(late(limit)),
    }
}

fn late(limit: Duration) -> Fault {
    Fault::Away(format!("Chroma gave no answer within {} ms", limit.as_millis()))
}
