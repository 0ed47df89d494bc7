"""``python -m crashlab``."""

from crashlab.cli.main import main

if __name__ == "__main__":
    main()
