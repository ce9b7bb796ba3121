"""What MySQL or MariaDB says when it refuses, or is not there."""

from __future__ import annotations

import re

from elasticdl.sql.databases.failures import Trouble

__all__ = ["trouble"]

_KINDS = {
    "table": (1146,),
    "column": (1054,),
    "exists": (1050,),
    "database": (1049,),
    "login": (1044, 1045, 1130, 1698, 2059, 2061),
    "host": (1040, 1203, 2002, 2003, 2005),
    "lost": (
        0,
        1053,
        1077,
        1152,
        1153,
        1158,
        1159,
        1160,
        1161,
        1184,
        1927,
        2006,
        2013,
        2014,
        2027,
        2055,
        4031,
    ),
    "locked": (1205, 1213),
    "stopped": (1317,),
    "statement": (1305,),
    "data": (
        1048,
        1062,
        1264,
        1265,
        1292,
        1364,
        1365,
        1366,
        1367,
        1406,
        1451,
        1452,
        1690,
        3819,
        4025,
    ),
}
_BY_CODE = {code: kind for kind, codes in _KINDS.items() for code in codes}
_NAME = re.compile(r"(?:Table|column) '(.+?)'")


def trouble(error: Exception) -> Trouble:
    """By the number that comes with an error."""
    import pymysql.err

    code, words = (*error.args, "")[:2] if error.args else (0, "")
    if not isinstance(code, int):
        code, words = 0, str(error)
    kind = _BY_CODE.get(code)
    if kind is None:
        broken = (pymysql.err.DataError, pymysql.err.IntegrityError)
        plain = (pymysql.err.ProgrammingError, pymysql.err.NotSupportedError)
        kind = (
            "data"
            if isinstance(error, broken)
            else "statement"
            if isinstance(error, plain)
            else "other"
        )
    match = _NAME.search(str(words))
    return Trouble(kind, str(words) or "the connection is closed", match[1] if match else "")
