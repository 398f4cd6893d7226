"""A folder that lives: items come in again and again, and people name, merge, split and undo."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from genus import _genus
from genus._discover import given
from genus._frames import frame
from genus._images import Pathlike, image_options
from genus._progress import listener

Group = str | int
Item = str | int


class Collection:
    """A collection in a folder, which is made if there is none.

    Groups and items are called by name, or by number. What a person said is law: :meth:`refresh` never contradicts it, and everything
    that was said can be undone. Only one process at a time changes a collection; ``close`` it, or use it with ``with``.
    """

    def __init__(self, folder: Pathlike, *, author: str | None = None, read_only: bool = False) -> None:
        self.folder = Path(folder)
        author = author or getpass.getuser()
        path = os.fspath(folder)
        if read_only:
            self._kept = _genus.Collection.open(path)
        elif (self.folder / "collection.db").exists():
            self._kept = _genus.Collection.open_to_write(path, author)
        else:
            self._kept = _genus.Collection.create(path, author)

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets others change it."""
        self._kept.close()

    # ---- what there is

    @property
    def status(self) -> dict[str, Any]:
        """The collection in numbers."""
        return json.loads(self._kept.status())

    def groups(self) -> Any:
        """All groups, as a DataFrame."""
        return frame(
            _columns(json.loads(self._kept.groups()), ("id", "name", "named", "items", "confirmed", "guessed"))
        )

    def items(self, group: Group | None = None, *, waiting: bool = False, noise: bool = False) -> Any:
        """All items, those of a group, those that wait or those that belong nowhere, as a DataFrame."""
        which = "waiting" if waiting else "noise" if noise else "all"
        found = json.loads(self._kept.items(None if group is None else self._group(group), which))
        for item in found:
            item.setdefault("group_name", item.get("guess_name"))
        return frame(_columns(found, ("id", "name", "path", "state", "group_name", "probability", "confirmed")))

    def log(self, most: int = 100) -> Any:
        """What was done, the last first, as a DataFrame."""
        return frame(_columns(json.loads(self._kept.log(most)), ("no", "time", "author", "kind", "items", "groups")))

    def __len__(self) -> int:
        return self.status["items"]

    def __repr__(self) -> str:
        status = self.status
        groups = status["named_groups"] + status["new_groups"]
        return f"<genus.Collection {str(self.folder)!r}: {status['items']} items, {groups} groups>"

    # ---- what comes in

    def add(
        self,
        items: Any,
        y: Any = None,
        *,
        labelled: bool | None = None,
        encoder: Pathlike | None = None,
        weights: Pathlike | None = None,
        cache: Pathlike | bool = True,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        """Adds photographs, a table, or features with labels; the same content twice is one item.

        ``labelled`` takes labels for what a person said, which is the default where ``y`` is given.
        """
        labelled = y is not None if labelled is None else labelled
        options = image_options(encoder, weights, None, cache)
        return json.loads(self._kept.add(given(items, y), options, labelled, listener(progress)))

    def refresh(self, level: str = "as-found", *, progress: bool | None = None) -> dict[str, Any]:
        """Sorts everything anew that no person has decided about."""
        return json.loads(self._kept.refresh(level, listener(progress)))

    # ---- what people say

    def name(self, group: Group, name: str) -> None:
        """Calls a group something."""
        self._act({"do": "name", "group": self._group(group), "name": name})

    def merge(self, *groups: Group, into: Group | None = None) -> None:
        """Makes groups one."""
        action: dict[str, Any] = {"do": "merge", "groups": [self._group(group) for group in groups]}
        if into is not None:
            action["into"] = self._group(into)
            if action["into"] not in action["groups"]:
                action["groups"].append(action["into"])
        self._act(action)

    def split(self, group: Group, into: int | None = None) -> None:
        """Makes new groups of the parts of a group, as many as are asked for or as its items form by themselves."""
        at = self._group(group)
        self._act({"do": "split", "group": at, "parts": self._kept.propose_split(at, into)})

    def move(self, items: Item | Iterable[Item], to: Group | None = None, *, new: str | None = None) -> None:
        """Puts items into a group, or into a new one of this name."""
        if (to is None) == (new is None):
            raise ValueError("say either which group the items go to, or what a new one is called")
        if to is None:
            self._act({"do": "move-to-new", "items": self._items(items), "name": new})
        else:
            self._act({"do": "move", "items": self._items(items), "to": self._group(to)})

    def confirm(self, items: Item | Iterable[Item] | None = None, *, group: Group | None = None) -> None:
        """Says that items, or all of a group, are where they belong."""
        if (items is None) == (group is None):
            raise ValueError("say either which items or which group")
        if items is None:
            assert group is not None
            self._act({"do": "confirm-group", "group": self._group(group)})
        else:
            self._act({"do": "confirm", "items": self._items(items)})

    def reject(self, items: Item | Iterable[Item]) -> None:
        """Says that items are not where they belong."""
        self._act({"do": "reject", "items": self._items(items)})

    def noise(self, items: Item | Iterable[Item]) -> None:
        """Says that items belong nowhere."""
        self._act({"do": "noise", "items": self._items(items)})

    def undo(self) -> dict[str, Any]:
        """Undoes what was done last."""
        return json.loads(self._kept.undo())

    def redo(self) -> dict[str, Any]:
        """Does again what was undone last."""
        return json.loads(self._kept.redo())

    def ask(self, count: int = 1) -> list[dict[str, Any]]:
        """Questions whose answers help most."""
        return json.loads(self._kept.ask(count))

    # ---- what goes out

    def export(
        self,
        folder: Pathlike,
        *,
        format: str = "csv",
        features: bool = False,
        sort_into: Pathlike | None = None,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        """Writes the assignments, the groups and a taxonomy into a folder."""
        into = None if sort_into is None else os.fspath(sort_into)
        return json.loads(self._kept.export(os.fspath(folder), format, features, into, listener(progress)))

    def report(self, folder: Pathlike, *, progress: bool | None = None) -> Any:
        """Writes the page that shows it into a folder; Jupyter shows it."""
        from genus._discover import Report

        return Report(Path(self._kept.report(os.fspath(folder), listener(progress))).read_text(encoding="utf-8"))

    def check(self) -> dict[str, Any]:
        """Looks at everything: an empty list of problems is a sound collection."""
        return json.loads(self._kept.check())

    def _act(self, action: dict[str, Any]) -> None:
        self._kept.act(json.dumps(action))

    def _group(self, group: Group) -> int:
        return int(group) if not isinstance(group, str) else self._kept.find_group(group)

    def _items(self, items: Item | Iterable[Item]) -> list[int]:
        several = [items] if isinstance(items, str) or not hasattr(items, "__iter__") else list(items)
        return [self._kept.find_item(item) if isinstance(item, str) else int(item) for item in several]


def _columns(rows: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in names}
