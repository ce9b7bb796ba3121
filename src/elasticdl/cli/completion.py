"""`elasticdl completion`: the script that makes the TAB key know the commands and flags."""

from __future__ import annotations

import click

from elasticdl.errors import UnknownName, nearest

__all__ = ["completion"]

INSTALL = {
    "bash": (
        "To have it in every new shell, put this line into ~/.bashrc:",
        'eval "$(elasticdl completion bash)"',
    ),
    "zsh": (
        "To have it in every new shell, put this line into ~/.zshrc, after compinit:",
        'eval "$(elasticdl completion zsh)"',
    ),
    "fish": (
        "To have it in every new shell, run this once:",
        "elasticdl completion fish > ~/.config/fish/completions/elasticdl.fish",
    ),
}


@click.command()
@click.argument("shell", metavar="[bash|zsh|fish]", shell_complete=lambda *_: list(INSTALL))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    The script begins with a comment that says how to install it.
    """
    from click.shell_completion import get_completion_class

    from elasticdl.cli.main import COMPLETE_VARIABLE, PROGRAM, cli

    complete = get_completion_class(shell) if shell in INSTALL else None
    if complete is None:
        raise UnknownName(f"Unknown shell {shell!r}. {nearest(shell, INSTALL)}")
    for line in INSTALL[shell]:
        click.echo(f"# {line}")
    click.echo(complete(cli, {}, PROGRAM, COMPLETE_VARIABLE).source())
