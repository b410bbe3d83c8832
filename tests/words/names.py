"""Check the names of the code: `make check` runs `python -m tests.words.names`.

It fails where more than one name in a hundred is a bare participle or pointer (`found`, `told`, `where`): such a name
says what happened to a thing and not what it is. It also fails where a public function is not named by a verb, unless
NOUNS gives a reason. The words are in bare.txt and verbs.txt; docs/glossary.md has those of the field.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("pipeline", "dags")
MOST = 0.01  # of all names may be bare

BARE = frozenset(Path(__file__).with_name("bare.txt").read_text(encoding="utf-8").split())

VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
PREDICATES = frozenset({"is", "has", "can", "needs"})

NOUNS = {  # where a public function may bear a noun, and why
    "pipeline/settings.py": "a setting is read by its own name",
    "pipeline/api.py": "the public API uses the terms of the papers",
    "pipeline/commands/": "a command's function bears the name of the command",
    "pipeline/metrics/": "a measure bears the name that the papers give it",
    "pipeline/score/": "a scorer bears the name of its measure",
    "pipeline/models/impscore.py": "distances and losses bear the names of the paper's equations",
    "pipeline/models/recam/readers.py::masked_softmax": "a mathematical function bears its name",
    "pipeline/training/recam/abstractness.py::pearson": "a measure bears the name that the papers give it",
    "pipeline/training/commenting/commenters.py::perplexity": "a measure bears the name that the papers give it",
    "pipeline/cli.py": "the entry point, and the options of the command itself",
    "pipeline/tasks/daily/bounded_child.py::main": "the entry point of a process",
    "pipeline/tables/": "a rule of a contract is a statement about its rows",
    "dags/": "Airflow shows the task by its function's name",
}


class Function(NamedTuple):
    """A public function at module level."""

    path: str
    line: int
    name: str


def parse_files() -> Iterator[tuple[str, ast.Module]]:
    """Parse each module of the product; yield its path and tree."""
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*.py")):
            yield path.as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def list_names(tree: ast.AST) -> Iterator[str]:
    """List the names that a module binds: variables, parameters, attributes, functions, aliases."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def list_functions(path: str, tree: ast.Module) -> Iterator[Function]:
    """List the public functions of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield Function(path, node.lineno, node.name)


def is_verb(function: Function) -> bool:
    """Check if a function is named by a verb, or may bear a noun."""
    first_word = function.name.split("_", 1)[0]
    return first_word in VERBS | PREDICATES or any(
        f"{function.path}::{function.name}".startswith(place) for place in NOUNS
    )


def main() -> int:
    """Print the share of bare names and the functions without a verb; return 1 if either is too much."""
    bare_by_file: Counter[str] = Counter()
    words: Counter[str] = Counter()
    name_count = 0
    nouns = []
    for path, tree in parse_files():
        names = list(list_names(tree))
        bare_names = [name for name in names if name.strip("_") in BARE]
        name_count += len(names)
        words.update(bare_names)
        bare_by_file[path] += len(bare_names)
        nouns += [function for function in list_functions(path, tree) if not is_verb(function)]
    share = words.total() / name_count
    for function in nouns:
        print(
            f"{function.path}:{function.line}: {function.name}: name it by what it does, or add its verb to verbs.txt"
        )
    if share > MOST:
        for counts in (words, bare_by_file):
            print(", ".join(f"{key} {count}" for key, count in counts.most_common(20)))
        print(f"{words.total()} of {name_count} names are bare, {share:.1%}; at most {MOST:.0%} may be")
    return int(bool(nouns) or share > MOST)


if __name__ == "__main__":
    sys.exit(main())
