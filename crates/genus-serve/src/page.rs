//! The page and all that belongs to it, inside the binary.

use axum::Router;
use axum::body::Body;
use axum::http::{Response, header};
use axum::routing::get;
use genus_report::modules;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What there is: its path, its type, its content.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("../assets/index.html")),
    ("/page/base.css", STYLE, modules::BASE_CSS),
    ("/page/page.css", STYLE, include_str!("../assets/page.css")),
    ("/page/shared.js", SCRIPT, modules::SHARED_JS),
    ("/page/plane.js", SCRIPT, modules::PLANE_JS),
    ("/page/add.js", SCRIPT, include_str!("../assets/add.js")),
    ("/page/api.js", SCRIPT, include_str!("../assets/api.js")),
    ("/page/dialogs.js", SCRIPT, include_str!("../assets/dialogs.js")),
    ("/page/keys.js", SCRIPT, include_str!("../assets/keys.js")),
    ("/page/main.js", SCRIPT, include_str!("../assets/main.js")),
    ("/page/map.js", SCRIPT, include_str!("../assets/map.js")),
    ("/page/naming.js", SCRIPT, include_str!("../assets/naming.js")),
    ("/page/queue.js", SCRIPT, include_str!("../assets/queue.js")),
    ("/page/sheet.js", SCRIPT, include_str!("../assets/sheet.js")),
    ("/page/store.js", SCRIPT, include_str!("../assets/store.js")),
    ("/page/unsure.js", SCRIPT, include_str!("../assets/unsure.js")),
    ("/page/words.js", SCRIPT, include_str!("../assets/words.js")),
];

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
