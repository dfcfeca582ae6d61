"""Completion for shells, made from the parser's own words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """What the shell reads: `berth completion bash >> ~/.bashrc` and the like."""
    made = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return made[shell](dict(_commands(parser)))


Words = dict[str, tuple[str, list[str]]]


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, tuple[str, list[str]]]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for name, below in action.choices.items():
                yield name, (helps.get(name, ""), list(_words(below)))


def _words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if action.choices:
            yield from map(str, action.choices)


def _bash(commands: Words) -> str:
    cases = "\n".join(
        f'    {name}) words="{" ".join(words)}" ;;' for name, (_, words) in commands.items()
    )
    return f"""_berth() {{
  local words current="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)}" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _berth berth
"""


def _zsh(commands: Words) -> str:
    names = "\n".join(
        f"    '{name}:{told.replace(chr(39), '’').replace(':', ',')}'"
        for name, (told, _) in commands.items()
    )
    cases = "\n".join(
        f"    {name}) compadd -- {' '.join(words)} ;;" for name, (_, words) in commands.items()
    )
    return f"""#compdef berth
_berth() {{
  local -a commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2]" in
{cases}
  esac
  _files
}}
compdef _berth berth
"""


def _fish(commands: Words) -> str:
    lines = []
    for name, (told, words) in commands.items():
        said = told.replace("'", "’")
        lines.append(f"complete -c berth -n __fish_use_subcommand -a {name} -d '{said}'")
        below = f"-n '__fish_seen_subcommand_from {name}'"
        lines += [
            f"complete -c berth {below} -l {word[2:]}"
            if word.startswith("--")
            else f"complete -c berth {below} -s {word[1:]}"
            if word.startswith("-")
            else f"complete -c berth {below} -a {word}"
            for word in words
        ]
    return "\n".join(lines) + "\n"
