"""``python -m crashlab``."""

from crashlab.cli import main

if __name__ == "__main__":
    main()
