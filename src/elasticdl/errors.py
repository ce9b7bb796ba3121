"""Every error that ElasticDL raises on purpose.

    ElasticDLError
    ├── UserError                      what the user gave is wrong      exit code 2
    │   ├── InvalidValue (ValueError)      a flag, parameter or value
    │   ├── UnknownName (LookupError)      a name that does not exist, with the nearest that does
    │   │   └── UnknownKey (AttributeError)    a key that a config does not have
    │   ├── NotFound (FileNotFoundError)   a file or directory
    │   ├── OutputExists (FileExistsError) an output that would be overwritten
    │   ├── MissingPackage (ImportError)   an optional package, with its pip line
    │   ├── ContractError (TypeError)      a model file that breaks the contract
    │   ├── StatementError (ValueError)    a SQL statement, with the place in it
    │   └── DataError (ValueError)         records that are empty, missing or of the wrong form
    │       └── CorruptData                bytes that fail their checksum or end too early
    └── RunError                       what failed while running         exit code 1
        ├── NonFiniteLoss (ArithmeticError)
        ├── StorageFailure (OSError)       no space, no permission, a failing disk
        ├── Stopped                        Ctrl-C, SIGTERM or a client that went: exit code 130 or 143
        └── AuditFailure                   a record was not applied exactly once

Each also derives from the built-in that fits, so `except FileNotFoundError` works as a Python
programmer expects. A message says what was wrong, what was received and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AuditFailure",
    "ContractError",
    "CorruptData",
    "DataError",
    "ElasticDLError",
    "InvalidValue",
    "MissingPackage",
    "NonFiniteLoss",
    "NotFound",
    "OutputExists",
    "RunError",
    "StatementError",
    "Stopped",
    "StorageFailure",
    "UnknownKey",
    "UnknownName",
    "UserError",
    "near_match",
    "nearest",
    "reason",
]


class ElasticDLError(Exception):
    """The root of the tree."""

    exit_code = 1
    is_failure = True
    """Whether it is shown as an error: that Ctrl-C left a job running is none."""

    def __str__(self) -> str:
        # An OSError with a number would put `[Errno 28]` in front of the message.
        return str(self.args[-1]) if isinstance(self, OSError) and self.args else super().__str__()


class UserError(ElasticDLError):
    """What the user gave is wrong: nothing was run."""

    exit_code = 2


class InvalidValue(UserError, ValueError):
    """A flag, parameter or value of the wrong form."""


class UnknownName(UserError, LookupError):
    """A name that does not exist."""


class UnknownKey(UnknownName, AttributeError):
    """A key that a config does not have, asked for as an attribute."""


class NotFound(UserError, FileNotFoundError):
    """A file or directory that does not exist."""


class OutputExists(UserError, FileExistsError):
    """An output that would be overwritten."""


class MissingPackage(UserError, ImportError):
    """An optional package that is not installed."""


class ContractError(UserError, TypeError):
    """A model file that breaks the contract."""


class StatementError(UserError, ValueError):
    """A SQL statement that cannot be run.

    Attributes:
      message: what is wrong and what to do.
      start, end: the place in the text, in characters; both None when there is none.
    """

    def __init__(self, message: str, start: int | None = None, end: int | None = None) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end


class DataError(UserError, ValueError):
    """Data that is empty, missing or of the wrong form."""


class CorruptData(DataError):
    """Bytes that fail their checksum or end too early."""


class RunError(ElasticDLError):
    """Something failed while running."""


class NonFiniteLoss(RunError, ArithmeticError):
    """The loss became NaN or infinite."""


class StorageFailure(RunError, OSError):
    """Writing or reading failed below us: no space, no permission, a failing disk."""


class Stopped(RunError):
    """A statement that Ctrl-C, SIGTERM or a client that went away ended before its time."""

    exit_code = 130

    def __init__(self, message: str, status: str = "interrupted") -> None:
        super().__init__(message)
        if status == "preempted":
            self.exit_code = 143


class AuditFailure(RunError):
    """A record was not applied exactly once in an epoch."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that helps with a mistyped name: the nearest match, or all that are known.

    >>> nearest("learning_rat", ["learning_rate", "hidden_units"])
    "Did you mean 'learning_rate'?"
    >>> nearest("x", ["alpha", "beta"])
    'Known: alpha, beta.'
    >>> nearest("x", [])
    ''
    """
    names = sorted(set(known))
    if match := near_match(name, names):
        return f"Did you mean {match!r}?"
    shown = ", ".join(names[:20])
    return f"Known: {shown}{', ...' if len(names) > 20 else ''}." if names else ""


def near_match(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant, capital letters aside.

    >>> near_match("sgdd", ["SGD", "Adam"])
    'SGD'
    """
    by_lower = {other.lower(): other for other in sorted(known)}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[matches[0]] if matches else None


def reason(error: BaseException) -> str:
    """What somebody else's error says, to stand in a sentence of ours.

    >>> reason(OSError(13, "Permission denied", "x.csv"))
    'Permission denied'
    >>> reason(ValueError("It is wrong."))
    'It is wrong'
    """
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).strip().rstrip(".")
