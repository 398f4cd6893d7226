//! The server: what it listens on, its connections, and how it ends.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use genus_collection::{Collection, Error, Token, Tokens};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error as ThisError;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tower_service::Service as _;

use crate::access::Access;
use crate::events::Events;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::thumbnails::Thumbnails;
use crate::writer::Writer;

/// Connections that read the database.
const READERS: usize = 8;
/// How long requests that are under way may go on when the service ends.
const FAREWELL: Duration = Duration::from_secs(10);

/// What is served, where and to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the collection.
    pub folder: PathBuf,
    /// Where to listen. Beyond this machine, only a collection that has a token is served.
    pub address: SocketAddr,
    /// Further names that the service is asked by, such as that of a proxy.
    pub hosts: Vec<String>,
    /// Who the log says it was where nobody has a token.
    pub author: String,
    /// How much may be asked for.
    pub limits: Limits,
}

impl Options {
    /// A collection at an address; everything else as usual.
    pub fn new(folder: impl Into<PathBuf>, address: SocketAddr) -> Self {
        Self {
            folder: folder.into(),
            address,
            hosts: Vec::new(),
            author: "somebody".to_owned(),
            limits: Limits::default(),
        }
    }
}

/// Why a service does not start.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum ServeError {
    /// The collection.
    #[error(transparent)]
    Collection(#[from] Error),
    /// Others could reach it, and anybody could do anything.
    #[error("{address} can be reached by others, and the collection has no token")]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Threads cannot be started.
    #[error("cannot start: {0}")]
    Start(io::Error),
}

/// Ends a service.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Ends it: requests under way are answered, then `serve` returns.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it ends.
    pub(crate) async fn stopped(&self) {
        let mut watch = self.0.subscribe();
        let _ = watch.wait_for(|stop| *stop).await;
    }

    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) writer: Writer,
    pub(crate) events: Events,
    pub(crate) access: Access,
    pub(crate) metrics: Metrics,
    pub(crate) thumbnails: Thumbnails,
    pub(crate) map: crate::read::MapCache,
    pub(crate) encoder: crate::intake::Encoder,
    pub(crate) stop: Stop,
    readers: Mutex<Vec<Collection>>,
    reading: Arc<Semaphore>,
}

pub(crate) type Shared = Arc<App>;

impl App {
    /// Runs something that takes its time, apart from the threads that answer.
    pub(crate) async fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(_) => Err(Problem::internal("a task of the service failed")),
        }
    }

    /// Reads the collection.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Collection) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.reading.clone().acquire_owned().await;
        let app = self.clone();
        Self::blocking(move || {
            let _permit = permit;
            let spare = app.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let collection = match spare {
                Some(collection) => collection,
                None => Collection::open(&app.options.folder)?,
            };
            let done = work(&collection);
            app.readers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(collection);
            done
        })
        .await
    }
}

/// Serves a collection until it is stopped. `ready` hears where.
pub fn serve(options: &Options, stop: &Stop, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let collection = Collection::open_to_write(&options.folder, &options.author)?;
    let tokens = Tokens::open(&options.folder)?.list()?;
    let has_token = tokens.iter().any(|token: &Token| token.revoked.is_none());
    if !options.address.ip().is_loopback() && !has_token {
        return Err(ServeError::NoToken {
            address: options.address,
        });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("serve")
        .build()
        .map_err(ServeError::Start)?;
    let events = Events::new(collection.last_entry()?.0);
    let metrics = Metrics::new();
    let (writer, threads) =
        Writer::start(collection, events.clone(), metrics.clone(), stop.watch()).map_err(ServeError::Start)?;
    let app = Arc::new(App {
        access: Access::new(options)?,
        thumbnails: Thumbnails::new(options.limits.pixels),
        encoder: crate::intake::Encoder::default(),
        map: crate::read::MapCache::default(),
        readers: Mutex::default(),
        reading: Arc::new(Semaphore::new(READERS)),
        stop: stop.clone(),
        options: options.clone(),
        writer,
        events,
        metrics,
    });
    let router = crate::api::router(app.clone());
    let served = runtime.block_on(listen(&app, router, ready));
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Whoever is left of the requests holds the way to the writer; it ends by itself.
    drop(app);
    stop.stop();
    threads.into_iter().for_each(|thread| {
        let _ = thread.join();
    });
    served
}

async fn listen(app: &Shared, router: Router, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let address = app.options.address;
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    app.access.listens_at(bound);
    ready(bound);
    let connections = Arc::new(Semaphore::new(app.options.limits.connections));
    loop {
        let permit = tokio::select! {
            permit = connections.clone().acquire_owned() => permit,
            () = app.stop.stopped() => break,
        };
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(_) => {
                    // Too many open files: some will be closed.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = app.stop.stopped() => break,
        };
        let _ = stream.set_nodelay(true);
        let service = Connection {
            router: router.clone(),
            peer,
        };
        let patience = app.options.limits.patience;
        let stop = app.stop.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(patience);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            // What a client did wrong is the client's affair.
            tokio::select! {
                _ = connection.as_mut() => return,
                () = stop.stopped() => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        });
    }
    drop(listener);
    let all = app.options.limits.connections as u32;
    let _ = tokio::time::timeout(FAREWELL, connections.acquire_many(all)).await;
    Ok(())
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

struct Connection {
    router: Router,
    peer: SocketAddr,
}

impl hyper::service::Service<Request<Incoming>> for Connection {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(self.peer));
        let mut router = self.router.clone();
        Box::pin(async move { router.call(request).await })
    }
}
