//! Logging in at a server elsewhere (OAuth 2.1): the SDK speaks the protocol, every byte goes through our doors.
//!
//! Discovery, registration, PKCE and renewal are the SDK's. What it asks goes to the operator's own server by the
//! operator's client, and anywhere else by the guarded one, since it is the server that names those addresses. What a
//! login yields is kept behind a port, encrypted, and renewed by one request at a time.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
    StoredCredentials,
};
use tidegate_core::{port::ServerLogins, secret::Secret};
use tidegate_io::{guarded, http::OperatorClient};
use tokio::sync::Mutex;
use url::Url;

use crate::{servers_file::OAuth, text, transport::Fault};

/// The largest answer that is read, in bytes: metadata and tokens are small.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 300;
/// How long one exchange may take.
const EXCHANGE: std::time::Duration = std::time::Duration::from_secs(30);

/// Why nobody is logged in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// There is no login, or it has ended.
    #[error("nobody is logged in")]
    LoggedOut,
    /// It could not be found out or done.
    #[error("{0}")]
    Failed(String),
}

impl From<AuthError> for Error {
    fn from(error: AuthError) -> Self {
        if matches!(error, AuthError::AuthorizationRequired) {
            return Self::LoggedOut;
        }
        let mut reason = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            reason = format!("{reason}: {inner}");
            source = inner.source();
        }
        Self::Failed(text::line(&reason, REASON_CHARS_MAX))
    }
}

/// What logging in is done with.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) http: &'a OperatorClient,
    pub(crate) network: &'a guarded::Client,
    pub(crate) logins: &'a Arc<dyn ServerLogins>,
}

impl Desk<'_> {
    async fn manager(&self, server: &str, url: &str, oauth: &OAuth) -> Result<AuthorizationManager, Error> {
        let origin = Url::parse(url).map_err(|error| Error::Failed(error.to_string()))?;
        let way = Way {
            http: self.http.clone(),
            network: self.network.clone(),
            home: origin,
            own: oauth
                .client_secret
                .iter()
                .map(|secret| secret.expose().to_owned())
                .collect(),
        };
        let mut manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(way)).await?;
        manager.set_credential_store(Kept {
            logins: Arc::clone(self.logins),
            server: server.to_owned(),
            cached: StdMutex::new(None),
        });
        Ok(manager)
    }

    /// What a login has yielded earlier.
    pub(crate) async fn session(&self, server: &str, url: &str, oauth: &OAuth) -> Result<Session, Error> {
        if self
            .logins
            .find(server)
            .await
            .map_err(|error| Error::Failed(error.to_string()))?
            .is_none()
        {
            return Err(Error::LoggedOut);
        }
        let mut manager = self.manager(server, url, oauth).await?;
        if !manager.initialize_from_store().await? {
            return Err(Error::LoggedOut);
        }
        Ok(Session {
            manager: Mutex::new(manager),
        })
    }

    /// Begins a login.
    pub(crate) async fn begin(
        &self,
        server: &str,
        url: &str,
        oauth: &OAuth,
        redirect_uri: &str,
    ) -> Result<Login, Error> {
        let mut manager = self.manager(server, url, oauth).await?;
        let found = manager.resolve_metadata().await?;
        if !found.source.is_discovered() {
            return Err(Error::Failed("it does not say where to log in".to_owned()));
        }
        manager.set_metadata(found.metadata);
        let mut request = AuthorizationRequest::new(redirect_uri)
            .with_client_name("tidegate")
            .with_scopes(oauth.scopes.clone());
        if let Some(id) = &oauth.client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = &oauth.client_secret {
            request = request.with_client_secret(secret.expose());
        }
        let session = AuthorizationSession::new(manager, request)
            .await
            .map_err(|(_manager, error)| Error::from(error))?;
        Ok(Login {
            server: server.to_owned(),
            session,
        })
    }
}

/// A login under way: a person opens [`Login::url`], and comes back with an address.
pub struct Login {
    server: String,
    session: AuthorizationSession,
}

impl std::fmt::Debug for Login {
    /// The address holds what guards the login.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Login {
    /// The address that a person opens.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Ends the login with the address that the person came back with; what it yields is kept. The server is let in
    /// with its next connection ([`crate::Hub::restart`]).
    ///
    /// # Errors
    /// The login was refused or is not the one that was begun, in words for the operator.
    pub async fn finish(self, came_back: &str) -> Result<(), crate::hub::Error> {
        let exchanged = self.session.handle_callback_url(came_back).await;
        exchanged.map(drop).map_err(|error| crate::hub::Error::Login {
            server: self.server.clone(),
            problem: Error::from(error).to_string(),
        })
    }
}

