"""`elasticdl model show` of a Keras file or a SavedModel that no training of ours wrote."""

from __future__ import annotations

import shlex
from typing import Any

from elasticdl.cli.model_show import pairs, table, tensors

__all__ = ["bare_text"]


def bare_text(found: dict[str, Any]) -> str:
    """What is known of it, in words."""
    known = [
        ("model", found["path"]),
        ("format", found["format"]),
        ("class", found.get("model", "")),
        ("name", found.get("name", "")),
        ("size", f"{found['size']:,} bytes"),
        ("made", found.get("created", "")),
        ("made with", f"Keras {found['keras_version']}" if found.get("keras_version") else ""),
        ("loss", found.get("loss", "")),
        ("optimizer", found.get("optimizer", "")),
        ("code", _code(found)),
        ("fingerprint", found.get("fingerprint", "")),
        ("signatures", _signatures(found)),
    ]
    files = {name: [f"{size:,}"] for name, size in found.get("files", {}).items()}
    parts = [
        pairs(known),
        tensors("input", found.get("inputs", {})),
        table("file", files, ["bytes"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _code(found: dict[str, Any]) -> str:
    if "holds_code" not in found:
        return ""
    return "a Lambda layer, which is run with --trust only" if found["holds_code"] else "none"


def _signatures(found: dict[str, Any]) -> str:
    if found["format"] != "SavedModel":
        return ""
    return f"see: saved_model_cli show --all --dir {shlex.quote(found['path'])}"
