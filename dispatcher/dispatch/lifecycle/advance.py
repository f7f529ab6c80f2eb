"""What a request does next: which tasks open, which end without running, and when all is done."""

from dispatcher.dispatch.lifecycle.answer import merge_answer, request_status
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.dataflow import Ask, Ready, Skip, Wait, resolve_inputs
from dispatcher.dispatch.lifecycle.request import RequestStatus, Task, TaskStatus
from dispatcher.dispatch.lifecycle.session import open_questions
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.records import replace


def advance(draft: Draft, assigner: Assigner) -> None:
    """Open or end every task whose inputs are decided, until nothing moves; then merge if all ended."""
    moved = True
    while moved:
        waiting = [task for task in draft.tasks if task.status is TaskStatus.WAITING]
        moved = sum(_advance_task(draft, task, assigner) for task in waiting) > 0
    if draft.request.status is RequestStatus.OPEN and all(t.status.is_terminal for t in draft.tasks):
        status = request_status(draft.tasks)
        draft.finish(status, merge_answer(draft.request.language, draft.tasks, draft.intents))
        if questions := open_questions(draft.tasks, draft.intents):
            draft.ask(questions)


def _advance_task(draft: Draft, task: Task, assigner: Assigner) -> bool:
    outcome = resolve_inputs(draft.intent_of(task), draft.tasks)
    if isinstance(outcome, Wait):
        return False
    if isinstance(outcome, Ready):
        assigner.open(draft, task, outcome.inputs)
        return True
    if assigner.decide(draft, task) is not None:
        draft.put_task(_ended_unopened(task, outcome))
    return True


def _ended_unopened(task: Task, outcome: Skip | Ask) -> Task:
    if isinstance(outcome, Skip):
        status, code, reason = TaskStatus.SKIPPED, "input_unavailable", outcome.field
    else:
        status, code, reason = TaskStatus.NEEDS_INPUT, "input_missing", ", ".join(outcome.fields)
    return replace(task, status=status, error_code=code, reason=reason, ranking=None)
