"""List every message that a user can see, with file and line: `make messages`.

A message is a text that an error, a log, the terminal, a form or a help page shows. It stands for its values with their
names in braces. `--check` lists only those with a word of the old idiom or too long a sentence, and exits with 1.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("pipeline", "dags")
LONGEST = 30  # words of a sentence
OLD = re.compile(
    r"\b(tells?|told|says?|said|puts?|brings?|brought|anew|whoever|whatever|nobody|beside)\b", re.IGNORECASE
)
CALLS = {
    "report", "echo", "print", "working", "info", "warning", "error", "exception", "debug", "record_note",
    "show_progress",
}  # fmt: skip
KEYWORDS = {"help", "title", "description", "doc_md", "epilog", "short_help", "panel"}
ERROR = re.compile(r"^(BadInput|SchemaDrift|Missing|Refused|Retry|UndertoneError|ValueError|\w+Error|Exit)$")
_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.ClassDef)
_QUOTED = re.compile(r"`[^`]*`|\{[^}]*\}|'[^']*'|\"[^\"]*\"|“[^”]*”")


class Message(NamedTuple):
    """A text that users see."""

    path: str
    line: int
    text: str


def list_messages(path: Path) -> Iterator[Message]:
    """List the messages of a module in the order of their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = [
        node.body[0].value for node in ast.walk(tree) if isinstance(node, _DOCUMENTED) and ast.get_docstring(node)
    ]
    nodes = list(_list_arguments(tree))
    if path.parts[0] == "dags" or "commands" in path.parts:  # shown as help, and in the UI
        nodes += docstrings
    elif "report" in path.parts:  # sentences of pages
        nodes = [text for text in _list_texts(tree) if text not in docstrings]
    texts = {(text.lineno, _render(text)) for node in nodes for text in _list_texts(node)}
    for line, text in sorted(texts):
        if " " in text:
            yield Message(path.as_posix(), line, text)


def _list_arguments(tree: ast.Module) -> Iterator[ast.expr]:
    """List the arguments of calls that show a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CALLS or ERROR.match(name):
                yield from node.args
            yield from (keyword.value for keyword in node.keywords if keyword.arg in KEYWORDS)


def _list_texts(node: ast.AST) -> Iterator[ast.expr]:
    """List the outermost texts within a node."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _list_texts(child)


def _render(node: ast.expr) -> str:
    """Render a text on one line, with the expressions of its values in braces."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    values = [str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}" for part in parts]  # type: ignore[attr-defined]  # a text or a value
    return " ".join("".join(values).split())


def is_hard_to_read(message: Message) -> bool:
    """Check if a message has a word of the old idiom or a sentence that is too long."""
    text = _QUOTED.sub("it", message.text)
    sentences = re.split(r"[.:;!?]\s|- ", text)
    return bool(OLD.search(text)) or any(len(sentence.split()) > LONGEST for sentence in sentences)


def main() -> int:
    """Print the messages; with `--check`, those that are hard to read, and return 1 if there are any."""
    is_check = "--check" in sys.argv[1:]
    messages = [
        message for folder in FOLDERS for path in sorted(Path(folder).rglob("*.py")) for message in list_messages(path)
    ]
    shown = [message for message in messages if not is_check or is_hard_to_read(message)]
    for message in shown:
        print(f"{message.path}:{message.line}: {message.text}")
    return int(is_check and bool(shown))


if __name__ == "__main__":
    sys.exit(main())
