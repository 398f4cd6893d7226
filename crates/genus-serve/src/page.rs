//! The page and all that belongs to it, inside the binary.

use axum::Router;
use axum::body::Body;
use axum::http::{Response, header};
use axum::routing::get;

/// What there is: its path, its type, its content.
const FILES: &[(&str, &str, &str)] = &[("/", "text/html; charset=utf-8", include_str!("../assets/index.html"))];

/// Nothing but what comes from here runs or is shown.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A route for every file.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, content)| {
        router.route(
            path,
            get(move || async move {
                Response::builder()
                    .header(header::CONTENT_TYPE, kind)
                    .header(header::CONTENT_SECURITY_POLICY, POLICY)
                    .header(header::CACHE_CONTROL, "no-cache")
                    .body(Body::from(content))
                    .unwrap_or_default()
            }),
        )
    })
}

/// Whether a path is one of these.
pub(crate) fn has(path: &str) -> bool {
    FILES.iter().any(|(file, ..)| *file == path)
}
