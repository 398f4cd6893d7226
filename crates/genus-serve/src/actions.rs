//! What a person says: everything of the command line.

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use genus::Silent;
use genus_collection::{Action, Collection, Error, GroupId, ItemId, Level, Refusal, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::access::Who;
use crate::api::{answered, body_of, conditions};
use crate::problem::Problem;
use crate::server::Shared;
use crate::wire::{EntryBody, Filter};
use crate::writer::{Job, Work};

/// The most bytes of an action.
const LARGEST: usize = 16 << 20;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Deed {
    /// Calls `group` `name`; with `merge`, a group that is called that already becomes one with it.
    Name,
    /// Makes `groups` one, which keeps the number and name of `into`.
    Merge,
    /// Makes `parts` of `group` groups of their own; without parts these are proposed, as many as `count` says.
    Split,
    /// Puts items into the group `to`, or into a new one, which may have a `name`.
    Move,
    /// Says that items, or all of `group`, are where they belong.
    Confirm,
    /// Says that items are not where they belong.
    Reject,
    /// Says that items belong to no class.
    Noise,
    /// Undoes what was done last.
    Undo,
    /// Does again what was undone last.
    Redo,
    /// Sorts everything anew that nobody has decided about. It takes the role `admin`.
    Refresh,
}

/// How fine groups are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LevelBody {
    #[default]
    AsFound,
    Coarser,
    Finer,
}

/// Something that a person says.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionBody {
    #[serde(rename = "do")]
    pub(crate) deed: Deed,
    /// The group that it is about.
    #[serde(default)]
    group: Option<i64>,
    /// What it is to be called.
    #[serde(default)]
    name: Option<String>,
    /// Whether a group that is called that already becomes one with it.
    #[serde(default)]
    merge: bool,
    /// The groups that become one.
    #[serde(default)]
    groups: Option<Vec<i64>>,
    /// The one of these whose number and name stay.
    #[serde(default)]
    into: Option<i64>,
    /// The items of every part.
    #[serde(default)]
    parts: Option<Vec<Vec<i64>>>,
    /// How many parts there are to be.
    #[serde(default)]
    count: Option<usize>,
    /// The items that it is about.
    #[serde(default)]
    items: Option<Vec<i64>>,
    /// The same by what is true of them.
    #[serde(default)]
    filter: Option<Filter>,
    /// The group that items are put into; none for a new one.
    #[serde(default)]
    to: Option<i64>,
    /// How fine groups are to be.
    #[serde(default)]
    level: LevelBody,
    /// Only say what it would do.
    #[serde(default)]
    dry_run: bool,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DoneBody {
    /// The entry of the log; none when everything was so already, or when nothing was to be done.
    entry: Option<EntryBody>,
    /// What it would do, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    preview: Option<Value>,
    /// The parts of a split, proposed or made.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Vec<i64>>>,
}

impl ActionBody {
    /// What is missing.
    fn check(&self) -> Result<(), Problem> {
        let missing = |what: &str| Err(Problem::bad_request(format!("{what} is missing")));
        let has_items = self.items.is_some() || self.filter.is_some();
        if self.items.is_some() && self.filter.is_some() {
            return Err(Problem::bad_request("give items or a filter, not both"));
        }
        match self.deed {
            Deed::Name if self.group.is_none() => missing("group"),
            Deed::Name if self.name.is_none() => missing("name"),
            Deed::Merge if self.groups.is_none() => missing("groups"),
            Deed::Split if self.group.is_none() => missing("group"),
            Deed::Move | Deed::Reject | Deed::Noise if !has_items => missing("items or filter"),
            Deed::Confirm if !has_items && self.group.is_none() => missing("items, filter or group"),
            Deed::Undo | Deed::Redo | Deed::Refresh if self.dry_run => Err(Problem::bad_request("this has no dry run")),
            _ => match &self.filter {
                Some(filter) => filter.query().map(drop).map_err(Problem::bad_request),
                None => Ok(()),
            },
        }
    }

    fn items(&self, collection: &Collection) -> Result<Vec<ItemId>, Error> {
        let items: Vec<ItemId> = match (&self.items, &self.filter) {
            (Some(items), _) => items.iter().copied().map(ItemId).collect(),
            (None, Some(filter)) => collection.select(&filter.query().unwrap_or_default())?,
            (None, None) => Vec::new(),
        };
        match items.is_empty() {
            true => Err(Refusal::NothingToDo.into()),
            false => Ok(items),
        }
    }

