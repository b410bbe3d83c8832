"""Change the code in one place, run the matching tests, and count the changes that no test sees: `make mutants`.

    python tests/mutants/run.py [--mutants N] [--seed S] [--seconds LIMIT]

Mutants are drawn evenly over the folders of `FOLDERS`, a function at most once. Each is written to a copy of the
checkout and the tests that import the changed module run there, the nearest first. Survivors are printed as a diff.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("metrics", "label", "examples", "training", "warehouse", "tasks")
SWAPS: dict[type[ast.AST], ast.AST] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt(), ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(), ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(),
    ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Div(), ast.Div: ast.Mult(), ast.And: ast.Or(),
    ast.Or: ast.And(), ast.FloorDiv: ast.Mult(), ast.BitAnd: ast.BitOr(), ast.BitOr: ast.BitAnd(),
}  # fmt: skip
ENOUGH = 4  # test files of one module; where fewer import it, those of its callers run too
SILENT = ("log", "logger", "warnings", "show", "record_rows")  # what a call of these prints is no behaviour of rows


class Mutant(NamedTuple):
    """A change of one expression: the place in the source and the text that replaces it."""

    path: Path
    function: str
    line: int
    start: int
    end: int
    text: str


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Yield every possible change of the functions of a file."""
    source = path.read_text(encoding="utf-8")
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in _walk(statement):
                    if (changed := _change(node)) is not None:
                        start = offsets[node.lineno - 1] + node.col_offset
                        end = offsets[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
                        yield Mutant(path, function.name, node.lineno, start, end, changed)


def _walk(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions below a node; f-strings have no exact places in Python 3.11, and annotations do nothing."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.FunctionDef | ast.ClassDef):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[0] in SILENT:
        return
    if isinstance(node, ast.expr):
        yield node
    for field, value in ast.iter_fields(node):
        if field != "annotation":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


def _change(node: ast.expr) -> str | None:
    """Write an expression with its first operator or value changed, or None where there is nothing to change."""
    match node:
        case ast.Compare(ops=[operator, *rest]) if type(operator) in SWAPS:
            changed: ast.AST = ast.Compare(node.left, [SWAPS[type(operator)], *rest], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in SWAPS and not isinstance(node.right, ast.JoinedStr):
            changed = ast.BinOp(node.left, SWAPS[type(operator)], node.right)
        case ast.BoolOp(op=operator):
            changed = ast.BoolOp(SWAPS[type(operator)], node.values)
        case ast.UnaryOp(op=ast.Not()):
            changed = node.operand
        case ast.Constant(value=bool() as value):
            changed = ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            changed = ast.Constant(value + 1)
        case _:
            return None
    return f"({ast.unparse(ast.fix_missing_locations(changed))})"


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """Draw mutants evenly over the folders, each function at most once."""
    generator = random.Random(seed)
    mutants: list[Mutant] = []
    for index, folder in enumerate(FOLDERS):
        share = count * (index + 1) // len(FOLDERS) - count * index // len(FOLDERS)
        candidates = [m for path in sorted((root / "pipeline" / folder).rglob("*.py")) for m in find_mutants(path)]
        generator.shuffle(candidates)
        functions: dict[tuple[Path, str], Mutant] = {}
        for mutant in candidates:
            functions.setdefault((mutant.path, mutant.function), mutant)
        mutants += list(functions.values())[:share]
    return mutants


def matching_tests(root: Path, path: Path) -> list[str]:
    """List the test files of a module, nearest first: its mirror, those that import it, those that import a caller."""
    parts = path.relative_to(root / "pipeline").with_suffix("").parts
    mirror = root.joinpath("tests", *parts[:-1], f"{parts[-1]}_test.py")
    sources = {file: file.read_text(encoding="utf-8") for file in sorted((root / "pipeline").rglob("*.py"))}
    tests = {
        file: source
        for file in sorted((root / "tests").rglob("*_test.py"))
        if "distributed" not in file.parts and "mark.alone" not in (source := file.read_text(encoding="utf-8"))
    }
    files: list[Path] = []
    modules = [path]
    while modules and len(files) < ENOUGH:
        near = {test for test, source in tests.items() if any(_imports(source, root, module) for module in modules)}
        files += sorted(near - set(files), key=lambda test: (test != mirror, test.stat().st_size))
        modules = [file for file, source in sources.items() if any(_imports(source, root, it) for it in modules)]
    return [str(test.relative_to(root)) for test in files]


def _imports(source: str, root: Path, path: Path) -> bool:
    """Say if a source imports a module, by a look at its text."""
    path = path.parent if path.name == "__init__.py" else path
    package, _, name = ".".join(path.relative_to(root).with_suffix("").parts).rpartition(".")
    return (
        f"{package}.{name} import" in source
        or f'"{package}.{name}' in source
        or any(
            name in line.replace(",", " ").split() for line in source.splitlines() if f"from {package} import" in line
        )
    )


def is_killed(root: Path, mutant: Mutant, seconds: float) -> str | None:
    """Run the matching tests on a mutant and return the first line that failed; None if all passed."""
    source = mutant.path.read_bytes()
    try:
        mutant.path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--no-header",
            "-p",
            "no:xdist",
            "-m",
            "not alone and not nightly",
        ]
        environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [*command, *matching_tests(root, mutant.path)], cwd=root, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        failures = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
        return (failures or ["failed"])[-1] if process.returncode in {1, 2} else None
    finally:
        mutant.path.write_bytes(source)


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Draw the mutants, run their tests and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--seconds", type=float, default=300, help="limit of the tests of one mutant")
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[2]
    results: Counter[tuple[str, bool]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")
        shutil.copytree(here, root, ignore=ignored)
        for mutant in draw(root, options.mutants, options.seed):
            reason = is_killed(root, mutant, options.seconds)
            name = mutant.path.relative_to(root)
            results[name.parts[1], reason is not None] += 1
            before = mutant.path.read_bytes()[mutant.start : mutant.end].decode()
            word = "killed  " if reason else "SURVIVED"
            show(f"{word} {name}:{mutant.line} {mutant.function}: {before!r} -> {mutant.text!r}  {reason or ''}"[:400])
    for folder in FOLDERS:
        killed, survived = results[folder, True], results[folder, False]
        show(f"{folder:12} {killed} of {killed + survived} killed")
    killed = sum(number for (_, is_dead), number in results.items() if is_dead)
    show(f"{killed} of {sum(results.values())} killed, {100 * killed / max(sum(results.values()), 1):.1f} %")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
