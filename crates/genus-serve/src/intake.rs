//! Items that come: features, images, and batches of both kinds of text and of Arrow.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use genus::{ImageOptions, LiveEncoder, Silent};
use genus_collection::{Arrival, Collection};
use tokio::sync::{OnceCell, Semaphore};

use crate::access::Who;
use crate::api::{answered, body_of, conditions};
use crate::problem::Problem;
use crate::server::{App, Shared};
use crate::wire::{DecisionBody, NewItem};
use crate::writer::{Answer, Job, Work};

/// The longest name of an item, in bytes.
const LONGEST_NAME: usize = 1000;
/// Images that go through the encoder at a time.
const ENCODING: usize = 2;

/// The encoder, once an image has come.
pub(crate) struct Encoder {
    loaded: OnceCell<Arc<LiveEncoder>>,
    room: Arc<Semaphore>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            loaded: OnceCell::new(),
            room: Arc::new(Semaphore::new(ENCODING)),
        }
    }
}

impl Encoder {
    async fn get(&self, app: &Shared) -> Result<Arc<LiveEncoder>, Problem> {
        let pixels = app.options.limits.pixels;
        let load = || {
            app.read(move |collection| {
                let mut options = ImageOptions::default();
                options.limits.pixels = pixels;
                Ok(Arc::new(collection.live_encoder(&options, &Silent)?))
            })
        };
        Ok(self.loaded.get_or_try_init(load).await?.clone())
    }
}

