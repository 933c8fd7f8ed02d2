"""The wheel: the program, the stubs, and the snippets of the documents."""

import ast
import importlib.metadata
import inspect
import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, SAMPLE

import shardtool as st
from shardtool import _core


def test_the_program_is_no_script_and_has_the_version_of_the_module(program):
    assert program.read_bytes()[:4] == b"\x7fELF"
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"shardtool {st.__version__}\n"


SYSTEM = {"linux-vdso", "libgcc_s", "libc", "libm", "libdl", "libpthread", "librt", "ld-linux-x86-64", "ld-linux-aarch64"}


def needed(path):
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return {Path(line.split()[0]).name.split(".so")[0] for line in listed.splitlines()}


def test_program_and_module_need_no_library_that_a_bare_system_lacks(program):
    assert needed(program) <= SYSTEM
    # `auditwheel repair` copies RE2 into the wheel.
    assert {name.split("-")[0] for name in needed(_core.__file__) - SYSTEM} <= {"libstdc++", "libre2"}


def needs_newer(path):
    """The versions of symbols that glibc 2.34 and the libstdc++ of GCC 11 do not have."""
    listed = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
    versions = re.findall(r" (GLIBC|GLIBCXX)_([0-9.]+)$", listed, re.MULTILINE)
    had = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29)}
    return re.findall("GLIBC_ABI_DT_RELR", listed) + [
        f"{library}_{version}" for library, version in versions if tuple(map(int, version.split("."))) > had[library]]


@pytest.mark.skipif(platform.libc_ver()[1] > "2.36", reason="the headers of a newer glibc name its functions")
def test_a_build_on_debian_12_fits_systems_with_glibc_2_34(program):
    assert needs_newer(program) == [] and needs_newer(_core.__file__) == []


def test_the_wheel_lists_the_libraries_that_it_holds_and_those_that_it_opens():
    (bill,) = [file for file in importlib.metadata.files("shardtool") if file.name.endswith(".cdx.json")]
    parts = {part["name"]: part["version"] for part in json.loads(bill.read_text())["components"]}
    assert parts.keys() >= {"fmt", "re2", "xxhash", "openssl", "nanobind", "robin-map"} and all(parts.values())
    opened = [line.split(";")[0] for line in importlib.metadata.requires("shardtool") if line.endswith('extra == "cuda"')]
    assert {re.split("[<>=]", name)[0] for name in opened} == {"nvidia-cuda-runtime", "nvidia-nccl-cu13", "nvidia-cublas"}


def test_nothing_imports_torch_or_numpy_unless_asked():
    text = "import shardtool as st\nst.open(sys.argv[1]).get_tensor('model.norm.weight')\n" \
           "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-S", "-c", "import sys; sys.path = sys.argv[2:]\n" + text, str(SAMPLE), *sys.path],
                   check=True)


def stub_members(node):
    return {item.name if not isinstance(item, ast.AnnAssign) else item.target.id
            for item in node.body if isinstance(item, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))}


def test_the_stubs_name_what_the_extension_has():
    stub = ast.parse((Path(st.__file__).parent / "_core.pyi").read_text())
    own = {name for name in vars(_core) if not name.startswith("__")} | {"__version__"}
    assert stub_members(stub) == own
    for node in stub.body:
        if not isinstance(node, ast.ClassDef):
            continue
        members = {name for name in vars(getattr(_core, node.name)) if not name.startswith("__")}
        assert {name for name in stub_members(node) if not name.startswith("__")} == members, node.name
    assert (Path(st.__file__).parent / "py.typed").exists()


def test_public_classes_of_the_extension_have_the_texts_of_the_stubs():
    stub = ast.parse((Path(st.__file__).parent / "_core.pyi").read_text())
    public = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name in st.__all__
              and getattr(st, node.name) is getattr(_core, node.name)]
    assert {node.name for node in public} == {"Rank", "Tensor", "TensorSlice"}
    for node in public:
        own = getattr(_core, node.name)
        assert " ".join(ast.get_docstring(node).split()) == own.__doc__
        for member in node.body:
            if not isinstance(member, ast.FunctionDef) or member.name.startswith("__"):
                continue
            text = ast.get_docstring(member)
            assert text and " ".join(text.split()) in getattr(own, member.name).__doc__, (node.name, member.name)


def test_every_public_function_has_types_and_a_text():
    for name in st.__all__:
        value = getattr(st, name)
        if inspect.isfunction(value):
            hints = inspect.signature(value)
            assert value.__doc__, name
            assert all(p.annotation is not p.empty for p in hints.parameters.values()), name


def snippets(document):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.M | re.S)


@pytest.mark.parametrize("document", ["README.md", "lib/python/README.md"])
def test_the_snippets_of_a_document_run_one_after_the_other(tmp_path, monkeypatch, document):
    texts = snippets(document)
    assert texts, "the document has no snippet"
    if any("torch" in text for text in texts):
        pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "samples").mkdir()
    shutil.copytree(SAMPLE, tmp_path / "samples" / "tiny-llama")
    monkeypatch.chdir(tmp_path)
    names = {}
    for text in texts:
        exec(compile(text, document, "exec"), names)
