"""Manifests that ask by extended resource, translated: golden files, and what is never touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from devices.translation.asks import Target
from devices.translation.findings import Finding, Kind
from devices.translation.plan import Existing
from devices.translation.proof import namespaces, questions
from devices.translation.translate import LONGEST, TooLong, Translation, translate
from devices.translation.tree import value_of
from tests.devices.translation.manifests import FILES, GOLDEN, TARGETS

GPU = [Target("x.example/gpu", "gpu.example.com")]


def told(finding: Finding) -> str:
    where = f"document {finding.document}, line {finding.line}"
    return f"{finding.kind.value:<8}{finding.code:<26}{where}, {finding.about}\n    {finding.words}"


def read(text: str) -> list[object]:
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_manifest_becomes_one_with_claims(path: Path, golden: Callable[[str, str], None]) -> None:
    """The new text, the changed lines, and everything that is said about them."""
    found = translate(path.read_text(), TARGETS)
    golden(f"{GOLDEN}/{path.name}", found.text)
    golden(f"{GOLDEN}/{path.stem}.said.txt", "".join(f"{told(each)}\n" for each in found.findings))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_but_the_planned_changes(path: Path) -> None:
    """Lines that went or came are about devices; all others are as they were, in their order."""
    before = path.read_text()
    found = translate(before, TARGETS)
    gone = [line.text for line in found.lines if line.sign == "-"]
    came = [line.text for line in found.lines if line.sign == "+"]
    assert Counter(before.splitlines()) - Counter(gone) == Counter(
        found.text.splitlines()
    ) - Counter(came)
    for comment in [line.partition("# ")[2] for line in gone if "# " in line]:
        assert comment in found.text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_windows_line_ends_stay(path: Path) -> None:
    windows = path.read_text().replace("\n", "\r\n")
    assert translate(windows, TARGETS).text == translate(path.read_text(), TARGETS).text.replace(
        "\n", "\r\n"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_translated_manifest_asks_for_nothing_more(path: Path) -> None:
    once = translate(path.read_text(), TARGETS)
    twice = translate(once.text, TARGETS)
    assert twice.text == once.text and not twice.changed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_diff_leads_from_one_text_to_the_other(path: Path) -> None:
    before, found = path.read_text(), translate(path.read_text(), TARGETS)
    old, new = before.split("\n"), found.text.split("\n")
    for line in found.lines:
        if line.before is not None:
            assert old[line.before - 1] == line.text
        if line.after is not None:
            assert new[line.after - 1] == line.text


# --- what is left as it is ------------------------------------------------------------------------

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: main
    image: x
    resources:
"""


