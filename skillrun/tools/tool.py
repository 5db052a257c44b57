"""Tool: what a model can call. In-process tools are classes or functions; their schema comes from type hints."""

from __future__ import annotations

import contextvars
import copy
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Final

from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.tools.asking import ask
from skillrun.tools.names import NAME, RESERVED_NAMESPACES, class_name
from skillrun.tools.outcome import ToolCall
from skillrun.tools.schema import NO_PARAMETERS, checked_schema
from skillrun.tools.task import Task, came_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillrun.tools.asking import Answer
    from skillrun.tools.events import Progress
    from skillrun.tools.outcome import Outcome
    from skillrun.tools.schema import Binder

MAX_RUN_TIME: Final = 600.0
"""Seconds after which a call of a Python tool counts as lost (seed 001, Long-Running Tools)."""
SPILL: Final = 10_000
"""Characters of a result beyond which it is saved to a file (seed 001, Long Results)."""
_listener: contextvars.ContextVar[Callable[[Progress], None] | None] = contextvars.ContextVar(
    "progress", default=None
)


class Tool:
    """An action a model can call. Subclass it and write `execute`; its keywords become the parameters.

    Every setting is a class attribute and is inherited as Python inherits attributes, all by that one rule; an
    instance may set its own. `tool_name` is the name, else made from the class's own. `parameters` maps names
    to JSON Schemas, or is a whole schema (with `type: object`); None reads them from the type hints of `execute`.
    `spill` is the longest result in characters that is sent whole, False for any. `timeout` is not a setting:
    Python code can't be ended; only scripts have a deadline.

    `requires_approval` wants a person's word for each call; override `needs_approval` to decide from the arguments.
    `approval_resolver` knows that word: it returns True, False, or None while nobody has said it. It is asked often,
    so it only reads. `max_run_time` is how many seconds a call may take before it counts as lost, and
    `repeatable` says that a lost one may be made again without asking; `looks` says so of `resume`, which then only
    looks how far a task is. `asks_anew` is for tools whose task is over when it asks: the call begins again.
    """

    tool_name: ClassVar[str | None] = None
    description: str = ""
    parameters: ClassVar[Mapping[str, Any] | None] = None
    namespace: str | None = None
    namespace_description: str | None = None
    defer: bool = False
    raise_on_error: bool = False
    requires_approval: bool = False
    approval_resolver: Callable[[ToolCall], bool | None] | None = None
    max_run_time: float = MAX_RUN_TIME
    repeatable: bool = False
    looks: bool = False
    asks_anew: ClassVar[bool] = False
    process_safe: bool = False
    spill: int | bool | None = None
    provider_options: ClassVar[Mapping[str, Any]] = {}
    output_schema: ClassVar[Mapping[str, Any] | None] = None
    annotations: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *, owner: Any = None) -> None:
        self.owner = owner

    @classmethod
    def model_name(cls) -> str:
        """Return the name without making a tool: the one that is set, else the class's own in snake_case."""
        return cls.tool_name or class_name(cls.__name__)

    @property
    def name(self) -> str:
        """The name within the namespace."""
        return type(self).model_name()

    @property
    def full_name(self) -> str:
        """The name the model calls: the namespace and the name joined by `_`."""
        return f"{self.namespace}_{self.name}" if self.namespace else self.name

    @property
    def about(self) -> str:
        """What the model reads about the tool: the description, else the docstring."""
        doc = "" if type(self).__doc__ is Tool.__doc__ else (type(self).__doc__ or "")
        return (self.description or doc).strip()

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return copy.deepcopy(self._checked[0])

    @functools.cached_property
    def _checked(self) -> tuple[dict[str, Any], Binder]:
        return checked_schema(self.parameters, self.execute, self.name)

    @property
    def options(self) -> dict[str, Any]:
        """What is merged into the definition as it goes to a provider, as it stands."""
        options = self.provider_options
        if not isinstance(options, dict):
            raise definition_error(self.name, "`provider_options` is no map")
        return copy.deepcopy(options)

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Do the work and return text, data, files, or `{"error": …}`. Subclasses must write it."""
        raise NotImplementedError(f"{type(self).__name__} has no `execute`")

    def resume(self, task: Task, **arguments: Any) -> Any:
        """Carry on a call that waits for a task: return its result, or a task to go on waiting."""
        raise NotImplementedError(f"{type(self).__name__} returned a task and has no `resume`")

    def task(self, state: Mapping[str, Any], *, tool_call: ToolCall | None = None) -> Task:  # noqa: ARG002 - for who overrides it
        """Return the task that `state` describes. Override it to return a class of your own."""
        return Task.load(state)

    def needs_approval(self, call: ToolCall, arguments: Mapping[str, Any]) -> bool:  # noqa: ARG002 - for who overrides it
        """Whether a person has to agree to this call, whose arguments were checked."""
        return self.requires_approval

    def ask(
        self, message: str, *, key: str | None = None, url: str | None = None, **fields: Mapping[str, Any]
    ) -> Answer:
        """Ask a person while `execute` runs; see `skillrun.tools.asking.ask`."""
        return ask(message, key=key, url=url, **fields)

    def run(self, call: ToolCall, arguments: dict[str, Any]) -> Outcome:
        """Execute with arguments that were checked, and make an outcome of what comes back."""
        return came_of(self.execute(**self._checked[1](arguments, call)))

    def carry_on(self, call: ToolCall, arguments: dict[str, Any], task: Task) -> Outcome:
        """Resume a call that waits for a task, with the arguments it was made with."""
        keywords = self._checked[1](arguments, call)
        keywords.pop("tool_call", None)
        return came_of(self.resume(task, **keywords))

    def call(
        self, arguments: Any = None, /, *, tool_call: ToolCall | None = None, **keywords: Any
    ) -> Outcome:
        """Call it once by itself, checks and errors as in a toolbox."""
        from skillrun.tools.dispatch import Dispatcher  # noqa: PLC0415 - the dispatcher imports this module

        given = keywords if arguments is None else arguments
        return Dispatcher().call(self, tool_call or ToolCall(self.name, given), given)

    def progress(self, message: str, *, value: float | None = None, total: float | None = None) -> None:
        """Say what the tool is doing; it goes nowhere when nobody listens."""
        report(message, value=value, total=total)

    @staticmethod
    def create(
        *,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        execute: Callable[[dict[str, Any]], Any],
        owner: Any = None,
        **settings: Any,
    ) -> Tool:
        """Make a tool of a function that takes all arguments as one map. The whole schema is kept and checked."""
        made = CreatedTool(name, execute, parameters or NO_PARAMETERS, owner=owner)
        return configured(made, description=description, **settings)


class CreatedTool(Tool):
    """A tool made by `Tool.create`."""

    def __init__(
        self, name: str, execute: Callable[[dict[str, Any]], Any], schema: Mapping[str, Any], *, owner: Any
    ) -> None:
        super().__init__(owner=owner)
        self._name = name
        self._function = execute
        self._schema = checked_schema(schema, None, name)[0]

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema it was given."""
        return copy.deepcopy(self._schema)

    def run(self, call: ToolCall, arguments: dict[str, Any]) -> Outcome:  # noqa: ARG002 - the one signature of all tools
        """Call the function with the map."""
        return came_of(self._function(arguments))


