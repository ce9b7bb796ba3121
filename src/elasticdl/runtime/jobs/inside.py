"""How far a training on Kubernetes is: only its run directory knows, which its head pod can read."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import fields, replace
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import ElasticDLError, RunError
from elasticdl.runtime.jobs.account import RUNNING, Account
from elasticdl.runtime.jobs.find import account as account_at
from elasticdl.runtime.jobs.jobs import Say
from elasticdl.runtime.kubernetes.client import Cluster
from elasticdl.runtime.kubernetes.patience import NOTICED_S, said_after

__all__ = ["progress_inside"]

ANSWER_S = 15.0
"""How long the head pod may take: who asks how a job is does not want to wait."""
TOO_LONG = 124
OF_THE_RUN = ("step", "epoch", "num_epochs", "loss", "metrics", "changes", "change", "warning")


def progress_inside(cluster: Cluster, account: Account, output: str, say: Say) -> Account:
    """The account with what the run directory adds. Where it cannot be read there is just less to say."""
    seen = _in_head(cluster, account, output, say) if account.status == RUNNING else _at(output)
    known = {field.name for field in fields(Account)}.intersection(OF_THE_RUN)
    return replace(account, **{name: seen[name] for name in known if seen.get(name) is not None})


def _in_head(cluster: Cluster, account: Account, output: str, say: Say) -> dict[str, Any]:
    argv = ["elasticdl", "jobs", "status", output, "--json"]
    with (
        contextlib.suppress(RunError, ValueError),
        said_after(NOTICED_S, say, "Asking its head pod how far it is ..."),
    ):
        code, said = cluster.exec_in_head(account.name, argv, ANSWER_S)
        if code == TOO_LONG:
            say(
                f"Its head pod does not answer within {ANSWER_S:g} s, so its progress is not known."
            )
        found = json.loads(said[said.index("{") : said.rindex("}") + 1]) if code == 0 else {}
        return _with_numbers(found) if isinstance(found, dict) else {}
    return {}


def _with_numbers(found: dict[str, Any]) -> dict[str, Any]:
    """JSON has null for a number that is none."""
    metrics = found.get("metrics")
    if isinstance(metrics, dict):
        found["metrics"] = {name: math.nan if n is None else n for name, n in metrics.items()}
    return found


def _at(output: str) -> dict[str, Any]:
    if "://" not in output:
        return {}  # on a volume, which only the pods see
    with contextlib.suppress(ElasticDLError):
        return vars(account_at(RunDirectory(output)))
    return {}
