"""How far long work is: a bar of tqdm where that is installed, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

Listener = Callable[[str, str, Any], None]


def listener(shown: bool | None) -> Listener | None:
    """What is told of long work; ``None`` shows it where somebody looks: on a terminal and in a notebook."""
    if shown is None:
        shown = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not shown:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines()
    return _Bar(tqdm)


class _Heard:
    """What is said whatever shows the rest."""

    def __call__(self, kind: str, text: str, number: Any) -> None:
        if kind in ("warning", "skipped"):
            warnings.warn(text, stacklevel=2)
        elif kind == "start":
            self.start(text, number, "it")
        elif kind == "start-bytes":
            self.start(text, number, "B")
        elif kind == "advance":
            self.advance(int(number))
        elif kind == "end":
            self.end()
        elif kind == "said":
            self.say(text)

    def start(self, stage: str, steps: int | None, unit: str) -> None:
        raise NotImplementedError

    def advance(self, steps: int) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)


class _Bar(_Heard):
    def __init__(self, make: Any) -> None:
        self._make = make
        self._bar: Any = None

    def start(self, stage: str, steps: int | None, unit: str) -> None:
        self.end()
        self._bar = self._make(desc=stage, total=steps, unit=unit, unit_scale=unit == "B", leave=False)

    def advance(self, steps: int) -> None:
        if self._bar is not None:
            self._bar.update(steps)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Lines(_Heard):
    #: Seconds between two lines of one stage.
    EVERY = 5.0

    def __init__(self) -> None:
        self._stage = ""
        self._steps: int | None = None
        self._done = 0
        self._said = 0.0

    def start(self, stage: str, steps: int | None, unit: str) -> None:
        self._stage, self._steps, self._done, self._said = stage, steps, 0, time.monotonic()
        print(f"{stage} …", file=sys.stderr)

    def advance(self, steps: int) -> None:
        self._done += steps
        if time.monotonic() - self._said >= self.EVERY:
            self._said = time.monotonic()
            of = f" of {self._steps}" if self._steps else ""
            print(f"{self._stage}: {self._done}{of}", file=sys.stderr)

    def end(self) -> None:
        self._stage = ""
