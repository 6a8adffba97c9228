"""Objects as a recorded call had them."""

from __future__ import annotations

from typing import Any, TypeVar

_Any = TypeVar("_Any")


def restored(cls: type[_Any], **attributes: Any) -> _Any:
    """An object of a class with these attributes, made without its `__init__`.

    `record` writes it for objects of which the attributes are known, and the arguments of the class are not.
    """
    made = cls.__new__(cls)
    module: Any = next((base for base in cls.__mro__ if base.__module__ == "torch.nn.modules.module"), None)
    if module is None:
        made.__dict__.update(attributes)
        return made
    # A layer registers the layers and parameters that it gets.
    module.__init__(made)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made