def left(text: str) -> tuple[Translation, list[tuple[str, int]]]:
    found = translate(text, GPU)
    return found, [(one.code, one.line) for one in found.of(Kind.LEFT)]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param(f"{POD}      limits: *all\n", "NOT_YAML", 9, id="an alias without an anchor"),
        pytest.param(
            "x: &all {x.example/gpu: 1}\n" + f"{POD}      limits: *all\n",
            "ALIAS",
            10,
            id="what is asked for stands elsewhere",
        ),
        pytest.param(
            "x: &all {limits: {x.example/gpu: 1}}\n" + f"{POD}      <<: *all\n",
            "ALIAS",
            10,
            id="merged in from elsewhere",
        ),
        pytest.param(
            f"{POD}      limits: &all {{x.example/gpu: 1}}\nx: *all\n",
            "ANCHOR",
            9,
            id="other places mean it too",
        ),
        pytest.param(
            f"{POD}      limits:\n        x.example/gpu: 1\n        x.example/gpu: 2\n",
            "DUPLICATE_KEY",
            11,
            id="the name stands twice",
        ),
        pytest.param(
            f"{POD}      limits: {{x.example/gpu: 1}}\n      limits: {{cpu: 1}}\n"
            "      requests: {x.example/gpu: 1}\n",
            "DUPLICATE_KEY",
            10,
            id="limits stand twice",
        ),
        pytest.param(
            f"{POD}      limits:\n\t\tx.example/gpu: 1\n", "TAB_INDENTATION", 10, id="tabs"
        ),
        pytest.param(
            f"{POD}      limits: {{x.example/gpu: 500m}}\n", "AMOUNT_NOT_WHOLE", 9, id="half of one"
        ),
        pytest.param(
            f"{POD}      limits: {{x.example/gpu: {{}}}}\n",
            "AMOUNT_NOT_READABLE",
            9,
            id="no amount",
        ),
        pytest.param(
            f"{POD}      limits: {{x.example/gpu: 2}}\n      requests: {{x.example/gpu: 1}}\n",
            "LIMIT_AND_REQUEST_DIFFER",
            9,
            id="limit and request differ",
        ),
        pytest.param(
            f"{POD}      limits: {{x.example/gpu: {{{{ .Values.cards }}}}}}\n",
            "TEMPLATE_BRACES",
            9,
            id="braces of a template as a value",
        ),
        pytest.param(
            f"{POD}      limits:\n        {{{{- if .Values.gpu }}}}\n        x.example/gpu: 1\n"
            "        {{- end }}\n",
            "TEMPLATE_BRACES",
            10,
            id="braces of a template between the lines",
        ),
        pytest.param(
            f"{POD}      limits:\n        y.example/gpu: 1\n", "NO_CLASS", 10, id="no class for it"
        ),
        pytest.param(
            f"{POD}      limits: {{x.example/gpu: 1,  # one\n        cpu: 1}}\n",
            "COMMENT_IN_BRACES",
            9,
            id="comments between braces",
        ),
        pytest.param(
            f"{POD}      claims: ~\n      limits: {{x.example/gpu: 1}}\n",
            "NOT_A_LIST",
            9,
            id="claims that are no list",
        ),
        pytest.param(
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
                for a, b in zip("abcdef", "bcdefg", strict=True)
            ),
            "ALIASES_TOO_LARGE",
            1,
            id="aliases of aliases of aliases",
        ),
        pytest.param("a: 1\n...\n---\nb: [\n", "NOT_YAML", 5, id="a list that does not end"),
        pytest.param("a: \x07\n", "NOT_YAML", 1, id="a control character"),
        pytest.param("a: \ud800\n", "NOT_TEXT", 1, id="half a character"),
        pytest.param("[" * 3000, "NOT_YAML", 1, id="three thousand brackets"),
    ],
)
def test_what_is_not_understood_is_named_and_left(text: str, code: str, line: int) -> None:
    found, codes = left(text)
    assert found.text == text and not found.changed and not found.lines
    assert codes == [(code, line)]


def test_one_bad_document_does_not_keep_the_others_back() -> None:
    good = f"{POD}      limits: {{x.example/gpu: 1}}\n"
    found, codes = left(f"a: [\n---\n{good}---\n\tb: 1\n")
    assert codes == [("NOT_YAML", 2), ("TAB_INDENTATION", 13)]
    assert found.changed and "claims: [{name: devices}]" not in found.text
    assert "resourceClaimTemplateName: p-devices" in found.text


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(TooLong, match="at most 1,000,000"):
        translate("a" * (LONGEST + 1), GPU)


def test_nothing_to_do_is_no_finding() -> None:
    found = translate("", GPU)
    assert (found.text, found.findings, found.documents) == ("", (), 0)


# --- claims that are there already ----------------------------------------------------------------

TWO = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: a
    image: x
    resources: {limits: {x.example/gpu: 2}}
  - name: b
    image: x
    resources: {limits: {x.example/gpu: 1}}
