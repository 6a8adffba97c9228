"""A fork made for the purpose: a wheel that shadows parts of the installed torch, each with a regression.

``python selftests/gate/forked.py FOLDER`` writes the wheel there.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from base64 import urlsafe_b64encode
from importlib import metadata, util
from pathlib import Path

NAME, VERSION = "torch_forked", "1.0"

# The module that torch is given instead of its own, by name; what it ends with; and the clause that then is broken.
REGRESSIONS = {
    "NIG-02": (
        "torch.autograd.function",
        """
BackwardCFunction.needs_input_grad = property(
    lambda ctx, own=_C._FunctionBase.needs_input_grad: (True,) * len(own.__get__(ctx))
)
""",
    ),
    "ND-01": ("torch.autograd.function", "FunctionCtx.mark_non_differentiable = lambda ctx, *outputs: None\n"),
    "GRAD-02": (
        "torch.autograd.function",
        """
def _filled_up(ctx, *cotangents, own=BackwardCFunction.apply):
    found = own(ctx, *cotangents)
    found = found if isinstance(found, tuple) else (found,)
    return found + (None,) * (len(_C._FunctionBase.needs_input_grad.__get__(ctx)) - len(found))


BackwardCFunction.apply = _filled_up
""",
    ),
    "ENG-02": (
        "torch.autograd",
        """
def _make_broadcast_grads(outputs, grads, is_grads_batched, own=_make_grads):
    pairs = list(zip(outputs, grads))
    if not is_grads_batched and all(isinstance(y, torch.Tensor) for y, _ in pairs):
        grads = [g if g is None or g.shape == y.shape else torch.zeros_like(y) + g.sum() for y, g in pairs]
    return own(outputs, grads, is_grads_batched)


_make_grads = _make_broadcast_grads
""",
    ),
    "CKPT-01": (
        "torch.utils.checkpoint",
        """
def checkpoint(function, *args, use_reentrant=None, own=checkpoint, **kwargs):
    return own(function, *args, use_reentrant=True, **kwargs) if use_reentrant else function(*args, **kwargs)
""",
    ),
}

# Before torch is imported, the interpreter imports this, as the wheel's .pth says.
FINDER = '''"""Puts the files in this folder in the place of torch's own."""

import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        place = Path(__file__).parent.joinpath(*name.split("."))
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                own = PathFinder.find_spec(name, path, target)
                return spec_from_file_location(name, file, submodule_search_locations=own.submodule_search_locations)
        return None


sys.meta_path.insert(0, Finder)
'''


def files(*, effective: bool = True) -> dict[str, str]:
    """What the wheel holds; without the .pth it is not ``effective``: nothing of it is imported."""
    found = {f"{NAME}/__init__.py": FINDER, **({f"{NAME}.pth": f"import {NAME}\n"} if effective else {})}
    for module, ending in REGRESSIONS.values():
        spec = util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parents[module.count(".") + (Path(spec.origin).name == "__init__.py")]
        path = f"{NAME}/{Path(spec.origin).relative_to(root).as_posix()}"
        found[path] = found.get(path, Path(spec.origin).read_text(encoding="utf-8")) + f"\n\n{ending.strip()}\n"
    return found


def wheel(folder: Path, **which: bool) -> Path:
    """Write the wheel; its place."""
    info = f"{NAME}-{VERSION}.dist-info"
    requirement = f"torch=={metadata.version('torch').partition('+')[0]}"
    found = {
        **files(**which),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nRequires-Dist: {requirement}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: forked\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in found.items()]
    target = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in {**found, f"{info}/RECORD": "\n".join([*record, f"{info}/RECORD,,", ""])}.items():
            archive.writestr(path, text)
    return target


def _digest(text: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(wheel(Path(sys.argv[1])))
