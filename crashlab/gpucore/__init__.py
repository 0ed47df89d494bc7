"""The GPU core dump as bytes: container, tables, rows, cubins. Pure reading, no interpretation."""
