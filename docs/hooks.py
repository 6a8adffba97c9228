"""What the site shows from data: MkDocs calls these functions while it builds.

A page says where with a comment:

* ``<!-- sentence -->``: the sentence of the property that the page is about
* ``<!-- fault NAME -->``, ``<!-- output NAME -->``, ``<!-- fix NAME -->``: the parts of docs/faults/NAME.py and .txt
* ``<!-- table of properties -->``, ``<!-- table of verdicts -->``, ``<!-- pages of clauses -->``
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FAULTS = DOCS / "faults"

# Pages of the site that are kept at the root of the repository.
AT_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
_LANGUAGES = {".py": "python", ".txt": "text", ".json": "json", ".ini": "ini", ".toml": "toml"}

# The package, whatever the name of the folder that the checkout is in.
_links = tempfile.TemporaryDirectory(prefix="autograd-conformance-docs-")
(Path(_links.name) / "autograd_conformance").symlink_to(ROOT)
sys.path.insert(0, _links.name)

from autograd_conformance.harness import catalogue  # noqa: E402
from autograd_conformance.harness.check.report.verdicts import MEANINGS  # noqa: E402
from autograd_conformance.reference.clauses import CONTRACT, DIALECTS  # noqa: E402
from autograd_conformance.reference.clauses.definitions import DOCUMENTS, Clause  # noqa: E402
from autograd_conformance.reference.clauses.definitions import ROOT as DOCUMENTATION  # noqa: E402
from autograd_conformance.reference.properties import PROPERTIES  # noqa: E402

# A verdict in an output, as check prints it.
_VERDICT = re.compile(rf"\b({'|'.join(map(str.upper, MEANINGS))})(?=: )")


def on_config(config: MkDocsConfig) -> None:
    """Let mkdocstrings find the package, and put the pages of folders into the navigation."""
    config.plugins["mkdocstrings"].config["handlers"]["python"]["paths"] = [_links.name]
    config["nav"] = [_expanded(entry) for entry in config["nav"]]


def _expanded(entry: Any) -> Any:
    if isinstance(entry, str):
        return entry
    ((title, inside),) = entry.items()
    if isinstance(inside, list):
        return {title: [_expanded(each) for each in inside]}
    return {title: list(_pages_in(inside)) if inside.endswith("/") else inside}


def _pages_in(folder: str) -> Iterator[str]:
    names = {path.name for path in (DOCS / folder).glob("*.md")} - {"index.md"}
    if folder == "clauses/":
        names |= {f"{name}.md" for name in _clauses()}
    known = [f"{name}.md" for name in (*PROPERTIES, *_clauses())]
    order = [name for name in known if name in names] + sorted(names - set(known))
    yield from (folder + name for name in ("index.md", *order))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of clauses, those kept elsewhere, and one for each file that a page links to."""
    texts = {f"clauses/{name}.md": _page_of(name, clauses) for name, clauses in _clauses().items()}
    texts |= {target: _moved(ROOT.joinpath(name).read_text("utf-8"), target) for name, target in AT_ROOT.items()}
    texts |= {target: _shown(path) for target, path in _linked().items()}
    for target, text in texts.items():
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in what a page asks for."""
    uri = page.file.src_uri
    name = PurePosixPath(uri).stem
    if name in PROPERTIES:
        markdown = markdown.replace("<!-- sentence -->", f"> {_sentence(PROPERTIES[name].sentence)}")
    if name in PROPERTIES or uri.startswith("verdicts/"):
        # Outputs need the width, and these pages are short.
        page.meta["hide"] = ["toc"]
    markdown = markdown.replace("<!-- table of properties -->", _table())
    markdown = markdown.replace("<!-- table of verdicts -->", _verdicts())
    markdown = markdown.replace("<!-- pages of clauses -->", _contents())
    markdown = re.sub(r"<!-- (fault|output|fix) ([\w-]+) -->", lambda found: _part(found[1], found[2]), markdown)
    return _relinked(markdown, uri)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Link the words of verdicts in outputs to their pages."""
    folder = posixpath.dirname(page.file.dest_uri) or "."

    def linked(found: re.Match[str]) -> str:
        target = f"verdicts/{found[0].lower().replace(' ', '-')}.html"
        return f'<a href="{posixpath.relpath(target, folder)}">{found[0]}</a>'

    return re.sub(r'<span class="go">.*?</span>', lambda line: _VERDICT.sub(linked, line[0]), html, flags=re.S)


# Properties.


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table() -> str:
    lines, group = [], ""
    for property in PROPERTIES.values():
        if property.group != group:
            group = property.group
            lines += ["", f"## {group[0].upper()}{group[1:]}", "", "| property | what must hold |", "| --- | --- |"]
        lines.append(f"| [{property.id}]({property.id}.md) | {_escaped(_sentence(property.sentence))} |")
    return "\n".join(lines)


def _verdicts() -> str:
    rows = [f"| [{word}]({word.replace(' ', '-')}.md) | {meaning} |" for word, meaning in MEANINGS.items()]
    return "\n".join(["| verdict | meaning |", "| --- | --- |", *rows])


