"""The reader of pages itself: what it does not understand, or does not see, fails."""

from __future__ import annotations

import pytest

from .blocks import Block
from .reader import Reader


def block(language: str, text: str, **more: str) -> Block:
    return Block(page="page.md", line=1, language=language, text=text, **more)


@pytest.mark.parametrize(
    "unknown",
    [
        block("yaml", "a: 1\n"),
        block("bash", "curl example.org\n"),
        block("bash", "make coffee\n"),
        block("bash", "kubectl apply -f nowhere.yaml\n"),
        block("bash", "pip install -e '.[coffee]'\n"),
        block("bash", "elasticdl --version\n", hint="perhaps", value="1"),
        block("bash", "elasticdl --version\n", hint="fails", value="2"),
        block("bash", "elasticdl trian\n"),
        block("json", "{\n"),
        block("text", "what nothing printed\n"),
    ],
)
def test_block_fails_when_it_is_not_understood_or_not_true(unknown: Block) -> None:
    with pytest.raises((AssertionError, ValueError)):
        Reader().follow(unknown)


def test_shown_output_may_differ_in_numbers_and_leave_parts_out() -> None:
    reader = Reader()
    reader.follow(block("python", "print('took', 1.5, 's in', 'all')\n"))
    reader.follow(block("text", "took 2.25 s ... all\n"))
    with pytest.raises(AssertionError, match="is not in"):
        reader.follow(block("text", "took 2.25 m\n"))
