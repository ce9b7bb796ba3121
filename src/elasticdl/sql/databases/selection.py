"""What a SELECT reads: the tables in it, and whether its rows are rows of one table.

The SELECT itself is never written anew: a row's id is put into its text, and all else stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elasticdl.sql.databases.names import unquoted

__all__ = ["Selection", "read_selection"]


@dataclass(frozen=True)
class Selection:
    """A SELECT that was looked at.

    Attributes:
      tables: every table that is named in it, each by its parts.
      source: the one table whose rows it gives; None if that cannot be said.
      alias: what the SELECT calls that table.
      fault: why its rows are not rows of one table; empty if they are.
    """

    sql: str
    dialect: str
    tables: Sequence[tuple[str, ...]] = ()
    source: tuple[str, ...] | None = None
    alias: str = ""
    fault: str = ""

    def with_columns(self, expressions: Sequence[str]) -> str:
        """The SELECT with these columns too: first, or for MySQL, which wants a star in front, last."""
        added = ", ".join(expressions)
        tokens = _top_level(self.sql, self.dialect)
        names = [token.token_type.name for token in tokens]
        if self.dialect == "mysql":
            place = tokens[names.index("FROM")].start
            return f"{self.sql[:place]}, {added} {self.sql[place:]}"
        if "SELECT" not in names:  # DuckDB's FROM table WHERE ...
            return f"SELECT {added}, * {self.sql}"
        at = names.index("SELECT")
        at += names[at + 1 : at + 2] == ["ALL"]
        place = tokens[at].end + 1
        return f"{self.sql[:place]} {added}, {self.sql[place:].lstrip(' ')}"

    def with_source(self, text: str) -> str:
        """The SELECT from another table of the same columns, under the name that the first one had."""
        tokens = _top_level(self.sql, self.dialect)
        at = [token.token_type.name for token in tokens].index("FROM") + 1
        first, last = tokens[at], tokens[at + 2 * len(self.source or ()) - 2]
        following = tokens[at + 2 * len(self.source or ()) - 1 :]
        has_alias = bool(following) and (
            following[0].token_type.name in ("ALIAS", "VAR", "IDENTIFIER")
            and following[0].text.upper() not in ("PARTITION", "FOR", "USE", "FORCE", "IGNORE")
        )
        alias = "" if has_alias else f" AS {self.sql[last.start : last.end + 1]}"
        return self.sql[: first.start] + text + alias + self.sql[last.end + 1 :]


def read_selection(sql: str, dialect: str) -> Selection:
    """Look at a SELECT, as far as it can be understood without the database."""
    import sqlglot
    from sqlglot import exp

    sql = sql.strip().rstrip(";").rstrip()
    try:
        tree: Any = sqlglot.parse_one(sql, dialect=dialect)
    except (sqlglot.ParseError, sqlglot.TokenError, RecursionError):
        return Selection(sql, dialect, fault="it is of a form that is not understood")
    names = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    tables = [
        parts for table in tree.find_all(exp.Table) if (parts := _parts(table, dialect, names))
    ]
    fault = _fault(tree)
    if fault:
        return Selection(sql, dialect, tables, fault=fault)
    table = _from(tree).this
    source = _parts(table, dialect, names)
    if source is None:
        return Selection(sql, dialect, tables, fault="it does not read a table itself")
    alias = table.args.get("alias")
    name = _meant(alias.this, dialect) if alias is not None and alias.this else source[-1]
    return Selection(sql, dialect, tables, source, name)


def _from(tree: Any) -> Any:
    return tree.args.get("from_") or tree.args.get("from")


def _parts(table: Any, dialect: str, shadowed: set[str]) -> tuple[str, ...] | None:
    """The parts of a table's name; None for what is none, such as a function or a WITH query's name."""
    from sqlglot import exp

    if not isinstance(table, exp.Table) or not all(
        isinstance(part, exp.Identifier) for part in table.parts
    ):
        return None
    parts = [_meant(part, dialect) for part in table.parts]
    return None if len(parts) == 1 and parts[0].lower() in shadowed else tuple(parts)


def _meant(name: Any, dialect: str) -> str:
    return str(name.name if name.args.get("quoted") else unquoted(dialect, name.name))


def _fault(tree: Any) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return "it is not one plain SELECT"
    source = _from(tree)
    if source is None:
        return "it reads no table"
    words = {
        "joins": "a JOIN",
        "laterals": "a LATERAL",
        "group": "GROUP BY",
        "having": "HAVING",
        "distinct": "DISTINCT",
    }
    for part, word in words.items():
        if tree.args.get(part):
            return f"it has {word}"
    if not isinstance(source.this, exp.Table):
        return "it reads no table itself"
    if source.this.args.get("joins") or source.this.args.get("pivots"):
        return "it reads more than a table"
    return _fault_of_columns(tree.expressions)


def _fault_of_columns(columns: Sequence[Any]) -> str:
    from sqlglot import exp

    for column in columns:
        for node in column.walk(prune=lambda node: isinstance(node, (exp.Subquery, exp.Window))):
            if isinstance(node, exp.AggFunc):
                return f"it has {node.sql_name()}"
            if isinstance(node, (exp.Unnest, exp.Explode, exp.UDTF, exp.GenerateSeries)):
                return "a row of the table can become several"
    return ""


def _top_level(sql: str, dialect: str) -> list[Any]:
    """The tokens outside of all parentheses."""
    import sqlglot

    depth, kept = 0, list[Any]()
    for token in sqlglot.tokenize(sql, read=dialect):
        kind = token.token_type.name
        if kind in ("R_PAREN", "R_BRACKET", "R_BRACE"):
            depth -= 1
        if depth == 0 and not (kind == "FROM" and kept and kept[-1].token_type.name == "DISTINCT"):
            kept.append(token)
        if kind in ("L_PAREN", "L_BRACKET", "L_BRACE"):
            depth += 1
    return kept
