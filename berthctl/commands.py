"""The commands: each asks the API, prints, and returns an exit code."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from berthctl import completion, config, manifests, shown
from berthctl.applying import apply_all
from berthctl.arguments import parser
from berthctl.claims import found, until
from berthctl.outcomes import DONE, USAGE, Failure
from berthctl.service import Service


def main(words: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code."""
    arguments = parser().parse_args(words)
    try:
        return COMMANDS[arguments.command](arguments)
    except Failure as failure:
        if getattr(arguments, "output", "text") == "json":
            print(json.dumps(failure.body, indent=2))
        print("\n".join(failure.lines()), file=sys.stderr)
        return failure.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has enough, as `head` does
        return DONE
    except KeyboardInterrupt:
        return 130


def login(asked: argparse.Namespace) -> int:
    """Tries the token before it keeps it."""
    known = config.read(os.environ, url=asked.url, tenant=asked.tenant, whole=False)
    if sys.stdin.isatty():
        url = known.url or input("Address of Berth: ").strip().rstrip("/")
        tenant = known.tenant or input("Tenant: ").strip()
        token = getpass.getpass("Token (it is not shown): ").strip()
    else:
        url, tenant, token = known.url, known.tenant, sys.stdin.readline().strip()
    if not (url and tenant and token):
        raise Failure(
            "Address, tenant and token are needed.",
            "berth login --url https://… --tenant … < token",
            exit_code=USAGE,
        )
    config.check_url(url)
    made = config.Config(url, tenant, token)
    Service(made).get("claims", limit="1", fields="id")
    path = config.path_of(os.environ)
    config.write(path, made)
    return _say(asked, {"url": url, "tenant": tenant, "kept": str(path)}, f"Kept in {path}.")


def logout(asked: argparse.Namespace) -> int:
    """Takes the token out of the file; it stays valid until it is revoked."""
    path = config.path_of(os.environ)
    kept = config.read(os.environ, whole=False)
    if path.exists():
        config.write(path, replace(kept, token=""))
    words = "The token is forgotten here. Revoke it on the page Tokens if nobody needs it."
    return _say(asked, {"kept": False}, words)


def templates(asked: argparse.Namespace) -> int:
    """What can be asked for, with the names of its answers."""
    rows = _service(asked).get("templates")
    text = shown.table(
        ("TEMPLATE", "NAME", "ANSWERS"),
        [
            (one["slug"], one["name"], ", ".join(had["name"] for had in one["parameters"]))
            for one in rows
        ],
    )
    return _say(asked, rows, text)


def request(asked: argparse.Namespace) -> int:
    """One ask; with --wait the exit code is the verdict."""
    service = _service(asked)
    body = {
        "template": asked.template,
        "name": asked.name,
        "namespace": asked.namespace,
        "values": dict(asked.value),
    }
    for name in ("days", "at_once", "grant", "note"):
        if getattr(asked, name) is not None:
            body[name] = getattr(asked, name)
    made = service.act("POST", "claims", body, dry_run=asked.dry_run).body
    if asked.wait and not asked.dry_run:
        return _waited(asked, service, made["id"], asked.wait)
    words = "would be asked for" if asked.dry_run else f"asked for as {made['id']}"
    return _say(asked, made, f"{made['words']} {words}.")


def status(asked: argparse.Namespace) -> int:
    """One claim, or the list."""
    service, now = _service(asked), datetime.now(UTC)
    if asked.claim:
        one = service.get(f"claims/{found(service, asked.claim)}")
        return _say(asked, one, shown.claim(one, now))
    rows = list(service.every("claims", state="all" if asked.all else "open"))
    return _say(asked, rows, shown.claims(rows, now))


def wait(asked: argparse.Namespace) -> int:
    """Ends with 0, 3 or 4."""
    service = _service(asked)
    return _waited(asked, service, found(service, asked.claim), asked.until)


def release(asked: argparse.Namespace) -> int:
    """Several are released each by itself; the first that cannot go decides the exit code."""
    service, code, rows = _service(asked), DONE, []
    for name in asked.claim:
        try:
            public_id = found(service, name)
            one = service.act("POST", f"claims/{public_id}/release", dry_run=asked.dry_run).body
        except Failure as failure:
            if len(asked.claim) == 1:
                raise
            print("\n".join(failure.lines()), file=sys.stderr)
            code = code or failure.exit_code
            continue
        rows.append(one)
    verb = "would be released" if asked.dry_run else "is being released"
    _say(asked, rows, "\n".join(f"{one['name']} ({one['id']}) {verb}." for one in rows))
    return code


