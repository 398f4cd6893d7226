//! Who may: hosts, origins, tokens, roles and rates.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use genus_collection::{Error, Role, Token, TokenHash, Tokens};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::body_of;
use crate::problem::Problem;
use crate::server::{App, Options, Peer, Shared};

/// How long tokens are remembered: so fast a revoked one is refused.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Wrong tokens of one address in a second.
const WRONG: f64 = 10.0;
/// Clients whose rates are remembered.
const CLIENTS: usize = 10_000;
const COOKIE: &str = "genus";

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) role: Role,
    token: i64,
}

impl Who {
    pub(crate) fn of(request: &Request) -> Self {
        request.extensions().get::<Who>().cloned().unwrap_or(Who {
            name: String::new(),
            role: Role::Read,
            token: -1,
        })
    }

    /// The number of the token, so that keys of one do not meet those of another.
    pub(crate) fn token(&self) -> i64 {
        self.token
    }

    pub(crate) fn must_be(&self, role: Role) -> Result<(), Problem> {
        match self.role >= role {
            true => Ok(()),
            false => Err(Problem::forbidden(format!(
                "this takes the role {role}, and the token has {}",
                self.role
            ))),
        }
    }
}

struct Known {
    at: Instant,
    tokens: HashMap<TokenHash, Who>,
}

pub(crate) struct Access {
    known: Mutex<Option<Known>>,
    rates: Mutex<HashMap<(IpAddr, bool), (f64, Instant)>>,
    hosts: Vec<String>,
    address: OnceLock<SocketAddr>,
    anybody: Who,
    rate: f64,
}

impl Access {
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        Ok(Self {
            known: Mutex::default(),
            rates: Mutex::default(),
            hosts: options.hosts.iter().map(|host| host.to_lowercase()).collect(),
            address: OnceLock::new(),
            anybody: Who {
                name: options.author.clone(),
                role: Role::Admin,
                token: 0,
            },
            rate: f64::from(options.limits.rate),
        })
    }

    pub(crate) fn listens_at(&self, address: SocketAddr) {
        let _ = self.address.set(address);
    }

    /// A page from elsewhere may point its own name at this machine; then it asks for that name.
    fn check_host(&self, headers: &HeaderMap) -> Result<String, Problem> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host
            .ok_or_else(|| Problem::bad_request("the header Host is missing"))?
            .to_lowercase();
        let name = without_port(&host);
        let ip = self.address.get().map(SocketAddr::ip);
        let is_own = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(asked) => {
                ip.is_some_and(|ip| asked == ip || ip.is_unspecified() || (ip.is_loopback() && asked.is_loopback()))
            }
            Err(_) => name == "localhost" && ip.is_some_and(|ip| ip.is_loopback() || ip.is_unspecified()),
        };
        match is_own || self.hosts.iter().any(|known| known == name || *known == host) {
            true => Ok(host),
            false => Err(Problem::misdirected(format!(
                "{name} is not a host name of this service; add it to its host names if it should be"
            ))),
        }
    }

    fn check_origin(headers: &HeaderMap, method: &Method, host: &str) -> Result<(), Problem> {
        let elsewhere = || Problem::forbidden("the request comes from a page of another origin");
        if let Some(origin) = headers.get(header::ORIGIN) {
            let origin = origin.to_str().map_err(|_| elsewhere())?.to_lowercase();
            let own = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"));
            if own != Some(host) {
                return Err(elsewhere());
            }
        }
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        let is_safe = method == Method::GET || method == Method::HEAD;
        match site {
            Some("cross-site" | "same-site") if !is_safe => Err(elsewhere()),
            _ => Ok(()),
        }
    }

    /// Takes one from what a client may do in a second.
    fn spend(&self, client: (IpAddr, bool), rate: f64) -> Result<(), Problem> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() > CLIENTS {
            rates.retain(|_, (_, at)| at.elapsed() < Duration::from_secs(1));
        }
        let now = Instant::now();
        let (left, at) = rates.entry(client).or_insert((rate, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * rate).min(rate);
        *at = now;
        if *left < 1.0 {
            return Err(Problem::too_many(format!(
                "at most {rate} requests a second are answered"
            )));
        }
        *left -= 1.0;
        Ok(())
    }

    /// Who has a token, by what is known of all of them.
    fn look_up(&self, folder: &std::path::Path, secret: Option<&str>) -> Result<Option<Who>, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.at.elapsed() > REMEMBERED) {
            let tokens = Tokens::open(folder)?.list()?.into_iter();
            let tokens = tokens.filter(|token| token.revoked.is_none()).map(|token| {
                let who = Who {
                    name: token.name.clone(),
                    role: token.role,
                    token: token.id,
                };
                (*token.hash(), who)
            });
            *known = Some(Known {
                at: Instant::now(),
                tokens: tokens.collect(),
            });
        }
        let tokens = known.as_ref().map(|known| &known.tokens);
        let is_loopback = self.address.get().is_some_and(|address| address.ip().is_loopback());
        if tokens.is_none_or(HashMap::is_empty) && is_loopback {
            return Ok(Some(self.anybody.clone()));
        }
        let hash = secret.map(Token::hash_of);
        Ok(hash.and_then(|hash| tokens?.get(&hash).cloned()))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The secret that a request shows: in its header, or in the cookie of the page.