    fn action(&self, collection: &Collection) -> Result<Option<Action>, Error> {
        let group = GroupId(self.group.unwrap_or_default());
        Ok(Some(match self.deed {
            Deed::Name => Action::Name {
                group,
                name: self.name.clone().unwrap_or_default(),
            },
            Deed::Merge => Action::Merge {
                groups: self.groups.iter().flatten().copied().map(GroupId).collect(),
                into: self.into.map(GroupId),
            },
            Deed::Split => Action::Split {
                group,
                parts: match &self.parts {
                    Some(parts) => parts
                        .iter()
                        .map(|part| part.iter().copied().map(ItemId).collect())
                        .collect(),
                    None => collection.propose_split(group, self.count)?,
                },
            },
            Deed::Move => match self.to {
                Some(to) => Action::Move {
                    items: self.items(collection)?,
                    to: GroupId(to),
                },
                None => Action::MoveToNew {
                    items: self.items(collection)?,
                    name: self.name.clone().filter(|name| !name.is_empty()),
                },
            },
            Deed::Confirm if self.items.is_none() && self.filter.is_none() => Action::ConfirmGroup { group },
            Deed::Confirm => Action::Confirm {
                items: self.items(collection)?,
            },
            Deed::Reject => Action::Reject {
                items: self.items(collection)?,
            },
            Deed::Noise => Action::Noise {
                items: self.items(collection)?,
            },
            Deed::Undo | Deed::Redo | Deed::Refresh => return Ok(None),
        }))
    }

    fn done(entry: Option<EntryBody>, action: Option<&Action>) -> DoneBody {
        let parts = match action {
            Some(Action::Split { parts, .. }) => Some(
                parts
                    .iter()
                    .map(|part| part.iter().map(|item| item.0).collect())
                    .collect(),
            ),
            _ => None,
        };
        DoneBody {
            entry,
            preview: None,
            parts,
        }
    }

    /// What it would do.
    fn preview(&self, collection: &Collection) -> Result<DoneBody, Error> {
        let Some(action) = self.action(collection)? else {
            return Ok(Self::done(None, None));
        };
        let preview = collection.preview(&action)?;
        Ok(DoneBody {
            preview: Some(serde_json::to_value(preview).unwrap_or(json!(null))),
            ..Self::done(None, Some(&action))
        })
    }

    /// Does it.
    pub(crate) fn run(&self, collection: &mut Collection) -> Result<DoneBody, Error> {
        let action = self.action(collection)?;
        let entry = match (&action, self.deed) {
            (Some(action), _) => match (collection.act(action), action) {
                (Err(Error::Refused(Refusal::NameTaken { group: other, .. })), Action::Name { group, .. })
                    if self.merge =>
                {
                    collection.act(&Action::Merge {
                        groups: vec![other, *group],
                        into: Some(other),
                    })?
                }
                (done, _) => done?,
            },
            (None, Deed::Undo) => Some(collection.undo()?),
            (None, Deed::Redo) => Some(collection.redo()?),
            (None, _) => {
                let level = match self.level {
                    LevelBody::AsFound => Level::AsFound,
                    LevelBody::Coarser => Level::Coarser,
                    LevelBody::Finer => Level::Finer,
                };
                collection.refresh(level, &Silent)?.entry
            }
        };
        Ok(Self::done(entry.as_ref().map(EntryBody::from), action.as_ref()))
    }
}

/// Does what a person says.
#[utoipa::path(post, path = "/v1/actions", tag = "actions", request_body = ActionBody,
    params(("if-match" = Option<String>, Header, description = "The entry that the log must be at"),
           ("idempotency-key" = Option<String>, Header, description = "The same key again gives the same answer, and does nothing")),
    responses((status = 200, body = DoneBody), (status = "4XX", body = Problem, content_type = "application/problem+json"), (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn act(State(app): State<Shared>, request: Request) -> Result<Response, Problem> {
    let who = Who::of(&request);
    let (parts, body) = request.into_parts();
    let body = body_of(&app, body, LARGEST).await?;
    let action: ActionBody =
        serde_json::from_slice(&body).map_err(|e| Problem::bad_request(format!("this is no action: {e}")))?;
    action.check()?;
    if action.deed == Deed::Refresh {
        who.must_be(Role::Admin)?;
    }
    if action.dry_run {
        let done = app.read(move |collection| Ok(action.preview(collection)?)).await?;
        return Ok(crate::api::json(&done, None));
    }
    let (if_match, key) = conditions(&parts.headers, &who, &body)?;
    let job = Job {
        work: Work::Act(Box::new(action)),
        author: who.name,
        if_match,
        key,
    };
    Ok(answered(app.writer.ask(job).await?))
}
