//! Which embedder to have, and how it is opened.

use std::{path::PathBuf, sync::Arc};

use tidegate_core::{
    clock::{Clock, Entropy},
    port::Embedder,
    secret::Secret,
};

use super::{
    Builtin, Error,
    guarded::{self, Guarded},
    http::{self, Dialect, Remote},
    models::Profile,
};

/// Where vectors come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provider {
    /// The static table that is part of the program.
    #[default]
    Builtin,
    /// A server that speaks Ollama's own `/api/embed`.
    Ollama,
    /// A server that speaks `/v1/embeddings`.
    OpenAi,
    /// A BERT model in a folder, in this process; needs the feature `local-embedder`.
    Local,
    /// Nowhere: searches go by words alone.
    None,
}

/// Settings of the embedder.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Where vectors come from.
    pub provider: Provider,
    /// The model's name as the server knows it; for a local one the name by which its figures are known. By default
    /// `nomic-embed-text` with Ollama and the folder's name with a local one; an OpenAI-compatible server must be told.
    pub model: Option<String>,
    /// Where the server is. By default Ollama's own port on this machine; an OpenAI-compatible server must be named, by
    /// the address that `/embeddings` is added to.
    pub base_url: Option<String>,
    /// The key, where the server asks for one.
    pub api_key: Option<Secret>,
    /// The folder of a local model.
    pub folder: Option<PathBuf>,
    /// How long a query may take, in milliseconds, 100 to 60,000; after that the search goes by words.
    pub query_timeout_ms: u64,
    /// How long a request for documents may take, in milliseconds, 1,000 to 600,000.
    pub document_timeout_ms: u64,
    /// How many requests, or local computations, run at once, 1 to 64: as many for queries and as many for documents.
    pub concurrency_max: usize,
    /// How many texts one request holds, 1 to 256.
    pub batch_texts_max: usize,
    /// How many vectors of recent queries are kept, 0 to 10,000.
    pub cache_entries_max: usize,
    /// How long an embedder that failed is left alone, in seconds, 1 to 3,600.
    pub rest_s: u64,
    /// The longest text the model reads, in its tokens, 16 to 8,192; by default what the server or the table says.
    pub tokens_max: Option<usize>,
    /// The length of vectors to ask a server for; by default the model's own.
    pub dimensions: Option<usize>,
    /// What comes before a query, where the table of models is to be overruled.
    pub query_prefix: Option<String>,
    /// What comes before a document, where the table of models is to be overruled.
    pub document_prefix: Option<String>,
}

/// Where Ollama listens unless it is told otherwise.
pub const OLLAMA_URL: &str = "http://127.0.0.1:11434";
/// The model that Ollama is asked for unless another is named.
pub const OLLAMA_MODEL: &str = "nomic-embed-text";

impl Default for Options {
    fn default() -> Self {
        Self {
            provider: Provider::Builtin,
            model: None,
            base_url: None,
            api_key: None,
            folder: None,
            query_timeout_ms: http::QUERY_TIMEOUT_MS,
            document_timeout_ms: http::DOCUMENT_TIMEOUT_MS,
            concurrency_max: http::CONCURRENCY_MAX,
            batch_texts_max: http::BATCH_TEXTS_MAX,
            cache_entries_max: guarded::CACHE_ENTRIES_MAX,
            rest_s: guarded::REST_S,
            tokens_max: None,
            dimensions: None,
            query_prefix: None,
            document_prefix: None,
        }
    }
}

