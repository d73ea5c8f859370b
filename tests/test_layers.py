"""Data flows one way: who may import whom, who may touch the disk, what start-up may cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "sessrotate"
MODULES = sorted(SOURCE.rglob("*.py"))

# From the bottom up: a module imports only from layers below its own.
LAYERS = (
    {
        "__init__",
        "entry",
        "errors",
        "folders",
        "formats.claude_chain",
        "formats.claude_glance",
        "formats.client",
        "formats.codex_rows",
        "formats.sight",
        "harmless",
        "html_head",
        "literals",
        "model",
        "newlines",
        "records",
        "report",
        "retention",
        "schedule.work",
        "sizes",
        "view",
        "widths",
    },
    {
        "columns",
        "config_keys",
        "digest",
        "edges",
        "export.html_text",
        "export.markdown_text",
        "formats.codex_history",
        "formats.codex_items",
        "formats.codex_lineage",
        "formats.codex_said",
        "formats.opaque_reader",
        "fs.files",
        "growth",
        "jsonline",
        "jsonparts",
        "jsontext",
        "kinds",
        "lease",
        "names",
        "needle",
        "parts",
        "program",
        "prompts",
        "schedule.cron",
        "schedule.launchd",
        "schedule.systemd",
        "source",
        "zstd",
    },
    {
        "config",
        "formats.codex",
        "formats.codex_live",
        "formats.codex_view",
        "formats.gemini_rows",
        "formats.opaque",
        "fs.__init__",
        "lines",
        "report_json",
        "select",
        "settings",
    },
    {
        "config_file",
        "formats.claude",
        "formats.claude_rows",
        "formats.claude_survey",
        "formats.codex_titles",
        "formats.gemini_live",
        "formats.gemini_sight",
        "formats.gemini_view",
        "header",
        "plan",
        "run_log",
        "schedule.__init__",
        "segments",
    },
    {
        "cold_note",
        "dating",
        "formats.claude_contract",
        "formats.claude_live",
        "formats.codex_reader",
        "formats.gemini_home",
        "formats.gemini_said",
        "live",
        "manifest",
        "place",
        "scan",
        "unpacked",
    },
    {
        "formats.claude_thread",
        "formats.claude_titles",
        "formats.claude_view",
        "formats.gemini",
        "formats.gemini_reader",
        "intent",
        "inuse",
        "locks",
        "obstacles",
        "render",
    },
    {
        "export.html_record",
        "formats.claude_agents",
        "formats.claude_kinds",
        "formats.gemini_json",
        "formats.gemini_json_reader",
        "hook_notes",
        "hook_settings",
        "render_cold",
        "render_compress",
        "render_list",
        "render_report",
        "report_page",
        "told",
    },
    {"formats.claude_edges", "formats.claude_side", "history", "render_text", "residue", "writer"},
    {"formats.claude_reader", "swap"},
    {"formats.__init__"},
    {"chain", "packed"},
    {"archive", "find", "rebuild"},
    {"cold_file", "restore", "rotate", "split"},
    {"archived", "cold_pack", "state"},
    {"cold_moves", "discovery", "insert", "shelf"},
    {"compress", "prune", "seal", "stitch", "unique"},
    {
        "bodies",
        "export.__init__",
        "export.html",
        "export.jsonl",
        "export.markdown",
        "parted",
        "recover",
        "tally",
    },
    {"cold", "doctor", "foreign", "in_place"},
    {"cold_fleet", "fleet", "hook", "render_in_place", "render_prune", "session"},
    {"cli.streams", "listing", "render_run", "reporter", "steps"},
    {
        "cli.archives",
        "cli.options",
        "cli.pager",
        "cli.schedule",
        "cli.to_file",
        "report_all",
        "run",
    },
    {
        "cli.archive",
        "cli.compress",
        "cli.config",
        "cli.export",
        "cli.in_place",
        "cli.list",
        "cli.read",
        "cli.report",
        "cli.to_folder",
        "cli.unarchive",
    },
    {"cli.doctor", "cli.hook", "cli.restore", "cli.run", "cli.split", "cli.stitch", "cli.verify"},
    {"cli.pin", "cli.prune", "cli.undelete", "cli.unpin"},
    {"cli.app"},
    {"cli.__init__"},
)

PURE = {
    "cold_note",
    "columns",
    "config",
    "config_keys",
    "digest",
    "entry",
    "export.html_record",
    "export.html_text",
    "export.markdown",
    "export.markdown_text",
    "formats.codex_history",
    "formats.codex_items",
    "formats.codex_lineage",
    "formats.codex_live",
    "formats.codex_rows",
    "formats.codex_said",
    "formats.codex_view",
    "formats.gemini_live",
    "formats.gemini_rows",
    "formats.gemini_said",
    "formats.gemini_sight",
    "formats.gemini_view",
    "growth",
    "harmless",
    "header",
    "history",
    "html_head",
    "intent",
    "jsonline",
    "jsonparts",
    "jsontext",
    "kinds",
    "literals",
    "live",
    "manifest",
    "model",
    "names",
    "newlines",
    "parts",
    "plan",
    "prompts",
    "records",
    "render",
    "render_cold",
    "render_compress",
    "render_in_place",
    "render_list",
    "render_prune",
    "render_report",
    "render_run",
    "render_text",
    "report",
    "report_json",
    "retention",
    "schedule.cron",
    "schedule.launchd",
    "schedule.systemd",
    "schedule.work",
    "select",
    "settings",
    "sizes",
    "tally",
    "told",
    "view",
    "widths",
}
IMPURE = {"os", "time", "pathlib", "shutil", "subprocess", "socket", "tempfile"}

CHANGES_DISK = {
    "unlink",
    "rename",
    "replace_file",
    "mkdir",
    "rmdir",
    "link",
    "symlink",
    "symlink_to",
    "hardlink_to",
    "truncate",
    "ftruncate",
    "chmod",
    "fchmod",
    "utime",
    "write_bytes",
    "write_text",
    "fsync",
    "setxattr",
    "chown",
    "fchown",
    "touch",
    "rmtree",
    "pwrite",
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def imports_at_run_time(tree: ast.Module) -> set[str]:
    """Return what a module imports, functions' own imports included, type checking's not."""
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def internal(names: set[str]) -> set[str]:
    """Return the modules of the package among these names."""
    ours = {name_of(path) for path in MODULES}
    stripped = {
        name.removeprefix("sessrotate.") for name in names if name.startswith("sessrotate.")
    }
    packages = {
        f"{name}.__init__"
        for name in stripped
        if not any(other.startswith(f"{name}.") for other in stripped)
    }
    return {name for name in stripped | packages if name in ours}


def test_every_module_has_a_layer() -> None:
    listed = [name for layer in LAYERS for name in layer]
    assert sorted(listed) == sorted(name_of(path) for path in MODULES)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_below(path: Path) -> None:
    level = next(number for number, layer in enumerate(LAYERS) if name_of(path) in layer)
    below: set[str] = set().union(*LAYERS[:level])
    assert internal(imports_at_run_time(ast.parse(path.read_bytes()))) <= below


@pytest.mark.parametrize("name", sorted(PURE))
def test_a_pure_module_touches_no_system(name: str) -> None:
    tree = ast.parse((SOURCE / f"{name.replace('.', '/')}.py").read_bytes())
    assert {found.split(".")[0] for found in imports_at_run_time(tree)}.isdisjoint(IMPURE)


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.parent.name != "fs"], ids=name_of
)
def test_only_fs_changes_the_disk(path: Path) -> None:
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert called & CHANGES_DISK == set()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_what_it_promises(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    said = ast.get_docstring(tree) or ""
    assert said
    assert "Rule:" in said or path.parts[-2] == "cli"
    assert len(path.read_text().splitlines()) <= 350


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            "import sessrotate",
            {"typer", "rich", "sessrotate.clients.claude.client", "ijson", "json"},
        ),
        (
            "import sys; sys.argv[1:] = ['--version']; import sessrotate.cli as c; c.main()",
            {"typer", "rich", "sessrotate.clients.claude.client", "ijson"},
        ),
        (
            "import sys; sys.argv[1:] = ['hook']; import sessrotate.cli as c; c.main()",
            {
                "typer",
                "rich",
                "sessrotate.clients.claude.client",
                "sessrotate.in_place.operations",
                "filelock",
            },
        ),
        ("import sessrotate.cli.split, sessrotate.cli.stitch", {"rich", "ijson", "ctypes"}),
        (
            "import sessrotate.segments.load, sessrotate.segments.split, sessrotate.reading.stitch",
            {"typer", "rich"},
        ),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(code: str, absent: set[str]) -> None:
    # At the end, however that is come to: a command leaves by SystemExit.
    listing = f"import atexit, sys; atexit.register(lambda: print('|', *sys.modules))\n{code}"
    command = [sys.executable, "-c", listing]
    nothing = subprocess.DEVNULL
    said = subprocess.run(command, stdin=nothing, capture_output=True, check=True)
    loaded = set(said.stdout.decode().partition("|")[2].split())
    assert "sessrotate" in loaded
    assert loaded & absent == set()
