"""Which functions, classes and methods of the product nobody calls: a search by name through its syntax trees.

What runs when a module is loaded is called, and so is what that names, and so on; the rest is listed. Two things of one
name keep each other alive, so the list may miss some, and what stands on it deserves a look. Tests, benchmarks and
the re-exports of rooms are no callers. The public API is: the names in `rsr/__init__.pyi` and the methods
of the classes among them. So are Python and notebooks (`__len__`, `_repr_html_`), settings and templates, and the
Python examples of the manual, which users copy.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = ("rsr", "tasks", "flows")
PUBLIC_API = Path("rsr/__init__.pyi")
# Other files that name functions: "module:function" in settings, attributes in templates.
_NAMING_FILES = (
    "pyproject.toml",
    "Makefile",
    "deployments/**/*",
    "examples/**/*.yaml",
    "bin/*",
    "rsr/**/*.yaml",
    "rsr/**/templates/*",
)
_POINTER = re.compile(r"(?:[\w./]*\w:|entrypoint: [\w.]+\.)([A-Za-z_][\w.]*)")  # module:name, or a deployment
_EXAMPLE = re.compile(r"(?:^ {4}.*\n|^\n)+", re.MULTILINE)  # indented, as all code in the manual is
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Decorators that leave a function to be called by name; any other one may register it, as pydantic's validators do.
_PLAIN = {
    *dir(builtins), "dataclass", "cached_property", "abstractmethod", "contextmanager", "cache", "lru_cache", "wraps",
    "no_grad", "jit", "partial", "setter", "flow", "task", "override", "final", "total_ordering", "once_differentiable",
}  # fmt: skip


@dataclass
class Definition:
    """A function, class or method, and the names it refers to."""

    path: Path
    name: str  # with its class
    first: int
    last: int
    always: bool  # called by whoever made its class, or when the module is loaded
    names: set[str] = field(default_factory=set)
    parts: list[Definition] = field(default_factory=list)  # methods of a class

    @property
    def lines(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.path}:{self.first} {self.name} ({self.lines})"


@dataclass
class Product:
    """All definitions, the names that are used from the start, and the classes whose methods stand for a contract."""

    definitions: list[Definition]
    roots: set[str]

    @classmethod
    def read(cls, root: Path) -> Product:
        """Read the packages of the project, and the other files that name functions."""
        product = cls([], {*_named_elsewhere(root), *_named_in_manual(root)})
        trees = {
            path.relative_to(root): ast.parse(path.read_text())
            for package in PACKAGES
            for path in sorted((root / package).rglob("*.py"))
        }
        classes = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for path, tree in trees.items():
            product._add(path, tree, classes)
        if (root / PUBLIC_API).exists():
            product._publish(_public_names(ast.parse((root / PUBLIC_API).read_text())))
        return product

    def _add(self, path: Path, tree: ast.Module, classes: set[str]) -> None:
        for node in tree.body:
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                self.definitions.append(_definition(path, node, classes))
            elif not _is_reexport(path, node):
                self.roots |= set(_names(node))

    def _publish(self, names: set[str]) -> None:
        """Count the public API as called: its names, and the methods of its classes that are no inner matter."""
        self.roots |= names
        for definition in self.definitions:
            if definition.name in names:
                for part in definition.parts:
                    part.always |= not part.name.partition(".")[2].startswith("_")


def uncalled(product: Product) -> list[Definition]:
    """List what no caller reaches; of a class that none reaches, the class alone."""
    reached, names = set(), set(product.roots)
    grown = True
    while grown:
        grown = False
        for definition, owner in _all(product.definitions):
            if id(definition) in reached or not (owner is None or id(owner) in reached):
                continue
            if definition.always or definition.name.rpartition(".")[2] in names:
                reached.add(id(definition))
                names |= definition.names
                grown = True
    idle = [(definition, owner) for definition, owner in _all(product.definitions) if id(definition) not in reached]
    return [definition for definition, owner in idle if owner is None or id(owner) in reached]


def _all(definitions: Iterable[Definition]) -> Iterator[tuple[Definition, Definition | None]]:
    for definition in definitions:
        yield definition, None
        yield from ((part, definition) for part in definition.parts)


def _public_names(listed: ast.Module) -> set[str]:
    """Read the names that the library lists; rooms are no functions."""
    imports = [node for node in listed.body if isinstance(node, ast.ImportFrom) and node.module != "rsr"]
    return {name.name for node in imports for name in node.names}


def _is_reexport(path: Path, node: ast.stmt) -> bool:
    """Whether a line of an `__init__.py` only hands on names of its room."""
    is_all = isinstance(node, ast.Assign) and _last_name(node.targets[0]) == "__all__"
    return path.name == "__init__.py" and (is_all or isinstance(node, ast.Import | ast.ImportFrom))


def _definition(path: Path, node: Defining, classes: set[str], owner: ast.ClassDef | None = None) -> Definition:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    name = f"{owner.name}.{node.name}" if owner else node.name
    always = _registered(node) or _is_called_by_python(node.name)
    always |= owner is not None and _has_foreign(owner, classes)
    made = Definition(path, name, first, node.end_lineno or first, always)
    if isinstance(node, ast.ClassDef) and owner is None:
        inner = [part for part in node.body if isinstance(part, _FUNCTIONS)]
        made.parts = [_definition(path, part, classes, node) for part in inner]
        rest = [*node.decorator_list, *node.bases, *node.keywords, *(part for part in node.body if part not in inner)]
        made.names = {name for part in rest for name in _names(part)}
    else:
        made.names = set(_names(node))
    return made


def _registered(node: Defining) -> bool:
    return any(_last_name(decorator) not in _PLAIN for decorator in node.decorator_list)


def _is_called_by_python(name: str) -> bool:
    """Whether Python itself or a notebook calls functions and methods of this name."""
    return bool(re.fullmatch(r"__\w+__|_repr_\w+_", name))


def _has_foreign(owner: ast.ClassDef, classes: set[str]) -> bool:
    """Whether a class stands on other people's base class, which may call any of its methods."""
    bases = {_last_name(base) for base in owner.bases}
    return bool(bases - classes - {"object", "NamedTuple", "Generic"})


def _last_name(node: ast.AST) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a piece of code refers to, in annotations and in text of the form "module:name" too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.asname not in (None, alias.name))
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("getattr", "attrgetter", "methodcaller"):
            yield from (text for argument in node.args for text in _texts(argument))
        elif isinstance(node, ast.Constant) and (pointer := _POINTER.fullmatch(str(node.value))):
            yield from pointer[1].split(".")


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from node.value.split(".")


def _named_elsewhere(root: Path) -> Iterator[str]:
    for path in (path for pattern in _NAMING_FILES for path in sorted(root.glob(pattern)) if path.is_file()):
        text = path.read_text(errors="replace")
        if "templates" in path.parts:
            yield from _WORD.findall(text)
        for pointer in _POINTER.findall(text):
            yield from pointer.split(".")


def _named_in_manual(root: Path) -> Iterator[str]:
    for path in sorted(root.glob("docs/*.md")):
        for example in _EXAMPLE.findall(path.read_text()):
            if "import" not in example:
                continue
            try:
                yield from _names(ast.parse(textwrap.dedent(example)))
            except SyntaxError:  # a shell's example
                continue
