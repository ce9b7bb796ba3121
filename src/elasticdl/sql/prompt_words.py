"""What the TAB key offers at the prompt: words of SQL and of ours, tables, columns, models, attributes, files.

It needs no terminal: a text before the cursor goes in, offers come out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["Names", "Offer", "offers"]


def _words(*lines: str) -> list[str]:
    return [word for line in lines for word in line.split()]


KEYWORDS = _words(
    "SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT INNER ON AS AND OR NOT NULL IS",
    "IN LIKE BETWEEN CASE WHEN THEN ELSE END DISTINCT UNION ALL WITH INSERT INTO VALUES UPDATE SET DELETE",
    "CREATE TABLE VIEW DROP ALTER DESCRIBE SHOW COUNT SUM AVG MIN MAX CAST ASC DESC EXISTS",
)
CLAUSES = _words(
    "TO TRAIN PREDICT EVALUATE EXPLAIN LABEL COLUMN USING MODEL MODELS REPLACE OPTIONS"
)
FUNCTIONS = _words(
    "DENSE SPARSE BUCKET CROSS CATEGORY_ID SEQ_CATEGORY_ID CATEGORY_HASH VOCABULARY EMBEDDING INDICATOR"
)
MODELS = _words(
    "DNNClassifier DNNRegressor LinearClassifier LinearRegressor WideAndDeepClassifier WideAndDeepRegressor",
    "classifier.DNN classifier.Linear classifier.WideAndDeep",
    "regressor.DNN regressor.Linear regressor.WideAndDeep",
)
ATTRIBUTES = {
    "TRAIN": _words(
        "hidden_units learning_rate train.epoch train.batch_size train.seed validation.select validation.split",
        "dropout activation batch_norm l2 optimizer",
    ),
    "PREDICT": _words("predict.probabilities predict.overwrite predict.batch_size"),
    "EVALUATE": _words("evaluate.overwrite evaluate.batch_size"),
    "EXPLAIN": _words("explain.overwrite explain.repeats explain.rows explain.plot"),
}
FILES = (".csv", ".parquet", ".json", ".tsv", ".db", ".duckdb")

_WORD = re.compile(r"[\w.]*$")
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_AFTER_TABLE = {"FROM", "JOIN", "TABLE", "UPDATE", "INTO"}
_AFTER_MODEL = {"USING", "MODEL", "EVALUATE", "EXPLAIN"}


class Names(Protocol):
    """The names that there are, as they are now."""

    def tables(self) -> Sequence[str]: ...
    def columns(self, table: str) -> Sequence[str]: ...
    def models(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Offer:
    """`text` in place of the last `length` characters; `kind` says what it is."""

    text: str
    length: int
    kind: str


def offers(before: str, names: Names) -> Iterator[Offer]:
    """What may stand at the cursor, the likeliest first."""
    outside = _QUOTED.sub("''", before)
    if "'" in outside.replace("''", ""):
        yield from _files(before.rpartition("'")[2])
        return
    match = _WORD.search(before)
    word = match[0] if match else ""
    seen: set[str] = set()
    for kind, texts in _candidates(outside[: len(outside) - len(word)], word, names).items():
        for text in texts:
            shown = text.lower() if kind == "keyword" and word.islower() else text
            if shown.lower().startswith(word.lower()) and shown != word and shown not in seen:
                seen.add(shown)
                yield Offer(shown, len(word), kind)


def _candidates(before: str, word: str, names: Names) -> Mapping[str, Iterable[str]]:
    words = re.findall(r"\w+|[^\w\s]", before.upper())
    last = words[-1] if words else ""
    verb = next((one for one in reversed(words) if one in ATTRIBUTES), None)
    if "." in word and verb is None:
        table = word.rpartition(".")[0]
        return {"column": [f"{table}.{column}" for column in names.columns(table)]}
    if last == "TRAIN":
        return {"model": MODELS, "trained": names.models()}
    if last in _AFTER_MODEL and (verb or last == "MODEL"):
        return {"trained": names.models()}
    if last in _AFTER_TABLE and not verb:
        return {"table": names.tables()}
    if verb and _in_attributes(words, verb):
        return {"attribute": [f"{name}=" for name in ATTRIBUTES[verb]], "keyword": CLAUSES}
    mentioned = [table for table in names.tables() if re.search(rf"\b{re.escape(table)}\b", before)]
    columns = [column for table in mentioned for column in names.columns(table)]
    if verb:
        functions = FUNCTIONS if "COLUMN" in words else []
        return {
            "column": columns,
            "keyword": [*CLAUSES, "WITH", "INTO", "FOR"],
            "function": functions,
        }
    return {"column": columns, "keyword": [*KEYWORDS, *CLAUSES], "table": names.tables()}


def _in_attributes(words: Sequence[str], verb: str) -> bool:
    """Whether the cursor is where a key is, in the WITH of a clause."""
    clause = words[len(words) - 1 - words[::-1].index(verb) :]
    heads = [word for word in clause if word in ("WITH", "COLUMN", "LABEL", "INTO", "USING")]
    return bool(heads) and heads[-1] == "WITH" and clause[-1] in ("WITH", ",")


def _files(begun: str) -> Iterator[Offer]:
    """Data files whose name begins so, and directories."""
    directory, _, name = begun.rpartition("/")
    where = Path(f"{directory}/" if directory or begun.startswith("/") else ".")
    try:
        found = sorted(where.iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(name) and not (path.name.startswith(".") and not name):
            if path.is_dir():
                yield Offer(f"{path.name}/", len(name), "directory")
            elif path.suffix.lower() in FILES:
                yield Offer(path.name, len(name), "file")
