"""Many models over many tasks in one command: what is asked of whom, what is done already, and what came out."""
