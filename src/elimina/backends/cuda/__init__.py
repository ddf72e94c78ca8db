"""The CUDA device: compiling, laying out and running programs."""
