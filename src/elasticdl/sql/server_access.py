"""Who may ask the server, and for which database."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass, field

from elasticdl.errors import InvalidValue

__all__ = ["Access", "Refused", "check_address", "is_loopback"]


class Refused(Exception):
    """A request that is not allowed. `wrong_token` tells a stranger from a known one who asks for too much."""

    def __init__(self, message: str, *, wrong_token: bool = False) -> None:
        super().__init__(message)
        self.wrong_token = wrong_token


@dataclass(frozen=True)
class Access:
    """What clients may do.

    Attributes:
      token: what a client has to show; None for nothing.
      db: the server's own database.
      allow_any_db: whether a client may name another one.
    """

    token: str | None = field(default=None, repr=False)
    db: str | None = field(default=None, repr=False)
    allow_any_db: bool = False

    def check(self, shown: str) -> None:
        """Raises Refused unless the token that a client shows is the server's."""
        if self.token is not None and not _same(shown, self.token):
            what = "The token is not the server's" if shown else "The server asks for a token"
            raise Refused(
                f"{what}. Set SQLFLOW_USER_TOKEN to the one that it was started with.",
                wrong_token=True,
            )

    def database(self, asked: str) -> str | None:
        """The database for a request, or Refused when the client may not choose it."""
        asked = asked.strip()
        if not asked or (self.db is not None and _same(asked, self.db.strip())):
            return self.db
        if self.allow_any_db:
            return asked
        raise Refused(
            "The request names a database of its own, and this server does not open those. Unset SQLFLOW_DATASOURCE to "
            "use the server's, or start the server with --allow_any_db."
        )


def check_address(host: str, *, token: str | None, insecure: bool) -> None:
    """Raises InvalidValue for an address that others can reach when nothing keeps them out."""
    if is_loopback(host) or token or insecure:
        return
    raise InvalidValue(
        f"Invalid --host {host!r}: other machines can reach it, and whoever asks may run any SQL. Give a --token, or "
        "--insecure if something else keeps strangers out."
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _same(one: str, other: str) -> bool:
    """Takes as long for a near miss as for a far one."""
    return hmac.compare_digest(one.encode(), other.encode())
