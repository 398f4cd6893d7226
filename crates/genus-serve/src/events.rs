//! What happens, told as it happens: server-sent events, resumable by the number of the log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures_core::Stream;
use genus_collection::EntryId;
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc, watch};
use utoipa::IntoParams;

use crate::problem::Problem;
use crate::server::{App, Shared};
use crate::wire::EntryBody;

/// Entries that are remembered, so that streams do not read the database.
const REMEMBERED: usize = 2048;
/// How often something is said on a stream on which nothing happens.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long a client may take to read what it was sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// What happened lately.
#[derive(Clone)]
pub(crate) struct Events {
    last: Arc<watch::Sender<i64>>,
    lately: Arc<RwLock<VecDeque<(i64, Bytes)>>>,
    streams: Arc<Semaphore>,
}

impl Events {
    pub(crate) fn new(last: i64) -> Self {
        Self {
            last: Arc::new(watch::Sender::new(last)),
            lately: Arc::default(),
            streams: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    pub(crate) fn last(&self) -> i64 {
        *self.last.borrow()
    }

    /// Tells of entries that are on the disk.
    pub(crate) fn tell(&self, entries: &[EntryBody]) {
        let Some(last) = entries.last() else { return };
        let mut lately = self.lately.write().unwrap_or_else(PoisonError::into_inner);
        lately.extend(entries.iter().map(|entry| (entry.no(), message(entry))));
        while lately.len() > REMEMBERED {
            lately.pop_front();
        }
        drop(lately);
        self.last.send_replace(last.no());
    }

    /// The messages after an entry, unless some of them are forgotten.
    fn after(&self, no: i64) -> Option<Vec<(i64, Bytes)>> {
        let lately = self.lately.read().unwrap_or_else(PoisonError::into_inner);
        match lately.front() {
            Some((first, _)) if *first <= no + 1 => {
                let from = (no + 1 - first) as usize;
                Some(lately.iter().skip(from).cloned().collect())
            }
            _ => None,
        }
    }
}

fn message(entry: &EntryBody) -> Bytes {
    let data = serde_json::to_string(entry).unwrap_or_default();
    format!("id: {}\nevent: {}\ndata: {data}\n\n", entry.no(), entry.event()).into()
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Since {
    /// The entry of the log after which to begin; `Last-Event-ID` counts more. By default only what is new is told.
    #[param(minimum = 0)]
    after: Option<i64>,
}

/// Tells what happens as it happens.
#[utoipa::path(get, path = "/v1/events", params(Since), tag = "log",
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "4XX", body = Problem, content_type = "application/problem+json"), (status = 503, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn events(
    State(app): State<Shared>,
    since: Result<Query<Since>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(since) = since.map_err(|e| Problem::bad_request(e.body_text()))?;
    let resumed = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse::<i64>().ok());
    let last = app.events.last();
    let from = resumed.or(since.after).unwrap_or(last).clamp(0, last);
    let used = Semaphore::MAX_PERMITS - app.events.streams.available_permits();
    if used >= app.options.limits.streams {
        return Err(Problem::busy("too many streams of events are open", 5));
    }
    let permit = app.events.streams.clone().try_acquire_owned();
    let (to, stream) = mpsc::channel(16);
    tokio::spawn(async move {
        let _permit = permit;
        let _ = tell_on(&app, from, &to).await;
    });
    let response = Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CACHE_CONTROL, "no-store")
        .header("x-accel-buffering", "no")
        .body(Body::from_stream(Received(stream)));
    response.map_err(|e| Problem::internal(e.to_string()))
}

/// Ends when the client is gone, too slow, or the service ends.
async fn tell_on(app: &Arc<App>, mut at: i64, to: &mpsc::Sender<Bytes>) -> Option<()> {
    let mut last = app.events.last.subscribe();
    // So that a client knows that it is connected.
    send(to, Bytes::from_static(b": here\nretry: 1000\n\n")).await?;
    loop {
        let newest = *last.borrow_and_update();
        while at < newest {
            let messages = match app.events.after(at) {
                Some(messages) => messages,
                None => {
                    let from = EntryId(at);
                    let read = app.read(move |collection| Ok(collection.log_after(from, 500)?)).await;
                    let entries = read.ok()?;
                    entries
                        .iter()
                        .map(|entry| {
                            let entry = EntryBody::from(entry);
                            (entry.no(), message(&entry))
                        })
                        .collect()
                }
            };
            at = messages.last()?.0;
            let text: Vec<u8> = messages.into_iter().flat_map(|(_, message)| message).collect();
            send(to, text.into()).await?;
        }
        tokio::select! {
            changed = last.changed() => changed.ok()?,
            () = to.closed() => return None,
            () = app.stop.stopped() => return None,
            () = tokio::time::sleep(SIGN_OF_LIFE) => send(to, Bytes::from_static(b": still here\n\n")).await?,
        }
    }
}

async fn send(to: &mpsc::Sender<Bytes>, text: Bytes) -> Option<()> {
    to.send_timeout(text, PATIENCE).await.ok()
}

/// What was received, as a body.
struct Received(mpsc::Receiver<Bytes>);

impl Stream for Received {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|text| text.map(Ok))
    }
}
