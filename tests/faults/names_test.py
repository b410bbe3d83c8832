import ast
import importlib
import inspect
from pathlib import Path

import pytest

CALLS = [
    (path.name, call)
    for path in sorted(Path(__file__).parent.glob("*.py"))
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(call, ast.Call)
    and getattr(call.func, "id", getattr(call.func, "attr", "")) == "do"
    and call.args
    and isinstance(call.args[0], ast.Constant)
]


@pytest.mark.parametrize(("path", "call"), CALLS, ids=[f"{path}:{call.lineno}" for path, call in CALLS])
def test_each_task_of_the_flow_exists_and_takes_its_arguments(path: str, call: ast.Call) -> None:
    """The kills begin after minutes: a task or an argument that was renamed must not wait for them."""
    name = ast.literal_eval(call.args[0])
    module, _, task = name.partition(":") if ":" in name else name.rpartition(".")
    function = getattr(importlib.import_module(module if ":" in name else f"pipeline.tasks.{module}"), task)
    inspect.signature(function).bind(*call.args[1:], **{keyword.arg: 0 for keyword in call.keywords if keyword.arg})
