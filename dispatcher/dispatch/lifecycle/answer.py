"""Merging: one answer for a person out of all parts (pure).

`answer` is the parts' own texts in the order asked, and one plain sentence for each part that
did not succeed. It never holds JSON or an agent's raw error.
"""

from collections.abc import Mapping, Sequence

import orjson

from dispatcher.dispatch.lifecycle.option import read_options
from dispatcher.dispatch.lifecycle.request import RequestStatus, Task, TaskStatus
from dispatcher.intents.plan import Intent

SENTENCES: Mapping[str, Mapping[TaskStatus, str]] = {
    "zh": {
        TaskStatus.COMPLETED: "“{intent}”已处理完成。",
        TaskStatus.FAILED: "“{intent}”这部分没有处理成功，请稍后再试。",
        TaskStatus.NEEDS_INPUT: "要处理“{intent}”，还需要您补充信息：{reason}。",
        TaskStatus.UNAVAILABLE: "“{intent}”这部分暂时没有可用的服务，请稍后再试。",
        TaskStatus.OUT_OF_SCOPE: "“{intent}”不在我能处理的范围内。",
        TaskStatus.SKIPPED: "“{intent}”要用到“{reason}”的结果，但没有拿到，所以没有处理。",
        TaskStatus.CANCELLED: "“{intent}”这部分已取消。",
        TaskStatus.CLARIFY: "“{intent}”指的是哪一个？{reason}",
        TaskStatus.HANDED_OFF: "“{intent}”已转交人工处理，请稍后查看答复。",
        TaskStatus.OUTCOME_UNKNOWN: "“{intent}”是否已经执行还不清楚，请先核实，不要直接重试。",
    },
    "en": {
        TaskStatus.COMPLETED: "“{intent}” is done.",
        TaskStatus.FAILED: "The part “{intent}” did not work out; please try again later.",
        TaskStatus.NEEDS_INPUT: "To handle “{intent}” I still need: {reason}.",
        TaskStatus.UNAVAILABLE: "Nobody is available for “{intent}” right now; please try again later.",
        TaskStatus.OUT_OF_SCOPE: "“{intent}” is not something I can help with.",
        TaskStatus.SKIPPED: "“{intent}” needs the outcome of “{reason}”, which is missing; it was skipped.",
        TaskStatus.CANCELLED: "The part “{intent}” was cancelled.",
        TaskStatus.CLARIFY: "Which one do you mean by “{intent}”? {reason}",
        TaskStatus.HANDED_OFF: "“{intent}” was handed over to a person; please look for the answer later.",
        TaskStatus.OUTCOME_UNKNOWN: (
            "It is not known whether “{intent}” was done; please check before you try again."
        ),
    },
}
MORE = {"zh": "更多信息", "en": "more information"}
"""What an agent asks for that doesn't say what."""
QUOTED_CHARACTERS = 60
"""An intent's text is cut to this length where a sentence quotes it."""


_GOES_ON = frozenset(
    {TaskStatus.COMPLETED, TaskStatus.NEEDS_INPUT, TaskStatus.CLARIFY, TaskStatus.HANDED_OFF}
)
"""One of these is something to go on with: a result, a question, or a person who has it."""


def request_status(tasks: Sequence[Task]) -> RequestStatus:
    """How a request with these ended tasks is called.

    Completed: every part completed. Fallback: every part out of scope or with a person. Cancelled:
    some part was cancelled. Partial: some part completed, asks something or is with a person. Failed: none.
    """
    statuses = {task.status for task in tasks}
    if TaskStatus.CANCELLED in statuses:
        return RequestStatus.CANCELLED
    if statuses <= {TaskStatus.COMPLETED}:
        return RequestStatus.COMPLETED
    if statuses <= {TaskStatus.OUT_OF_SCOPE, TaskStatus.HANDED_OFF}:
        return RequestStatus.FALLBACK
    return RequestStatus.PARTIAL if statuses & _GOES_ON else RequestStatus.FAILED


def merge_answer(language: str, tasks: Sequence[Task], intents: Sequence[Intent]) -> str:
    """The answer's text, one line per part. Languages other than zh get English sentences."""
    return "\n".join(part_sentence(language, task, intents) for task in tasks)


def part_sentence(language: str, task: Task, intents: Sequence[Intent]) -> str:
    """What the answer says about one part: the agent's text where it has one to show, else a sentence."""
    has_text = task.status in (TaskStatus.COMPLETED, TaskStatus.NEEDS_INPUT) and task.result_text
    if has_text and task.result_text and not is_json(task.result_text):
        return task.result_text
    intent = intents[task.position]
    sentence = SENTENCES.get(language, SENTENCES["en"])[task.status]
    reason = _reason(language, task, intents)
    return sentence.format(intent=_quote(intent.text), reason=reason)


def is_json(text: str) -> bool:
    """Whether the text is a JSON object or array, which is nothing to show to a person."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _reason(language: str, task: Task, intents: Sequence[Intent]) -> str:
    """What is missing: a choice, fields in their schema's words, or the intent whose result did not come."""
    if task.status is TaskStatus.CLARIFY:
        return _choices(language, task)
    intent = intents[task.position]
    if task.status is TaskStatus.NEEDS_INPUT:
        asked = (task.result_data or {}).get("fields")
        fields = intent.labels or intent.missing or (asked if isinstance(asked, list) else ())
        return ", ".join(map(str, fields)) or MORE.get(language, MORE["en"])
    # At its deadline a task waits for no field in particular.
    links = [link for link in intent.links if task.reason in {None, link.field}]
    return _quote(intents[links[0].sources[0].position].text) if links else intent.text


def _choices(language: str, task: Task) -> str:
    told = enumerate((option.description for option in read_options(task.result_data)), start=1)
    between = "；" if language == "zh" else "; "
    return between.join(f"{number}. {text}" for number, text in told)


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"