impl Options {
    /// The numbers that are out of their bounds, by name, each with what is wrong.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let tokens_max = self.tokens_max.unwrap_or(16);
        let dimensions = self.dimensions.unwrap_or(1);
        let number = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        let bounds = [
            ("query_timeout_ms", self.query_timeout_ms, 100, 60_000),
            ("document_timeout_ms", self.document_timeout_ms, 1_000, 600_000),
            ("concurrency_max", number(self.concurrency_max), 1, 64),
            ("batch_texts_max", number(self.batch_texts_max), 1, 256),
            ("cache_entries_max", number(self.cache_entries_max), 0, 10_000),
            ("rest_s", self.rest_s, 1, 3_600),
            ("tokens_max", number(tokens_max), 16, 8_192),
            ("dimensions", number(dimensions), 1, 8_192),
        ];
        bounds
            .into_iter()
            .filter(|(_, value, least, most)| !(least..=most).contains(&value))
            .map(|(name, value, least, most)| (name, format!("{value} is not within {least} to {most}")))
            .collect()
    }

    fn check(&self) -> Result<(), Error> {
        match self.faults().into_iter().next() {
            Some((name, problem)) => Err(Error::Setting { name, problem }),
            None => Ok(()),
        }
    }

    fn profile(&self, model: &str) -> Result<Profile, Error> {
        let mut profile = Profile::of(model)?;
        if let Some(prefix) = &self.query_prefix {
            profile.query_prefix.clone_from(prefix);
        }
        if let Some(prefix) = &self.document_prefix {
            profile.document_prefix.clone_from(prefix);
        }
        Ok(profile)
    }

    async fn remote(&self, dialect: Dialect, entropy: Arc<dyn Entropy>) -> Result<Remote, Error> {
        let given = |setting: &Option<String>| setting.clone().filter(|text| !text.trim().is_empty());
        let (model, base_url) = match dialect {
            Dialect::Ollama => (
                given(&self.model).unwrap_or_else(|| OLLAMA_MODEL.to_owned()),
                given(&self.base_url).unwrap_or_else(|| OLLAMA_URL.to_owned()),
            ),
            Dialect::OpenAi => (
                given(&self.model)
                    .ok_or_else(|| missing("model", "name an embedding model of the server's"))?,
                given(&self.base_url).ok_or_else(|| {
                    missing(
                        "base_url",
                        "give the server's address, like http://127.0.0.1:8081/v1",
                    )
                })?,
            ),
        };
        let url = url::Url::parse(&base_url).map_err(|problem| Error::Setting {
            name: "base_url",
            problem: format!("it is no address ({problem}); give one like http://127.0.0.1:8081/v1"),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(missing("base_url", "it must begin with http:// or https://"));
        }
        let options = http::Options {
            api_key: self.api_key.clone().filter(|key| !key.expose().is_empty()),
            query_timeout_ms: self.query_timeout_ms,
            document_timeout_ms: self.document_timeout_ms,
            concurrency_max: self.concurrency_max,
            batch_texts_max: self.batch_texts_max,
            tokens_max: self.tokens_max,
            dimensions: self.dimensions,
            base_url,
            model,
        };
        let profile = self.profile(&options.model)?;
        Remote::open(dialect, options, profile, Arc::new(Builtin::load()?), entropy).await
    }

    #[cfg(feature = "local-embedder")]
    async fn local(&self) -> Result<super::local::Local, Error> {
        let folder = self.folder.clone();
        let folder = folder.ok_or_else(|| {
            missing(
                "folder",
                "name the folder of a model; `tidegate embed pull` fetches one",
            )
        })?;
        let name = match &self.model {
            Some(name) => name.clone(),
            None => folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
        };
        let profile = self.profile(&name)?;
        let (tokens_max, concurrency_max) = (self.tokens_max, self.concurrency_max);
        let load = move || super::local::Local::load(&folder, &name, profile, tokens_max, concurrency_max);
        tokio::task::spawn_blocking(load)
            .await
            .unwrap_or_else(|_| Err(missing("folder", "loading the model was broken off")))
    }
}

fn missing(name: &'static str, problem: &str) -> Error {
    Error::Setting {
        name,
        problem: problem.to_owned(),
    }
}

