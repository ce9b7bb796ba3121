"""YAML as configs are written in it: numbers as people write them, no key twice, faults with their line."""

from __future__ import annotations

import re
from typing import Any

import yaml

from elasticdl.errors import InvalidValue

__all__ = ["dump_yaml", "parse_yaml"]

MOST_VALUES = 200_000

# PyYAML goes by YAML 1.1, for which `1e-4` and `1.5e3` are text. YAML 1.2 has them as numbers.
_EXPONENT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+")


class _Loader(yaml.SafeLoader):
    """Plain values only, and every key once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float, bool, type(None))) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice. Keep one", key_node.start_mark
                )
            seen.add(key if key.__hash__ else id(key))
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(  # type: ignore[no-untyped-call]
    "tag:yaml.org,2002:float", re.compile(f"^(?:{_EXPONENT.pattern})$"), list("-+.0123456789")
)


def _num_values(value: Any, most: int, above: tuple[int, ...] = ()) -> int:
    """How many values there are, written out; counts no further than `most`."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in above:
        raise ValueError("Circular reference, an alias inside of what it stands for")
    count = 1
    for inner in value.values() if isinstance(value, dict) else value:
        if count >= most:
            break
        count += _num_values(inner, most - count, (*above, id(value)))
    return count


def parse_yaml(text: bytes | str, what: str) -> Any:
    """The value of a YAML text.

    >>> parse_yaml("learning_rate: 1e-4", "config.yaml")
    {'learning_rate': 0.0001}

    Raises `InvalidValue`, with line and column, for what is no YAML or has a key twice.
    """
    loader = None
    try:
        loader = _Loader(text)  # reads the beginning already
        value = loader.get_single_data()
        if _num_values(value, MOST_VALUES) >= MOST_VALUES:
            raise InvalidValue(
                f"{what} has more than {MOST_VALUES:,} values, with what its aliases stand for. Make it smaller."
            )
        return value
    except yaml.MarkedYAMLError as error:
        raise InvalidValue(f"{what} is not valid YAML{_place(error)}: {_words(error)}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidValue(f"{what} is not plain text in UTF-8. Save it as such.") from error
    except ValueError as error:  # a date such as 2024-13-45
        raise InvalidValue(
            f"{what} has a value that YAML cannot read: {error}. Put quotes around it if it is text."
        ) from error
    except RecursionError as error:
        raise InvalidValue(f"{what} is nested too deeply. Make it flatter.") from error
    finally:
        if loader is not None:
            loader.dispose()  # type: ignore[no-untyped-call]


def dump_yaml(value: Any) -> str:
    """YAML that `parse_yaml` reads to the same value, keys in their order."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""


def _words(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "it cannot be read"
    for part, words in _MEANINGS.items():
        if part in problem:
            return words
    return f"{problem}."


_MEANINGS = {
    "\\t": "a tab stands where spaces belong. Indent with spaces.",
    "cannot start any token": "a value begins with a sign of YAML's own. Put quotes around the value.",
    "mapping values are not allowed": (
        "a second colon stands in one line, or a line is indented too far. Write one `key: value` a line, "
        "and put quotes around a value with a colon in it."
    ),
    "expected <block end>": "this line is not indented like the lines above it. Indent equal keys equally.",
    "could not find expected ':'": "there is no colon behind a key. Write `key: value`.",
    "unexpected end of stream": "a quote is not closed. Close it.",
    "expected ',' or": "a bracket is not closed, or a comma is missing.",
    "could not determine a constructor": (
        "it has a tag (!...), and tags are not read. Write plain values, lists and sections."
    ),
    "unhashable key": "a list or section stands where a key belongs. Write `key: value`.",
    "but found another document": "it has more than one document (---). Keep one.",
}
