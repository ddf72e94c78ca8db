"""Interfaces of other packages to elimina's inference: one module for each package, imported only when it is used."""
