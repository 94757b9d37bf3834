"""Builds the site from README and docs/ into build/site: `make docs`.

The pages are written for GitHub, which differs in two things from the generator. Links may lead to any file of the
repository, so these files are copied to the site. And headings get the anchors that GitHub would give them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
MOVED = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "lab/README.md": "laboratory.md",
}
"""Pages that have another name on the site, from the root of the repository."""
COPIED = {".md", ".svg", ".png"}
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
FROM_ELSEWHERE = re.compile(
    r"<(?:script|img|iframe)\b[^>]*\bsrc=\"https?:[^>]*>|<link\b[^>]*\brel=\"stylesheet\"[^>]*https?:"
)

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def stage() -> None:
    """Write all pages and the files that they link to into one folder."""
    shutil.rmtree(STAGED, ignore_errors=True)
    sources = [ROOT / name for name in MOVED]
    sources += [each for each in sorted(DOCS.rglob("*")) if each.suffix in COPIED and each not in sources]
    for source in sources:
        staged = _staged(source)
        staged.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            staged.write_text(_page(source), encoding="utf-8")
        else:
            shutil.copyfile(source, staged)


def _staged(source: Path) -> Path:
    """Where a file of the repository lies on the site: files from outside docs/ below `files`."""
    name = source.relative_to(ROOT).as_posix()
    if name in MOVED:
        return STAGED / MOVED[name]
    return STAGED / (source.relative_to(DOCS) if source.is_relative_to(DOCS) else Path("files", name))


def _page(source: Path) -> str:
    """The Markdown of a page, with links as they are on the site and anchors as they are on GitHub."""
    times: Counter[str] = Counter()
    lines, is_code = [], False
    for line in source.read_text(encoding="utf-8").split("\n"):
        is_code ^= line.lstrip().startswith("```")
        if is_code:
            lines.append(line)
        elif heading := re.fullmatch(r"#{1,6} (.+)", line):
            lines.append(f"{line} {{#{_anchor(heading[1], times)}}}")
        else:
            lines.append(LINK.sub(lambda link: _link(source, link), line))
    return "\n".join(lines)


def _anchor(heading: str, times: Counter[str]) -> str:
    """The anchor of a heading, with a number where one comes again."""
    shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    plain = re.sub(r"[^\w -]", "", shown.lower()).replace(" ", "-")
    times[plain] += 1
    return f"{plain}-{times[plain] - 1}" if times[plain] > 1 else plain


def _link(source: Path, link: re.Match[str]) -> str:
    target = (source.parent / link["target"]).resolve()
    if not target.is_relative_to(ROOT) or not target.is_file():
        raise SystemExit(f"{source.relative_to(ROOT)} links to {link['target']}, which is no file")
    staged = _staged(target)
    if staged.is_relative_to(STAGED / "files"):
        staged.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, staged)
    return f"{link['before']}{os.path.relpath(staged, _staged(source).parent)}{link['anchor'] or ''}"


def check() -> None:
    """The site works without a network: no page may load anything from another host."""
    pages = sorted(SITE.rglob("*.html"))
    loading = [page.relative_to(SITE) for page in pages if FROM_ELSEWHERE.search(page.read_text("utf-8"))]
    if loading:
        raise SystemExit(f"These pages load something from elsewhere: {', '.join(map(str, loading))}")


def main() -> None:
    stage()
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(COLOUR.sub("", ended.stderr))
    check()
    print(f"The site is in {SITE.relative_to(ROOT)}. To search it, serve it: python -m http.server -d build/site")


if __name__ == "__main__":
    main()
