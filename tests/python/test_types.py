"""The types of the package, as a type checker sees them in a user's file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shardtool as st

pytest.importorskip("mypy", reason="mypy is not installed")


def checked(folder, text):
    """What mypy says of a file."""
    (folder / "user.py").write_text(text)
    # Untyped packages of the environment are no matter of this file.
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*,numpy.*]\nfollow_imports = skip\n")
    environment = {**os.environ, "MYPYPATH": "", "MYPY_CACHE_DIR": str(folder / "cache")}
    return subprocess.run([sys.executable, "-m", "mypy", "user.py"], cwd=folder, capture_output=True, text=True, env=environment)


USER = """
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple
import shardtool as st

def on_progress(done: int, total: int, tensor: str) -> None:
    print(done / total, tensor)

ck = st.open(Path("out"), mesh={"tp": 8})
info = ck["model.norm.weight"]
shape: Tuple[int, ...] = info.shape
parts: List[st.Slice] = info.layout.slices(rank=3)
arguments: Dict[str, Any] = info.layout.to_dtensor()
placements: Tuple[Optional[int], ...] = info.layout.placements
with ck.rank(3, framework="pt") as f:
    names: List[str] = f.keys() + f.offset_keys()
    metadata: Optional[Dict[str, str]] = f.metadata()
    rows: Any = f.get_slice("a")[:10, ..., 3]
    size: int = len(st.open("out").get_tensor("a"))
report: st.Report = st.split("model", "out", mesh="tp=8", layout="vllm", share=(3, 8), progress=on_progress)
plan: st.Plan = st.plan(["a", Path("b")], mesh={"tp": 8})
first: st.Transfer = plan.transfers[0]
several: List[st.Transfer] = plan.transfers[1:3]
sent: int = first.src_offset + plan.bytes_moved
emitted: Dict[str, Any] = plan.to("mooncake")
proof: bool = st.validate("out", reference="model", native=True, tokens=4).ok
try:
    st.check("out", read_data=True, ignore=["ST0301"])
except st.Error as error:
    code: int = error.code
    hint: str = error.hint
    label, note = error.notes[0]
"""

WRONG = {
    'import shardtool as st\nst.split("a", "b", mesh=8)\n': "arg-type",
    'import shardtool as st\nst.open("a").rank("3")\n': "arg-type",
    'import shardtool as st\nst.plan("a", mash={"tp": 2})\n': "call-arg",
    'import shardtool as st\nst.open("a").rank(0).get_tenser("a")\n': "attr-defined",
    'import shardtool as st\nx: str = st.plan("a").transfers[0].bytes\n': "assignment",
}


def test_a_typed_user_passes_the_type_checker(tmp_path):
    run = checked(tmp_path, USER)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("text, rule", WRONG.items(), ids=WRONG.values())
def test_wrong_use_is_found_by_the_type_checker(tmp_path, text, rule):
    run = checked(tmp_path, text)
    assert run.returncode == 1 and f"[{rule}]" in run.stdout, run.stdout + run.stderr


def test_the_package_itself_passes_the_type_checker(tmp_path):
    # Where it is installed, mypy would take everything beside it for sources, too.
    source = shutil.copytree(Path(st.__file__).parent, tmp_path / "shardtool")
    run = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports", "--cache-dir",
                          tmp_path / "cache", source / "__init__.py", source / "_reports.py"], capture_output=True, text=True,
                         cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
