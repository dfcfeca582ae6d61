"""The words of the command line; completion is made from them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from berthctl.outcomes import DONE, PERMANENT, RETRYABLE, USAGE

GOALS = ("usable", "allocated", "running", "released")
SHELLS = ("bash", "zsh", "fish")
ENDS = f"""exit codes:
  {DONE}  done, or ready
  {USAGE}  the command line or the configuration is not right
  {RETRYABLE}  not yet: the same command may succeed later
  {PERMANENT}  no: somebody has to change something first
"""


def value(text: str) -> tuple[str, Any]:
    """`gpus=2` as ("gpus", 2): JSON where it reads as JSON, else a text."""
    name, equals, given = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name, json.loads(given)
    except ValueError:
        return name, given


def seconds(text: str) -> float:
    """`90`, `90s`, `10m` or `2h` in seconds."""
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if factor else text
    if not number.isascii() or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 90s, 10m or 2h")
    return float(int(number) * (factor or 1))


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--url", default="", help="address of Berth (BERTH_URL)")
    everywhere.add_argument("--tenant", default="", help="slug of the tenant (BERTH_TENANT)")
    everywhere.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print"
    )
    top = argparse.ArgumentParser(
        prog="berth",
        description="Ask for devices, see where they stand, release them.",
        epilog=ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=words,
            description=f"{words[0].upper()}{words[1:]}.",
            parents=[everywhere],
            epilog=ENDS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        return made

    command("login", "keep address, tenant and token (read from the terminal or from stdin)")
    command("logout", "forget the token")
    command("templates", "list what can be asked for")

    asking = command("request", "ask for devices")
    asking.add_argument("template")
    asking.add_argument("--name", required=True)
    asking.add_argument("--namespace", required=True)
    _values(asking)
    asking.add_argument("--days", type=int, help="release it after so many days")
    asking.add_argument("--at-once", type=int, help="how many Pods use a template at the same time")
    asking.add_argument("--grant", help="id of a grant that pays for it")
    asking.add_argument("--note", help="what it is for")
    _dry_run(asking)
    _waiting(asking)

    listing = command("status", "list open claims, or show one")
    listing.add_argument("claim", nargs="?", help="id or name")
    listing.add_argument("--all", action="store_true", help="released ones too")

    waiting = command("wait", "wait for a claim")
    waiting.add_argument("claim", help="id or name")
    waiting.add_argument("--until", choices=GOALS, default="usable")
    waiting.add_argument("--timeout", type=seconds, default=600.0, help="such as 90s, 10m, 2h")

    releasing = command("release", "give claims back")
    releasing.add_argument("claim", nargs="+", help="id or name")
    _dry_run(releasing)

    command("explain", "say why a claim stands where it does").add_argument("claim")

    pasting = command("snippet", "print what to paste to use a claim")
    pasting.add_argument("claim", help="id or name")
    pasting.add_argument(
        "kind", nargs="?", default="pod", choices=("pod", "job", "deployment", "parts")
    )

    asking_what = command("whatif", "say what would come of an ask; changes nothing")
    asking_what.add_argument("template")
    asking_what.add_argument("--namespace")
    _values(asking_what)

    translating = command("translate", "put claims in the place of extended resources")
    translating.add_argument("-f", "--file", required=True, help="a manifest, or - for stdin")
    translating.add_argument("--diff", action="store_true", help="print the difference alone")
    translating.add_argument("--prove", action="store_true", help="ask the API server by a dry run")

    applying = command("apply", "bring claims to what files say; twice is once")
    applying.add_argument(
        "-f", "--file", required=True, action="append", help="a file, a folder, or - for stdin"
    )
    applying.add_argument(
        "--replace", action="store_true", help="release and ask anew where answers changed"
    )
    _dry_run(applying)
    _waiting(applying)

    command("completion", "print completion for a shell").add_argument("shell", choices=SHELLS)
    return top


def _values(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "-v", "--value", type=value, action="append", default=[], help="an answer: name=value"
    )


def _dry_run(to: argparse.ArgumentParser) -> None:
    to.add_argument("--dry-run", action="store_true", help="say what would be done; do nothing")


def _waiting(to: argparse.ArgumentParser) -> None:
    to.add_argument("--wait", choices=GOALS, nargs="?", const="usable", help="then wait for it")
    to.add_argument("--timeout", type=seconds, default=600.0, help="such as 90s, 10m, 2h")