"""


def test_a_claim_of_the_tenant_takes_the_place_of_a_new_template() -> None:
    existing = Existing(
        "pair-k3x9p2mw",
        "ResourceClaimTemplate",
        (("small", "gpu.example.com", 1), ("large", "gpu.example.com", 2)),
    )
    found = translate(TWO, GPU, existing=existing)
    (pod,) = read(found.text)
    assert isinstance(pod, dict)
    assert pod["spec"]["resourceClaims"] == [
        {"name": "devices", "resourceClaimTemplateName": "pair-k3x9p2mw"}
    ]
    assert [c["resources"]["claims"][0]["request"] for c in pod["spec"]["containers"]] == [
        "large",
        "small",
    ]
    assert "MADE_OUTSIDE" not in {one.code for one in found.findings}


def test_pods_that_name_one_claim_share_its_devices() -> None:
    one = TWO.replace("gpu: 2", "gpu: 1").split("  - name: b")[0]
    existing = Existing("c-k3x9p2mw", "ResourceClaim", (("gpu", "gpu.example.com", 1),))
    found = translate(one, GPU, existing=existing)
    assert "resourceClaimName: c-k3x9p2mw" in found.text
    assert "ONE_CLAIM_SHARED" in {each.code for each in found.findings}


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param((("gpu", "gpu.example.com", 4),), id="more than is asked for"),
        pytest.param((("gpu", "other.example.com", 2),), id="of another class"),
        pytest.param((("a", "gpu.example.com", 2),), id="too few requests"),
    ],
)
def test_a_claim_that_does_not_match_is_refused(requests: tuple[tuple[str, str, int], ...]) -> None:
    found = translate(TWO, GPU, existing=Existing("c", "ResourceClaim", requests))
    assert found.text == TWO
    assert [one.code for one in found.of(Kind.LEFT)] == ["CLAIM_HAS_OTHER_DEVICES"]


# --- properties -----------------------------------------------------------------------------------

WORDS = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cs", "Cc"], include_characters="\n\t# :-'\"{}[]&*|>"
    ),
    max_size=40,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=4), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_documents_that_ask_for_nothing_come_back_byte_for_byte(
    values: list[object], flow: bool, end: str
) -> None:
    text = yaml.safe_dump_all(values, default_flow_style=flow, allow_unicode=True)
    text = text.replace("\n", end)
    found = translate(text, TARGETS)
    assert found.text == text and not found.changed


@given(st.text(max_size=200))
def test_any_text_at_all_comes_back(text: str) -> None:
    assert translate(text, TARGETS).text == text


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), max_size=2),
    st.booleans(),
    st.sampled_from([None, True]),
)
def test_containers_hold_what_they_asked_for(
    counts: list[int], starting: list[int], quoted: bool, flow: bool | None
) -> None:
    """Each container has its own devices; init containers have at least theirs, and the Pod never
    holds less than Kubernetes would have counted."""

    def container(name: str, count: int) -> dict[str, object]:
        amount = str(count) if quoted else count
        return {"name": name, "image": "x", "resources": {"limits": {"x.example/gpu": amount}}}

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "initContainers": [container(f"i{n}", count) for n, count in enumerate(starting)],
            "containers": [container(f"c{n}", count) for n, count in enumerate(counts)],
        },
    }
    text = yaml.safe_dump(pod, sort_keys=False, default_flow_style=flow)
    found = translate(text, GPU)
    template, after = read(found.text)
    assert isinstance(template, dict) and isinstance(after, dict)
    requests = {
        each["name"]: each["exactly"]["count"]
        for each in template["spec"]["spec"]["devices"]["requests"]
    }
    whole = sum(requests.values())
    seen = [
        requests.get(each["resources"]["claims"][0].get("request"), whole)
        for each in (*after["spec"]["initContainers"], *after["spec"]["containers"])
    ]
    many = len(starting)
    assert seen[many:] == counts
    assert all(got >= asked for got, asked in zip(seen[:many], starting, strict=True))
    assert whole >= max([sum(counts), *starting])


def test_numbers_are_read_as_kubernetes_reads_them() -> None:
    text = "a: 12:30\nb: 0644\nc: 1.5\nd: 2026-01-01\ne: 1e3\nf: yes\ng: 3"
    assert value_of(text) == {
        "a": "12:30",
        "b": 420,
        "c": 1.5,
        "d": "2026-01-01",
        "e": 1000.0,
        "f": True,
        "g": 3,
    }


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param("metadata: ~", id="no metadata"),
        pytest.param("metadata: text", id="metadata that is text"),
        pytest.param("metadata: {name: 5, namespace: [a]}", id="names that are none"),
        pytest.param("metadata: {name: p}\nstatus: text", id="a status that is text"),
    ],
)
def test_whatever_else_is_odd_can_be_asked_about(odd: str) -> None:
    text = POD.replace("metadata: {name: p}", odd) + "      limits: {x.example/gpu: 1}\n"
    found = translate(text, GPU)
    asked = list(questions(found.pairs, "here", "mark"))
    assert len(asked) == 4 and namespaces(found.pairs) == set()
    assert {one.obj["metadata"]["namespace"] for one in asked} == {"here"}
    assert all(one.obj["metadata"]["name"].endswith("-mark") for one in asked)


def test_a_statefulsets_pod_has_its_volumes() -> None:
    (path,) = (path for path in FILES if "statefulset" in path.stem)
    found = translate(path.read_text(), TARGETS)
    pods = [one for one in questions(found.pairs, "n", "m") if one.about.startswith("Pod of")]
    assert [[v["name"] for v in one.obj["spec"]["volumes"]] for one in pods] == [["data"]] * 2
