"""KubeRay's own schema of a RayJob, where it is at hand: manifests are held against it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "schemas" / "ray.io_rayjobs.yaml"
MISSING = (
    "needs KubeRay's CustomResourceDefinition of RayJob: give the path of ray.io_rayjobs.yaml "
    "in ELASTICDL_RAYJOB_CRD"
)


def crd_path() -> Path | None:
    """Where the definition is: named by ELASTICDL_RAYJOB_CRD, or beside the project."""
    path = Path(os.environ.get("ELASTICDL_RAYJOB_CRD", BESIDE))
    return path if path.is_file() else None


@functools.cache
def rayjob_validator() -> Draft202012Validator | None:
    """A validator that also refuses fields that the definition does not have."""
    path = crd_path()
    if path is None:
        return None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in Python it takes 20 times as long
    definition = yaml.load(path.read_text(), Loader=loader)
    (version,) = [each for each in definition["spec"]["versions"] if each["name"] == "v1"]
    return Draft202012Validator(_closed(version["schema"]["openAPIV3Schema"]))


def complaints(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with a RayJob: the place in it, and words."""
    validator = rayjob_validator()
    return [] if validator is None else sorted(_complaints(validator, manifest))


def unknown_fields(manifest: dict[str, Any]) -> list[str]:
    return [place for place, words in complaints(manifest) if words == "unknown field"]


def _complaints(validator: Draft202012Validator, manifest: Any) -> Iterator[tuple[str, str]]:
    for error in validator.iter_errors(manifest):
        place = ".".join(str(part) for part in error.absolute_path)
        if error.validator == "additionalProperties" and error.validator_value is False:
            for field in error.instance.keys() - error.schema["properties"].keys():
                yield f"{place}.{field}".lstrip("."), "unknown field"
        else:
            yield place, error.message


def _closed(schema: Any) -> Any:
    """OpenAPI's words in JSON Schema's, and no other fields than the named ones."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _closed(value) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:
        # These are names of fields, which may be called "properties" or "nullable" themselves.
        out["properties"] = {name: _closed(each) for name, each in schema["properties"].items()}
        out.setdefault("additionalProperties", False)
    if schema.get("nullable") is True:
        out["type"] = [schema["type"], "null"]
    if schema.get("x-kubernetes-int-or-string") is True:
        out["type"] = ["integer", "string"]
    return out
