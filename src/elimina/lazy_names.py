"""Public names of a package whose modules are loaded when a name is first used."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing elimina loads this module, and importing typing would double the time
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def lazy_names(
    namespace: dict[str, object], homes: Mapping[str, Sequence[str]], packages: Sequence[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Args:
        namespace: ``globals()`` of the package, with ``__all__``.
        homes: Modules of the package with their public names.
        packages: Packages inside it that are public as well.
    """
    package = str(namespace["__name__"])
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"elimina.{home_of[name]}"), name)
        namespace[name] = value
        return value

    def names() -> list[str]:
        shown: Sequence[str] = namespace["__all__"]  # type: ignore[assignment]
        return [*shown, *packages, *(name for name in namespace if name.startswith("__"))]

    return load, names
