//! HTTP sessions: a bounded number of them, which outlive the process.
//!
//! rmcp keeps the sessions; this gives them ids that can be opened again after
//! a restart ([`super::seal`]), and closes the one that was idle longest when
//! there are too many. A session that was closed for that comes back by itself
//! when its client next asks; one that its client ended doesn't.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, InitializeRequestParams, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager, SessionState, SessionStore,
    SessionStoreError,
};

use super::seal::Seal;

/// Sessions whose end is remembered, so that their ids don't open them again.
const MOST_ENDED: usize = 4096;
/// How long an answer is kept for a client whose connection broke. Long
/// answers weigh, so not for long.
const KEPT_ANSWERS: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// What the client said in the request that is being handled, if it opens
    /// a session. rmcp asks for an id without saying whom it's for.
    static OPENING: Option<InitializeRequestParams>;
}

/// Runs `work`, which handles `message`, so that a session it opens gets an id
/// that holds what the client said.
pub(super) async fn opening<W: Future>(message: &ClientJsonRpcMessage, work: W) -> W::Output {
    let said = match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::InitializeRequest(initialize) => Some(initialize.params.clone()),
            _ => None,
        },
        _ => None,
    };
    OPENING.scope(said, work).await
}

/// The sessions there are.
#[derive(Debug)]
pub(super) struct Sessions {
    kept: LocalSessionManager,
    seal: Arc<Seal>,
    most: usize,
    used: Mutex<HashMap<SessionId, Instant>>,
    open: Arc<Mutex<HashSet<OpenRequest>>>,
}

/// A request that has no answer yet.
type OpenRequest = (SessionId, RequestId);

/// Takes a request off the list of open ones when its answer's stream ends.
struct Answering {
    request: OpenRequest,
    open: Arc<Mutex<HashSet<OpenRequest>>>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}

/// Why a session can't be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// rmcp says so.
    #[error(transparent)]
    Kept(#[from] LocalSessionManagerError),
    /// No id can be made.
    #[error("could not make a session id")]
    Id(#[source] io::Error),
    /// Two sessions got the same id, which doesn't happen.
    #[error("a session of this id is open already")]
    Taken,
    /// rmcp would answer only one of the two.
    #[error("a request with the id {0} is still running in this session")]
    SameId(RequestId),
}

impl Sessions {
    pub(super) fn new(seal: Arc<Seal>, most: usize, idle: Duration) -> Self {
        let mut kept = LocalSessionManager::default();
        kept.session_config.keep_alive = Some(idle);
        kept.session_config.completed_cache_ttl = KEPT_ANSWERS;
        Self { kept, seal, most: most.max(1), used: Mutex::default(), open: Arc::default() }
    }

    fn used(&self) -> MutexGuard<'_, HashMap<SessionId, Instant>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what was idle longest until there's room for one more.
    async fn make_room(&self) -> Result<(), SessionError> {
        while self.kept.sessions.read().await.len() >= self.most {
            let oldest =
                self.used().iter().min_by_key(|(_, used)| **used).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return Ok(()) };
            tracing::debug!("too many sessions: the one that was idle longest is closed");
            self.close_session(&oldest).await?;
        }
        Ok(())
    }

    async fn open(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<<Self as SessionManager>::Transport>, SessionError> {
        self.make_room().await?;
        let outcome = self.kept.restore_session(id.clone()).await?;
        self.used().insert(id, Instant::now());
        Ok(outcome)
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let said = OPENING.try_with(Clone::clone).ok().flatten().unwrap_or_default();
        let id: SessionId = self.seal.seal(&said).map_err(SessionError::Id)?.into();
        match self.open(id.clone()).await? {
            RestoreOutcome::Restored(transport) => Ok((id, transport)),
            _ => Err(SessionError::Taken),
        }
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.open(id).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        let has = self.kept.has_session(id).await?;
        if has {
            self.used().insert(id.clone(), Instant::now());
        }
        Ok(has)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.used().remove(id);
        Ok(self.kept.close_session(id).await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.kept.initialize_session(id, message).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let answering = match &message {
            JsonRpcMessage::Request(request) => {
                let request = (id.clone(), request.id.clone());
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                if !open.insert(request.clone()) {
                    return Err(SessionError::SameId(request.1));
                }
                Some(Answering { request, open: Arc::clone(&self.open) })
            }
            _ => None,
        };
        let stream = self.kept.create_stream(id, message).await?;
        Ok(stream.inspect(move |_event| {
            // Lives as long as the stream.
            let _answering = &answering;
        }))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        Ok(self.kept.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.kept.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.kept.resume(id, last_event_id).await?)
    }
}

/// Where rmcp looks for a session that this process doesn't have: in its id.
#[derive(Debug)]
pub(super) struct SealedStore {
    seal: Arc<Seal>,
    ended: Mutex<VecDeque<String>>,
}

impl SealedStore {
    pub(super) fn new(seal: Arc<Seal>) -> Self {
        Self { seal, ended: Mutex::default() }
    }

    fn ended(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl SessionStore for SealedStore {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        if self.ended().iter().any(|ended| ended == id) {
            return Ok(None);
        }
        Ok(self.seal.open(id).map(SessionState::new))
    }

    async fn store(&self, _id: &str, _state: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        if self.seal.open(id).is_some() {
            let mut ended = self.ended();
            if ended.len() == MOST_ENDED {
                ended.pop_front();
            }
            ended.push_back(id.to_owned());
        }
        Ok(())
    }
}
