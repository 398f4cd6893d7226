//! The routes, and what all of them have in common.

use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;

use crate::access::Who;
use crate::problem::Problem;
use crate::server::Shared;
use crate::writer::Answer;
use crate::{access, actions, events, intake, page, read};

/// Why a part of a path is none.
pub(crate) type Refused = PathRejection;

/// The longest idempotency key.
const LONGEST_KEY: usize = 200;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Genus",
        description = "A collection as a service: items in, decisions out. See docs/serve.md."
    ),
    paths(
        read::status,
        read::groups,
        read::group,
        read::items,
        read::sheet,
        read::item,
        read::thumbnail,
        read::map,
        read::log,
        read::unsure,
        intake::take,
        actions::act,
        events::events,
        access::sign_in,
        access::sign_out,
        healthz,
        readyz,
        metrics
    )
)]
struct Api;

/// The interface as OpenAPI has it.
pub fn openapi() -> String {
    let mut text = Api::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

pub(crate) fn router(app: Shared) -> Router {
    Router::new()
        .merge(page::routes())
        .route("/v1/status", get(read::status))
        .route("/v1/groups", get(read::groups))
        .route("/v1/groups/{id}", get(read::group))
        .route("/v1/items", get(read::items).post(intake::take))
        .route("/v1/items/{id}", get(read::item))
        .route("/v1/items/{id}/thumbnail", get(read::thumbnail))
        .route("/v1/sheet", get(read::sheet))
        .route("/v1/map", get(read::map))
        .route("/v1/log", get(read::log))
        .route("/v1/unsure", get(read::unsure))
        .route("/v1/actions", post(actions::act))
        .route("/v1/events", get(events::events))
        .route("/v1/session", post(access::sign_in).delete(access::sign_out))
        .route("/openapi.json", get(|| async { plain("application/json", openapi()) }))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .fallback(|| async { Problem::not_found("there is nothing at this path; see /openapi.json") })
        .method_not_allowed_fallback(|| async { Problem::method() })
        .layer(from_fn_with_state(app.clone(), access::guard))
        .layer(CatchPanicLayer::custom(|_| {
            Problem::internal("the service made a mistake; it goes on").into_response()
        }))
        .layer(from_fn_with_state(app.clone(), measured))
        .with_state(app)
}

/// Counts what was answered, and says to browsers what they may not do with it.
async fn measured(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let method = request.method().to_string();
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("other", MatchedPath::as_str)
        .to_owned();
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    app.metrics
        .answered(&method, &path, response.status().as_u16(), start.elapsed());
    response
}

/// Whether the service is there.
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = 200, content_type = "text/plain", body = String)))]
async fn healthz() -> Response {
    plain("text/plain", "ok\n".to_owned())
}

/// Whether the collection can be read and written.
#[utoipa::path(get, path = "/readyz", tag = "service", responses((status = 200, content_type = "text/plain", body = String), (status = 503, body = Problem, content_type = "application/problem+json")))]
async fn readyz(State(app): State<Shared>) -> Result<Response, Problem> {
    if *app.stop.watch().borrow() {
        return Err(Problem::busy("the service is ending", 5));
    }
    app.read(|collection| Ok(collection.last_entry()?))
        .await
        .map_err(|_| Problem::busy("the collection cannot be read", 5))?;
    Ok(plain("text/plain", "ready\n".to_owned()))
}

/// Numbers for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "service", responses((status = 200, content_type = "application/openmetrics-text", body = String), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
async fn metrics(State(app): State<Shared>) -> Response {
    plain(
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        app.metrics.text(),
    )
}

fn plain(kind: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// An answer of JSON; the ETag is the number of the log that it is true of.
pub(crate) fn json(value: &impl Serialize, log: Option<i64>) -> Response {
    json_bytes(serde_json::to_vec(value).unwrap_or_default(), log)
}

/// The same of what is JSON already.
pub(crate) fn json_bytes(body: Vec<u8>, log: Option<i64>) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    tag(headers, log);
    response
}

fn tag(headers: &mut HeaderMap, log: Option<i64>) {
    if let Some(value) = log.and_then(|log| HeaderValue::from_str(&format!("\"{log}\"")).ok()) {
        headers.insert(header::ETAG, value);
    }
}

/// What the writer said, as a response.
pub(crate) fn answered(answer: Answer) -> Response {
    let kind = match (answer.status, answer.lines) {
        (400.., _) => "application/problem+json",
        (_, true) => "application/x-ndjson",
        _ => "application/json",
    };
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    tag(headers, Some(answer.log));
    response
}

/// The body of a request, if it comes in time and is not too large.
pub(crate) async fn body_of(app: &Shared, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let limits = &app.options.limits;
    // A large body may take longer, but no client may send a byte a minute.
    let patience = limits.patience + std::time::Duration::from_secs((limit >> 20) as u64);
    match tokio::time::timeout(patience, axum::body::to_bytes(body, limit)).await {
        Err(_) => Err(Problem::timeout()),
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => {
            let text = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            match text.contains("length limit") {
                true => Err(Problem::too_large(limit)),
                false => Err(Problem::bad_request("the body did not arrive whole")),
            }
        }
    }
}

/// A part of a path.
pub(crate) fn parsed<T>(part: Result<Path<T>, Refused>) -> Result<T, Problem> {
    part.map(|Path(part)| part)
        .map_err(|e| Problem::not_found(e.body_text()))
}

type Key = ([u8; 32], [u8; 32]);

/// The entry that the log must be at, and the key that the answer is kept under with the hash of the request.
pub(crate) fn conditions(headers: &HeaderMap, who: &Who, body: &[u8]) -> Result<(Option<i64>, Option<Key>), Problem> {
    let if_match = match headers.get(header::IF_MATCH) {
        None => None,
        Some(value) if value == "*" => None,
        Some(value) => {
            let text = value
                .to_str()
                .unwrap_or_default()
                .trim_start_matches("W/")
                .trim_matches('"');
            let number = text.parse();
            Some(number.map_err(|_| Problem::bad_request("If-Match is the number of an entry of the log"))?)
        }
    };
    let key = match headers.get("idempotency-key") {
        None => None,
        Some(value) if value.is_empty() || value.len() > LONGEST_KEY => {
            return Err(Problem::bad_request(format!(
                "an idempotency key has 1 to {LONGEST_KEY} bytes"
            )));
        }
        Some(value) => {
            let mut key = blake3::Hasher::new();
            key.update(&who.token().to_le_bytes());
            key.update(value.as_bytes());
            Some((*key.finalize().as_bytes(), *blake3::hash(body).as_bytes()))
        }
    };
    Ok((if_match, key))
}