/// Takes items in. Each is answered when it is on disk.
///
/// One item is `application/json` or an image (`image/jpeg` and so on, its name in the header `x-name`); several are
/// `application/x-ndjson`, an Arrow IPC stream (`application/vnd.apache.arrow.stream`), or images in `multipart/form-data`. The answer
/// to several has a line for each, in their order.
#[utoipa::path(post, path = "/v1/items", tag = "items",
    request_body(content(
        (NewItem = "application/json"),
        (String = "application/x-ndjson"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
        (Vec<u8> = "image/*"),
        (Vec<u8> = "multipart/form-data"))),
    params(("if-match" = Option<String>, Header, description = "The entry that the log must be at"),
           ("x-name" = Option<String>, Header, description = "What an image is called"),
           ("idempotency-key" = Option<String>, Header, description = "The same key again gives the same answer")),
    responses((status = 200, content((DecisionBody = "application/json"), (String = "application/x-ndjson"))), (status = "4XX", body = Problem, content_type = "application/problem+json"), (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn take(State(app): State<Shared>, request: Request) -> Result<Response, Problem> {
    let who = Who::of(&request);
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .unwrap_or_default();
    if kind == "multipart/form-data" {
        return take_form(&app, request, &who).await;
    }
    let (parts, body) = request.into_parts();
    let limits = &app.options.limits;
    let limit = if kind.starts_with("image/") {
        limits.image
    } else {
        limits.body
    };
    let body = body_of(&app, body, limit).await?;
    let (if_match, key) = conditions(&parts.headers, &who, &body)?;
    let (arrivals, encoder, single) = match kind.as_str() {
        "application/json" => {
            let item: NewItem =
                serde_json::from_slice(&body).map_err(|e| Problem::bad_request(format!("this is no item: {e}")))?;
            (vec![arrival(item, 0)?], None, true)
        }
        "application/x-ndjson" | "application/jsonl" => {
            let arrivals = App::blocking(move || lines(&body)).await?;
            (arrivals, None, false)
        }
        "application/vnd.apache.arrow.stream" => {
            let arrivals = App::blocking(move || arrow(&body)).await?;
            (arrivals, None, false)
        }
        kind if kind.starts_with("image/") => {
            let encoder = app.encoder.get(&app).await?;
            let name = name_of(&parts.headers)?;
            let image = image(&app, &encoder, body, name).await?;
            (vec![image], Some(encoder), true)
        }
        _ => {
            return Err(Problem::media_type(
                "send application/json, application/x-ndjson, application/vnd.apache.arrow.stream, image/* or multipart/form-data",
            ));
        }
    };
    if arrivals.is_empty() {
        return Err(Problem::bad_request("there are no items"));
    }
    let job = Job {
        work: Work::Items {
            arrivals,
            encoder,
            single,
        },
        author: who.name,
        if_match,
        key,
    };
    Ok(answered(app.writer.ask(job).await?))
}

/// Images of a form, one after the other; one that cannot be read does not keep the others from coming in.
async fn take_form(app: &Shared, request: Request, who: &Who) -> Result<Response, Problem> {
    let limits = app.options.limits.clone();
    let headers = request.headers().clone();
    if headers.contains_key("idempotency-key") || headers.contains_key(header::IF_MATCH) {
        return Err(Problem::bad_request(
            "a form has neither idempotency key nor If-Match: the same image twice is one item",
        ));
    }
    let wrong = |e: &dyn std::fmt::Display| Problem::bad_request(format!("the form cannot be read: {e}"));
    // Every part is limited, and so is their sum.
    let (parts, body) = request.into_parts();
    let body = body_of(app, body, limits.body).await?;
    let request = Request::from_parts(parts, axum::body::Body::from(body));
    let mut form = Multipart::from_request(request, &()).await.map_err(|e| wrong(&e))?;
    let encoder = app.encoder.get(app).await?;
    let mut lines = Answer {
        status: 200,
        body: Vec::new(),
        log: app.events.last(),
        lines: true,
    };
    while let Some(field) = form.next_field().await.map_err(|e| wrong(&e))? {
        let name = clean(field.file_name().or(field.name()).unwrap_or("image"))?;
        let bytes = field.bytes().await.map_err(|e| wrong(&e))?;
        let line = match bytes.len() > limits.image {
            true => Err(Problem::too_large(limits.image)),
            false => image(app, &encoder, bytes, name).await,
        };
        let answer = match line {
            Ok(arrival) => {
                let job = Job {
                    work: Work::Items {
                        arrivals: vec![arrival],
                        encoder: Some(encoder.clone()),
                        single: true,
                    },
                    author: who.name.clone(),
                    if_match: None,
                    key: None,
                };
                app.writer.ask(job).await?
            }
            Err(problem) => Answer {
                status: problem.status(),
                body: problem.to_bytes(),
                log: lines.log,
                lines: false,
            },
        };
        lines.body.extend_from_slice(&answer.body);
        lines.body.push(b'\n');
        lines.log = answer.log;
    }
    match lines.body.is_empty() {
        true => Err(Problem::bad_request("there are no images in the form")),
        false => Ok(answered(lines)),
    }
}

fn name_of(headers: &HeaderMap) -> Result<String, Problem> {
    match headers.get("x-name") {
        None => clean("image"),
        Some(name) => clean(&String::from_utf8_lossy(name.as_bytes())),
    }
}

/// A name as an item may have it: it is shown to people and never used as a path.
fn clean(name: &str) -> Result<String, Problem> {
    if name.len() > LONGEST_NAME {
        return Err(Problem::bad_request(format!("a name has at most {LONGEST_NAME} bytes")));
    }
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    match name.trim().is_empty() {
        true => Ok("item".to_owned()),
        false => Ok(name),
    }
}

fn arrival(item: NewItem, at: usize) -> Result<Arrival, Problem> {
    Ok(Arrival {
        name: match &item.name {
            Some(name) => clean(name)?,
            None => format!("item {at}"),
        },
        features: item.features,
        image: None,
    })
}

fn lines(body: &[u8]) -> Result<Vec<Arrival>, Problem> {
    let lines = body.split(|&byte| byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    lines
        .map(|(at, line)| {
            let item: NewItem = serde_json::from_slice(line)
                .map_err(|e| Problem::bad_request(format!("line {} is no item: {e}", at + 1)))?;
            arrival(item, at)
        })
        .collect()
}

fn arrow(body: &Bytes) -> Result<Vec<Arrival>, Problem> {
    let wrong = |e: &dyn std::fmt::Display| Problem::bad_request(format!("this is no Arrow IPC stream: {e}"));
    let reader = StreamReader::try_new(Cursor::new(body), None).map_err(|e| wrong(&e))?;
    let mut arrivals = Vec::new();
    for batch in reader {
        rows(&batch.map_err(|e| wrong(&e))?, &mut arrivals)?;
    }
    Ok(arrivals)
}

/// The items of a batch: a list of floats called `features`, and a text called `name` or `id`.
fn rows(batch: &RecordBatch, arrivals: &mut Vec<Arrival>) -> Result<(), Problem> {
    let features = batch
        .column_by_name("features")
        .ok_or_else(|| Problem::bad_request("there is no column \"features\""))?;
    let names = batch.column_by_name("name").or_else(|| batch.column_by_name("id"));
    let wrong = || Problem::bad_request("the column \"features\" is no list of floats");
    for row in 0..batch.num_rows() {
        let values: ArrayRef = if let Some(list) = features.as_fixed_size_list_opt() {
            list.value(row)
        } else if let Some(list) = features.as_list_opt::<i32>() {
            list.value(row)
        } else if let Some(list) = features.as_list_opt::<i64>() {
            list.value(row)
        } else {
            return Err(wrong());
        };
        if features.is_null(row) || values.null_count() > 0 {
            return Err(Problem::bad_request(format!("row {row} has no features")));
        }
        let values: Vec<f32> = if let Some(floats) = values.as_primitive_opt::<Float32Type>() {
            Float32Array::values(floats).to_vec()
        } else if let Some(floats) = values.as_primitive_opt::<Float64Type>() {
            floats.values().iter().map(|&value| value as f32).collect()
        } else {
            return Err(wrong());
        };
        let name = match names {
            None => None,
            Some(names) => match (names.as_string_opt::<i32>(), names.as_string_opt::<i64>()) {
                (Some(names), _) if names.is_valid(row) => Some(names.value(row).to_owned()),
                (_, Some(names)) if names.is_valid(row) => Some(names.value(row).to_owned()),
                _ => None,
            },
        };
        let item = NewItem { name, features: values };
        arrivals.push(arrival(item, arrivals.len())?);
    }
    Ok(())
}

/// The ending of the format that a file really is.
fn ending(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xd8, ..] => "jpg",
        [0x89, b'P', b'N', b'G', ..] => "png",
        [b'G', b'I', b'F', ..] => "gif",
        [b'R', b'I', b'F', b'F', ..] => "webp",
        [b'B', b'M', ..] => "bmp",
        [b'I', b'I', 42, ..] | [b'M', b'M', 0, 42, ..] => "tif",
        _ => "img",
    }
}

async fn image(app: &Shared, encoder: &Arc<LiveEncoder>, bytes: Bytes, name: String) -> Result<Arrival, Problem> {
    let permit = app.encoder.room.clone().acquire_owned().await;
    let (encoder, folder) = (encoder.clone(), app.options.folder.clone());
    App::blocking(move || {
        let _permit = permit;
        let features = encoder.features(&bytes).map_err(genus_collection::Error::from)?;
        // Only what is an image is kept.
        let image = Collection::keep_image(&folder, &bytes, ending(&bytes)).map_err(crate::writer::noted)?;
        Ok(Arrival {
            name,
            features,
            image: Some(image),
        })
    })
    .await
}
