"""Prints when a plan would be through: a real one by its number, or one of so many nodes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from migrationplan.models import CalendarFreeze, Plan, Strategy
from migrationplan.phases import Rules
from migrationplan.plans.reading import length
from migrationplan.plans.schedule import Course, NeverEnds, schedule
from migrationplan.plans.wishes import wish_from_json
from migrationplan.windows import about


class Command(BaseCommand):
    """`scheduleplan P-14`, or `scheduleplan --strategy usual --nodes 5000`."""

    help = "Prints when each wave of a plan would begin and be done, by the rules that run it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", nargs="?", help="a plan's number, such as P-14")
        parser.add_argument("--strategy", help="a strategy's name in addresses, with --nodes")
        parser.add_argument("--nodes", type=int, default=0, help="how many nodes")
        parser.add_argument("--takes", default="30m", help="how long a node is on its way")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            takes = length(options["takes"])
            waves = self._waves(options)
            calendar = [one.frozen() for one in CalendarFreeze.objects.to_come(timezone.now())]
            found = schedule(
                waves, now=timezone.now(), calendar=calendar, takes=lambda number: takes
            )
        except (ValueError, NeverEnds) as wrong:
            raise CommandError(str(wrong)) from wrong
        for number, course in enumerate(found, start=1):
            self.stdout.write(_line(number, course))
        if found:
            total = about(found[-1].done - found[0].began).removeprefix("about ")
            nodes = sum(one.nodes for one in found)
            self.stdout.write(f"{nodes} nodes in {total}, if each takes {options['takes']}")

    def _waves(self, options: dict[str, Any]) -> list[tuple[str, Rules, int]]:
        if options["plan"]:
            number = str(options["plan"]).upper().removeprefix("P-")
            plan = Plan.objects.filter(pk=number if number.isdigit() else 0).first()
            if plan is None:
                raise CommandError(f"There is no plan {options['plan']}.")
            return [(wave.name, wave.rules(), wave.nodes.count()) for wave in plan.waves.all()]
        strategy = Strategy.objects.filter(slug=options["strategy"]).first()
        if strategy is None or options["nodes"] < 1:
            raise CommandError("Name a plan, or a strategy and how many nodes.")
        left, waves = options["nodes"], []
        for wish in (wish_from_json(one) for one in strategy.waves):
            count = min(left, -(-options["nodes"] * (wish.percent or 0) // 100))
            left -= count
            rules = Rules(
                audience=wish.audience, concurrency=wish.concurrency,
                max_errors=wish.max_errors, soak=wish.soak, windows=wish.windows,
            )  # fmt: skip
            waves += [(wish.name, rules, count)] if count else []
        return waves


def _line(number: int, course: Course) -> str:
    moments = " ".join(f"{at:%Y-%m-%d %H:%M}" for at in (course.began, course.through, course.done))
    return f"{number} {course.name:<24} {course.nodes:>6} nodes  {moments}"
