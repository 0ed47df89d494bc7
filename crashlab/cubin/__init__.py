"""Code images (CUDA ELF, "cubin"): symbols, source lines, compiler, parameters, architecture."""
