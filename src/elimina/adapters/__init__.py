"""Other packages' interfaces around elimina's inference: one module a package, imported only where it is used."""
