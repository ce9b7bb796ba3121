"""Writes docs/reference/command_line.md from the options themselves: `python docs/generate.py`."""

from __future__ import annotations

from pathlib import Path

import click

from elasticdl.cli.main import cli
from elasticdl.cli.options import METAVARS, NO_DASHBOARD
from elasticdl.job.config import Option, options

PAGE = Path(__file__).parent / "reference" / "command_line.md"

HEAD = """\
# Command line

This page is made by `python docs/generate.py` from the table of options in `src/elasticdl/job/config.py`.

```bash
elasticdl --help
elasticdl train --help
elasticdl --version
```

- `--num_epochs=2`, `--num_epochs 2` and `--num-epochs=2` are the same.
- A flag of true or false may stand alone: `--debug` is `--debug=true`.
- `NAME=VALUE,...` holds literals, separated by commas or semicolons: `hidden_units=[10, 20], activation='relu'`.
  Nothing in them is evaluated.
- The old entry point works too: `python -m elasticdl.python.elasticdl.client train ...`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | something failed while running: your code, the loss, the disk |
| 2 | what was given is wrong: a flag, a name, a path, the data |
| 130 | stopped with Ctrl-C |
| 143 | stopped with SIGTERM |
"""

CLUSTER = """\
With `--distribution_strategy=Local` the job runs in this process. With `AllreduceStrategy` it runs in
`--num_workers` processes on Ray. There are no parameter servers: `ParameterServerStrategy` is refused. The other
flags here belong to a cluster. They are accepted with `Local`, so that a command need not be changed, and said to
have no effect.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    parts += [_job(command) for command in ("train", "evaluate", "predict")]
    parts += [
        _plain(["run"]),
        _plain(["scale"]),
        _plain(["dashboard"]),
        _plain(["status"]),
        _plain(["top"]),
        _plain(["compare"]),
        _plain(["plot"]),
        _plain(["jobs", "list"]),
        _plain(["jobs", "status"]),
        _plain(["jobs", "logs"]),
        _plain(["jobs", "stop"]),
        _plain(["jobs", "scale"]),
        _plain(["jobs", "wait"]),
        _plain(["new"]),
        _plain(["schema"]),
        _plain(["sql"]),
        _plain(["sql", "serve"]),
        _plain(["sql", "export"]),
        _plain(["data", "prepare"]),
        _plain(["data", "inspect"]),
        _plain(["model", "show"]),
        _plain(["zoo", "list"]),
        _plain(["completion"]),
    ]
    return "\n".join(parts)


def _job(name: str) -> str:
    lines = [f"## elasticdl {name}", "", f"{_find([name]).help}", ""]
    groups: dict[str, list[Option]] = {}
    for option in (*options(name), NO_DASHBOARD):
        groups.setdefault(option.group, []).append(option)
    for group in sorted(groups, key="Cluster".__eq__):
        lines += [f"### {group} ({name})", ""]
        if group in ("Cluster", "Kubernetes") and name != "train":
            lines += [f"Those of [train](#{group.lower()}-train).", ""]
            continue
        lines += [CLUSTER] if group == "Cluster" else []
        lines += ["| flag | value | default | meaning |", "|---|---|---|---|"]
        lines += [_row(option) for option in groups[group]]
        lines += [""]
    return "\n".join(lines)


def _row(option: Option) -> str:
    flags = ", ".join(f"`--{name}`" for name in (option.name, *option.aliases))
    value = " or ".join(f"`{c}`" for c in option.choices) or f"`{METAVARS[option.type]}`"
    default = "" if option.default is None else f"`{str(option.default).replace('False', 'false')}`"
    return _cells(flags, value, default.replace("True", "true"), option.help)


def _plain(path: list[str]) -> str:
    command = _find(path)
    lines = [f"## elasticdl {' '.join(path)}", "", _text(command.help or ""), ""]
    lines += ["| argument | default | meaning |", "|---|---|---|"]
    for param in command.params:
        if isinstance(param, click.Option):
            help_ = (param.help or "").partition("[default")[0].strip()
            default = "required" if param.required else _default(param)
            value = "" if param.is_flag else f"={param.metavar}"
            lines.append(_cells(f"`{param.opts[0]}{value}`", default, help_))
        else:
            name = f"`{param.metavar or (param.name or '').upper()}`"
            lines.append(_cells(name, "required" if param.required else "", ""))
    return "\n".join([*lines, ""])


def _default(param: click.Option) -> str:
    words = (param.help or "").partition("[default: ")[2].rstrip("]")
    return f"`{words}`" if words and words == param.default else words


def _text(help_: str) -> str:
    return "\n".join(line.strip() for line in help_.strip().splitlines())


def _cells(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _find(path: list[str]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
