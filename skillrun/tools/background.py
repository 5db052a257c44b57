"""Background: a script that runs as a task. The call waits for it, with the output so far, and no caller does."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from skillrun.tools.outcome import Outcome, error_of
from skillrun.tools.task import Status, Task, came_of
from skillrun.tools.underway import underway

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillrun.running.jobs import Job, Jobs
    from skillrun.running.listener import OnOutput
    from skillrun.tools.asking import Answers
    from skillrun.tools.outcome import ToolCall

_POLL: Final = 1.0  # seconds


@dataclass(frozen=True)
class ScriptTask(Task):
    """A script in the background. Its message is the end of the output so far."""

    jobs: Jobs | None = field(default=None, compare=False, repr=False)
    here: ClassVar[bool] = True

    def refresh(self) -> ScriptTask:
        """Return the task with the output so far."""
        job = self._job()
        return self if job is None else _task(job, self.data, self.jobs)

    def cancel(self) -> ScriptTask:
        """End the script and everything it started."""
        job = self._job()
        if job is not None:
            job.cancel()
        return ScriptTask(Status.CANCELLED, "", self.data, self.poll_interval, self.jobs)

    def _job(self) -> Job | None:
        return None if self.jobs is None else self.jobs.find(self.data.get("job"))


@dataclass(frozen=True, slots=True)
class Background:
    """The scripts of one runner that are in the background."""

    jobs: Jobs

    def started(self, work: Callable[[OnOutput], Outcome], call: ToolCall) -> Outcome:
        """Start work, and return the outcome that waits for it. Raises AdmissionError when too much goes on."""
        job = self.jobs.start(lambda job: work(job.told), end=underway().cancel)
        return came_of(_task(job, {"job": job.token, "tool": call.name}, self.jobs))

    def task(self, state: Mapping[str, Any]) -> ScriptTask:
        """Return the task that a state describes."""
        return ScriptTask(
            Status(state["status"]), state["message"], state["data"], state["poll_interval"], self.jobs
        )

    def looked(self, task: Task) -> Outcome:
        """Return what came of a script, or that it still runs. Raises what its run raised."""
        job = self.jobs.find(task.data.get("job"))
        if job is None:
            # The process that had it is gone, and everything of the run with it (law 9).
            so_far = f"; its output so far:\n{task.message}" if task.message else ""
            return error_of(
                "interrupted", f"the process that ran the script has ended, and the script with it{so_far}"
            )
        if not job.done:
            return came_of(_task(job, task.data, self.jobs))
        self.jobs.forget(job)
        outcome: Outcome = job.result()
        return outcome


def _task(job: Job, data: Mapping[str, Any], jobs: Jobs | None) -> ScriptTask:
    return ScriptTask(Status.WORKING, job.output(), data, _POLL, jobs)


def answers_text(answers: Answers | None) -> str:
    """Return a person's answers as a script reads them: a map of the questions' keys; empty when there are none."""
    if answers is None or not answers.settled:
        return ""
    told = {
        one.question.key: {"accepted": one.answer.accepted, "values": dict(one.answer.values)}
        for one in answers.settled
    }
    return json.dumps(told)
