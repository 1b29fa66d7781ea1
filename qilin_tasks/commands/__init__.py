"""One module a command: `add_parser(subparsers)`, and arguments -> functions of the package -> printing."""
