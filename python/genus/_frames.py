"""Columns as a table: a DataFrame where pandas is installed."""

from __future__ import annotations

from typing import Any


def frame(columns: dict[str, Any]) -> Any:
    """A DataFrame of columns."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "a DataFrame needs pandas (pip install pandas); the same as plain columns is in columns()"
        ) from None
    return pandas.DataFrame(columns)
