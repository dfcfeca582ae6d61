"""Templates: what may be asked for, as questions and what their answers make. Pure."""

from devices.dra.templates.answers import BadValue, Question, answers, questions, settle
from devices.dra.templates.build import Draft, build, claim_wish, render, shape_of
from devices.dra.templates.conditions import in_words
from devices.dra.templates.content import (
    Amount,
    Choice,
    Count,
    Option,
    Parameter,
    Switch,
    Template,
    Value,
)
from devices.dra.templates.findings import Finding, Need, Report, Severity
from devices.dra.templates.problems import BadTemplate, Problem
from devices.dra.templates.publish import examples, publish_check
from devices.dra.templates.reading import read_template, stored_template
from devices.dra.templates.words import plainly, ranked, summary

__all__ = [
    "Amount",
    "BadTemplate",
    "BadValue",
    "Choice",
    "Count",
    "Draft",
    "Finding",
    "Need",
    "Option",
    "Parameter",
    "Problem",
    "Question",
    "Report",
    "Severity",
    "Switch",
    "Template",
    "Value",
    "answers",
    "build",
    "claim_wish",
    "examples",
    "in_words",
    "plainly",
    "publish_check",
    "questions",
    "ranked",
    "read_template",
    "render",
    "settle",
    "shape_of",
    "stored_template",
    "summary",
]
