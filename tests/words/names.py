"""Check the names of the code: `make check` runs `python -m tests.words.names`.

It fails where more than one name in a hundred is a bare participle or pointer (`found`, `told`, `where`): such a name
says what happened to a thing and not what it is. It also fails where a public function is not named by a verb, unless
NOUNS gives a reason. docs/glossary.md has the words of the field.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("pipeline", "dags")
MOST = 0.01  # of all names may be bare

BARE = frozenset(
    """
    about again asked at began beside both brief brought by chosen counted done drawn each every fitted found given gone
    heard held here how it joined kept known learnt left listed looked made meant measured mine named one opened others
    ours own put said seen shown signed some such taken that theirs there this told wanted where whole written
    """.split()
)

VERBS = frozenset(
    """
    abort adapt add adjudicate align alert anonymise answer append apply ask assign audit augment average back balance
    bar begin bill bin block book bootstrap build cast check choose claim classify clean clear close cluster collect
    combine comment commit compact compare compile complete compress compute concatenate connect convert copy correct
    correlate count cover create decide decode decompose deduplicate defer delete describe descend detect discard
    disambiguate divide download draw drop embed encode ensure erase escape estimate evaluate examine exclude exit
    expire explain export extract fetch fill filter find finish fit flag flatten fold forget forgive format freeze
    gather generate get grade group guard handle hash heal hide ignore import index infer insert inspect iterate join
    judge keep label lay lemmatize limit link list load locate log look lower maintain make map mark mask match measure
    merge migrate move name need normalise note number open order overwrite pack pad pair parse pass pick pin pivot
    place plan plot poll pool post predict prefer prepare preview print propose prune publish purge push query raise
    rank rate read rebuild recall reclassify recognise recommend record recount recover redact redirect reduce refuse
    register relate release remove rename render repair repeat replace replay report request require rerun resample
    reserve reset resolve restore resume retrain retry return reverse rewrite roll round run sample save scale scan
    score scrub search seed segment select send set shorten show shuffle simulate skip sort split stage start stop store
    strip submit subtract suggest sum summarise summarize swap sweep switch tabulate take thin tighten time tokenize
    trace track train transform translate trim truncate try turn unescape unpack update upload use validate vote wait
    warn watch weigh weight widen win withdraw wrap write
    """.split()
)
PREDICATES = frozenset({"is", "has", "can", "needs"})

NOUNS = {  # where a public function may bear a noun, and why
    "pipeline/settings.py": "a setting is read by its own name",
    "pipeline/api.py": "the public API uses the terms of the papers",
    "pipeline/commands/": "a command's function bears the name of the command",
    "pipeline/metrics/": "a measure bears the name the papers give it",
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
    return first_word in VERBS | PREDICATES or any(function.path.startswith(place) for place in NOUNS)


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
        print(f"{function.path}:{function.line}: {function.name}: name it by what it does, or add its verb to VERBS")
    if share > MOST:
        for counts in (words, bare_by_file):
            print(", ".join(f"{key} {count}" for key, count in counts.most_common(20)))
        print(f"{words.total()} of {name_count} names are bare, {share:.1%}; at most {MOST:.0%} may be")
    return int(bool(nouns) or share > MOST)


if __name__ == "__main__":
    sys.exit(main())
