//! What can be asked: the collection in numbers, groups, items, pictures, the map and the log.

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use genus_collection::{Candidate, EntryId, GroupId, ItemId, ItemInfo, ItemKind, Map, Sort};
use serde::Deserialize;
use std::collections::HashSet;
use tokio::sync::Mutex;
use utoipa::IntoParams;

use crate::access::Who;
use crate::api::{Refused, json, parsed};
use crate::problem::Problem;
use crate::server::Shared;
use crate::thumbnails::SIDES;
use crate::wire::{
    EntryBody, Filter, GroupBody, GroupsBody, ItemBody, ItemsBody, LogBody, MapBody, SheetBody, SortBody, StatusBody,
    UnsureBody, WhyBody,
};

/// Typical items of a group in a list, and of one group.
const TYPICAL: [usize; 2] = [4, 12];
/// Groups that an item may belong to: as many as there are digits to choose with.
const CANDIDATES: usize = 9;
/// Items or entries of a page.
const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1000;

/// The collection in numbers.
#[utoipa::path(get, path = "/v1/status", tag = "groups", responses((status = 200, body = StatusBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn status(State(app): State<Shared>, request: Request) -> Result<Response, Problem> {
    let role = Who::of(&request).role.to_string();
    let (status, pictures) = app
        .read(|collection| Ok((collection.status()?, collection.has_images()?)))
        .await?;
    Ok(json(&StatusBody::new(&status, pictures, &role), Some(status.log.0)))
}

/// All groups, those with names first, then from large to small.
#[utoipa::path(get, path = "/v1/groups", tag = "groups", responses((status = 200, body = GroupsBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn groups(State(app): State<Shared>) -> Result<Response, Problem> {
    let found = app
        .read(|collection| {
            let log = collection.last_entry()?.0;
            let doubts = collection.doubts()?;
            let mut groups = Vec::new();
            for group in collection.groups()? {
                let typical = collection.surest(group.id, TYPICAL[0])?;
                let doubtful = doubts.get(&group.id).copied().unwrap_or(0);
                groups.push(GroupBody::new(
                    group,
                    doubtful,
                    typical.iter().map(|item| item.0).collect(),
                ));
            }
            Ok(GroupsBody { groups, log })
        })
        .await?;
    Ok(json(&found, Some(found.log)))
}

