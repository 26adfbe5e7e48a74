"""`python -m fairway`."""

from fairway.cli.main import main

if __name__ == "__main__":
    main()