def explain(asked: argparse.Namespace) -> int:
    """Where it stands, why, and who acts."""
    service = _service(asked)
    one = service.get(f"claims/{found(service, asked.claim)}")
    text = shown.claim(one, datetime.now(UTC))
    if one["explanation"]:
        text += f"\n{shown.outlook(one['explanation'])}"
    return _say(asked, {name: one[name] for name in ("id", "state", "code", "why", "explanation")},
                text)  # fmt: skip


def snippet(asked: argparse.Namespace) -> int:
    """Plain YAML, so that it can go into kubectl."""
    service = _service(asked)
    rows = service.get(f"claims/{found(service, asked.claim)}/snippets")
    one = next(row for row in rows if row["key"] == asked.kind)
    return _say(asked, one, one["text"].rstrip("\n"))


def whatif(asked: argparse.Namespace) -> int:
    """Asks nothing and changes nothing."""
    body: dict[str, Any] = {"template": asked.template, "values": dict(asked.value)}
    if asked.namespace:
        body["namespace"] = asked.namespace
    answer = _service(asked).call("POST", "what-if", body, query={"dry_run": "true"}).body
    return _say(asked, answer, shown.what_if(answer))


def translate(asked: argparse.Namespace) -> int:
    """The manifest on stdout, what to know about it on stderr."""
    text = sys.stdin.read() if asked.file == "-" else _text(Path(asked.file))
    answer = _service(asked).call("POST", "translations", {"text": text, "prove": asked.prove}).body
    for one in answer["findings"]:
        print(f"line {one['line']}: {one['words']} ({one['code']})", file=sys.stderr)
    signs = {"added": "+", "removed": "-"}
    lines = [f"{signs.get(one['kind'], ' ')}{one['text']}" for one in answer["diff"]]
    return _say(asked, answer, "\n".join(lines) if asked.diff else answer["text"].rstrip("\n"))


def apply(asked: argparse.Namespace) -> int:
    """All files are read before anything is asked for."""
    wanted = []
    for name in asked.file:
        if name == "-":
            wanted += manifests.read(sys.stdin.read(), "stdin")
            continue
        path = Path(name)
        files = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml"), *path.rglob("*.json")])
        for file in files if path.is_dir() else [path]:
            wanted += manifests.read(_text(file), str(file))
        if path.is_dir() and not files:
            raise Failure(f"{path} has no .yaml, .yml or .json file.", exit_code=USAGE)
    service = _service(asked)
    results, code = apply_all(
        service, manifests.distinct(wanted), dry_run=asked.dry_run, replace=asked.replace
    )
    if asked.wait and not asked.dry_run:
        for one in results:
            if one["id"]:
                answer, verdict = until(service, one["id"], asked.wait, asked.timeout)
                one["verdict"], one["why"] = answer["verdict"], answer["why"]
                code = code or verdict
    lines = []
    for one in results:
        verdict = one.get("verdict", "")
        lines.append(" ".join(filter(None, (one["claim"], one["did"], one["message"], verdict))))
    _say(asked, results, "\n".join(lines))
    return code


def complete(asked: argparse.Namespace) -> int:
    """For the shell to read."""
    print(completion.script(asked.shell, parser()), end="")
    return DONE


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "login": login,
    "logout": logout,
    "templates": templates,
    "request": request,
    "status": status,
    "wait": wait,
    "release": release,
    "explain": explain,
    "snippet": snippet,
    "whatif": whatif,
    "translate": translate,
    "apply": apply,
    "completion": complete,
}


def _service(asked: argparse.Namespace) -> Service:
    return Service(config.read(os.environ, url=asked.url, tenant=asked.tenant))


def _say(asked: argparse.Namespace, body: Any, text: str) -> int:
    print(json.dumps(body, indent=2) if asked.output == "json" else text)
    return DONE


def _waited(asked: argparse.Namespace, service: Service, public_id: str, goal: str) -> int:
    answer, code = until(service, public_id, goal, asked.timeout)
    line = f"{answer['verdict']}: {answer['claim']['name']} ({public_id}) is "
    line += f"{answer['claim']['state']}"
    _say(asked, answer, f"{line}, {answer['why']}" if answer["why"] else f"{line}.")
    return code


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {error}.", exit_code=USAGE) from error
