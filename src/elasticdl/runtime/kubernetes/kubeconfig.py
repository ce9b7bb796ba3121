"""What is in a kubeconfig, held against what must be: its own loader only says that something is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from elasticdl.errors import InvalidValue, UnknownName, nearest

__all__ = ["Context", "Entry", "choose", "without_password"]

Entry = Mapping[str, Any]
ADVICE = "See what kubectl makes of it with: kubectl config view"


@dataclass(frozen=True)
class Context:
    """What a context leads to.

    Attributes:
      namespace: where its jobs are.
      user: the user's entry, with the credentials; empty where the context names none.
    """

    name: str
    namespace: str
    user: Entry


def choose(files: Sequence[str], name: str | None) -> Context:
    """A context of the kubeconfig; None takes the current one.

    Raises:
      InvalidValue: a file cannot be read, or something that the context needs is missing.
      UnknownName: there is no such context.
    """
    read = [(file, _read(file)) for file in files]
    where = os.pathsep.join(files)
    contexts = _entries(read, "contexts")
    currents = [str(text["current-context"]) for _, text in read if text.get("current-context")]
    name = name or (currents or [""])[0]
    if name not in contexts:
        raise _unknown_context(name, contexts, where)
    context = contexts[name].get("context")
    if not isinstance(context, dict) or not context.get("cluster"):
        raise _wrong(where, f"its context {name!r} names no cluster (`context: {{cluster: ...}}`)")
    _check_server(_member(read, where, "cluster", name, str(context["cluster"])), where)
    user: Entry = {}
    if context.get("user"):
        user = _member(read, where, "user", name, str(context["user"]))
    return Context(name, str(context.get("namespace") or "default"), user)


def without_password(address: str) -> str:
    """
    >>> without_password("https://me:secret@host:6443")
    'https://host:6443'
    """
    scheme, mark, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}" if mark else address


def _read(file: str) -> dict[str, Any]:
    import yaml

    try:
        with open(os.path.expanduser(file), encoding="utf-8") as stream:
            text = yaml.safe_load(stream)
    except (
        yaml.MarkedYAMLError
    ) as error:  # its own words show the line, which may have a token in it
        at = error.problem_mark or error.context_mark
        line = f": line {at.line + 1}, column {at.column + 1}" if at else ""
        raise _wrong(file, f"it is no YAML{line}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise _wrong(file, str(why)) from None
    if not isinstance(text, dict):
        kinds = {type(None): "nothing", list: "a list"}
        held = kinds.get(type(text), "plain text")
        raise _wrong(file, f"it holds {held}, and not `clusters:`, `users:` and `contexts:`")
    return text


def _entries(read: Sequence[tuple[str, dict[str, Any]]], plural: str) -> dict[str, Entry]:
    """By their names. Of two files the first has its way, as with kubectl."""
    found: dict[str, Entry] = {}
    for file, text in read:
        entries = text.get(plural) or []
        if not isinstance(entries, list) or not all(
            isinstance(entry, dict) and "name" in entry for entry in entries
        ):
            raise _wrong(file, f"`{plural}:` is no list of entries with names")
        for entry in entries:
            found.setdefault(str(entry["name"]), entry)
    return found


def _member(
    read: Sequence[tuple[str, dict[str, Any]]], where: str, kind: str, context: str, name: str
) -> Entry:
    """The cluster or the user of a context."""
    known = _entries(read, f"{kind}s")
    if name not in known:
        raise _wrong(
            where,
            f"the context {context!r} names the {kind} {name!r}, which is not in it. {nearest(name, known)}".rstrip(
                ". "
            ),
        )
    entry = known[name].get(kind)
    if not isinstance(entry, dict):
        raise _wrong(where, f"the {kind} {name!r} has nothing in `{kind}:`")
    return entry


def _check_server(cluster: Entry, where: str) -> None:
    server = str(cluster.get("server") or "")
    try:
        parts = urlsplit(server)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018
    except ValueError:
        is_address = False
    if not is_address:
        shown = without_password(server)
        raise _wrong(where, f"the server {shown!r} is no address (https://HOST:PORT)")


def _unknown_context(name: str, known: Mapping[str, Any], where: str) -> UnknownName:
    if not name:
        return UnknownName(
            f"The kubeconfig {where} has no current context. Choose one with --cluster=kubernetes:CONTEXT "
            f"or: kubectl config use-context CONTEXT. {nearest('', known)}".rstrip()
        )
    return UnknownName(
        f"Unknown context {name!r} in the kubeconfig {where}. {nearest(name, known)} "
        "See all with: kubectl config get-contexts"
    )


def _wrong(file: str, why: str) -> InvalidValue:
    end = why if why.endswith(("?", ".")) else f"{why}."
    return InvalidValue(f"The kubeconfig {file} cannot be used: {end} {ADVICE}")