def _part(kind: str, name: str) -> str:
    """The code of a fault, what the suite says about it, or the code that is right."""
    if kind == "output":
        return f"```console\n{FAULTS.joinpath(f'{name}.txt').read_text('utf-8').strip()}\n```"
    code = FAULTS.joinpath(f"{name}.py").read_text("utf-8").partition('"""\n\n')[2]
    code, said = re.split(r"^(?=(?:faulty|shown_by) = )", code, maxsplit=1, flags=re.M)
    faulty, _, fixed = code.partition("# Fixed:")
    declared = said.partition("\nfixed = ")[0] if said.startswith("faulty") else ""
    shown = (fixed if kind == "fix" else faulty.rstrip() + "\n\n\n" + declared).strip()
    return f"```python\n{shown}\n```"


# Clauses.


def _clauses() -> dict[str, list[Clause]]:
    """The clauses of each page: a group of the contract, or all of another implementation's own."""
    found: dict[str, list[Clause]] = {}
    for clause in CONTRACT.values():
        found.setdefault(clause.group, []).append(clause)
    return found | {name: list(clauses.values()) for name, clauses in DIALECTS.items()}


def _contents() -> str:
    rows = [
        f"| [{name}]({name}.md) | {len(members)} | {_escaped(_about(members))} |"
        for name, members in _clauses().items()
    ]
    return "\n".join(["| page | clauses | the first one |", "| --- | --- | --- |", *rows])


def _about(members: list[Clause]) -> str:
    return members[0].sentence


def _page_of(name: str, clauses: list[Clause]) -> str:
    owner = f"{name}'s own documentation" if name in DIALECTS else "PyTorch's contract"
    lines = [f"# {name}", "", f"Clauses of {owner}. [All clauses](index.md)"]
    for clause in clauses:
        lines += ["", f"## {clause.id}", "", _escaped(clause.sentence), "", *_facts(clause, name)]
    return "\n".join(lines) + "\n"


def _facts(clause: Clause, page: str) -> Iterator[str]:
    yield f"* **{clause.level}**: {_source(clause, page)}"
    if clause.quote:
        yield f"* **quote**: {_escaped(clause.quote)}"
    if clause.since:
        yield f"* **since**: {clause.since}"
    if clause.needs:
        yield f"* **needs**: {', '.join(f'`{need}`' for need in clause.needs.split())}"
    yield f"* **planted fault**: {_escaped(clause.fault or clause.unplanted or 'see selftests/faults/dialects')}"
    tests = catalogue.tests_by_clause()[clause.id]
    yield f"* **tests**: {', '.join(f'`{test}`' for test in tests) or _escaped(clause.untested)}"


def _source(clause: Clause, page: str) -> str:
    name, colon, place = clause.document.partition(":")
    if page in DIALECTS or name not in DOCUMENTS:
        return _escaped(clause.document)
    return f"[{name}]({posixpath.join(DOCUMENTATION, DOCUMENTS[name])}){colon}{_escaped(place)}"


def _escaped(text: str) -> str:
    """Text with the marks that Markdown would take for its own escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if n % 2 else re.sub(r"[*_<\[|]", r"\\\g<0>", part) for n, part in enumerate(parts))


# Links to files outside of docs.


def _relinked(markdown: str, uri: str) -> str:
    """The text with each link to a file of the repository turned into one to the page that shows it."""

    def relinked(found: re.Match[str]) -> str:
        path = _outside(found[1], DOCS / uri)
        if path is None:
            return found[0]
        return f"]({os.path.relpath(_page_for(path), posixpath.dirname(uri) or '.')}{found[2] or ''})"

    return _LINK.sub(relinked, markdown)


def _outside(link: str, page: Path) -> Path | None:
    """The file of the repository that a link leads to, None for pages of the site and for other sites."""
    path = Path(os.path.normpath(page.parent / link))
    return path if "://" not in link and path.is_file() and DOCS not in path.parents else None


def _page_for(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return AT_ROOT.get(name, f"repository/{name}.md")


def _linked() -> dict[str, Path]:
    """The files of the repository that pages link to, by the page that shows each."""
    sources = [*DOCS.rglob("*.md"), *(ROOT / name for name in AT_ROOT)]
    found = (_outside(link[1], page) for page in sources for link in _LINK.finditer(page.read_text("utf-8")))
    return {_page_for(path): path for path in found if path is not None and path.name not in AT_ROOT}


def _shown(path: Path) -> str:
    name, language = path.relative_to(ROOT).as_posix(), _LANGUAGES.get(path.suffix, "")
    code = path.read_text("utf-8").rstrip()
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path.name}\n\n`{name}`\n\n````{language}\n{code}\n````\n"


def _moved(text: str, target: str) -> str:
    """The text of a page at the root, with links as seen from its place in the site."""

    def moved(found: re.Match[str]) -> str:
        path = ROOT / found[1]
        if "://" in found[1] or not path.is_file():
            return found[0]
        return f"]({os.path.relpath(path, (DOCS / target).parent)}{found[2] or ''})"

    return _LINK.sub(moved, text)
