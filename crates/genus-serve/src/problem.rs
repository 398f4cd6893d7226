//! What went wrong, as problem+json (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use genus_collection::{Error, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// A word for it that does not change.
    #[serde(rename = "type")]
    #[schema(example = "urn:genus:changed")]
    kind: String,
    /// What it is in general.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// What it is here, and the way out.
    detail: String,
    /// The last entry of the log, where that matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<i64>,
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, kind: &str, title: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:genus:{kind}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            log: None,
            retry_after: None,
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request", "The request makes no sense", detail)
    }

    pub(crate) fn unfit(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "unfit",
            "The items do not fit",
            detail,
        )
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing", detail)
    }

    pub(crate) fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "Not with this method",
            "see /openapi.json for what there is",
        )
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "token", "A token is needed", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail)
    }

    pub(crate) fn misdirected(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "Another host was asked",
            detail,
        )
    }

    pub(crate) fn media_type(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "This kind of content is not taken",
            detail,
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("at most {limit} bytes are taken at once; send less, or several requests");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Too large", detail)
    }

    pub(crate) fn timeout() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            "Too slow",
            "the request did not arrive in time",
        )
    }

    pub(crate) fn changed(log: i64) -> Self {
        Self {
            log: Some(log),
            ..Self::new(
                StatusCode::PRECONDITION_FAILED,
                "changed",
                "The collection has changed",
                format!("the log is at {log} by now; look again and repeat what you still want"),
            )
        }
    }

    pub(crate) fn other_request() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency-key",
            "The key was used for another request",
            "an idempotency key stands for one request; choose a new one for another",
        )
    }

    pub(crate) fn busy(detail: impl Into<String>, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Not now", detail)
        }
    }

    pub(crate) fn too_many(detail: impl Into<String>) -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many", "Too many requests", detail)
        }
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Something went wrong here",
            detail,
        )
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match &error {
            Error::Refused(Refusal::NoGroup { .. } | Refusal::NoItem { .. })
            | Error::NoSuchGroup { .. }
            | Error::NoSuchItem { .. } => Self::not_found(detail),
            Error::Refused(_) | Error::Nothing => {
                Self::new(StatusCode::CONFLICT, "refused", "This cannot be done", detail)
            }
            Error::Full { .. } => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk-full",
                "The disk is full",
                "nothing was changed; make room and repeat the request",
            ),
            Error::Busy { .. } => Self::busy("another process is writing the collection", 1),
            Error::Dim { .. } | Error::Data(_) => Self::unfit(detail),
            Error::Genus(source) => match &**source {
                genus::Error::Unreadable { reason, .. } => Self::unfit(format!("the image cannot be read: {reason}")),
                _ => Self::unfit(detail),
            },
            // What is told of files stays here.
            _ => Self::internal("the collection cannot be read or written; the service has noted why"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.to_bytes()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
