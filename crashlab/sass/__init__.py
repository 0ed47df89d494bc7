"""SASS: disassembly, operands, who redefines what, where an address came from."""