/// Opens the embedder that is asked for; none where none is wanted. A server that is away is no error: it is asked
/// when a text comes.
pub async fn open(
    options: &Options,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Option<Arc<dyn Embedder>>, Error> {
    options.check()?;
    let inner: Arc<dyn Embedder> = match options.provider {
        Provider::None => return Ok(None),
        // It cannot fail, and is as fast as a memory of its answers.
        Provider::Builtin => return Ok(Some(Arc::new(Builtin::load()?))),
        Provider::Ollama => Arc::new(options.remote(Dialect::Ollama, entropy).await?),
        Provider::OpenAi => Arc::new(options.remote(Dialect::OpenAi, entropy).await?),
        #[cfg(feature = "local-embedder")]
        Provider::Local => Arc::new(options.local().await?),
        #[cfg(not(feature = "local-embedder"))]
        Provider::Local => return Err(Error::NotBuilt),
    };
    let guard = guarded::Options {
        cache_entries_max: options.cache_entries_max,
        rest_s: options.rest_s,
    };
    Ok(Some(Arc::new(Guarded::new(inner, guard, clock))))
}

#[cfg(test)]
mod tests {
    use tidegate_core::{
        clock::Timestamp,
        embedding::{EmbedError, EmbedderState, Purpose},
    };

    use super::*;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    impl Entropy for Still {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    async fn opened(options: &Options) -> Result<Option<Arc<dyn Embedder>>, Error> {
        open(options, Arc::new(Still), Arc::new(Still)).await
    }

    #[tokio::test]
    async fn the_default_is_there_without_any_setting() {
        let embedder = opened(&Options::default()).await.unwrap().unwrap();
        assert_eq!(embedder.model().id, crate::embed::builtin::MODEL);
        let none = Options {
            provider: Provider::None,
            ..Options::default()
        };
        assert!(opened(&none).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_server_that_is_away_is_opened_and_rests_after_the_first_question() {
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let options = Options {
            provider: Provider::Ollama,
            base_url: Some(format!("http://{closed}")),
            query_prefix: Some("q: ".to_owned()),
            ..Options::default()
        };
        let embedder = opened(&options).await.unwrap().unwrap();
        assert!(embedder.model().id.starts_with("ollama/nomic-embed-text/p"));
        assert_eq!(embedder.state(), EmbedderState::Untried);
        for expected in ["does not answer", "rests until"] {
            let fault = embedder.embed(&["a"], Purpose::Query).await.unwrap_err();
            assert!(fault.to_string().contains(expected), "{fault}");
            assert!(!matches!(fault, EmbedError::Refused(_)));
        }
    }

    #[tokio::test]
    async fn a_wrong_setting_is_named_with_its_remedy() {
        let default = Options::default;
        let remote = || Options {
            provider: Provider::OpenAi,
            model: Some("m".to_owned()),
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            ..default()
        };
        for (options, name) in [
            (
                Options {
                    model: None,
                    ..remote()
                },
                "`model`",
            ),
            (
                Options {
                    base_url: None,
                    ..remote()
                },
                "`base_url`",
            ),
            (
                Options {
                    base_url: Some("localhost".to_owned()),
                    ..remote()
                },
                "`base_url`",
            ),
            (
                Options {
                    base_url: Some("ftp://a".to_owned()),
                    ..remote()
                },
                "`base_url`",
            ),
            (
                Options {
                    concurrency_max: 0,
                    ..default()
                },
                "`concurrency_max`",
            ),
            (
                Options {
                    batch_texts_max: 999,
                    ..default()
                },
                "`batch_texts_max`",
            ),
            (
                Options {
                    tokens_max: Some(1),
                    ..default()
                },
                "`tokens_max`",
            ),
            (
                Options {
                    rest_s: 0,
                    ..default()
                },
                "`rest_s`",
            ),
        ] {
            let fault = opened(&options).await.unwrap_err().to_string();
            assert!(fault.contains(name), "{fault}");
        }
        let local = Options {
            provider: Provider::Local,
            ..default()
        };
        let fault = opened(&local).await.unwrap_err().to_string();
        let expected = if cfg!(feature = "local-embedder") {
            "embed pull"
        } else {
            "local-embedder"
        };
        assert!(fault.contains(expected), "{fault}");
    }
}