/// One group, with items that are typical of it.
#[utoipa::path(get, path = "/v1/groups/{id}", tag = "groups", params(("id" = i64, Path, description = "The number of the group")),
    responses((status = 200, body = GroupBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn group(State(app): State<Shared>, id: Result<Path<i64>, Refused>) -> Result<Response, Problem> {
    let id = parsed(id)?;
    let (group, log) = app
        .read(move |collection| {
            let log = collection.last_entry()?.0;
            let group = collection.group(GroupId(id))?;
            let typical = collection.surest(group.id, TYPICAL[1])?;
            let doubtful = collection.doubts()?.get(&group.id).copied().unwrap_or(0);
            Ok((
                GroupBody::new(group, doubtful, typical.iter().map(|item| item.0).collect()),
                log,
            ))
        })
        .await?;
    Ok(json(&group, Some(log)))
}

/// How a list of items is paged. The filter is read from the same query.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// The order.
    #[serde(default)]
    #[param(inline, default = "number")]
    sort: SortBody,
    /// The cursor of the page, which is `next` of the one before.
    #[serde(default)]
    after: Option<String>,
    /// At most so many.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Takes parameters of these names out of a query; the rest is the filter.
fn split<T: serde::de::DeserializeOwned>(query: Option<&str>, names: &[&str]) -> Result<(T, Filter), Problem> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let is_named = |pair: &&str| names.contains(&pair.split('=').next().unwrap_or_default());
    let (own, filter): (Vec<&str>, Vec<&str>) = pairs.partition(is_named);
    fn read<T: serde::de::DeserializeOwned>(pairs: &[&str]) -> Result<T, Problem> {
        let uri = format!("/?{}", pairs.join("&"));
        let uri: axum::http::Uri = uri
            .parse()
            .map_err(|_| Problem::bad_request("the query cannot be read"))?;
        let Query(found) = Query::try_from_uri(&uri).map_err(|e| Problem::bad_request(e.body_text()))?;
        Ok(found)
    }
    Ok((read(&own)?, read(&filter)?))
}

/// Items by what is true of them, in an order, page by page.
#[utoipa::path(get, path = "/v1/items", tag = "items", params(Filter, Paging),
    responses((status = 200, body = ItemsBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn items(State(app): State<Shared>, request: Request) -> Result<Response, Problem> {
    let (paging, filter): (Paging, Filter) = split(request.uri().query(), &["sort", "after", "limit"])?;
    let query = filter.query().map_err(Problem::bad_request)?;
    let after = paging.after.as_deref().map(str::parse).transpose();
    let after = after.map_err(|e: genus_collection::NoCursor| Problem::bad_request(e.to_string()))?;
    let most = paging.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&most) {
        return Err(Problem::bad_request(format!("a page has 1 to {LARGEST_PAGE} items")));
    }
    let sort: Sort = paging.sort.into();
    let found = app
        .read(move |collection| {
            let log = collection.last_entry()?.0;
            let page = collection.query(&query, sort, after, most)?;
            let named = named_groups(collection)?;
            Ok(ItemsBody {
                items: page
                    .items
                    .into_iter()
                    .map(|item| ItemBody::new(item, |group| named.contains(&group)))
                    .collect(),
                next: page.next.map(|next| next.to_string()),
                total: page.total,
                log,
            })
        })
        .await?;
    Ok(json(&found, Some(found.log)))
}

/// The order of all items.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Ordering {
    /// The order.
    #[serde(default)]
    #[param(inline, default = "number")]
    sort: SortBody,
}

/// All items by what is true of them, in columns.
#[utoipa::path(get, path = "/v1/sheet", tag = "items", params(Filter, Ordering),
    responses((status = 200, body = SheetBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sheet(State(app): State<Shared>, request: Request) -> Result<Response, Problem> {
    let (ordering, filter): (Ordering, Filter) = split(request.uri().query(), &["sort"])?;
    let query = filter.query().map_err(Problem::bad_request)?;
    let (log, body) = app
        .read(move |collection| {
            let log = collection.last_entry()?.0;
            // So many as a number of SQLite can be.
            let all = collection.query(&query, ordering.sort.into(), None, i64::MAX as usize - 1)?;
            let sheet = SheetBody::new(all.items, log);
            Ok((log, serde_json::to_vec(&sheet).unwrap_or_default()))
        })
        .await?;
    Ok(crate::api::json_bytes(body, Some(log)))
}

fn named_groups(collection: &genus_collection::Collection) -> Result<HashSet<i64>, Problem> {
    let groups = collection.groups()?.into_iter();
    Ok(groups.filter(|group| group.named).map(|group| group.id.0).collect())
}

fn whys(collection: &genus_collection::Collection, items: Vec<ItemInfo>) -> Result<Vec<WhyBody>, Problem> {
    let named = named_groups(collection)?;
    let ids: Vec<ItemId> = items.iter().map(|item| item.id).collect();
    let candidates = collection.candidates(&ids, CANDIDATES)?;
    let items = items.into_iter().zip(candidates);
    let why = |(item, candidates): (ItemInfo, Vec<Candidate>)| WhyBody {
        item: ItemBody::new(item, |group| named.contains(&group)),
        candidates: candidates.into_iter().map(Into::into).collect(),
    };
    Ok(items.map(why).collect())
}

/// One item, and the groups that it is most like.
#[utoipa::path(get, path = "/v1/items/{id}", tag = "items", params(("id" = i64, Path, description = "The number of the item")),
    responses((status = 200, body = WhyBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn item(State(app): State<Shared>, id: Result<Path<i64>, Refused>) -> Result<Response, Problem> {
    let id = parsed(id)?;
    let item = app
        .read(move |collection| {
            let item = collection.item(ItemId(id))?;
            whys(collection, vec![item])?
                .pop()
                .ok_or_else(|| Problem::internal("there is no answer"))
        })
        .await?;
    Ok(json(&item, None))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Side {
    /// Pixels of the longer side.
    #[param(minimum = 16, maximum = 1024, default = 160)]
    side: Option<usize>,
}

/// A small picture of an item.
#[utoipa::path(get, path = "/v1/items/{id}/thumbnail", tag = "items",
    params(("id" = i64, Path, description = "The number of the item"), Side),
    responses((status = 200, content_type = "image/jpeg", body = Vec<u8>), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn thumbnail(
    State(app): State<Shared>,
    id: Result<Path<i64>, Refused>,
    side: Result<Query<Side>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let id = parsed(id)?;
    let side = side
        .map_err(|e| Problem::bad_request(e.body_text()))?
        .side
        .unwrap_or(160);
    if !SIDES.contains(&side) {
        return Err(Problem::bad_request("side is 16 to 1024"));
    }
    let picture = match app.thumbnails.kept(id, side) {
        Some(picture) => picture,
        None => {
            let path = app
                .read(move |collection| Ok(collection.item(ItemId(id))?.path))
                .await?;
            let none = || Problem::not_found(format!("item #{id} is no image"));
            app.thumbnails.make(id, side, path.ok_or_else(none)?).await?
        }
    };
    let kind = match picture.starts_with(b"\x89PNG") {
        true => "image/png",
        false => "image/jpeg",
    };
    // A number is never used again, and what an item is does not change.
    let response = Response::builder()
        .header(header::CONTENT_TYPE, kind)
        .header(header::CACHE_CONTROL, "private, max-age=604800, immutable")
        .body(Body::from(picture));
    response.map_err(|e| Problem::internal(e.to_string()))
}

/// The map as it was last asked for.
#[derive(Default)]
pub(crate) struct MapCache(Mutex<Option<(i64, Map, Bytes)>>);

/// Items in the plane, those that are alike beside each other.
#[utoipa::path(get, path = "/v1/map", tag = "items",
    params(("if-none-match" = Option<String>, Header, description = "The ETag of the map that the client has")),
    responses((status = 200, body = MapBody), (status = 304), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn map(State(app): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    // Whoever comes while it is made waits for it.
    let mut cache = app.map.0.lock().await;
    let log = app.events.last();
    let earlier = match cache.take() {
        Some((at, map, body)) if at == log => {
            *cache = Some((at, map, body));
            None
        }
        other => Some(other.map(|(_, map, _)| map)),
    };
    if let Some(earlier) = earlier {
        let made = app
            .read(move |collection| {
                let map = collection.map(earlier.as_ref())?;
                let extent = map
                    .places
                    .values()
                    .flatten()
                    .fold(1e-9f32, |most, value| most.max(value.abs()));
                // Four digits are finer than a pixel.
                let short = |value: f32| (value / extent * 1e4).round() / 1e4;
                let body = MapBody {
                    projection: map.projection,
                    ids: map.places.keys().map(|item| item.0).collect(),
                    xy: map.places.values().flatten().map(|&value| short(value)).collect(),
                };
                let body = serde_json::to_vec(&body).unwrap_or_default();
                Ok((log, map, Bytes::from(body)))
            })
            .await?;
        *cache = Some(made);
    }
    let Some((at, _, body)) = &*cache else {
        return Err(Problem::internal("there is no map"));
    };
    let tag = format!("\"map-{at}\"");
    let response = Response::builder()
        .header(header::ETAG, &tag)
        .header(header::CACHE_CONTROL, "private, no-cache");
    let response = match headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes())
    {
        true => response.status(304).body(Body::empty()),
        false => response
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.clone())),
    };
    response.map_err(|e| Problem::internal(e.to_string()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogPage {
    /// Entries before this one.
    #[param(minimum = 1)]
    before: Option<i64>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// What was done, the last first.
#[utoipa::path(get, path = "/v1/log", tag = "log", params(LogPage), responses((status = 200, body = LogBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn log(
    State(app): State<Shared>,
    page: Result<Query<LogPage>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let Query(page) = page.map_err(|e| Problem::bad_request(e.body_text()))?;
    let most = page.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&most) {
        return Err(Problem::bad_request(format!("a page has 1 to {LARGEST_PAGE} entries")));
    }
    let found = app
        .read(move |collection| {
            let entries = collection.log(page.before.map(EntryId), most)?;
            Ok(LogBody {
                entries: entries.iter().map(EntryBody::from).collect(),
                log: collection.last_entry()?.0,
            })
        })
        .await?;
    Ok(json(&found, Some(found.log)))
}

/// Questions whose answers would help most: items that nobody is sure of.
#[utoipa::path(get, path = "/v1/unsure", tag = "items", params(LogPage), responses((status = 200, body = UnsureBody), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn unsure(
    State(app): State<Shared>,
    page: Result<Query<LogPage>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let Query(page) = page.map_err(|e| Problem::bad_request(e.body_text()))?;
    let most = page.limit.unwrap_or(PAGE).min(LARGEST_PAGE);
    let found = app
        .read(move |collection| {
            let log = collection.last_entry()?.0;
            let items = collection.doubtful_items(most)?;
            let total = collection
                .query(
                    &genus_collection::Query {
                        kind: Some(ItemKind::Waiting),
                        ..Default::default()
                    },
                    Sort::Number,
                    None,
                    0,
                )?
                .total;
            Ok(UnsureBody {
                items: whys(collection, items)?,
                total,
                log,
            })
        })
        .await?;
    Ok(json(&found, Some(found.log)))
}