fn secret(headers: &HeaderMap) -> Option<String> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().to_owned());
    }
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .find_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='))
        .map(str::to_owned)
}

/// What everybody may see: that the service is there, how it is spoken to, and the page, which then asks for a token.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/openapi.json" | "/v1/session") || crate::page::has(path)
}

/// Lets a request through, or not.
pub(crate) async fn guard(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let parts = AccessRequest {
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        headers: request.headers().clone(),
        ip: request
            .extensions()
            .get::<Peer>()
            .map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip()),
    };
    match admit(&app, parts).await {
        Ok(who) => {
            if let Some(who) = who {
                request.extensions_mut().insert(who);
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// What a request is judged by.
struct AccessRequest {
    method: Method,
    path: String,
    headers: HeaderMap,
    ip: IpAddr,
}

async fn admit(app: &Shared, asked: AccessRequest) -> Result<Option<Who>, Problem> {
    let access = &app.access;
    let host = access.check_host(&asked.headers)?;
    Access::check_origin(&asked.headers, &asked.method, &host)?;
    access.spend((asked.ip, true), access.rate)?;
    if is_public(&asked.path) {
        return Ok(None);
    }
    let Some(who) = who(app, secret(&asked.headers)).await? else {
        access.spend((asked.ip, false), WRONG)?;
        return Err(Problem::unauthorized(
            "send `Authorization: Bearer TOKEN`; `genus token create` makes a token",
        ));
    };
    let needed = match asked.method {
        Method::GET | Method::HEAD => Role::Read,
        _ => Role::Label,
    };
    who.must_be(needed)?;
    Ok(Some(who))
}

async fn who(app: &Shared, secret: Option<String>) -> Result<Option<Who>, Problem> {
    // Mostly it is known, and nothing is read.
    let is_fresh = {
        let known = app.access.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|known| known.at.elapsed() <= REMEMBERED)
    };
    let look = {
        let app = app.clone();
        move || {
            let found = app.access.look_up(&app.options.folder, secret.as_deref());
            found.map_err(crate::writer::noted)
        }
    };
    match is_fresh {
        true => look(),
        false => App::blocking(look).await,
    }
}

/// A token to sign in with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    #[schema(max_length = 200)]
    token: String,
}

/// Signs the page in: the token is kept in a cookie that no script can read.
#[utoipa::path(post, path = "/v1/session", tag = "page", request_body = SignIn,
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in(State(app): State<Shared>, request: Request) -> Result<Response, Problem> {
    let ip = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    let is_secure = request
        .headers()
        .get("x-forwarded-proto")
        .is_some_and(|proto| proto == "https");
    let body = body_of(&app, request.into_body(), 4096).await?;
    let sign_in: SignIn = serde_json::from_slice(&body).map_err(|e| Problem::bad_request(e.to_string()))?;
    // It becomes a part of a header.
    let is_plain = sign_in
        .token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_plain || who(&app, Some(sign_in.token.clone())).await?.is_none() {
        app.access
            .spend((ip.unwrap_or(IpAddr::from([0, 0, 0, 0])), false), WRONG)?;
        return Err(Problem::unauthorized("this token is not known, or was revoked"));
    }
    Ok(cookie(&sign_in.token, 365 * 24 * 60 * 60, is_secure))
}

/// Signs the page out.
#[utoipa::path(delete, path = "/v1/session", tag = "page", responses((status = 204)))]
pub(crate) async fn sign_out() -> Response {
    cookie("", 0, false)
}

fn cookie(secret: &str, seconds: u64, is_secure: bool) -> Response {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{COOKIE}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut response = axum::http::StatusCode::NO_CONTENT.into_response();
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}
