"""What the documentation shows is what the program does."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import generate_session
import sessrotate
import test_layers
from sessrotate.job import config, steps
from support import rollouts

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SESSION = "5e55107a-0000-4000-a000-000000000007.jsonl"
BIN = Path(sys.executable).parent


def examples(page: Path) -> list[tuple[str, str]]:
    """Return each command shown in a `console` block of a page, with what follows it."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def matches(shown: str, printed: str) -> bool:
    """Compare, with an ellipsis standing for anything on its line."""
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed) is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    options = generate_session.Options(size=24 << 20, boundaries=5)
    with (tmp_path / "session.jsonl").open("wb") as file:
        generate_session.generate(file, options)
    project = tmp_path / "claude" / "projects" / "-demo"
    project.mkdir(parents=True)
    shutil.copy(tmp_path / "session.jsonl", project / SESSION)
    return tmp_path


def with_codex(folder: Path) -> Path:
    """Return Codex's folder, with a session of twelve compactions that nobody used for long."""
    day = folder / "codex" / "sessions" / "2026" / "02" / "10"
    day.mkdir(parents=True)
    path = day / rollouts.NAME.format(7, 7)
    path.write_bytes(rollouts.rollout(size=1 << 20, compactions=12))
    os.utime(path, (1_770_000_000, 1_770_000_000))
    return folder / "codex"


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda p: p.name)
def test_every_example_prints_what_the_page_shows(page: Path, folder: Path) -> None:
    environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment["CLAUDE_CONFIG_DIR"] = str(folder / "claude")
    environment["HOME"] = str(folder)  # of the user's own, neither settings nor logs
    if page.name == "README.md":
        environment["CODEX_HOME"] = str(with_codex(folder))
    for command, shown in examples(page):
        done = subprocess.run(
            shlex.split(command),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert matches(shown, done.stdout + done.stderr), (command, done.stdout, done.stderr)


def test_the_readme_opens_with_the_disk_before_and_after_and_a_dry_run_follows() -> None:
    commands = [command for command, _ in examples(ROOT / "README.md")]
    measured = "du -sm claude codex"
    assert commands[:4] == [measured, "sessrotate", "sessrotate tidy --yes", measured]
    assert any(each.startswith("sessrotate rotate --dry-run") for each in commands)


def test_the_help_that_is_stored_and_shown_is_the_commands_own() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "docs.py", "--check"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_page_of_the_scheduled_job_has_the_settings_and_the_steps() -> None:
    page = (ROOT / "docs" / "guide" / "scheduling.md").read_text()
    assert f"```toml\n{config.commented()}```\n" in page
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [step.name for step in steps.STEPS]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def test_every_option_that_the_changelog_and_the_guide_name_is_there() -> None:
    guide = ROOT / "docs" / "guide"
    known = set(_OPTION.findall((guide / "cli.md").read_text()))
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(guide.glob("*.md"))):
        named = {
            option
            for code in re.findall(r"`([^`\n]+)`", page.read_text())
            if code.startswith(("sessrotate ", "--"))
            for option in _OPTION.findall(code)
        }
        assert named <= known, page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        if target.startswith("https:"):
            continue
        found = page.parent / target if target else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), (target, anchor)


def test_the_index_has_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {index.parent / each for each in re.findall(r"\]\(([^)#]+)", index.read_text())}
    assert {*index.parent.rglob("*.md")} - {index} <= linked


def test_every_test_that_a_page_names_is_there() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in PAGES:
        named = re.findall(r"`(test_\w+)`", page.read_text())
        gone = [name for name in named if f"def {name}(" not in tests]
        files = re.findall(r"`(test_\w+\.py)`", page.read_text())
        gone += [name for name in files if not [*(ROOT / "tests").rglob(name)]]
        assert gone == [], f"{page.name} names tests that were renamed or removed: change the page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_the_repository_that_a_page_names_is_there(page: Path) -> None:
    folders = "src|tests|scripts|docs|fixtures"  # X stands for a client that is added
    for path in re.findall(rf"`((?:{folders})/[\w./-]*\w)/?`", page.read_text()):
        assert (ROOT / path.partition("/X")[0]).exists(), path


# ── the map of the packages ──────────────────────────────────────────────────────────────────

DESIGN = ROOT / "docs" / "internals" / "design.md"
HOUSE = {name: may.split() for name, may in test_layers.PACKAGES.items() if name != "__init__"}


def test_the_table_of_the_design_is_that_of_the_import_test() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+? \|(.*)\|$", DESIGN.read_text(), re.MULTILINE)
    assert {name: re.findall(r"`([\w.]+)`", cell) for name, cell in rows} == HOUSE


def test_in_the_picture_of_the_design_every_import_points_down() -> None:
    picture = DESIGN.read_text().partition("```text\n")[2].partition("```")[0]
    floors: dict[str, int] = {}
    columns: dict[str, int | None] = {}
    for floor, line in enumerate(picture.splitlines()):
        cells = line.split("│")[1:-1]
        for column, cell in enumerate(cells):
            if (word := cell.split()[:1]) and word[0] in HOUSE:
                floors[word[0]] = floor
                columns[word[0]] = column if len(cells) > 1 else None
    assert floors.keys() == HOUSE.keys()
    for name, may in HOUSE.items():
        for other in (each.partition(".")[0] for each in may):
            side_by_side = {columns[name], columns[other]} == {0, 1}
            assert side_by_side or floors[name] < floors[other], (name, other)


def test_the_guide_for_contributors_has_every_package_and_every_word() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = page.partition("| package |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.+?)\|", table, re.MULTILINE)))
    assert sorted(listed) == sorted(HOUSE)
    for each in (page, DESIGN.read_text()):
        words = re.search(r"may import these top-level modules:([^.]+)\.", each)
        assert words is not None
        assert re.findall(r"`(\w+)`", words[1]) == list(test_layers.WORDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_page_names_is_there(page: Path) -> None:
    for name in re.findall(r"`((?:sessrotate\.)?\w+(?:\.\w+)+)`", page.read_text()):
        inner = name.removeprefix("sessrotate.").removesuffix(".py")
        if inner.partition(".")[0] not in {*HOUSE, *test_layers.WORDS}:
            continue
        if inner not in test_layers.MODULES:
            module, _, attribute = inner.rpartition(".")
            assert module in test_layers.MODULES, name
            source = test_layers.MODULES[module].read_text()
            assert re.search(rf"^(class |def )?{attribute}\b", source, re.MULTILINE), name


def test_the_changelog_begins_with_this_version() -> None:
    newest = re.search(r"^## (\S+) - ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == sessrotate.__version__
