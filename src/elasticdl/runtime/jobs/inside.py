"""How far a training on Kubernetes is: only its run directory knows, which its head pod can read."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields, replace
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import ElasticDLError, RunError
from elasticdl.runtime.jobs.account import RUNNING, Account
from elasticdl.runtime.jobs.find import account as account_at
from elasticdl.runtime.kubernetes.client import Cluster

__all__ = ["progress_inside"]

OF_THE_RUN = ("step", "epoch", "num_epochs", "loss", "metrics", "changes", "change", "warning")


def progress_inside(cluster: Cluster, account: Account, output: str) -> Account:
    """The account with what the run directory adds. Where it cannot be read there is just less to say."""
    seen = _in_head(cluster, account, output) if account.status == RUNNING else _at(output)
    known = {field.name for field in fields(Account)}.intersection(OF_THE_RUN)
    return replace(account, **{name: seen[name] for name in known if seen.get(name) is not None})


def _in_head(cluster: Cluster, account: Account, output: str) -> dict[str, Any]:
    with contextlib.suppress(RunError, ValueError):
        argv = ["elasticdl", "jobs", "status", output, "--json"]
        code, said = cluster.exec_in_head(account.name, argv)
        found = json.loads(said[said.index("{") : said.rindex("}") + 1]) if code == 0 else {}
        return found if isinstance(found, dict) else {}
    return {}


def _at(output: str) -> dict[str, Any]:
    if "://" not in output:
        return {}  # on a volume, which only the pods see
    with contextlib.suppress(ElasticDLError):
        return vars(account_at(RunDirectory(output)))
    return {}