class FunctionTool(Tool):
    """A tool made by `@tool`; it can still be called as the function it was."""

    def __init__(
        self, function: Callable[..., Any], *, name: str | None, parameters: Mapping[str, Any] | None
    ) -> None:
        super().__init__()
        self._function = function
        self._name = name or class_name(function.__name__)
        self._schema, self._binder = checked_schema(parameters, function, self._name)
        self.__wrapped__ = function

    @property
    def name(self) -> str:
        """The function's name, or the one it was given."""
        return self._name

    @property
    def about(self) -> str:
        """The description, else the function's docstring."""
        return (self.description or self._function.__doc__ or "").strip()

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of the function's parameters."""
        return copy.deepcopy(self._schema)

    def __call__(self, *positions: Any, **keywords: Any) -> Any:
        """Call the function itself."""
        return self._function(*positions, **keywords)

    def run(self, call: ToolCall, arguments: dict[str, Any]) -> Outcome:
        """Call the function with checked arguments."""
        return came_of(self._function(**self._binder(arguments, call)))


def tool(function: Callable[..., Any] | None = None, /, *, name: str | None = None,
         parameters: Mapping[str, Any] | None = None, **settings: Any) -> Any:  # fmt: skip
    """Make a tool of a function: `@tool`, or `@tool(name=…, description=…)`. Settings are those of `Tool`."""

    def decorate(found: Callable[..., Any]) -> Tool:
        return configured(FunctionTool(found, name=name, parameters=parameters), **settings)

    return decorate if function is None else decorate(function)


def configured(made: Tool, **settings: Any) -> Tool:
    """Set settings of one tool. Raises UsageError for one that does not exist."""
    for key, value in settings.items():
        if key not in SETTINGS:
            raise definition_error(
                made.name, f"there is no setting `{key}`; there are {', '.join(sorted(SETTINGS))}"
            )
        setattr(made, key, value)
    check_tool(made)
    return made


SETTINGS: Final = frozenset({
    "description", "namespace", "namespace_description", "defer", "raise_on_error", "requires_approval", "process_safe",
    "spill", "provider_options", "output_schema", "annotations", "approval_resolver", "max_run_time", "repeatable", "looks",
})  # fmt: skip


def check_tool(made: Tool) -> None:
    """Raise UsageError for a tool that no provider would take, or that could not be told apart."""
    if not NAME.fullmatch(made.full_name):
        raise definition_error(
            made.full_name, "a name has letters, digits, `_` and `-`, a letter or `_` first, 63 at most"
        )
    if made.namespace is not None and made.namespace in RESERVED_NAMESPACES:
        raise definition_error(
            made.full_name, f"the namespace `{made.namespace}` is taken by model providers"
        )
    if made.namespace is not None and not made.namespace_description:
        raise definition_error(made.full_name, f"the namespace `{made.namespace}` needs a description")
    spill = made.spill
    if spill is True or (isinstance(spill, int) and spill is not False and spill < 1):
        raise definition_error(
            made.full_name, "`spill` is a number of characters above 0, or False for never"
        )
    made.options  # noqa: B018 - raises for what is no map


def definition_error(name: str, message: str) -> UsageError:
    """Return the error of a tool that is defined wrongly."""
    return UsageError(error("tool-definition", f"the tool `{name}`: {message}"))


def report(message: str, *, value: float | None = None, total: float | None = None) -> None:
    """Tell whoever listens to this call how far it is."""
    from skillrun.tools.events import Progress  # noqa: PLC0415 - few tools report

    tell = _listener.get()
    if tell is not None:
        tell(Progress(str(message), value, total))


def listening(tell: Callable[[Progress], None] | None) -> contextvars.Token[Any]:
    """Let a listener hear the progress of what this thread calls next."""
    return _listener.set(tell)


def silent(token: contextvars.Token[Any]) -> None:
    """Undo `listening`."""
    _listener.reset(token)