/// What lets one connection in.
pub(crate) struct Session {
    /// Behind a lock, so that of several requests that find the token due, one renews it and the others take what it
    /// got.
    manager: Mutex<AuthorizationManager>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(…)")
    }
}

impl Session {
    /// A token that is good for now.
    pub(crate) async fn token(&self) -> Result<Secret, Fault> {
        let manager = self.manager.lock().await;
        match manager.get_access_token().await {
            Ok(token) => Ok(Secret::new(token)),
            Err(error) => Err(match Error::from(error) {
                Error::LoggedOut => Fault::Login,
                Error::Failed(problem) => Fault::Protocol(format!("the login cannot be renewed: {problem}")),
            }),
        }
    }
}

/// The SDK's store over ours.
struct Kept {
    logins: Arc<dyn ServerLogins>,
    server: String,
    /// What was last read or written, so that not every request reads it again.
    cached: StdMutex<Option<StoredCredentials>>,
}

impl Kept {
    fn remember(&self, credentials: Option<StoredCredentials>) {
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
    }
}

fn store(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if cached.is_some() {
            return Ok(cached);
        }
        let Some(login) = self.logins.find(&self.server).await.map_err(store)? else {
            return Ok(None);
        };
        // What the text holds must not get into a message.
        let credentials: StoredCredentials = serde_json::from_str(login.expose())
            .map_err(|_problem| store("the login is kept in another form"))?;
        self.remember(Some(credentials.clone()));
        Ok(Some(credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text =
            serde_json::to_string(&credentials).map_err(|_problem| store("the login cannot be written"))?;
        self.logins
            .put(&self.server, &Secret::new(text))
            .await
            .map_err(store)?;
        self.remember(Some(credentials));
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remember(None);
        self.logins.remove(&self.server).await.map(drop).map_err(store)
    }
}

/// How the SDK's requests go out.
struct Way {
    http: OperatorClient,
    network: guarded::Client,
    /// The server's own address, which the operator wrote.
    home: Url,
    /// Text that is the operator's own and may be sent.
    own: Vec<String>,
}

type Answer = ::http::Response<Vec<u8>>;

impl OAuthHttpClient for Way {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let exchanged = tokio::time::timeout(EXCHANGE, self.exchange(request)).await;
            exchanged.unwrap_or_else(|_elapsed| Err("it did not answer in time".into()))
        })
    }
}

impl Way {
    async fn exchange(&self, request: OAuthHttpRequest) -> Result<Answer, OAuthHttpClientError> {
        let url = Url::parse(&request.request.uri().to_string())?;
        if url.origin() == self.home.origin() {
            self.at_home(&url, request.request).await
        } else {
            let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
            self.elsewhere(&url, request.request, follows).await
        }
    }

    /// The operator's own server, which may be inside.
    async fn at_home(
        &self,
        url: &Url,
        request: ::http::Request<Vec<u8>>,
    ) -> Result<Answer, OAuthHttpClientError> {
        let (head, body) = request.into_parts();
        let mut out = if head.method == ::http::Method::POST {
            self.http.post(url.as_str())
        } else {
            self.http.get(url.as_str())
        };
        let mut kind = "application/octet-stream".to_owned();
        for (name, value) in &head.headers {
            let value = value.to_str()?;
            if *name == ::http::header::CONTENT_TYPE {
                value.clone_into(&mut kind);
            } else {
                out = out.secret_header(name.as_str(), &Secret::new(value));
            }
        }
        if head.method == ::http::Method::POST {
            out = out.body(&kind, body);
        }
        let response = out.send().await?;
        let mut answer = ::http::Response::builder().status(response.status());
        for name in ["content-type", "location", "www-authenticate"] {
            if let Some(value) = response.header(name) {
                answer = answer.header(name, value);
            }
        }
        Ok(answer.body(response.read_bounded(ANSWER_BYTES_MAX).await?.to_vec())?)
    }

    /// An address that the server names.
    async fn elsewhere(
        &self,
        url: &Url,
        request: ::http::Request<Vec<u8>>,
        follows: bool,
    ) -> Result<Answer, OAuthHttpClientError> {
        let (head, body) = request.into_parts();
        let destination = self.network.check(url.as_str())?;
        let mut out = if head.method == ::http::Method::POST {
            self.network.post(destination).raw_body(body)
        } else {
            self.network.get(destination)
        };
        for (name, value) in &head.headers {
            out = out.header(name.as_str(), value.to_str()?);
        }
        if !follows {
            out = out.redirects_max(0);
        }
        let out = out.own(self.own.clone()).bytes_max(ANSWER_BYTES_MAX);
        let response = out.send().await?;
        let answer = ::http::Response::builder()
            .status(response.status)
            .header("content-type", response.content_type);
        Ok(answer.body(response.body)?)
    }
}
