"""Forms of plans: a wave, a plan, a strategy, an entry of the freeze calendar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from devices.models import NodePool
from migrationplan.models import Strategy
from migrationplan.models.reading import Gate
from migrationplan.phases import Audience, OnFailure
from migrationplan.plans.reading import length, length_text, windows, windows_text
from migrationplan.plans.wishes import WaveWish
from migrationplan.steps import Direction


class WaveForm(forms.Form):
    """One wave; `wish()` after `is_valid()`."""

    name = forms.CharField(max_length=80)
    percent = forms.IntegerField(
        min_value=1, max_value=100, required=False, label="Share of each pool, in %",
        help_text="Of what no wave before took.",
    )  # fmt: skip
    nodes = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="Names of nodes, one a line; they may change until the wave begins.",
    )
    concurrency = forms.IntegerField(min_value=1, initial=1, label="Nodes at once")
    max_errors = forms.IntegerField(
        min_value=0, initial=0, label="Nodes that may fail", help_text="0 stops at the first."
    )
    soak = forms.CharField(initial="24h", help_text="Such as 90m, 24h or 7d; 0 for none.")
    windows = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        label="Windows",
        help_text="One a line, such as Mon-Thu 22:00-04:00 Europe/Berlin. None: at any time.",
    )
    on_failure = forms.ChoiceField(
        label="When a gate or a node fails",
        choices=[(OnFailure.PAUSE.value, "Pause"), (OnFailure.ROLL_BACK.value, "Roll back")],
    )
    audience = forms.ChoiceField(
        label="Whose work",
        choices=[
            (Audience.ALL.value, "Whatever runs there"),
            (Audience.RETRYABLE.value, "Nodes with retryable work alone"),
        ],
    )
    evict_retryable = forms.BooleanField(
        required=False,
        label="End Pods that declare themselves retryable",
        help_text="By the eviction API, which respects disruption budgets. Nobody else is ended.",
    )
    approvals_needed = forms.IntegerField(
        min_value=0, max_value=5, initial=1, label="Approvals needed"
    )
    rehearsed_days = forms.IntegerField(
        min_value=0, max_value=365, required=False, label="Rollback rehearsed within, in days",
        help_text="On each of its node pools, by a drill that passed. 0 or empty: not asked.",
    )  # fmt: skip
    gates = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, by_share: bool = True, **options: Any) -> None:
        super().__init__(*args, **options)
        del self.fields["nodes" if by_share else "percent"]
        known = list(Gate.objects.filter(retired_at=None).values_list("slug", "name"))
        self.fields["gates"].choices = known  # type: ignore[attr-defined]
        if not known:
            del self.fields["gates"]

    def clean_windows(self) -> Any:
        return _read(windows, self.cleaned_data["windows"])

    def clean_soak(self) -> Any:
        return _read(length, self.cleaned_data["soak"])

    def wish(self) -> WaveWish:
        """Call it once the form is valid."""
        asked = self.cleaned_data
        return WaveWish(
            name=asked["name"],
            percent=asked.get("percent"),
            nodes=tuple((asked.get("nodes") or "").split()),
            audience=Audience(asked["audience"]),
            concurrency=asked["concurrency"],
            max_errors=asked["max_errors"],
            soak=asked["soak"],
            windows=asked["windows"],
            on_failure=OnFailure(asked["on_failure"]),
            evict_retryable=asked["evict_retryable"],
            approvals_needed=asked["approvals_needed"],
            rehearsed_days=asked["rehearsed_days"] or 0,
            gates=tuple(asked.get("gates", ())),
        )


def _read(reader: Any, text: str) -> Any:
    try:
        return reader(text)
    except ValueError as wrong:
        raise forms.ValidationError(str(wrong)) from wrong


def initial_of(wish: WaveWish) -> dict[str, Any]:
    """A wish as a form shows it."""
    return {
        "name": wish.name,
        "percent": wish.percent,
        "nodes": "\n".join(wish.nodes),
        "audience": wish.audience.value,
        "concurrency": wish.concurrency,
        "max_errors": wish.max_errors,
        "soak": length_text(wish.soak),
        "windows": windows_text(wish.windows),
        "on_failure": wish.on_failure.value,
        "evict_retryable": wish.evict_retryable,
        "approvals_needed": wish.approvals_needed,
        "rehearsed_days": wish.rehearsed_days,
        "gates": list(wish.gates),
    }


class StrategyForm(forms.Form):
    """Name and words of a strategy; its waves are forms of their own."""

    name = forms.CharField(max_length=80)
    words = forms.CharField(max_length=240, required=False, label="What it is for")


class NewStrategyForm(StrategyForm):
    """A new one has a name for addresses too."""

    slug = forms.SlugField(max_length=63, label="Name in addresses", help_text="It stays.")
    field_order = ("slug", "name")


class WaveForms:
    """The waves of a strategy, and one more; those without a name are left out."""

    def __init__(self, data: Any, wishes: Sequence[WaveWish]) -> None:
        count = len(wishes) + 1
        if data is not None:
            count = min(int(data.get("waves") or 0) if str(data.get("waves")).isdigit() else 0, 21)
        self.forms = []
        for number in range(count):
            initial = initial_of(wishes[number]) if number < len(wishes) else {"percent": 100}
            form = WaveForm(data, prefix=f"w{number}", initial=initial)
            form.fields["name"].required = False
            self.forms.append(form)

    @property
    def filled(self) -> list[WaveForm]:
        """Those with a name."""
        return [form for form in self.forms if (form["name"].value() or "").strip()]

    def is_valid(self) -> bool:
        return all([form.is_valid() for form in self.filled])

    def wishes(self) -> tuple[WaveWish, ...]:
        return tuple(form.wish() for form in self.filled)


class PlanForm(forms.Form):
    """A plan: which pools, which way, by which strategy."""

    name = forms.CharField(max_length=80, help_text="Such as H100 to DRA.")
    pools = forms.MultipleChoiceField(label="Node pools", widget=forms.CheckboxSelectMultiple)
    direction = forms.ChoiceField(
        label="Which way",
        choices=[
            (Direction.TO_DRA.value, "From the device plugin to DRA"),
            (Direction.TO_PLUGIN.value, "From DRA to the device plugin"),
        ],
    )
    strategy = forms.ChoiceField(
        help_text="Its waves become drafts that you can change one by one."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        pools, strategies = self.fields["pools"], self.fields["strategy"]
        pools.choices = list(NodePool.objects.values_list("slug", "name"))  # type: ignore[attr-defined]
        strategies.choices = list(Strategy.objects.values_list("slug", "name"))  # type: ignore[attr-defined]


class CalendarForm(forms.Form):
    """A time in which no node starts."""

    reason = forms.CharField(max_length=240, label="Why", help_text="Such as Year's end.")
    begins = forms.DateTimeField(
        help_text="In UTC.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    ends = forms.DateTimeField(
        help_text="In UTC.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    pools = forms.MultipleChoiceField(
        required=False,
        label="Node pools",
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: all of them.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["pools"].choices = list(NodePool.objects.values_list("slug", "name"))  # type: ignore[attr-defined]
