"""Clause: one sentence of a documented contract, with its source and its planted fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

# Short names of the documents that clauses cite, and where each is found below ROOT.
ROOT = "https://docs.pytorch.org/docs/stable/"
DOCUMENTS = {
    "Function": "autograd.html#torch.autograd.Function",
    "autograd": "autograd.html",
    "backward": "generated/torch.autograd.backward.html",
    "grad": "generated/torch.autograd.grad.html",
    "graph": "autograd.html#autograd-graph",
    "gradcheck": "generated/torch.autograd.gradcheck.gradcheck.html",
    "gradcheck mechanics": "notes/gradcheck.html",
    "forward_ad": "generated/torch.autograd.forward_ad.dual_level.html",
    "checkpoint": "checkpoint.html",
    "extending": "notes/extending.html",
    "extending torch.func": "notes/extending.func.html",
    "func": "func.html",
    "func.grad": "generated/torch.func.grad.html",
    "vmap": "generated/torch.func.vmap.html",
    "autograd mechanics": "notes/autograd.html",
    "amp": "amp.html",
    "amp examples": "notes/amp_examples.html",
    "library": "library.html",
    "Tensor": "tensors.html",
    "Module": "generated/torch.nn.Module.html",
    "register_parametrization": "generated/torch.nn.utils.parametrize.register_parametrization.html",
    "tutorials": "https://docs.pytorch.org/tutorials/",
    "compiler": "torch.compiler.html",
    "source": "https://github.com/pytorch/pytorch",
}

Level = Literal["documented", "observed"]


@dataclass(frozen=True)
class Clause:
    """One sentence of a contract.

    A ``documented`` clause is promised by ``document``: a name of DOCUMENTS, a colon, and the place in it. An
    ``observed`` clause is what released versions do and what implementers or forks have to keep; ``document`` says
    where it can be read. In a clause of another implementation than PyTorch, ``document`` is text and ``quote`` the
    words of the documentation. ``needs`` lists capabilities (see `implementations.protocol.CAPABILITIES`), separated by
    blanks; ``since`` is the first release with the feature. ``fault`` describes the planted fault that the clause's
    test must catch. ``untested`` and ``unplanted`` give the reason if there is no test or no planted fault.
    """

    id: str
    level: Level
    sentence: str
    document: str
    quote: str = ""
    needs: str = ""
    since: str = ""
    fault: str = ""
    untested: str = ""
    unplanted: str = ""

    @property
    def group(self) -> str:
        """The clauses that belong together: the id without its number."""
        return self.id.rsplit("-", 1)[0]


# A clause without its id, which is its key in a dialect's module.
Unnumbered = Callable[[str], Clause]


def documented(sentence: str, document: str, quote: str, fault: str = "", unplanted: str = "") -> Unnumbered:
    """A clause that the quotation from the document promises."""
    return lambda id: Clause(id, "documented", sentence, document, quote, fault=fault, unplanted=unplanted)


def observed(sentence: str, document: str, fault: str = "", unplanted: str = "") -> Unnumbered:
    """A clause that can be read in the document, without a promise."""
    return lambda id: Clause(id, "observed", sentence, document, fault=fault, unplanted=unplanted)
